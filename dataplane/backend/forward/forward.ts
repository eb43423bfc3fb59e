import { callEndpoint, type Active, type AttemptTarget } from './attempt.ts'
import { toProxyFailure } from './failure.ts'
import { setRetryHeader, withRetries } from './retry.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bodyHold } from '../../request/exchange/held.ts'
import { ObservedBody } from '../../http/observe.ts'
import { recordResponse } from '../../net/callout/health.ts'
import { removeForwardingHeaders } from '../../http/own-headers.ts'
import { ReplayableBody } from '../../http/replay.ts'
import { withoutDefaultPort, type ResponseHead } from '../../http/message.ts'
import { sendMirrors } from './mirror.ts'
import { applyHeaderModifiers } from '../../policy/header-modifiers/apply.ts'
import { transformForBackend } from '../../request/transformation/backend.ts'
import { redirectTo } from '../../policy/request-redirect/redirect.ts'
import type { RetryPlan } from './call-plan.ts'
import type { ForwardPlan, PlannedBackend } from './plan.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import { newCookieOf } from '../../net/upstream/balancer/hash.ts'
import { authenticate, brokenAuth, fetchCredentials, isFetched, signRequest } from '../../net/upstream/auth.ts'
import { authorityFor, type Destination } from '../../net/upstream/destination.ts'
import type { EndpointChoice } from '../../net/upstream/hooks.ts'
import { returnsNever } from '../../net/upstream/loop.ts'

/**
 * The end of a rule's chain: sends the request to one of the rule's backends and sets `exchange.response` (traffic.md §5 steps 7 and 8).
 * Throws a ProxyError if there is no response.
 */
export async function forward(exchange: Exchange, plan: ForwardPlan): Promise<void> {
  // The rule picked the backend before its policies ran.
  const backend = plan.backends.find((one) => one === exchange.picked)
  if (backend === undefined) throw new ProxyError('NO_VALID_BACKENDS')
  const { destination } = backend
  exchange.backend = destination.name
  exchange.backendType = destination.type
  const service = backend.service?.current
  if (service === undefined) checkDestination(destination)
  if (plan.mirrors.length > 0) sendMirrors(exchange, plan.mirrors, plan)
  if (backend.mirrors.length > 0) sendMirrors(exchange, backend.mirrors, plan)
  if (backend.redirect !== undefined) {
    exchange.isLocalAnswer = true
    exchange.response = redirectTo(exchange.request, backend.redirect, exchange.pathMatch)
    return
  }
  if (service !== undefined) {
    // Providers of models are other companies: addresses of users are not theirs to know.
    if (destination.type === 'ai') removeForwardingHeaders(exchange.request.headers)
    if (backend.requestHeaders.length > 0) applyHeaderModifiers(exchange.request.headers, backend.requestHeaders, exchange.request)
    answer(exchange, backend, plan, await service.handle(exchange, plan))
    return
  }
  const { hooks } = destination
  if (hooks?.choose === undefined) return send(exchange, backend, plan)
  const choice = await hooks.choose(exchange, destination, plan.maxBufferBytes)
  if (choice === undefined) return
  try {
    await send(exchange, backend, plan, choice)
  } catch (error) {
    choice.abandon(toProxyFailure(error))
    throw error
  }
  await choice.report()
}

/** Sends the request to the backend, to one of the endpoints of `choice` if it has some. */
async function send(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan, choice?: EndpointChoice): Promise<void> {
  const { destination } = backend
  const { auth, transformation } = destination.settings
  const needsFetch = isFetched(auth)
  if (auth !== undefined) authenticate(exchange.request.headers, auth, exchange)
  if (auth !== undefined && needsFetch) await fetchCredentials(exchange.request.headers, auth, { exchange })
  if (transformation !== undefined) await transformForBackend(exchange, transformation, plan.maxBufferBytes)
  prepareRequest(exchange, backend)
  // Changes headers, so it comes before the signature.
  const finisher = destination.hooks?.prepare?.(exchange)
  if (auth !== undefined && needsFetch) await signRequest(exchange.request, auth, { exchange })
  const response = await (plan.retry === undefined ? callOnly(exchange, backend, plan, choice) : callWithRetries(exchange, backend, plan, plan.retry, choice))
  answer(exchange, backend, plan, finisher === undefined ? response : await finisher.finish(response))
}

function checkDestination({ error, settings: { broken, auth } }: PlannedBackend['destination']): void {
  if (error !== undefined) throw new ProxyError(error)
  if (broken !== undefined) throw new ProxyError('UPSTREAM_FAILED', { detail: broken })
  if (auth?.kind === 'broken') throw brokenAuth(auth)
}

