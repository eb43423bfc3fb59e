import packageJson from '../../../package.json' with { type: 'json' }
import { errorTable } from '#api/errors.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { Exchange, type Connection } from '../../request/exchange/exchange.ts'
import { recordResponse } from './health.ts'
import { readHeldBody } from '../../request/exchange/held.ts'
import { BufferBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { withoutDefaultPort, type HttpVersion, type RequestHead, type ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import { authenticate, authorizeRequest, isFetched, type AuthHints, type UpstreamAuth } from '../upstream/auth.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import { defaultSettings, type Destination } from '../upstream/destination.ts'
import { returnsOnce } from '../upstream/loop.ts'
import { UpstreamError, type UpstreamCall } from '../upstream/types.ts'
import { circuitOf, type Permit } from './circuit.ts'

/** A request that the gateway itself makes: to an authorization server, a guard, an LLM provider, an MCP server. */
export interface Callout {
  readonly method: string
  /** Path and query, starting with `/`. */
  readonly target: string
  /** Default: the destination's own name and port. */
  readonly authority?: string | undefined
  /** Without host, content-length and hop-by-hop headers. Default: none. */
  readonly headers?: HeaderList
  readonly body?: Body | Buffer | string | undefined
  /** HTTP version if neither a policy, nor appProtocol, nor TLS decides. Default HTTP/1.1. */
  readonly version?: HttpVersion
  /** A gRPC call: requires HTTP/2, accepts trailers, and gets the headers that gRPC requires. */
  readonly isGrpc?: boolean
  /** Region and service for cloud credentials, if they cannot be derived from the destination's host name. */
  readonly cloud?: AuthHints
}

/** How a callout is made. */
export interface CalloutOptions {
  /** Timeout until the response head, or, with `covers: 'body'`, until the end of the body. Undefined: the destination's own, if any. */
  readonly timeoutMs?: number | undefined
  readonly covers?: 'head' | 'body'
  /**
   * The exchange that the call is made for. The call is cancelled when the client disconnects, and fails with REQUEST_TIMEOUT (a
   * ProxyError) at the deadline of the exchange (`timeouts.request`). Passthrough credentials are taken from it.
   */
  readonly exchange?: Exchange | undefined
  /** Endpoint of the destination to use. Default: the balancer's choice. */
  readonly pinned?: EndpointState | undefined
  /**
   * Requests wait for the call. It uses the circuit breaker (circuit.ts) and a connect timeout of 2 s unless a policy sets one, and is
   * retried once on another endpoint if no connection can be made.
   */
  readonly isGuarded?: boolean
  /** The caller reports the health of the endpoint with `record`, because the response head does not determine it. */
  readonly isJudgedByCaller?: boolean
  /** The call checks the endpoint: outlier detection does not count it, and it has no credentials of users. */
  readonly isCheck?: boolean
}

/** A call in progress. */
export interface StartedCall {
  /** The response head, its body not started. Rejects with an UpstreamError, or with a ProxyError after the deadline of the exchange. */
  readonly response: Promise<ResponseHead>
  /** `host:port` of the endpoint; undefined until one is chosen. */
  readonly endpoint: string | undefined
  /** Cancels the call and its bodies. Idempotent. A reason with failure `connect-timeout` counts as a failure of the service. */
  cancel(reason: Error): void
  /** With `isJudgedByCaller`: reports that the response began. */
  answered(): void
  /** With `isJudgedByCaller`: reports that the response is complete. Records the health of the endpoint, unless a policy's condition does. */
  record(isHealthy: boolean): void
}

/** A complete response to a callout. */
export interface CalloutResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

const GUARDED_CONNECT_MS = 2000
/** Callouts have no client connection. */
const plain = { tls: undefined }
const ownConnection: Connection = { id: 0, bind: '', localAddress: '', localPort: 0, remoteAddress: '', remotePort: 0, tls: undefined, listener: undefined }

/**
 * Calls a destination through the upstream module: the destination's TLS, credentials, pools, balancing and health policy apply. Resolves
 * with the response head, its body not started. Rejects with an UpstreamError, also if the destination is unavailable (`connect`) or
 * the timeout expires (`connect-timeout`). Error messages contain addresses, never headers.
 */
export function callDestination(destination: Destination, callout: Callout, options: CalloutOptions = {}): Promise<ResponseHead> {
  return startCall(destination, callout, options).response
}

/** Like `callDestination`, but reads the body of at most `limitBytes`; the timeout covers the body. Rejects also with BodyTooLargeError. */
export async function fetchDestination(
  destination: Destination,
  callout: Callout,
  { limitBytes, ...options }: Omit<CalloutOptions, 'covers'> & { readonly limitBytes: number },
): Promise<CalloutResponse> {
  const { status, headers, body } = await callDestination(destination, callout, { ...options, covers: 'body' })
  const { bytes } = await readHeldBody(options.exchange, body, limitBytes)
  return { status, headers, body: bytes }
}

/** Starts a call that can be cancelled at any time. */
export function startCall(destination: Destination, callout: Callout, options: CalloutOptions = {}): StartedCall {
  return new OwnCall(destination, callout, options)
}

/** The error of an authorization server that gave no token for the call (traffic.md §13.1), if that is why the call failed. */
export function tokenFailure(error: unknown): ProxyError | undefined {
  const cause = error instanceof UpstreamError ? error.cause : undefined
  return cause instanceof ProxyError && (cause.code === 'BACKEND_SUBJECT' || cause.code === 'BACKEND_TOKEN') ? cause : undefined
}

class OwnCall implements StartedCall {
  readonly response: Promise<ResponseHead>
  readonly #destination: Destination
  readonly #options: CalloutOptions
  readonly #startedAtMs = performance.now()
  #endpoint: EndpointState | undefined
  #isPending = false
  #call: UpstreamCall | undefined
  #permit: Permit | undefined
  #body: ObservedBody | undefined
  #timer: NodeJS.Timeout | undefined
  #timeout: Error | undefined
  #cancelled: Error | undefined
  #headSeconds = 0

  constructor(destination: Destination, callout: Callout, options: CalloutOptions) {
    this.#destination = destination
    this.#options = options
    this.response = this.#run(callout)
    // A caller that cancelled may no longer await the response.
    this.response.catch(() => undefined)
  }

  get endpoint(): string | undefined {
    return this.#endpoint?.label
  }

  cancel(reason: Error): void {
    if (reason instanceof UpstreamError && reason.failure === 'connect-timeout' && this.#permit?.end({ failedWeight: 1 }) === true) this.#recordFailure()
    this.#cancelled = reason
    this.#call?.cancel(reason)
    this.#body?.cancel(reason)
  }

  answered(): void {
    this.#permit?.begin()
  }

  record(isHealthy: boolean): void {
    this.#permit?.end('answered')
    if (this.#condition === undefined && this.#endpoint !== undefined) this.#destination.record(this.#endpoint, isHealthy, this.#headSeconds)
  }

  get #condition(): object | undefined {
    return this.#options.isCheck === true ? undefined : this.#destination.settings.health?.condition
  }

  get #auth(): UpstreamAuth | undefined {
    const { auth } = this.#destination.settings
    return this.#options.isCheck === true && auth?.kind === 'oauth' ? undefined : auth
  }

  /** Records health by the condition of a health policy. Expressions see the call as if it were a client's request. */
  #recordByCondition(request: RequestHead, response: ResponseHead): void {
    if (this.#endpoint === undefined) return
    const seen = this.#options.exchange?.fork(request) ?? new Exchange(ownConnection, request, this.#startedAtMs)
    seen.backend = this.#destination.name
    seen.backendType = this.#destination.type
    recordResponse(seen, this.#destination, this.#endpoint, response, this.#headSeconds)
  }

  #recordFailure(): void {
    if (this.#endpoint !== undefined && this.#options.isCheck !== true) this.#destination.record(this.#endpoint, false, 0)
  }

  async #run(callout: Callout): Promise<ResponseHead> {
    const { exchange, isGuarded = false } = this.#options
    checkDestination(this.#destination)
    if (exchange?.abortReason !== undefined) throw new UpstreamError('cancelled', 'the client is gone', exchange.abortReason)
    const request = requestOf(callout, this.#destination, exchange === undefined ? returnsOnce() : exchange.request.loop)
    if (callout.isGrpc === true && this.#destination.chooseHttp({ request, connection: plain }) === 'http1')
      throw new UpstreamError('connect', `${this.#destination.name} is called by HTTP/1.1, as its appProtocol or a policy says; gRPC needs HTTP/2`)
    const limitMs = this.#startTimer()
    if (callout.isGrpc === true) setGrpcHeaders(request.headers, limitMs)
    if (isGuarded) this.#permit = acquirePermit(this.#destination)
    exchange?.onAbort((reason) => this.cancel(reason))
    try {
      if (this.#auth !== undefined && isFetched(this.#auth)) await this.#authorize(request, this.#auth, callout.cloud)
      const response = await this.#send(request, undefined)
      this.#headSeconds = (performance.now() - this.#startedAtMs) / 1000
      if (this.#condition !== undefined) this.#recordByCondition(request, response)
      if (this.#options.isJudgedByCaller !== true && this.#options.isCheck !== true) this.record(response.status < 500)
      return this.#open(response)
    } catch (failure) {
      this.#finish()
      this.#judge(failure)
      throw this.#timeout ?? failure
    }
  }

  /** Runs before the endpoint is chosen. A signature covers the authority, so this sets it. */
  async #authorize(request: RequestHead, auth: UpstreamAuth, hints: AuthHints | undefined): Promise<void> {
    const { name, settings } = this.#destination
    if (request.authority === '')
      request.authority = withoutDefaultPort(this.#destination.pick({ request, connection: plain })?.label ?? '', settings.tls !== undefined)
    await authorizeRequest(request, auth, { exchange: this.#options.exchange, ...hints }).catch((error: unknown) => {
      throw new UpstreamError('connect', `${name} cannot be called: ${error instanceof ProxyError ? (error.detail ?? error.message) : 'no credentials'}`, error)
    })
  }

  async #send(request: RequestHead, failed: EndpointState | undefined): Promise<ResponseHead> {
    if (this.#timeout !== undefined) throw this.#timeout
    if (this.#cancelled !== undefined) throw new UpstreamError('cancelled', 'call was cancelled', this.#cancelled)
    const { settings } = this.#destination
    const caller = { request, connection: plain }
    const endpoint = this.#options.pinned ?? this.#destination.pick(caller, failed)
    if (endpoint === undefined || endpoint === failed) throw new UpstreamError('connect', `${this.#destination.name} has no endpoints`)
    this.#acquire(endpoint)
    const sent = { ...request, authority: request.authority === '' ? withoutDefaultPort(endpoint.label, settings.tls !== undefined) : request.authority }
    if (this.#auth !== undefined) authenticate(sent.headers, this.#auth, this.#options.exchange)
    this.#call = this.#destination.poolFor(endpoint, caller).call(sent, { connectMs: this.#connectMs() })
    try {
      return await this.#call.response
    } catch (error) {
      const { body } = request
      const canRetry = this.#options.isGuarded === true && failed === undefined && this.#timeout === undefined
      if (!canRetry || !(error instanceof UpstreamError && error.failure === 'connect') || (body !== undefined && !(body instanceof BufferBody))) throw error
      if (this.#destination.pick(caller, endpoint) === endpoint) throw error
      this.#destination.record(endpoint, false, 0)
      return this.#send({ ...request, body: body?.copy() }, endpoint)
    }
  }

  #connectMs(): number {
    const { connectMs } = this.#destination.settings
    return this.#options.isGuarded === true && connectMs === defaultSettings.connectMs ? GUARDED_CONNECT_MS : connectMs
  }

  #open(response: ResponseHead): ResponseHead {
    const { covers = 'head' } = this.#options
    if (covers === 'head') clearTimeout(this.#timer)
    if (response.body === undefined) this.#finish()
    else response.body = this.#body = new ObservedBody(response.body, { onClose: (error) => this.#closeBody(error) })
    return response
  }

  #acquire(endpoint: EndpointState): void {
    this.#release()
    this.#endpoint = endpoint
    this.#isPending = true
    endpoint.pending++
  }

  #release(): void {
    if (this.#isPending && this.#endpoint !== undefined) this.#endpoint.pending--
    this.#isPending = false
  }

  #closeBody(error: Error | undefined): void {
    this.#finish()
    if (error === undefined) return
    // The response ended early. If the caller cancelled it, that says nothing about the service.
    const isFailure = this.#timeout !== undefined || (error instanceof UpstreamError && error.failure !== 'cancelled')
    this.#permit?.end(isFailure ? { failedWeight: 1 } : 'cancelled')
  }

  #finish(): void {
    clearTimeout(this.#timer)
    this.#release()
  }

  #judge(failure: unknown): void {
    const upstreamFailure = this.#timeout === undefined && failure instanceof UpstreamError ? failure.failure : undefined
    if (upstreamFailure === 'cancelled' || upstreamFailure === 'limit') return void this.#permit?.end('cancelled')
    // A connect timeout delays each call by the whole timeout, so it weighs more.
    this.#permit?.end({ failedWeight: upstreamFailure === 'connect-timeout' ? 2 : 1 })
    this.#recordFailure()
  }

  /** Returns the time that the call has, in milliseconds. */
  #startTimer(): number {
    const { timeoutMs = Infinity, exchange } = this.#options
    const limitMs = Math.min(timeoutMs, this.#destination.settings.requestMs ?? Infinity)
    const leftMs = exchange?.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - this.#startedAtMs
    if (leftMs <= 0) throw new ProxyError('REQUEST_TIMEOUT')
    const shorterMs = Math.min(limitMs, leftMs)
    if (shorterMs === Infinity) return shorterMs
    this.#timer = setTimeout(() => {
      const error =
        limitMs <= leftMs ? new UpstreamError('connect-timeout', `${this.#destination.name} took longer than ${limitMs} ms`) : new ProxyError('REQUEST_TIMEOUT')
      this.#timeout = error
      this.#body?.fail(error)
      this.#call?.cancel(error)
    }, shorterMs)
    return shorterMs
  }
}

function acquirePermit(destination: Destination): Permit {
  const permit = circuitOf(destination).tryAcquire(performance.now())
  if (typeof permit !== 'number') return permit
  throw new UpstreamError('connect', `${destination.name} did not answer the last calls; the next is tried in ${Math.ceil(permit)} ms`, undefined, permit)
}

function checkDestination({ name, error, settings: { broken, auth } }: Destination): void {
  if (error !== undefined) throw new UpstreamError('connect', `${name === 'invalid' ? 'the backendRef' : name} does not resolve: ${errorTable[error].text}`)
  if (broken !== undefined) throw new UpstreamError('connect', `${name} cannot be called: ${broken}`)
  if (auth?.kind === 'broken') throw new UpstreamError('connect', `${name} cannot be called: ${auth.cause ?? auth.reason}`)
}

function requestOf(callout: Callout, destination: Destination, loop: RequestHead['loop']): RequestHead {
  const { method, target, authority, headers = new HeaderList(), body, isGrpc = false, version = isGrpc ? 'HTTP/2' : 'HTTP/1.1' } = callout
  return {
    method,
    target,
    scheme: destination.settings.tls === undefined ? 'http' : 'https',
    authority: authority ?? destination.authorityFor(true) ?? '',
    version,
    headers,
    body: typeof body === 'string' || Buffer.isBuffer(body) ? new BufferBody(body) : body,
    upgrade: undefined,
    acceptsTrailers: isGrpc,
    loop,
  }
}

/** The headers of each request (gRPC over HTTP/2, Requests); `te` follows from `acceptsTrailers`. */
function setGrpcHeaders(headers: HeaderList, limitMs: number): void {
  headers.set('content-type', 'application/grpc')
  if (!headers.has('user-agent')) headers.append('user-agent', USER_AGENT)
  if (limitMs !== Infinity) headers.set('grpc-timeout', encodeTimeout(limitMs))
}

const USER_AGENT = `proxy/${packageJson.version}`

/** At most eight digits and a unit. */
function encodeTimeout(ms: number): string {
  const whole = Math.max(1, Math.ceil(ms))
  return whole < 100_000_000 ? `${whole}m` : `${Math.ceil(whole / 1000)}S`
}
