import { NAMESPACE_NAME_LABEL } from '../source/core.ts'
import type { LabelSelector, NamespaceRule } from '../source/gateway-api.ts'
import type { Snapshot } from '../source/snapshot.ts'

type Labels = Readonly<Record<string, string>>

/** Kubernetes label selector; an absent selector matches nothing, an empty one everything. An unknown operator matches nothing. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (!selector) return false
  if (!matchesLabels(selector.matchLabels ?? {}, labels)) return false
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const value = labels[key]
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value)
      case 'NotIn':
        return value === undefined || !values.includes(value)
      case 'Exists':
        return value !== undefined
      case 'DoesNotExist':
        return value === undefined
      default:
        return false
    }
  })
}

export function matchesLabels(wanted: Labels, labels: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value)
}

/** Labels of a namespace; the API server sets the name label, a directory may have no Namespace object at all. */
export function namespaceLabels(snapshot: Snapshot, namespace: string): Labels {
  return { ...snapshot.get('Namespace', '', namespace)?.metadata.labels, [NAMESPACE_NAME_LABEL]: namespace }
}

/** Whether `rule`, written in an object of namespace `own`, admits `namespace`. */
export function admitsNamespace(snapshot: Snapshot, rule: NamespaceRule, own: string, namespace: string): boolean {
  switch (rule.from) {
    case 'All':
      return true
    case 'Same':
      return own === namespace
    case 'Selector':
      return matchesSelector(rule.selector, namespaceLabels(snapshot, namespace))
    default:
      return false
  }
}