function answer(exchange: Exchange, backend: PlannedBackend, { persistence }: ForwardPlan, response: ResponseHead): void {
  if (backend.responseHeaders.length > 0) exchange.backendResponseHeaders = backend.responseHeaders
  exchange.response = response
  const cookie = newCookieOf(exchange)
  if (cookie !== undefined) response.headers.append('set-cookie', cookie)
  persistence?.finish(exchange, backend, response)
  if (response.body !== undefined && exchange.deadlineAtMs !== undefined) response.body = withDeadline(exchange, response.body, exchange.deadlineAtMs)
}

function prepareRequest(exchange: Exchange, backend: PlannedBackend): void {
  const { request } = exchange
  const { destination } = backend
  // After credentials and transformation, because header modifiers of the backendRef override both (traffic.md §5 step 8).
  if (backend.requestHeaders.length > 0 && applyHeaderModifiers(request.headers, backend.requestHeaders, request).isAuthoritySet)
    exchange.isAuthorityFixed = true
  if (destination.isDynamic) request.loop = returnsNever(request.loop)
  const authority = authorityFor(exchange, destination)
  request.authority = destination.isDynamic ? authority : withoutDefaultPort(authority, destination.settings.tls !== undefined)
}

async function callOnly(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan, choice?: EndpointChoice): Promise<ResponseHead> {
  const active: Active = { call: undefined }
  exchange.onAbort((reason) => active.call?.cancel(reason))
  return callEndpoint(exchange, pickTarget(exchange, backend, plan, choice), plan, active, judge)
}

function callWithRetries(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan, retry: RetryPlan, choice?: EndpointChoice): Promise<ResponseHead> {
  const { request } = exchange
  const replayable = request.body === undefined ? undefined : new ReplayableBody(request.body, bodyHold(exchange))
  const active: Active = { call: undefined }
  exchange.onAbort((reason) => {
    active.call?.cancel(reason)
    replayable?.cancel(reason)
  })
  let failed: EndpointState | undefined
  const attempt = async (number: number): Promise<ResponseHead> => {
    setRetryHeader(request.headers, number)
    if (replayable !== undefined) request.body = replayable.nextAttempt()
    const target = pickTarget(exchange, backend, plan, choice, failed)
    failed = target.endpoint
    return callEndpoint(exchange, target, plan, active, judge)
  }
  return withRetries(exchange, retry, attempt, { canRetry: () => replayable?.isReplayable !== false }).catch((error: unknown) => {
    const failure = toProxyFailure(error)
    replayable?.cancel(failure)
    throw failure
  })
}

function pickTarget(exchange: Exchange, backend: PlannedBackend, plan: ForwardPlan, choice?: EndpointChoice, avoid?: EndpointState): AttemptTarget {
  const { destination } = backend
  const held = plan.persistence?.endpointOf(exchange, backend, avoid)
  if (held !== undefined) return { destination, endpoint: held, request: exchange.request, load: held, why: 'the endpoint of the session' }
  const chosen = choice?.labels
  const traced = chosen === undefined && exchange.trace !== undefined ? destination.pickWithReason(exchange, avoid) : undefined
  const endpoint = traced?.endpoint ?? (chosen === undefined ? destination.pick(exchange, avoid) : nextOf(destination, chosen, exchange.retryAttempt))
  if (endpoint === undefined) {
    const detail =
      chosen === undefined
        ? destination.explainNoEndpoint(exchange.request.authority)
        : `no endpoint that ${choice?.by} chose is left in ${destination.name}: ${chosen.join(', ')}`
    throw new ProxyError('NO_HEALTHY_BACKENDS', { detail })
  }
  return {
    destination,
    endpoint,
    request: exchange.request,
    load: endpoint,
    why: traced?.why ?? (chosen && `choice ${(exchange.retryAttempt % chosen.length) + 1} of ${chosen.length} of ${choice?.by}`),
  }
}

/** The endpoint for an attempt: the list in order without removed endpoints, repeated from the start. */
function nextOf(destination: Destination, labels: readonly string[], attempt: number): EndpointState | undefined {
  const alive = labels.flatMap((label) => destination.endpointAt(label) ?? [])
  return alive[attempt % alive.length]
}

function judge({ destination, endpoint }: AttemptTarget, exchange: Exchange, response: ResponseHead | undefined, seconds: number): void {
  if (response === undefined) destination.record(endpoint, false, 0)
  else recordResponse(exchange, destination, endpoint, response, seconds)
}

/** Fails the body at the request timeout, which covers the body too. */
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
