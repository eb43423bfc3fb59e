import type { Program } from '#api/cel/index.ts'
import type { HealthCheck } from './check.ts'

/** Health policy of a destination's endpoints (part 2, Health). */
export interface HealthPolicy {
  /** True: the response is unhealthy. Undefined: by status and grpc-status. */
  readonly condition: Program | undefined
  /** Undefined: endpoints are never evicted. */
  readonly eviction: Eviction | undefined
  /** Undefined: endpoints are not checked. */
  readonly active?: HealthCheck | undefined
}

/**
 * When and for how long an endpoint is evicted. Health is 0 to 1. One limit suffices; without any limit one unhealthy response evicts.
 */
export interface Eviction {
  readonly durationMs: number
  /** Health after the return; undefined: the health at the eviction. */
  readonly restoreHealth: number | undefined
  /** Unhealthy responses in a row. */
  readonly consecutiveFailures: number | undefined
  /** An unhealthy response evicts if the health before that response was below this (llm.md §15.2). */
  readonly healthThreshold: number | undefined
  readonly failureRate?: FailureRate | undefined
  /** Share of the endpoints that may be out, 0 to 1; one may always be. Default: all. */
  readonly maxEvicted?: number | undefined
  /** The duration is that of the upstream's own word: it does not grow with consecutive evictions. */
  readonly isExact?: boolean
}

/** A limit of the share of unhealthy responses. */
export interface FailureRate {
  /** 0 to 1. */
  readonly share: number
  readonly intervalMs: number
  /** Responses that an interval must have. */
  readonly minRequests: number
}

/** Measured health of an endpoint. */
export interface EndpointHealth {
  /** EWMA of outcomes: 1 all good, 0 all bad. */
  health: number
  /** Consecutive unhealthy responses; reset by a success only. */
  failures: number
  /** Consecutive evictions; reset by a success. */
  evictions: number
  /** Responses of the interval of a FailureRate, see `countInInterval`. */
  interval: bigint
  /** End of the current eviction, by the balancer's clock, the health on return, and the status of the response that evicted it; 0: the call failed. */
  evicted: { readonly untilMs: number; readonly health: number; readonly status: number } | undefined
  /** Measured together with the other workers; undefined: by this thread alone. The other fields are copies then. */
  shared: SharedHealth | undefined
}

/** Health of an endpoint that all workers measure together. */
export interface SharedHealth {
  /** Records an outcome, and copies the result to `endpoint`. Returns true if it evicts the endpoint; of concurrent outcomes, one does. */
  settle(endpoint: EndpointHealth, isHealthy: boolean, eviction: Eviction | undefined, nowMs: number, status: number): boolean
  /** Copies the shared health to `endpoint` if any worker evicted or restored an endpoint since the last call. */
  sync(endpoint: EndpointHealth): void
  /** Ends the eviction that `endpoint` knows. Returns false if another worker did. */
  restore(endpoint: EndpointHealth): boolean
  /** Forgets all outcomes: the endpoint left the config. */
  reset(): void
}

/** Weight of the last outcome in the health. */
export const EWMA_ALPHA = 0.3

/**
 * Counts an outcome that `health` already includes and `healthBefore` does not. Returns true if it evicts the endpoint. Each consecutive
 * eviction is longer by the duration. `status` is that of the response; 0: the call failed. An evicted endpoint, which is used while all are evicted, is not evicted again.
 */
export function countOutcome(
  endpoint: EndpointHealth,
  isHealthy: boolean,
  healthBefore: number,
  eviction: Eviction | undefined,
  nowMs: number,
  status: number,
): boolean {
  if (eviction?.failureRate !== undefined && endpoint.evicted === undefined)
    endpoint.interval = countInInterval(endpoint.interval, isHealthy, eviction.failureRate, nowMs)
  if (isHealthy) {
    endpoint.failures = 0
    endpoint.evictions = 0
    return false
  }
  if (endpoint.evicted !== undefined) return false
  endpoint.failures++
  if (eviction === undefined || !isOverLimit(endpoint.failures, healthBefore, eviction, endpoint.interval)) return false
  endpoint.evictions++
  endpoint.interval = 0n
  endpoint.evicted = { untilMs: nowMs + durationAfter(eviction, endpoint.evictions), health: eviction.restoreHealth ?? endpoint.health, status }
  return true
}

/** Duration of the eviction that is the `count`th in a row. */
export const durationAfter = ({ durationMs, isExact }: Eviction, count: number): number => (isExact === true ? durationMs : durationMs * count)

/** Whether an unhealthy response evicts, by the failures with it, the health before it, and the interval with it. */
export function isOverLimit(failures: number, health: number, { consecutiveFailures, healthThreshold, failureRate }: Eviction, interval: bigint): boolean {
  if (consecutiveFailures === undefined && healthThreshold === undefined && failureRate === undefined) return true
  return (
    (consecutiveFailures !== undefined && failures >= consecutiveFailures) ||
    (healthThreshold !== undefined && health < healthThreshold) ||
    (failureRate !== undefined && isOverRate(interval, failureRate))
  )
}

const COUNT_BITS = 20n
const COUNT_MASK = (1n << COUNT_BITS) - 1n
/** Keeps a word positive: it is stored as a signed number. */
const INTERVAL_MASK = (1n << 23n) - 1n

/**
 * Counts a response in a word that workers can exchange at once: the number of the interval, its responses, and the unhealthy ones of them. Counts stop at
 * a million.
 */
export function countInInterval(word: bigint, isHealthy: boolean, { intervalMs }: FailureRate, nowMs: number): bigint {
  const interval = BigInt(Math.floor(nowMs / intervalMs)) & INTERVAL_MASK
  const counts = word >> (2n * COUNT_BITS) === interval ? word : interval << (2n * COUNT_BITS)
  if (((counts >> COUNT_BITS) & COUNT_MASK) === COUNT_MASK) return counts
  return counts + (1n << COUNT_BITS) + (isHealthy ? 0n : 1n)
}

function isOverRate(word: bigint, { share, minRequests }: FailureRate): boolean {
  const total = Number((word >> COUNT_BITS) & COUNT_MASK)
  return total >= minRequests && Number(word & COUNT_MASK) >= share * total
}

/** Ends the eviction of an endpoint. Its earlier failures count until a success (llm.md §15.2). Returns false if another worker ended it, or nothing was to end. */
export function restore(endpoint: EndpointHealth): boolean {
  if (endpoint.evicted === undefined) return false
  if (endpoint.shared !== undefined) return endpoint.shared.restore(endpoint)
  endpoint.health = endpoint.evicted.health
  endpoint.evicted = undefined
  return true
}
