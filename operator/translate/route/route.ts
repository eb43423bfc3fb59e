import { withCode, withoutCodes } from '#api/messages/code.ts'
import { CONTROLLER_NAME, GATEWAY_GROUP, SHADOWED } from '#api/names.ts'
import { describeShadow, nameOfWinner, type Shadow } from '#api/routing/shadows.ts'
import type { Route, RouteFilters, RouteMatch, RouteRef, TcpRoute, WeightedBackend } from '#gen/config/types.ts'
import type { ParentRef, RouteBackendRef, SessionPersistence } from '../../source/gateway-api.ts'
import { condition, conditionOf, fault, joinFaults, type Fault } from '../../model/conditions.ts'
import type { AnyRoute, Attachment } from './attach.ts'
import { invalidBackend, resolveBackend, type BackendTarget, type RefSink } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import { compileFilters, type FilterPlace } from './filters.ts'
import { findAffinity, readSessionPersistence } from './session-persistence.ts'
import type { CompiledMatches } from '../common/matches.ts'
import type { Condition, ObjectStatus } from '../../model/translation.ts'

/** A route's rules as messages, before it is known which listeners they go to. */
export interface CompiledRoute {
  readonly messages: readonly (
    | { readonly kind: 'route'; readonly message: Omit<Route, 'listeners'> }
    | { readonly kind: 'tcpRoute'; readonly message: Omit<TcpRoute, 'listeners'> }
  )[]
  /** All rules are invalid: Accepted=False. */
  readonly rejected?: Fault
  /** Some rules are invalid: message of PartiallyInvalid. */
  readonly partial?: string
  readonly unresolved?: Fault
  readonly targets: readonly BackendTarget[]
}

/** An invalid rule, by index. */
export interface RuleFault {
  readonly index: number
  readonly fault: Fault
}

const twoDigits = (index: number): string => String(index).padStart(2, '0')

export function routeRef(route: AnyRoute, index: number, rule: string | undefined): RouteRef {
  return { kind: route.kind, namespace: route.metadata.namespace, name: route.metadata.name, ...(rule === undefined ? {} : { rule }), ruleIndex: index }
}

export function ruleKey(route: AnyRoute, index: number, suffix = ''): string {
  return `${route.metadata.namespace}/${route.metadata.name}.${twoDigits(index)}${suffix}`
}

export const referrerOf = (route: AnyRoute): { group: string; kind: string; namespace: string } => ({
  group: GATEWAY_GROUP,
  kind: route.kind,
  namespace: route.metadata.namespace,
})

/** Fields that rules of HTTPRoute and GRPCRoute share. */
export interface L7Rule {
  readonly name?: string
  readonly compiled: CompiledMatches
  readonly filters: RouteFilters
  readonly backendRefs: readonly RouteBackendRef[]
  readonly faults: readonly Fault[]
  readonly more?: Pick<Route, 'timeouts' | 'retry'>
  readonly sessionPersistence?: SessionPersistence | undefined
}

/** Compiles the rules of an HTTPRoute or GRPCRoute. An invalid rule responds 500 where it matches; the others work. */
export function compileL7(
  context: Context,
  route: AnyRoute,
  hostnames: readonly string[],
  rules: readonly L7Rule[],
  refs: RefSink,
  place: FilterPlace,
  suffix: string,
): CompiledRoute {
  const broken: RuleFault[] = []
  const from = referrerOf(route)
  const messages = rules.flatMap((rule, index): CompiledRoute['messages'] => {
    const faults = [...rule.faults]
    const { sessionPersistence } = rule
    const backends = rule.backendRefs.map((ref): WeightedBackend => {
      const resolved = resolveBackend(context, from, ref, true)
      if ('fault' in resolved) refs.unresolved.push(resolved.fault)
      else refs.targets.push(resolved.target)
      const affinity = sessionPersistence && 'target' in resolved ? findAffinity(context, resolved.target) : undefined
      if (affinity) faults.push(affinity)
      const compiled = compileFilters(context, from, ref.filters ?? [], place, refs)
      if (compiled.fault) faults.push(compiled.fault)
      return { ref: 'fault' in resolved ? invalidBackend : resolved.ref, weight: ref.weight, ...compiled.filters }
    })
    const persistence = sessionPersistence && readSessionPersistence(sessionPersistence, ruleName(route, rule.name, index))
    const { matches, problems } = rule.compiled
    if (problems.length > 0) faults.unshift(fault('UnsupportedValue', problems.join('; '), 'PX1108'))
    const failure = joinFaults(faults)
    if (failure) broken.push({ index, fault: failure })
    const known = matches.filter(isExpressible)
    // Without its matches a rule would catch everything.
    if (known.length === 0 && matches.length > 0) return []
    const filters: RouteFilters = failure ? { invalid: withoutCodes(failure.message) } : rule.filters
    const message: Omit<Route, 'listeners'> = {
      key: ruleKey(route, index, suffix),
      route: routeRef(route, index, rule.name),
      creationTimestamp: route.metadata.creationTimestamp,
      ...(hostnames.length > 0 ? { hostnames: [...hostnames] } : {}),
      ...(known.length > 0 ? { matches: known } : {}),
      ...(Object.keys(filters).length > 0 ? { filters } : {}),
      ...(failure ? {} : rule.more),
      ...(failure || typeof persistence !== 'object' ? {} : { sessionPersistence: persistence }),
      ...(backends.length > 0 && !failure ? { backends } : {}),
    }
    return [{ kind: 'route', message }]
  })
  return { messages, ...outcomeOf(rules.length, broken, refs) }
}

