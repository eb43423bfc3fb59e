import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { RequestHead, ResponseHead } from '../http/message.ts'
import { recordAttempt } from '../telemetry/attempts.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import type { Destination } from '../upstream/destination.ts'
import type { RetryPlan } from './call-plan.ts'
import type { ForwardPlan } from './plan.ts'
import { UpstreamError, type UpstreamCall } from '../upstream/types.ts'

/**
 * Repeats an attempt as the rule's retry says (traffic.md §8.11): the same for plain destinations and for backends that answer by
 * themselves. An attempt resolves with a response head or rejects; the last one is the result. `canRepeat` tells whether the
 * request's body can be sent again.
 */
export async function repeatAttempts(
  exchange: Exchange,
  retry: RetryPlan | undefined,
  attempt: (isLast: boolean) => Promise<ResponseHead>,
  canRepeat: () => boolean = () => true,
): Promise<ResponseHead> {
  if (retry === undefined) {
    try {
      return await attempt(true)
    } catch (error) {
      throw toProxyFailure(error)
    }
  }
  for (let number = 0; ; number++) {
    exchange.retryAttempt = number
    const isLast = number >= retry.attempts
    const startedAtMs = performance.now()
    const result = await attempt(isLast).catch((error: unknown) => toProxyFailure(error))
    const isGivenUp = isLast || exchange.abortReason !== undefined || !canRepeat() || !isRetryable(result, retry)
    const next = isGivenUp ? 'none' : await waitBeforeRetry(exchange, retry.backoffMs)
    if (next === 'none') {
      if (number > 0) recordAttempt(exchange, startedAtMs, result)
      if (result instanceof ProxyError) throw result
      return result
    }
    recordAttempt(exchange, startedAtMs, result)
    release(exchange)
    if (!(result instanceof ProxyError)) result.body?.cancel()
    if (next === 'late') throw new ProxyError('REQUEST_TIMEOUT')
  }
}

function release(exchange: Exchange): void {
  if (exchange.pendingOn !== undefined) exchange.pendingOn.pending--
  exchange.pendingOn = undefined
}

function isRetryable(result: ResponseHead | ProxyError, { codes }: RetryPlan): boolean {
  if (!(result instanceof ProxyError)) return codes.has(result.status)
  if (result.code === 'UPSTREAM_TIMEOUT' || result.code === 'DNS_FAILED') return true
  return result.code === 'UPSTREAM_FAILED' && result.cause instanceof UpstreamError && result.cause.failure !== 'protocol'
}

/** What there is after the backoff: another try, none because the client is gone, or the request timeout, which backoff never outlives. */
async function waitBeforeRetry(exchange: Exchange, backoffMs: number): Promise<'try' | 'none' | 'late'> {
  const leftMs = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - performance.now()
  const waitMs = Math.min(backoffMs, leftMs)
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
  if (exchange.abortReason !== undefined) return 'none'
  return backoffMs < leftMs ? 'try' : 'late'
}

/** The call under way, for whoever must stop it. */
export interface Active {
  call: UpstreamCall | undefined
}

/** What is called. */
export interface AttemptTarget {
  readonly destination: Destination
  readonly endpoint: EndpointState
  readonly request: RequestHead
  /** What counts the exchange until it is finished: the endpoint, or what it stands for. */
  readonly load: { pending: number }
}

/**
 * One call to one endpoint, with its limits and timings. `judge` is told how it went: with the response head, or without one
 * unless the client went away. Rejects with a ProxyError.
 */
