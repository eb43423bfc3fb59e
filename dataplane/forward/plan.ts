import { MAX_TIMER_MS, parseTimeout } from '#api/duration.ts'
import type { HeaderModifier, RequestRedirect, Retry, RouteRetry, RouteTimeouts, Timeouts } from '#gen/config/types.ts'
import type { ServiceSlot } from './service.ts'
import type { Registry } from '../telemetry/metrics/registry.ts'
import type { Destination } from '../upstream/destination.ts'

/** One backend of a rule, its reference resolved. */
export interface PlannedBackend {
  readonly destination: Destination
  /** Set for ProxyBackends that answer by themselves (LLM, MCP); `current` is undefined while the backend is a plain destination. */
  readonly service?: ServiceSlot | undefined
  readonly weight: number
  readonly requestHeaders: readonly HeaderModifier[]
  readonly responseHeaders: readonly HeaderModifier[]
  readonly redirect: RequestRedirect | undefined
  readonly mirrors: readonly PlannedMirror[]
}

export interface PlannedMirror {
  readonly destination: Destination
  readonly numerator: number
  readonly denominator: number
}

/** What the end of a rule's chain does: pick a backend, mirror, try, retry. Times in milliseconds; undefined is no limit. */
export interface ForwardPlan {
  /** A backend by weight; undefined when there is none to choose. */
  readonly pick: () => PlannedBackend | undefined
  readonly mirrors: readonly PlannedMirror[]
  readonly backendRequestMs: number | undefined
  readonly retry: RetryPlan | undefined
  /** How much of a body is read for expressions of backend policies; default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
  /** Uniform in [0, 1): decides which requests are mirrored. */
  readonly random: () => number
  /** Where mirrored calls are counted; default: nowhere. */
  readonly registry?: Registry
}

export interface RetryPlan {
  readonly codes: ReadonlySet<number>
  /** Extra tries. */
  readonly attempts: number
  readonly backoffMs: number
}

/** The retries of a rule: its own, else those of the policies on it. */
export function planRetry(own: RouteRetry | undefined, attached: Retry | undefined): RetryPlan | undefined {
  const retry = own ?? attached
  const attempts = Math.min(retry?.attempts ?? 1, 254)
  if (retry === undefined || attempts === 0) return undefined
  const backoffMs = own === undefined ? parseTimeout(attached?.backoff ?? '') : own.backoffMs
  return { codes: new Set(retry.codes), attempts, backoffMs: Math.min(backoffMs ?? 0, MAX_TIMER_MS) }
}

/** The timeouts of a rule: its own, else those of the policies on it. `0` turns a limit off (traffic.md §7). */
export function planTimeouts(
  own: RouteTimeouts | undefined,
  attached: Timeouts | undefined,
): { requestMs: number | undefined; backendRequestMs: number | undefined } {
  const requestMs = own === undefined ? parseTimeout(attached?.request ?? '') : own.requestMs
  return { requestMs: limitOf(requestMs), backendRequestMs: limitOf(own?.backendRequestMs) }
}

const limitOf = (ms: number | undefined): number | undefined => (ms ? Math.min(ms, MAX_TIMER_MS) : undefined)
