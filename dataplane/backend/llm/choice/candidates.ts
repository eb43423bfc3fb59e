import { scoreOf, settleOutcome, type EndpointState, type EvictionEvent } from '../../../net/upstream/balancer/balancer.ts'
import { restore, type Eviction } from '../../../net/upstream/balancer/health.ts'

/** Health, latency and load of a provider. Kept as long as the config contains a provider of that name. */
export type ProviderState = Pick<EndpointState, 'health' | 'failures' | 'evictions' | 'interval' | 'evicted' | 'shared' | 'latencySeconds' | 'pending'> & {
  /** Whether all endpoints of the provider fail their checks; undefined: it is not checked. */
  isDown: (() => boolean) | undefined
  hasLatency: boolean
  /** Whether the server has the Responses API, as far as its responses tell; monotonic times. */
  readonly responses: { hasUntilMs: number; lacksUntilMs: number }
  /** Until when a model that requests name is not asked for, because the provider limits its rate; monotonic times. */
  readonly limited: Map<string, number>
  /** Reports that the provider was evicted, or that its eviction ended. */
  readonly report: (event: Omit<EvictionEvent, 'endpoint'>) => void
}

/** The state of a provider without traffic: healthy and not evicted. */
export function newProviderState(report: ProviderState['report'] = () => undefined, shared?: ProviderState['shared']): ProviderState {
  return {
    health: 1,
    failures: 0,
    evictions: 0,
    interval: 0n,
    evicted: undefined,
    shared,
    isDown: undefined,
    latencySeconds: 0,
    pending: 0,
    hasLatency: false,
    responses: { hasUntilMs: 0, lacksUntilMs: 0 },
    limited: new Map(),
    report,
  }
}

/** A provider, as far as selection needs it. */
export interface Candidate {
  readonly state: ProviderState
}

/**
 * Selects a provider from the first group with one that is not evicted, or from group 0 if all providers are evicted. Within the
 * group, the better of two random providers wins (llm.md §15.1). `avoid` is the provider that failed the previous attempt; it is
 * selected only if the group has no other. `modelOf` is needed while a provider limits a model (`hasLimits`).
 */
export function chooseCandidate<T extends Candidate>(
  groups: readonly (readonly T[])[],
  nowMs: number,
  random: () => number,
  avoid?: T,
  modelOf?: (candidate: T) => string,
): T | undefined {
  let pool = poolOf(groups, nowMs, modelOf)
  if (pool.length > 1 && avoid !== undefined) pool = pool.filter((candidate) => candidate !== avoid)
  const first = pool[Math.floor(random() * pool.length)]
  if (pool.length <= 1) return first
  const second = pool[Math.floor(random() * pool.length)]
  if (first === undefined || second === undefined) return first ?? second
  return score(first) >= score(second) ? first : second
}

/** The providers of which one is selected. */
function poolOf<T extends Candidate>(groups: readonly (readonly T[])[], nowMs: number, modelOf?: (candidate: T) => string): readonly T[] {
  for (const group of groups) {
    const available = group.filter((one) => isAvailable(one.state, nowMs) && (modelOf === undefined || !isLimited(one.state, modelOf(one), nowMs)))
    if (available.length > 0) return available
  }
  return groups[0] ?? []
}

/** Whether `chooseCandidate` selects another provider than the one that failed. */
export function hasOther<T extends Candidate>(groups: readonly (readonly T[])[], nowMs: number, failed: T | undefined): boolean {
  return poolOf(groups, nowMs).some((candidate) => candidate !== failed)
}

