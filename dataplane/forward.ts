import { ProxyError } from './error.ts'
import type { Exchange } from './exchange.ts'
import { ObservedBody } from './http/observe.ts'
import { recordResponse } from './health.ts'
import { ReplayableBody } from './http/replay.ts'
import type { ResponseHead } from './http/message.ts'
import { applyHeaderModifiers } from './policy/headerModifiers/apply.ts'
import { redirectTo } from './policy/requestRedirect/redirect.ts'
import { sendMirrors } from './upstream/mirror.ts'
import type { ForwardPlan, PlannedBackend, RetryPlan } from './upstream/plan.ts'
import type { EndpointState } from './upstream/balancer.ts'
import { authenticate } from './upstream/auth.ts'
import { authorityFor } from './upstream/destination.ts'
import { UpstreamError, type UpstreamCall } from './upstream/types.ts'

/**
 * The end of a rule's chain: sends the request to one of the rule's backends and puts the response head into
 * `exchange.response`. Throws a ProxyError when there is none to give (traffic.md §5 steps 7 and 8, §8.11 retries).
 */
export async function forward(exchange: Exchange, plan: ForwardPlan): Promise<void> {
  const backend = plan.pick()
  if (backend === undefined) throw new ProxyError('NO_VALID_BACKENDS')
  const { destination } = backend
  exchange.backend = destination.name
  const service = backend.service?.current
  if (service === undefined) checkDestination(destination)
  if (plan.mirrors.length > 0) sendMirrors(exchange, plan.mirrors, plan.random)
  if (backend.mirrors.length > 0) sendMirrors(exchange, backend.mirrors, plan.random)
  if (backend.redirect !== undefined) {
    exchange.isLocalAnswer = true
    exchange.response = redirectTo(exchange.request, backend.redirect, exchange.pathMatch)
    return
  }
  if (service !== undefined) {
    if (backend.requestHeaders.length > 0) applyHeaderModifiers(exchange.request.headers, backend.requestHeaders, exchange.request)
    answer(exchange, backend, await service.handle(exchange, plan))
    return
  }
  prepareRequest(exchange, backend)
  const response = await (plan.retry === undefined ? callOnly(exchange, backend, plan) : callWithRetries(exchange, backend, plan, plan.retry))
  answer(exchange, backend, response)
}

function checkDestination({ error, settings: { broken, auth } }: PlannedBackend['destination']): void {
  if (error !== undefined) throw new ProxyError(error)
  if (broken !== undefined) throw new ProxyError('UPSTREAM_FAILED', { detail: broken })
  if (auth?.kind === 'broken') throw new ProxyError('BACKEND_AUTH', { detail: auth.reason })
}

function answer(exchange: Exchange, { responseHeaders }: PlannedBackend, response: ResponseHead): void {
  if (responseHeaders.length > 0) exchange.backendResponseHeaders = responseHeaders
  exchange.response = response
  if (response.body !== undefined && exchange.deadlineAtMs !== undefined) response.body = withDeadline(exchange, response.body, exchange.deadlineAtMs)
}

function prepareRequest(exchange: Exchange, backend: PlannedBackend): void {
  const { request } = exchange
  const { destination } = backend
  const { auth } = destination.settings
  // First, so that a header modifier of the backendRef has the last word (traffic.md §5 step 8).
  if (auth !== undefined) authenticate(request.headers, auth, exchange)
  if (backend.requestHeaders.length > 0 && applyHeaderModifiers(request.headers, backend.requestHeaders, request).isAuthoritySet)
    exchange.isAuthorityFixed = true
  request.authority = authorityFor(exchange, destination)
  const defaultPort = destination.settings.tls === undefined ? ':80' : ':443'
  if (request.authority.endsWith(defaultPort) && !destination.isDynamic) request.authority = request.authority.slice(0, -defaultPort.length)
}

/** The call under way, for whoever must stop it. */
interface Active {
  call: UpstreamCall | undefined
}

function callOnly(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan): Promise<ResponseHead> {
  const endpoint = backend.destination.pick(exchange)
  if (endpoint === undefined) throw new ProxyError('NO_HEALTHY_BACKENDS')
  const active: Active = { call: undefined }
  exchange.onAbort((reason) => active.call?.cancel(reason))
  return callOnce(exchange, backend, endpoint, plan, active)
}

