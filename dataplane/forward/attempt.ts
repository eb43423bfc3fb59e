import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { RequestHead, ResponseHead } from '../http/message.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import type { Destination } from '../upstream/destination.ts'
import { toProxyFailure } from './failure.ts'
import type { ForwardPlan } from './plan.ts'
import { UpstreamError, type UpstreamCall } from '../upstream/types.ts'

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

/** 101 must answer what the client asked for (traffic.md §13). */
function checkUpgrade(request: RequestHead, response: ResponseHead): void {
  if (response.status !== 101) return
  const answered = response.headers.get('upgrade') ?? ''
  if (request.upgrade !== undefined && response.upgraded !== undefined && answered.toLowerCase() === request.upgrade.toLowerCase()) return
  response.upgraded?.socket.destroy()
  throw new ProxyError('UPGRADE_FAILED', { detail: 'the upstream switched to another protocol than the client asked for' })
}
