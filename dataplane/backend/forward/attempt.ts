import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { toProxyFailure } from './failure.ts'
import type { ForwardPlan } from './plan.ts'
import { UpstreamError, type UpstreamCall } from '../../net/upstream/types.ts'

/** Holds the current call, so that it can be cancelled. */
export interface Active {
  call: UpstreamCall | undefined
}

/** Destination and request of an attempt. */
export interface AttemptTarget {
  readonly destination: Destination
  readonly endpoint: EndpointState
  readonly request: RequestHead
  /** Pending-request counter to decrement when the exchange ends: that of the endpoint or of its LLM provider. */
  readonly load: { pending: number }
  /** Why the endpoint was picked, for traces. */
  readonly why?: string | undefined
}

/**
 * Calls an endpoint with the limits of the rule and the backend, and records timings. `judge` is called with the response head, or with
 * undefined if the call failed, unless the client disconnected. Rejects with a ProxyError.
 */
export async function callEndpoint(
  exchange: Exchange,
  target: AttemptTarget,
  plan: Pick<ForwardPlan, 'backendRequestMs'>,
  active: Active,
  judge: (target: AttemptTarget, exchange: Exchange, response: ResponseHead | undefined, seconds: number) => void,
): Promise<ResponseHead> {
  const { destination, endpoint, request, load, why } = target
  const startedAtMs = performance.now()
  exchange.endpoint = endpoint.label
  if (exchange.upstreamStartedAtMs === 0) exchange.upstreamStartedAtMs = startedAtMs
  const limit = attemptLimit(exchange, plan, destination.settings.requestMs, startedAtMs)
  if (limit !== undefined && limit.ms <= 0) throw new ProxyError(limit.code)
  load.pending++
  exchange.pendingOn = load
  const step = exchange.trace?.add('upstream', endpoint.label, {
    backend: destination.name,
    attempt: exchange.retryAttempt,
    ...(why !== undefined && { picked: why }),
  })
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
    // Neither a client that disconnects nor a limit of this process says anything about the endpoint.
    const isOwn = error instanceof UpstreamError && ((error.failure === 'cancelled' && watch?.isLate !== true) || error.failure === 'limit')
    if (!isOwn) judge(target, exchange, undefined, 0)
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

/** The earliest limit of this attempt and the code of its error. */
function attemptLimit(
  exchange: Exchange,
  { backendRequestMs }: Pick<ForwardPlan, 'backendRequestMs'>,
  backendMs: number | undefined,
  now: number,
): Limit | undefined {
  const requestMs = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - now
  const attemptMs = Math.min(backendRequestMs ?? Infinity, backendMs ?? Infinity)
  if (requestMs === Infinity && attemptMs === Infinity) return undefined
  return requestMs <= attemptMs ? { ms: requestMs, code: 'REQUEST_TIMEOUT' } : { ms: attemptMs, code: 'UPSTREAM_TIMEOUT' }
}

/** Checks that a 101 switches to the protocol that the client requested (traffic.md §13). */
function checkUpgrade(request: RequestHead, response: ResponseHead): void {
  if (response.status !== 101) return
  const answered = response.headers.get('upgrade') ?? ''
  if (request.upgrade !== undefined && response.upgraded !== undefined && answered.toLowerCase() === request.upgrade.toLowerCase()) return
  response.upgraded?.socket.destroy()
  throw new ProxyError('UPGRADE_FAILED', { detail: 'the upstream switched to another protocol than the client requested' })
}