/** Why `chooseCandidate` returned a provider, for traces. */
export function explainCandidate<T extends Candidate & { readonly name: string }>(groups: readonly (readonly T[])[], picked: T, avoided?: T): string {
  const index = groups.findIndex((group) => group.includes(picked))
  const group = groups[index] ?? []
  const where = groups.length === 1 ? 'providers' : `providers of group ${index + 1} of ${groups.length}`
  const evicted = group.filter(({ state }) => state.evicted !== undefined)
  const failing = group.filter(({ state }) => state.evicted === undefined && state.isDown?.() === true)
  const earlier = groups.slice(0, index).flatMap((before) => before.map(({ name }) => name))
  const notes = [
    ...(evicted.length > 0 ? [`${evicted.map(({ name }) => name).join(', ')} evicted`] : []),
    ...(failing.length > 0 ? [`${failing.map(({ name }) => name).join(', ')} failing health checks`] : []),
    ...(earlier.length > 0 ? [`${earlier.join(', ')} of earlier groups evicted`] : []),
    ...(avoided !== undefined && avoided !== picked ? [`the attempt with ${avoided.name} failed`] : []),
  ]
  const choice =
    group.length === 1
      ? `the only one of the ${where}`
      : `the best of two random ones of ${group.length - evicted.length - failing.length || group.length} ${where}`
  return `${picked.name}, ${groups.length === 1 && group.length === 1 ? 'the only provider' : choice}${notes.length > 0 ? `; ${notes.join('; ')}` : ''}`
}

/** Why `chooseCandidate` returned undefined, for logs. A provider without a known kind is not in `groups`. */
export function explainNoCandidate(groups: readonly (readonly Candidate[])[]): string {
  if (groups.every((group) => group.length === 0)) return 'no provider is left: none of the backend has a known kind'
  return 'every provider is evicted, and the first group, which is used nevertheless, has none'
}

/** Milliseconds until the first provider returns from its eviction; undefined: none is evicted. */
export function firstReturnMs(groups: readonly (readonly Candidate[])[], nowMs: number): number | undefined {
  const returns = groups.flatMap((group) => group.flatMap(({ state }) => (state.evicted === undefined ? [] : [state.evicted.untilMs - nowMs])))
  return returns.length === 0 ? undefined : Math.min(...returns)
}

const score = ({ state }: Candidate): number => scoreOf(state)

/** Whether a provider is neither evicted nor failing its checks. Ends an eviction whose time is over. */
export function isAvailable(state: ProviderState, nowMs: number): boolean {
  if (state.isDown?.() === true) return false
  state.shared?.sync(state)
  if (state.evicted === undefined) return true
  if (state.evicted.untilMs > nowMs) return false
  endEviction(state)
  return state.evicted === undefined
}

/** Models of one provider that may be limited at once; clients choose their names. */
const MAX_LIMITED = 256

/** Whether a provider of the groups limits the rate of a model that requests name. */
export const hasLimits = (groups: readonly (readonly Candidate[])[]): boolean => groups.some((group) => group.some(({ state }) => state.limited.size > 0))

/** Records that a provider limits the rate of one model, which requests name: those for its other models go on. */
export function limitModel({ limited }: ProviderState, model: string, untilMs: number): void {
  limited.delete(model)
  const [oldest] = limited.keys()
  if (limited.size >= MAX_LIMITED && oldest !== undefined) limited.delete(oldest)
  limited.set(model, untilMs)
}

/** Whether a provider limits the rate of a model. Forgets limits whose time is over. */
export function isLimited({ limited }: ProviderState, model: string, nowMs: number): boolean {
  const untilMs = limited.get(model)
  if (untilMs === undefined) return false
  if (untilMs > nowMs) return true
  limited.delete(model)
  return false
}

/** Ends the eviction of a provider, if it is evicted. */
export function endEviction(state: ProviderState): void {
  if (restore(state)) state.report({ kind: 'back', durationMs: 0, health: state.health })
}

/** Records the outcome of a request. The first latency is taken unsmoothed. `status` of the response; 0: the call failed. Returns whether this evicts the provider. */
export function recordOutcome(
  state: ProviderState,
  isHealthy: boolean,
  seconds: number | undefined,
  eviction: Eviction | undefined,
  nowMs: number,
  status = 0,
): boolean {
  if (isHealthy && seconds !== undefined && !state.hasLatency) {
    state.latencySeconds = seconds
    state.hasLatency = true
  }
  const isEvicted = settleOutcome(state, isHealthy, seconds ?? state.latencySeconds, eviction, nowMs, status)
  if (isEvicted) state.report({ kind: 'evicted', durationMs: (state.evicted?.untilMs ?? nowMs) - nowMs, health: state.health })
  return isEvicted
}