/** The name of a rule for its sessions, which outlive a change of the order if the rule has a name. */
const ruleName = ({ metadata: { namespace, name } }: AnyRoute, rule: string | undefined, index: number): string => `${namespace}/${name}/${rule ?? index}`

/** Whether the config can express a match; unknown types come from a newer version of the API. */
function isExpressible(match: RouteMatch): boolean {
  const isKnown = (type: string): boolean => type === 'Exact' || type === 'PathPrefix' || type === 'RegularExpression'
  return [match.path, ...(match.headers ?? []), ...(match.queryParams ?? [])].every((each) => !each || isKnown(each.type))
}

/** The conditions of a route with broken rules and references (Gateway API: PartiallyInvalid by dropping rules). */
export function outcomeOf(ruleCount: number, broken: readonly RuleFault[], refs: RefSink): Omit<CompiledRoute, 'messages'> {
  const unresolved = joinFaults(refs.unresolved)
  const list = broken.map(({ index, fault: { message } }) => `${index} (${message})`).join(', ')
  const [first] = broken.length === ruleCount ? broken : []
  return {
    targets: refs.targets,
    ...(unresolved ? { unresolved } : {}),
    ...(first
      ? { rejected: { reason: first.fault.reason, message: broken.map(({ index, fault: { message } }) => `rule ${index} is invalid: ${message}`).join('; ') } }
      : {}),
    ...(broken.length > 0 && !first ? { partial: `Dropped Rule ${list}; requests that match get 500` } : {}),
  }
}

/** Fields that are set and have no effect, as messages. */
function findIgnored(route: AnyRoute): string[] {
  const { useDefaultGateways, rules = [] } = route.spec
  const sessions = rules.flatMap((rule, index) => {
    if (rule.sessionPersistence === undefined) return []
    const problem = readSessionPersistence(rule.sessionPersistence, ruleName(route, rule.name, index))
    return typeof problem === 'string' ? withCode(`rules[${index}].sessionPersistence has no effect: ${problem}`, 'PX1117') : []
  })
  return [
    ...sessions,
    ...(useDefaultGateways === 'All'
      ? [withCode('useDefaultGateways is not supported and has no effect: only the Gateways of parentRefs serve the route', 'PX1116')]
      : []),
  ]
}

const parentOrder = (ref: ParentRef): string =>
  [ref.group, ref.kind, ref.name, ref.sectionName ?? '', String(ref.port ?? '').padStart(5, '0'), ref.namespace].join('\u0000')

/** Shadows that a condition lists. */
const MAX_SHADOWS = 10

/** Text about matches that get no requests. What is in other namespaces is not named: authors of routes may not read it. */
function describeShadows({ metadata: { namespace } }: AnyRoute, { gateway }: Attachment, shadows: readonly Shadow[]): string {
  const nameOf = (by: Shadow['by']): string => {
    if ('rule' in by) return by.rule.route.namespace === namespace ? nameOfWinner(by) : 'a rule of a route in another namespace'
    const isKnown = [`${gateway.key}.`, `listenerset/${namespace}/`].some((owner) => by.listener.key.startsWith(owner))
    return isKnown ? nameOfWinner(by) : 'a listener of a ListenerSet in another namespace'
  }
  const lines = shadows.slice(0, MAX_SHADOWS).map((shadow) => describeShadow(shadow, nameOf))
  return withCode([...lines, ...(shadows.length > MAX_SHADOWS ? [`and ${shadows.length - MAX_SHADOWS} more`] : [])].join('; '), 'PX1115')
}

/**
 * Returns `status.parents` of a route; undefined if the route belongs to other controllers. `shadowsOf` finds matches that get no requests
 * through a parent, `refusalsOf` targets that the data planes of its Gateway do not connect to.
 */
export function routeStatus(
  route: AnyRoute,
  attachments: readonly Attachment[],
  compiled: CompiledRoute,
  shadowsOf: (attachment: Attachment) => readonly Shadow[],
  refusalsOf: (targets: readonly BackendTarget[], gateway: Attachment['gateway']) => readonly string[],
): ObjectStatus | undefined {
  if (attachments.length === 0 && !hasOwnEntries(route)) return undefined
  const { generation, namespace, name } = route.metadata
  const ignored = [compiled.partial ?? [], findIgnored(route)].flat()
  const parents = attachments
    .toSorted((a, b) => (parentOrder(a.parentRef) < parentOrder(b.parentRef) ? -1 : 1))
    .map((attachment) => {
      const notAccepted = attachment.fault ?? compiled.rejected
      const conditions: Condition[] = [
        conditionOf('Accepted', notAccepted, 'Accepted', 'Route is accepted', generation),
        conditionOf('ResolvedRefs', compiled.unresolved, 'ResolvedRefs', 'All references are resolved', generation),
      ]
      const partial = [...ignored, ...refusalsOf(compiled.targets, attachment.gateway)].join('; ')
      if (partial !== '' && !notAccepted) conditions.push(condition('PartiallyInvalid', true, 'UnsupportedValue', partial, generation))
      const shadows = notAccepted ? [] : shadowsOf(attachment)
      if (shadows.length > 0) conditions.push(condition(SHADOWED, true, 'LowerPrecedence', describeShadows(route, attachment, shadows), generation))
      return { parentRef: attachment.parentRef, controllerName: CONTROLLER_NAME, conditions }
    })
  return { group: GATEWAY_GROUP, kind: route.kind, namespace, name, status: { parents } }
}

/** Removes entries of this controller that an earlier spec left, even if the route names none of its parents any more. */
export function hasOwnEntries(object: { readonly status?: object }): boolean {
  const status: { parents?: readonly { controllerName?: string }[] } | undefined = object.status
  return status?.parents?.some((parent) => parent.controllerName === CONTROLLER_NAME) ?? false
}