async function callWithRetries(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan, retry: RetryPlan): Promise<ResponseHead> {
  const { request } = exchange
  const replayable = request.body === undefined ? undefined : new ReplayableBody(request.body)
  const active: Active = { call: undefined }
  exchange.onAbort((reason) => {
    active.call?.cancel(reason)
    replayable?.cancel(reason)
  })
  let failed: EndpointState | undefined
  for (let attempt = 0; ; attempt++) {
    exchange.retryAttempt = attempt
    if (attempt > 0) request.headers.set('x-retry-attempt', String(attempt))
    if (replayable !== undefined) request.body = replayable.nextAttempt()
    const endpoint = backend.destination.pick(exchange, failed)
    if (endpoint === undefined) throw new ProxyError('NO_HEALTHY_BACKENDS')
    const result = await callOnce(exchange, backend, endpoint, plan, active).catch((error: unknown) => toProxyFailure(error))
    const isGivenUp = attempt >= retry.attempts || exchange.abortReason !== undefined || replayable?.isReplayable === false || !isRetryable(result, retry)
    if (isGivenUp || !(await waitBeforeRetry(exchange, retry.backoffMs))) {
      if (!(result instanceof ProxyError)) return result
      replayable?.cancel(result)
      throw result
    }
    failed = endpoint
    release(exchange)
    if (!(result instanceof ProxyError)) result.body?.cancel()
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

/** False when the deadline comes first: backoff never outlives the request timeout. */
async function waitBeforeRetry(exchange: Exchange, backoffMs: number): Promise<boolean> {
  if (exchange.deadlineAtMs !== undefined && performance.now() + backoffMs >= exchange.deadlineAtMs) return false
  if (backoffMs > 0) await new Promise((resolve) => setTimeout(resolve, backoffMs))
  return exchange.abortReason === undefined
}

/** One attempt on one endpoint. Rejects with a ProxyError. */
async function callOnce(
  exchange: Exchange,
  { destination }: PlannedBackend,
  endpoint: EndpointState,
  plan: ForwardPlan,
  active: Active,
): Promise<ResponseHead> {
  const startedAtMs = performance.now()
  exchange.endpoint = endpoint.label
  if (exchange.upstreamStartedAtMs === 0) exchange.upstreamStartedAtMs = startedAtMs
  const limit = attemptLimit(exchange, plan, destination.settings.requestMs, startedAtMs)
  if (limit !== undefined && limit.ms <= 0) throw new ProxyError(limit.code)
  endpoint.pending++
  exchange.pendingOn = endpoint
  const call = destination.poolFor(endpoint, exchange).call(exchange.request, destination.settings)
  active.call = call
  const watch = limit && startWatch(call, limit)
  try {
    const response = await call.response
    const now = performance.now()
    exchange.responseHeadAtMs = now
    checkUpgrade(exchange, response)
    recordResponse(exchange, destination, endpoint, response, (now - startedAtMs) / 1000)
    return response
  } catch (error) {
    const isCancelled = error instanceof UpstreamError && error.failure === 'cancelled' && watch?.isLate !== true
    if (!isCancelled) destination.record(endpoint, false, 0)
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
function attemptLimit(exchange: Exchange, plan: ForwardPlan, backendMs: number | undefined, now: number): Limit | undefined {
  const whole = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - now
  const attempt = Math.min(plan.backendRequestMs ?? Infinity, backendMs ?? Infinity)
  if (whole === Infinity && attempt === Infinity) return undefined
  return whole <= attempt ? { ms: whole, code: 'REQUEST_TIMEOUT' } : { ms: attempt, code: 'UPSTREAM_TIMEOUT' }
}

function toProxyFailure(error: unknown): ProxyError {
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
function checkUpgrade({ request }: Exchange, response: ResponseHead): void {
  if (response.status !== 101) return
  const answered = response.headers.get('upgrade') ?? ''
  if (request.upgrade !== undefined && response.upgraded !== undefined && answered.toLowerCase() === request.upgrade.toLowerCase()) return
  response.upgraded?.socket.destroy()
  throw new ProxyError('UPGRADE_FAILED', { detail: 'the upstream switched to another protocol than the client asked for' })
}

/** Breaks the response off when the request timeout, which covers the body too, is reached. */
function withDeadline(exchange: Exchange, body: NonNullable<ResponseHead['body']>, deadlineAtMs: number): ObservedBody {
  const observed = new ObservedBody(body, { onClose: () => clearTimeout(timer) })
  const timer = setTimeout(
    () => {
      exchange.cutBy = 'timeout'
      exchange.error = new ProxyError('REQUEST_TIMEOUT')
      observed.fail(exchange.error)
    },
    Math.max(0, deadlineAtMs - performance.now()),
  )
  return observed
}
