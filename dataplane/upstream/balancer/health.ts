import type { Program } from '#api/cel/index.ts'

/** What the endpoints of a destination are judged by (part 2, Health). */
export interface HealthPolicy {
  /** True: the response is unhealthy. Undefined: by status and grpc-status. */
  readonly condition: Program | undefined
  /** Without it nobody is evicted. */
  readonly eviction: Eviction | undefined
}

/** When and for how long an endpoint is taken out. Healths are 0 to 1. Either limit suffices; without any, one unhealthy response. */
export interface Eviction {
  readonly durationMs: number
  /** Undefined: the health it had when evicted. */
  readonly restoreHealth: number | undefined
  /** Unhealthy responses in a row. */
  readonly consecutiveFailures: number | undefined
  /** Below it an unhealthy response evicts: of the health that there was before that response (llm.md §15.2). */
  readonly healthThreshold: number | undefined
}

/** What is known of an endpoint's health. */
export interface EndpointHealth {
  /** EWMA of outcomes: 1 all good, 0 all bad. */
  health: number
  /** Unhealthy responses in a row; only a success ends the row. */
  failures: number
  /** Evictions in a row: a success ends the row. */
  evictions: number
  /** Until when it is out, by the balancer's clock, and its health on return. */
  evicted: { readonly untilMs: number; readonly health: number } | undefined
}

/**
 * Counts an outcome that `health` has in it already, and `healthBefore` has not. True when it evicts; each eviction in a row is longer by the duration. An
 * endpoint that is out, and used because all are, is not evicted again: it comes back when it was said to.
 */
export function countOutcome(endpoint: EndpointHealth, isHealthy: boolean, healthBefore: number, eviction: Eviction | undefined, nowMs: number): boolean {
  if (isHealthy) {
    endpoint.failures = 0
    endpoint.evictions = 0
    return false
  }
  if (endpoint.evicted !== undefined) return false
  endpoint.failures++
  if (eviction === undefined || !isOverLimit(endpoint.failures, healthBefore, eviction)) return false
  endpoint.evictions++
  endpoint.evicted = { untilMs: nowMs + eviction.durationMs * endpoint.evictions, health: eviction.restoreHealth ?? endpoint.health }
  return true
}

function isOverLimit(failures: number, health: number, { consecutiveFailures, healthThreshold }: Eviction): boolean {
  if (consecutiveFailures === undefined && healthThreshold === undefined) return true
  return (consecutiveFailures !== undefined && failures >= consecutiveFailures) || (healthThreshold !== undefined && health < healthThreshold)
}

/** The endpoint is back. Until it succeeds its failures still count (llm.md §15.2). */
export function restore(endpoint: EndpointHealth): void {
  if (endpoint.evicted === undefined) return
  endpoint.health = endpoint.evicted.health
  endpoint.evicted = undefined
}
