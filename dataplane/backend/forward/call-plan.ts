import { MAX_TIMER_MS, parseTimeout } from '#api/duration.ts'
import type { Retry, RouteRetry, RouteTimeouts, Timeouts } from '#gen/config/types.ts'

/** Limits and retries of the calls that one request causes. Times in milliseconds; undefined is no limit. */
export interface CallPlan {
  readonly backendRequestMs: number | undefined
  readonly retry: RetryPlan | undefined
  /** Bytes of a body that are read for expressions of backend policies; default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
}

/** Compiled retry policy (traffic.md §8.11). */
export interface RetryPlan {
  readonly codes: ReadonlySet<number>
  /** Attempts after the first. */
  readonly attempts: number
  readonly backoffMs: number
}

/** The retries of a rule: its own, or those of attached policies. */
export function planRetry(own: RouteRetry | undefined, attached: Retry | undefined): RetryPlan | undefined {
  const retry = own ?? attached
  const attempts = Math.min(retry?.attempts ?? 1, 254)
  if (retry === undefined || attempts === 0) return undefined
  const backoffMs = own === undefined ? parseTimeout(attached?.backoff ?? '') : own.backoffMs
  return { codes: new Set(retry.codes), attempts, backoffMs: Math.min(backoffMs ?? 0, MAX_TIMER_MS) }
}

/** The timeouts of a rule: its own, or those of attached policies. `0` disables a limit (traffic.md §7). */
export function planTimeouts(
  own: RouteTimeouts | undefined,
  attached: Timeouts | undefined,
): { requestMs: number | undefined; backendRequestMs: number | undefined } {
  const requestMs = own === undefined ? parseTimeout(attached?.request ?? '') : own.requestMs
  return { requestMs: limitOf(requestMs), backendRequestMs: limitOf(own?.backendRequestMs) }
}

const limitOf = (ms: number | undefined): number | undefined => (ms ? Math.min(ms, MAX_TIMER_MS) : undefined)
