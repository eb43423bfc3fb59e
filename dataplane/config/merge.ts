import type { BackendFull, Authorization, Listener, Policy, RouteRef, Traffic } from '#gen/config/types.ts'
import type { ConfigSnapshot } from './store.ts'

/** A traffic section without what says when it runs, and with the authorization rule sets of all levels. */
export type EffectiveTraffic = Omit<Traffic, 'phase' | 'authorization'> & { readonly authorization?: readonly Authorization[] }

/** Sections that merge piece by piece; every other field of a stronger policy replaces the weaker one's whole. */
export const splitSections = { rateLimit: ['local', 'global'], headerModifiers: ['request', 'response'] } as const

/** Attached policies by what they are attached to. Built once per config version. */
export type PolicyIndex = ReadonlyMap<string, readonly Policy[]>

/** Policies by `<target kind> <namespace>/<name> <section>`; those of one target oldest first, then by name (decision D4). */
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

/** Oldest first, then `namespace/name`. By code unit: locales must not change what is enforced. */
function compareAge(a: Policy, b: Policy): number {
  const [keyA, keyB] = [a, b].map(({ creationTimestamp = '~', policy }) => `${creationTimestamp} ${policy.namespace}/${policy.name}`)
  return keyA === undefined || keyB === undefined || keyA === keyB ? 0 : keyA < keyB ? -1 : 1
}

/**
 * What attached policies say for a listener, or for a rule on it: Gateway < ListenerSet < section of the ListenerSet < listener
 * < route < rule (traffic.md §4). The two phases never mix. Undefined when nothing applies.
 */
export function effectiveTraffic(index: PolicyIndex, phase: NonNullable<Traffic['phase']>, listener: Listener, route?: RouteRef): EffectiveTraffic | undefined {
  let effective: Record<string, unknown> | undefined
  for (const key of levelsOf(listener, route)) {
    const atLevel = mergeLevel(
      (index.get(key) ?? []).flatMap(({ traffic }) => (traffic !== undefined && (traffic.phase ?? 'PostRouting') === phase ? traffic : [])),
    )
    if (atLevel !== undefined) effective = effective === undefined ? atLevel : override(effective, atLevel)
  }
  return effective
}

/** What backend policies on the way to a destination say, from Gateway to rule, weakest first (traffic.md §4.7, decision D2). */
export function backendSections(index: PolicyIndex, listener: Listener, route?: RouteRef): BackendFull[] {
  return levelsOf(listener, route).flatMap((key) => (index.get(key) ?? []).flatMap(({ backend }) => backend ?? []).toReversed())
}

/**
 * Backend sections merged field by field; those on the destination itself are stronger. `ai` and `mcp` merge differently: whoever
 * enforces them reads the sections. Undefined when nothing applies.
 */
export function mergeBackend(sections: readonly BackendFull[]): BackendFull | undefined {
  return sections.length === 0 ? undefined : (Object.assign({}, ...sections) as BackendFull)
}

export function effectiveBackend(index: PolicyIndex, listener: Listener, route?: RouteRef): BackendFull | undefined {
  return mergeBackend(backendSections(index, listener, route))
}

/** Keys of the targets that a request on a listener, or of a rule, is under; weakest first. */
export function levelsOf({ gateway, listenerSet, name }: Listener, route: RouteRef | undefined): string[] {
  const levels = [targetKey('Gateway', gateway.namespace, gateway.name)]
  if (listenerSet === undefined) levels.push(targetKey('Gateway', gateway.namespace, gateway.name, name))
  else for (const section of ['', name]) levels.push(targetKey('ListenerSet', listenerSet.namespace, listenerSet.name, section))
  if (route !== undefined && (route.kind === 'HTTPRoute' || route.kind === 'GRPCRoute')) {
    levels.push(targetKey(route.kind, route.namespace, route.name))
    if (route.rule !== undefined && route.rule !== '') levels.push(targetKey(route.kind, route.namespace, route.name, route.rule))
  }
  return levels
}

/** At one level the first, the oldest, wins. */
function mergeLevel(sections: readonly Traffic[]): Record<string, unknown> | undefined {
  let merged: Record<string, unknown> | undefined
  for (const { phase: _, authorization, ...rest } of sections) {
    const fields = authorization === undefined ? rest : { ...rest, authorization: [authorization] }
    merged = merged === undefined ? fields : override(fields, merged)
  }
  return merged
}

/** A section under a stronger one. Associative: levels may be merged in any grouping, though not in any order. */
export function override(weak: Record<string, unknown>, strong: Record<string, unknown>): Record<string, unknown> {
  const merged = { ...weak, ...strong }
  // Nobody can lift what another level forbids (traffic.md §4 item 5).
  if (weak['authorization'] !== undefined && strong['authorization'] !== undefined)
    merged['authorization'] = [...(weak['authorization'] as Authorization[]), ...(strong['authorization'] as Authorization[])]
  for (const field of Object.keys(splitSections))
    if (weak[field] !== undefined && strong[field] !== undefined) merged[field] = { ...weak[field], ...strong[field] }
  return merged
}
