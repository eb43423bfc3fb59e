import { errorTable } from '#api/errors.ts'
import { toProxyFailure } from './failure.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { recordAttempt } from '../../observe/telemetry/attempts.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import type { RetryPlan } from './call-plan.ts'

/** Options of `withRetries`. */
export interface RetryOptions {
  /** False if the request cannot be sent again, or must not be after this outcome. Default: always true. */
  readonly canRetry?: (outcome: ResponseHead | Error) => boolean
  /** Whether the request goes to another target after a final outcome of this one, which then has all its retries. Asked for every final outcome. */
  readonly fallBack?: (outcome: ResponseHead | Error) => boolean
  /** Time to wait before the next attempt, if that is more than the backoff. */
  readonly waitMs?: () => number
  /** False if the caller records its calls for traces itself. Default: true. */
  readonly recordsAttempts?: boolean
}

/**
 * Runs attempts until one succeeds, fails for good, or is the last (traffic.md §8.11). Every caller of an upstream uses this loop:
 * plain destinations, LLM providers, MCP targets and agent runtimes. An attempt resolves with a response head or rejects; the outcome
 * of the last one is returned or thrown unchanged. The backoff ends at the exchange's deadline with REQUEST_TIMEOUT, and when the
 * client disconnects, after which no attempt follows.
 *
 * @example
 * const response = await withRetries(exchange, plan.retry, (number) => {
 *   setRetryHeader(headers, number)
 *   return call(headers)
 * })
 */
export async function withRetries(
  exchange: Exchange,
  retry: RetryPlan | undefined,
  /** `number` counts from 0. */
  attempt: (number: number, isLast: boolean) => Promise<ResponseHead>,
  { canRetry = () => true, fallBack, waitMs = () => 0, recordsAttempts = true }: RetryOptions = {},
): Promise<ResponseHead> {
  if (retry === undefined && fallBack === undefined) return attempt(0, true)
  for (let number = 0, ofTarget = 0; ; number++, ofTarget++) {
    // Several calls of one exchange may run at once (MCP): the most attempts count.
    exchange.retryAttempt = Math.max(exchange.retryAttempt, number)
    const isLast = retry === undefined || ofTarget >= retry.attempts
    const startedAtMs = performance.now()
    const outcome = await attempt(number, isLast).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
    const isFinal = isLast || exchange.abortReason !== undefined || !isRetryable(outcome, retry) || !canRetry(outcome)
    let next = isFinal ? 'stop' : await backOff(exchange, Math.max(retry.backoffMs, waitMs()))
    if (next === 'stop' && exchange.abortReason === undefined && fallBack?.(outcome) === true) {
      next = 'retry'
      ofTarget = -1
    }
    if (recordsAttempts && (number > 0 || next !== 'stop')) recordAttempt(exchange, startedAtMs, outcome)
    if (next === 'stop') {
      if (outcome instanceof Error) throw outcome
      return outcome
    }
    releasePending(exchange)
    if (!(outcome instanceof Error)) outcome.body?.cancel()
    if (next === 'late') throw new ProxyError('REQUEST_TIMEOUT')
  }
}

/** Sets `x-retry-attempt` on attempts after the first (traffic.md §8.11). */
export function setRetryHeader(headers: HeaderList, number: number): void {
  if (number > 0) headers.set(ownHeaders.retryAttempt, String(number))
}

function isRetryable(outcome: ResponseHead | Error, { codes }: RetryPlan): boolean {
  if (!(outcome instanceof Error)) return codes.has(outcome.status)
  const { code, cause } = toProxyFailure(outcome)
  if (code === 'UPSTREAM_TIMEOUT' || code === 'DNS_FAILED' || code === 'UPSTREAM_DENIED') return true
  // A response that cannot be used counts as a 502 of the upstream (llm.md §2).
  if (code === 'LLM_RESPONSE') return codes.has(errorTable.LLM_RESPONSE.status)
  return code === 'UPSTREAM_FAILED' && cause instanceof UpstreamError && cause.failure !== 'protocol'
}

/** Ends the share of an attempt in the load of its endpoint: another attempt follows. */
export function releasePending(exchange: Exchange): void {
  if (exchange.pendingOn !== undefined) exchange.pendingOn.pending--
  exchange.pendingOn = undefined
}

/** Waits before the next attempt. `stop`: the client disconnected. `late`: the request timeout was reached. */
async function backOff(exchange: Exchange, backoffMs: number): Promise<'retry' | 'stop' | 'late'> {
  const leftMs = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - performance.now()
  const waitMs = Math.min(backoffMs, leftMs)
  if (waitMs > 0) await waitUnlessAborted(exchange, waitMs)
  if (exchange.abortReason !== undefined) return 'stop'
  return backoffMs < leftMs ? 'retry' : 'late'
}

function waitUnlessAborted(exchange: Exchange, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    exchange.onAbort(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