export async function callEndpoint(
  exchange: Exchange,
  target: AttemptTarget,
  plan: Pick<ForwardPlan, 'backendRequestMs'>,
  active: Active,
  judge: (target: AttemptTarget, exchange: Exchange, response: ResponseHead | undefined, seconds: number) => void,
): Promise<ResponseHead> {
  const { destination, endpoint, request, load } = target
  const startedAtMs = performance.now()
  exchange.endpoint = endpoint.label
  if (exchange.upstreamStartedAtMs === 0) exchange.upstreamStartedAtMs = startedAtMs
  const limit = attemptLimit(exchange, plan, destination.settings.requestMs, startedAtMs)
  if (limit !== undefined && limit.ms <= 0) throw new ProxyError(limit.code)
  load.pending++
  exchange.pendingOn = load
  const step = exchange.trace?.add('upstream', endpoint.label, { backend: destination.name, attempt: exchange.retryAttempt })
  const call = destination
    .poolFor(endpoint, request === exchange.request ? exchange : { request, connection: exchange.connection })
    .call(request, destination.settings)
  active.call = call
  const watch = limit && startWatch(call, limit)
  try {
    const response = await call.response
    const now = performance.now()
    exchange.responseHeadAtMs = now
    if (step !== undefined) step.detail = { ...step.detail, status: response.status }
    checkUpgrade(request, response)
    judge(target, exchange, response, (now - startedAtMs) / 1000)
    return response
  } catch (error) {
    if (step !== undefined) step.detail = { ...step.detail, failed: error instanceof Error ? error.message : String(error) }
    const isCancelled = error instanceof UpstreamError && error.failure === 'cancelled' && watch?.isLate !== true
    if (!isCancelled) judge(target, exchange, undefined, 0)
    throw watch?.isLate === true ? new ProxyError(watch.code, { cause: error }) : toProxyFailure(error)
  } finally {
    if (watch !== undefined) clearTimeout(watch.timer)
  }
}

interface Limit {
  readonly ms: number
  readonly code: 'REQUEST_TIMEOUT' | 'UPSTREAM_TIMEOUT'
}

function startWatch(call: UpstreamCall, { ms, code }: Limit): { isLate: boolean; readonly code: Limit['code']; readonly timer: NodeJS.Timeout } {
  const watch = {
    isLate: false,
    code,
    timer: setTimeout(() => {
      watch.isLate = true
      call.cancel(new UpstreamError('cancelled', 'timed out'))
    }, ms),
  }
  return watch
}

/** The nearest limit of this attempt, and what it is called when it is hit. */
function attemptLimit(
  exchange: Exchange,
  { backendRequestMs }: Pick<ForwardPlan, 'backendRequestMs'>,
  backendMs: number | undefined,
  now: number,
): Limit | undefined {
  const whole = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - now
  const attempt = Math.min(backendRequestMs ?? Infinity, backendMs ?? Infinity)
  if (whole === Infinity && attempt === Infinity) return undefined
  return whole <= attempt ? { ms: whole, code: 'REQUEST_TIMEOUT' } : { ms: attempt, code: 'UPSTREAM_TIMEOUT' }
}

export function toProxyFailure(error: unknown): ProxyError {
  if (error instanceof ProxyError) return error
  if (!(error instanceof UpstreamError)) return new ProxyError('INTERNAL', { cause: error })
  switch (error.failure) {
    case 'connect-timeout':
      return new ProxyError('UPSTREAM_TIMEOUT', { cause: error })
    case 'dns':
      return new ProxyError('DNS_FAILED', { cause: error })
    case 'upgrade':
      return new ProxyError('UPGRADE_FAILED', { detail: error.message, cause: error })
    case 'connect':
    case 'reset':
    case 'protocol':
    case 'cancelled':
      return new ProxyError('UPSTREAM_FAILED', { detail: error.message, cause: error })
  }
}

/** 101 must answer what the client asked for (traffic.md §13). */
function checkUpgrade(request: RequestHead, response: ResponseHead): void {
  if (response.status !== 101) return
  const answered = response.headers.get('upgrade') ?? ''
  if (request.upgrade !== undefined && response.upgraded !== undefined && answered.toLowerCase() === request.upgrade.toLowerCase()) return
  response.upgraded?.socket.destroy()
  throw new ProxyError('UPGRADE_FAILED', { detail: 'the upstream switched to another protocol than the client asked for' })
}
