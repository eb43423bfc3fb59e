import { scoreOf, settleOutcome, type EndpointState, type EvictionEvent } from '../../upstream/balancer/balancer.ts'
import { restore, type Eviction } from '../../upstream/balancer/health.ts'

/** What traffic has taught us about a provider. Lives as long as a provider of that name is in the config. */
export type ProviderState = Pick<EndpointState, 'health' | 'failures' | 'evictions' | 'evicted' | 'latencySeconds' | 'pending'> & {
  hasLatency: boolean
  /** Told when the provider is taken out, and when it is back. */
  readonly report: (event: Omit<EvictionEvent, 'endpoint'>) => void
}

export function newProviderState(report: ProviderState['report'] = () => undefined): ProviderState {
  return { health: 1, failures: 0, evictions: 0, evicted: undefined, latencySeconds: 0, pending: 0, hasLatency: false, report }
}

/** Something that can be chosen. */
export interface Candidate {
  readonly state: ProviderState
}

/**
 * A provider of the first group that has one which is not evicted; all of group 0 when all are out. Within a group the better
 * of two drawn at random (llm.md §15.1). `avoid`, the one that just failed, only where nobody else of the group is left.
 */
export function chooseCandidate<T extends Candidate>(groups: readonly (readonly T[])[], nowMs: number, random: () => number, avoid?: T): T | undefined {
  let pool: readonly T[] | undefined
  for (const group of groups) {
    const available = group.filter(({ state }) => isAvailable(state, nowMs))
    if (available.length === 0) continue
    pool = available
    break
  }
  pool ??= groups[0] ?? []
  if (pool.length > 1 && avoid !== undefined) pool = pool.filter((candidate) => candidate !== avoid)
  const first = pool[Math.floor(random() * pool.length)]
  if (pool.length <= 1) return first
  const second = pool[Math.floor(random() * pool.length)]
  if (first === undefined || second === undefined) return first ?? second
  return score(first) >= score(second) ? first : second
}

/** Why `chooseCandidate` returned undefined, for logs. A provider without a known kind is not in `groups`. */
export function explainNoCandidate(groups: readonly (readonly Candidate[])[]): string {
  if (groups.every((group) => group.length === 0)) return 'no provider is left: none of the backend has a known kind'
  return 'every provider is evicted, and the first group, which is used nevertheless, has none'
}

const score = ({ state }: Candidate): number => scoreOf(state)

function isAvailable(state: ProviderState, nowMs: number): boolean {
  if (state.evicted === undefined) return true
  if (state.evicted.untilMs > nowMs) return false
  endEviction(state)
  return true
}

/** Ends an eviction, also that of a provider that is gone. */
export function endEviction(state: ProviderState): void {
  if (state.evicted === undefined) return
  restore(state)
  state.report({ kind: 'back', durationMs: 0, health: state.health })
}

/** Counts an outcome; the first latency counts whole. True when the provider is out from now on. */
export function recordOutcome(state: ProviderState, isHealthy: boolean, seconds: number | undefined, eviction: Eviction | undefined, nowMs: number): boolean {
  if (isHealthy && seconds !== undefined && !state.hasLatency) {
    state.latencySeconds = seconds
    state.hasLatency = true
  }
  const isOut = settleOutcome(state, isHealthy, seconds ?? state.latencySeconds, eviction, nowMs)
  if (isOut) state.report({ kind: 'evicted', durationMs: (state.evicted?.untilMs ?? nowMs) - nowMs, health: state.health })
  return isOut
}
