import { withCode, withoutCodes } from '#api/messages/code.ts'
import { SHADOWED } from '#api/names.ts'
import { describeShadow, nameOfWinner, type Rule, type Shadow } from '#api/routing/shadows.ts'
import { suggest } from '#api/suggest.ts'
import type { Translation } from '../model/translation.ts'
import type { Load, Place } from '../source/reader.ts'
import { findTroubles, type ConditionReport } from './report.ts'

/** A problem of manifests, with its position if a file holds the object. */
export interface ObjectFinding {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly message: string
  readonly place: Place | undefined
}

/** A condition that reports a problem. */
export interface ConditionFinding extends ConditionReport {
  readonly place: Place | undefined
  /** Another condition reports the cause. */
  readonly isConsequence: boolean
}

type Manifests = Pick<Load, 'snapshot' | 'locate'>

/** The conditions that report a problem, each with its position, in the order of `findTroubles`; those about matches without requests are in `findOverlaps`. */
export function findConditions(load: Manifests, translation: Translation): ConditionFinding[] {
  const reported = findTroubles(translation.statuses).filter(({ type }) => type !== SHADOWED)
  // Messages quote others without their codes.
  const troubles = reported.map((trouble) => ({ ...trouble, message: withoutCodes(trouble.message) }))
  const causes: ConditionReport[] = []
  return troubles.map((trouble, index) => {
    const isConsequence = troubles.some((other) => other !== trouble && isCauseOf(other, trouble)) || causes.some((cause) => isSameProblem(cause, trouble))
    if (!isConsequence) causes.push(trouble)
    return { ...trouble, message: reported[index]?.message ?? trouble.message, place: locateTrouble(load, trouble), isConsequence }
  })
}

/** `web` of `Gateway default/web/https`. */
const objectName = ({ name }: ConditionReport): string => name.split('/', 1)[0] ?? name
const isListener = ({ name }: ConditionReport): boolean => name.includes('/')
const isAbout = (a: ConditionReport, b: ConditionReport): boolean => a.kind === b.kind && a.namespace === b.namespace && objectName(a) === objectName(b)

/** Whether a condition of one object follows from that of another: of a Gateway from its listeners, of a route from the listeners, of a policy from its route. */
function isCauseOf(cause: ConditionReport, trouble: ConditionReport): boolean {
  if (isListener(trouble)) return false
  if (isListener(cause) && isAbout(cause, trouble)) return trouble.message.includes(cause.message)
  if (trouble.reason === 'NoMatchingParent') return isListener(cause) && trouble.message.includes(cause.message)
  return trouble.type === 'Attached' && cause.type !== 'Attached' && trouble.message.includes(`${cause.kind} ${cause.namespace}/${cause.name} `)
}

/** Whether an earlier condition of the same object, or of a listener that it conflicts with, has reported the problem. */
function isSameProblem(earlier: ConditionReport, trouble: ConditionReport): boolean {
  if (!isAbout(earlier, trouble)) return false
  if (earlier.name === trouble.name) return trouble.message === earlier.message
  const conflict = ' is also taken by listener '
  const [place, others = ''] = earlier.message.split(conflict)
  const listener = trouble.name.slice(objectName(trouble).length + 1)
  return others.split(', ').includes(listener) && trouble.message.split(conflict)[0] === place
}

/** The field that a message names, the listener, or the name of the object. */
function locateTrouble({ snapshot, locate }: Manifests, trouble: ConditionReport): Place | undefined {
  const { kind, namespace, message } = trouble
  const name = objectName(trouble)
  const at = (path: readonly (string | number)[]): Place | undefined => locate(kind, namespace, name, path)
  const spec = ((snapshot.get(kind as 'Gateway', namespace, name) as { spec?: object } | undefined)?.spec ?? {}) as Record<string, unknown>
  if (isListener(trouble) && Array.isArray(spec['listeners'])) {
    const listener = trouble.name.slice(name.length + 1)
    return at(['spec', 'listeners', spec['listeners'].findIndex((each: { name?: string }) => each.name === listener), 'name'])
  }
  const path = fieldPathOf(message)
  return Object.hasOwn(spec, path[0] ?? '') ? at(['spec', ...path]) : at(['metadata', 'name'])
}

/** The field that a message names: `['traffic', 'timeouts', 0]` of `traffic.timeouts[0]: ...`; empty if none. */
export function fieldPathOf(message: string): (string | number)[] {
  const [, field = ''] = /(?:^|\s)([A-Za-z]\w*(?:\.\w+|\[\d+\])+)(?:: | is )/.exec(message) ?? []
  return field.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]))
}

const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TCPRoute', 'TLSRoute'] as const

/** Routes without a parentRef to an object of the manifests: no controller would write their status. */
export function findStrayRoutes({ snapshot, locate }: Manifests, translation: Translation): ObjectFinding[] {
  const known = new Set(translation.statuses.map(({ kind, namespace = '', name }) => `${kind} ${namespace}/${name}`))
  return routeKinds.flatMap((kind) =>
    snapshot.list(kind).flatMap(({ metadata: { namespace, name }, spec }): ObjectFinding[] => {
      if (known.has(`${kind} ${namespace}/${name}`)) return []
      const route = { kind, namespace, name }
      const parents = spec.parentRefs ?? []
      if (parents.length === 0)
        return [{ ...route, message: withCode('no parentRefs: no Gateway serves it', 'PX1114'), place: locate(kind, namespace, name, ['spec']) }]
      const parentRefs = parents.map((parent) => ({ kind: parent.kind ?? 'Gateway', namespace: parent.namespace ?? namespace, name: parent.name }))
      const missing = parentRefs.map((parent) => `${parent.kind} ${parent.namespace}/${parent.name}`)
      const near = parentRefs.flatMap((parent) => {
        const others = snapshot.list('Gateway').filter(({ metadata }) => metadata.namespace === parent.namespace)
        return (
          (parent.kind === 'Gateway'
            ? suggest(
                parent.name,
                others.map(({ metadata }) => metadata.name),
              )
            : undefined) ?? []
        )
      })
      const hint = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`
      const place = locate(kind, namespace, name, ['spec', 'parentRefs', 0, 'name'])
      return [{ ...route, message: withCode(`not in these manifests: ${missing.join(', ')}${hint}`, 'PX1114'), place }]
    }),
  )
}

/** Matches of rules that get no requests, which the condition of the route tells without positions, and without names of other namespaces. */
export function findOverlaps({ locate }: Manifests, { shadows = [] }: Translation): ObjectFinding[] {
  const placeOf = ({ kind, namespace, name, ruleIndex }: Rule['route'], ...more: (string | number)[]): Place | undefined =>
    locate(kind, namespace, name, ['spec', 'rules', ruleIndex, ...more])
  const nameOf = (by: Shadow['by']): string => {
    const at = 'rule' in by ? placeOf(by.rule.route) : undefined
    return `${nameOfWinner(by)}${at === undefined ? '' : ` (${at.file}:${at.line})`}`
  }
  const found = shadows.map((shadow): ObjectFinding => {
    const { kind, namespace, name } = shadow.rule.route
    const place = placeOf(shadow.rule.route, 'matches', shadow.match) ?? placeOf(shadow.rule.route)
    return { kind, namespace, name, message: withCode(describeShadow(shadow, nameOf), 'PX1115'), place }
  })
  // Gateways with equal listeners have equal shadows.
  return [...new Map(found.map((finding) => [`${finding.kind} ${finding.namespace}/${finding.name} ${finding.message}`, finding])).values()]
}
