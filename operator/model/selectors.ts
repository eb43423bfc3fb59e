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

const LABEL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const LABEL_PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Problems of a selector by the rules of Kubernetes, whose schema accepts any operator and any text. */
export function selectorProblems({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string[] {
  const labels = Object.entries(matchLabels).flatMap(([key, value]) => [...keyProblems(key), ...valueProblems(value)])
  const expressions = matchExpressions.flatMap(({ key, operator, values = [] }) => [
    ...keyProblems(key),
    ...operatorProblems(key, operator, values),
    ...values.flatMap(valueProblems),
  ])
  return [...labels, ...expressions]
}

function keyProblems(key: string): string[] {
  const [name = '', prefix, more] = key.split('/').toReversed()
  const isFine = more === undefined && LABEL_NAME.test(name) && (prefix === undefined || (prefix.length <= 253 && LABEL_PREFIX.test(prefix)))
  return isFine ? [] : [`"${key}" is not a label key`]
}

const valueProblems = (value: string): string[] => (value === '' || LABEL_NAME.test(value) ? [] : [`"${value}" is not a label value`])

function operatorProblems(key: string, operator: string, values: readonly string[]): string[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values.length > 0 ? [] : [`${operator} of label ${key} needs values`]
    case 'Exists':
    case 'DoesNotExist':
      return values.length === 0 ? [] : [`${operator} of label ${key} takes no values`]
    default:
      return [`${operator} of label ${key} is none of In, NotIn, Exists, DoesNotExist`]
  }
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
