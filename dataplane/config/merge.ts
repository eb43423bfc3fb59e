import type { BackendFull, Authorization, Budget, Listener, Policy, Route, RouteRef, Traffic } from '#gen/config/types.ts'
import type { ConfigSnapshot } from './store.ts'

/** The budgets of one policy; `policy` is `<namespace>/<name>`. */
interface PolicyBudgets {
  readonly policy: string
  readonly budgets: readonly Budget[]
}

/** A traffic section without its phase, and with the authorization rule sets and the budgets of all levels. */
export type EffectiveTraffic = Omit<Traffic, 'phase' | 'authorization' | 'budgets'> & {
  readonly authorization?: readonly Authorization[]
  readonly budgets?: readonly PolicyBudgets[]
}

/** Sections whose parts merge separately. Every other field of a stronger policy replaces the entire field of a weaker one. */
export const splitSections = { rateLimit: ['local', 'global'], headerModifiers: ['request', 'response'] } as const

/** Sections of which those of all policies hold. */
export const unitedSections: readonly string[] = ['authorization', 'budgets']

/** Policies by target; see `targetKey`. Built once per config version. */
export type PolicyIndex = ReadonlyMap<string, readonly Policy[]>

/** Indexes policies by `<target kind> <namespace>/<name> <section>`; those of one target oldest first, then by name (decision D4). */
export function indexPolicies(policies: ConfigSnapshot['policies']): PolicyIndex {
  const index = new Map<string, Policy[]>()
  for (const policy of policies.values()) {
    const { kind, namespace, name, section, port } = policy.target
    const key = targetKey(kind, namespace, name, section ?? (port === undefined ? '' : String(port)))
    const list = index.get(key)
    if (list === undefined) index.set(key, [policy])
    else list.push(policy)
  }
  for (const list of index.values()) list.sort(compareAge)
  return index
}

export function targetKey(kind: Policy['target']['kind'], namespace: string, name: string, section = ''): string {
  return `${kind} ${namespace}/${name} ${section}`
}

/** Oldest first, then `namespace/name`, compared by code unit: the result must not depend on the locale. */
function compareAge(a: Policy, b: Policy): number {
  const [keyA, keyB] = [a, b].map(({ creationTimestamp = '~', policy }) => `${creationTimestamp} ${policy.namespace}/${policy.name}`)
  return keyA === undefined || keyB === undefined || keyA === keyB ? 0 : keyA < keyB ? -1 : 1
}

/**
 * Merges the policies of a listener, or of a rule on it: Gateway < ListenerSet < section of the ListenerSet < listener
 * < service < route < rule (traffic.md §4). The two phases never mix. Undefined if no policy applies. `service` is the key of the
 * Service that represents an InferencePool, for requests to that pool.
 */
export function effectiveTraffic(
  index: PolicyIndex,
  phase: NonNullable<Traffic['phase']>,
  listener: Listener,
  route?: RouteRef,
  service?: string,
): EffectiveTraffic | undefined {
  let effective: Record<string, unknown> | undefined
  for (const key of levelsOf(listener, route, service)) {
    const atLevel = mergeLevel((index.get(key) ?? []).filter(({ traffic }) => traffic !== undefined && (traffic.phase ?? 'PostRouting') === phase))
    if (atLevel !== undefined) effective = effective === undefined ? atLevel : override(effective, atLevel)
  }
  return effective
}

/** Backend sections of the policies from Gateway to rule, weakest first (traffic.md §4.7, decision D2). */
export function backendSections(index: PolicyIndex, listener: Listener, route?: RouteRef): BackendFull[] {
  return levelsOf(listener, route).flatMap((key) => (index.get(key) ?? []).flatMap(({ backend }) => backend ?? []).toReversed())
}

/**
 * Merges backend sections field by field; policies of the destination itself are stronger. `ai` and `mcp` merge differently:
 * the LLM and MCP services read the sections. Undefined if there are none.
 */
export function mergeBackend(sections: readonly BackendFull[]): BackendFull | undefined {
  return sections.length === 0 ? undefined : (Object.assign({}, ...sections) as BackendFull)
}

export function effectiveBackend(index: PolicyIndex, listener: Listener, route?: RouteRef): BackendFull | undefined {
  return mergeBackend(backendSections(index, listener, route))
}

/** Services with traffic policies among the backends of a rule. Only InferencePools can be targets of such policies. */
export function servicesWithTraffic(index: PolicyIndex, { backends = [] }: Route): string[] {
  const services = new Set(backends.flatMap(({ ref }) => ref.service ?? []))
  return [...services].filter((service) => index.get(serviceKey(service))?.some(({ traffic }) => traffic !== undefined))
}

/** `targetKey` of a Service by `<namespace>/<name>`. */
const serviceKey = (service: string): string => `Service ${service} `

/** Keys of the targets whose policies apply to a listener, to a rule on it, or to a service of that rule; weakest first. */
export function levelsOf({ gateway, listenerSet, name }: Listener, route: RouteRef | undefined, service?: string): string[] {
  const levels = [targetKey('Gateway', gateway.namespace, gateway.name)]
  if (listenerSet === undefined) levels.push(targetKey('Gateway', gateway.namespace, gateway.name, name))
  else for (const section of ['', name]) levels.push(targetKey('ListenerSet', listenerSet.namespace, listenerSet.name, section))
  if (service !== undefined) levels.push(serviceKey(service))
  if (route !== undefined && (route.kind === 'HTTPRoute' || route.kind === 'GRPCRoute')) {
    levels.push(targetKey(route.kind, route.namespace, route.name))
    if (route.rule !== undefined && route.rule !== '') levels.push(targetKey(route.kind, route.namespace, route.name, route.rule))
  }
  return levels
}

/** Merges the policies of one level: the first, which is the oldest, wins. */
function mergeLevel(policies: readonly Policy[]): Record<string, unknown> | undefined {
  let merged: Record<string, unknown> | undefined
  for (const { policy, traffic } of policies) {
    const { phase: _, authorization, budgets, ...rest } = traffic ?? {}
    const fields = {
      ...rest,
      ...(authorization !== undefined && { authorization: [authorization] }),
      ...(budgets !== undefined && { budgets: [{ policy: `${policy.namespace}/${policy.name}`, budgets }] }),
    }
    merged = merged === undefined ? fields : override(fields, merged)
  }
  return merged
}

/** Merges a section into a stronger one. Associative: levels may be grouped in any way, but not reordered. */
export function override(weak: Record<string, unknown>, strong: Record<string, unknown>): Record<string, unknown> {
  const merged = { ...weak, ...strong }
  // No level can allow what another one denies (traffic.md §4 item 5), or spend what another one limits (traffic.md §8.14).
  for (const field of unitedSections)
    if (weak[field] !== undefined && strong[field] !== undefined) merged[field] = [...(weak[field] as unknown[]), ...(strong[field] as unknown[])]
  for (const field of Object.keys(splitSections))
    if (weak[field] !== undefined && strong[field] !== undefined) merged[field] = { ...weak[field], ...strong[field] }
  return merged
}
