import { errorTable } from '#api/errors.ts'
import { ProxyError } from '../exchange/error.ts'
import { Exchange, type Connection } from '../exchange/exchange.ts'
import { recordResponse } from './health.ts'
import { BufferBody, readBody, type Body } from '../http/body.ts'
import { HeaderList } from '../http/headers.ts'
import type { HttpVersion, RequestHead, ResponseHead } from '../http/message.ts'
import { ObservedBody } from '../http/observe.ts'
import { authenticate, authorizeByCloud, isCloudAuth, type CloudHints } from '../upstream/auth.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import { defaultSettings, type Destination } from '../upstream/destination.ts'
import { UpstreamError, type UpstreamCall } from '../upstream/types.ts'
import { circuitOf, type Passage } from './circuit.ts'

/** A request of the gateway's own: to an authorization server, a guard, an LLM provider, an MCP server. */
export interface Callout {
  readonly method: string
  /** Path and query, starting with `/`. */
  readonly target: string
  /** Default: the destination's own name and port. */
  readonly authority?: string | undefined
  /** Without host, content-length and hop-by-hop headers. Default: none. */
  readonly headers?: HeaderList
  readonly body?: Body | Buffer | string | undefined
  /** What is preferred where neither a policy, nor appProtocol, nor TLS decides. Default HTTP/1.1. */
  readonly version?: HttpVersion
  /** The call makes sense over HTTP/2 only, which is asked for; trailers of the answer are wanted. */
  readonly isGrpc?: boolean
  /** For credentials of a cloud, where the destination's host name does not say it. */
  readonly cloud?: CloudHints
}

export interface CalloutOptions {
  /** Until the response head; with `covers: 'body'` until the end of the body. Undefined: the destination's own limit, if any. */
  readonly timeoutMs?: number | undefined
  readonly covers?: 'head' | 'body'
  /**
   * The exchange that it is made for: when its client goes, so does the call; its deadline (`timeouts.request`) is the call's, and
   * being past it a ProxyError, REQUEST_TIMEOUT; passthrough credentials come from it.
   */
  readonly exchange?: Exchange | undefined
  /** One of the destination's endpoints, for who has to stay with it. Default: the balancer's choice. */
  readonly pinned?: EndpointState | undefined
  /**
   * A policy waits for the answer. After calls in a row that were not answered the next ones fail at once (circuit.ts); a connection
   * has 2 s where no policy says otherwise; what another endpoint may answer is sent there once.
   */
  readonly isGuarded?: boolean
  /** The caller says with `record` how the endpoint did, because the head does not. */
  readonly isJudgedByCaller?: boolean
}

/** A call under way. */
export interface StartedCall {
  /** The response head, its body not started. Rejects with an UpstreamError, or with a ProxyError when the exchange is late. */
  readonly response: Promise<ResponseHead>
  /** `host:port` of the endpoint; undefined as long as there is none. */
  readonly endpoint: string | undefined
  /** Stops it and its bodies. Idempotent. A reason of `connect-timeout` counts against the service: its caller has waited too long. */
  cancel(reason: Error): void
  /** With `isJudgedByCaller`: there is something of the answer, more may follow. */
  answered(): void
  /** With `isJudgedByCaller`: the answer is complete. Tells the balancer how the endpoint did, unless a policy's condition does. */
  record(isHealthy: boolean): void
}

/** The whole answer to a call. */
export interface CalloutAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

const GUARDED_CONNECT_MS = 2000
/** Calls of our own come over no connection. */
const plain = { tls: undefined }
const ownConnection: Connection = { id: 0, bind: '', localAddress: '', localPort: 0, remoteAddress: '', remotePort: 0, tls: undefined, listener: undefined }

/**
 * Calls a destination through our own upstream side: its TLS, credentials, pools, balancing and health apply. Resolves with the
 * response head, its body not started. Rejects with an UpstreamError: also when the destination is not to be had (`connect`) or the
 * time is up (`connect-timeout`). Texts name addresses, never headers.
 */
export function callDestination(destination: Destination, callout: Callout, options: CalloutOptions = {}): Promise<ResponseHead> {
  return startCall(destination, callout, options).response
}

/** The same with the whole body, of at most `limitBytes`; the time covers the body. Rejects with BodyTooLargeError too. */
export async function fetchDestination(
  destination: Destination,
  callout: Callout,
  { limitBytes, ...options }: Omit<CalloutOptions, 'covers'> & { readonly limitBytes: number },
): Promise<CalloutAnswer> {
  const { status, headers, body } = await callDestination(destination, callout, { ...options, covers: 'body' })
  const { bytes } = await readBody(body, limitBytes)
  return { status, headers, body: bytes }
}

/** Begins a call that can be stopped at any time. */
export function startCall(destination: Destination, callout: Callout, options: CalloutOptions = {}): StartedCall {
  return new OwnCall(destination, callout, options)
}

class OwnCall implements StartedCall {
  readonly response: Promise<ResponseHead>
  readonly #destination: Destination
  readonly #options: CalloutOptions
  readonly #startedAtMs = performance.now()
  #endpoint: EndpointState | undefined
  #isPending = false
  #call: UpstreamCall | undefined
  #passage: Passage | undefined
  #body: ObservedBody | undefined
  #timer: NodeJS.Timeout | undefined
  #late: Error | undefined
  #headSeconds = 0

  constructor(destination: Destination, callout: Callout, options: CalloutOptions) {
    this.#destination = destination
    this.#options = options
    this.response = this.#run(callout)
    // Whoever gave the call up may not look at it any more.
    this.response.catch(() => undefined)
  }

  get endpoint(): string | undefined {
    return this.#endpoint?.label
  }

  cancel(reason: Error): void {
    if (reason instanceof UpstreamError && reason.failure === 'connect-timeout' && this.#passage?.end(1) === true) this.#recordFailure()
    this.#call?.cancel(reason)
    this.#body?.cancel(reason)
  }

  answered(): void {
    this.#passage?.begin()
  }

  record(isHealthy: boolean): void {
    this.#passage?.end('answered')
    if (this.#condition === undefined && this.#endpoint !== undefined) this.#destination.record(this.#endpoint, isHealthy, this.#headSeconds)
  }

  get #condition(): object | undefined {
    return this.#destination.settings.health?.condition
  }

  /** What a health policy says of the answer; expressions see the call as if it were a client's request. */
  #recordByCondition(request: RequestHead, response: ResponseHead): void {
    if (this.#endpoint === undefined) return
    const seen = this.#options.exchange?.fork(request) ?? new Exchange(ownConnection, request, this.#startedAtMs)
    seen.backend = this.#destination.name
    seen.backendType = this.#destination.type
    recordResponse(seen, this.#destination, this.#endpoint, response, this.#headSeconds)
  }

  #recordFailure(): void {
    if (this.#endpoint !== undefined) this.#destination.record(this.#endpoint, false, 0)
  }

  async #run(callout: Callout): Promise<ResponseHead> {
    const { exchange, isGuarded = false } = this.#options
    checkDestination(this.#destination)
    if (exchange?.abortReason !== undefined) throw new UpstreamError('cancelled', 'the client is gone', exchange.abortReason)
    const request = requestOf(callout, this.#destination)
    if (callout.isGrpc === true && this.#destination.chooseHttp({ request, connection: plain }) === 'http1')
      throw new UpstreamError('connect', `${this.#destination.name} is called by HTTP/1.1, as its appProtocol or a policy says; gRPC needs HTTP/2`)
    this.#startTimer()
    if (isGuarded) this.#passage = enterCircuit(this.#destination)
    exchange?.onAbort((reason) => this.cancel(reason))
    try {
      if (this.#destination.settings.auth !== undefined && isCloudAuth(this.#destination.settings.auth)) await this.#authorize(request, callout.cloud)
      const response = await this.#send(request, undefined)
      this.#headSeconds = (performance.now() - this.#startedAtMs) / 1000
      if (this.#condition !== undefined) this.#recordByCondition(request, response)
      if (this.#options.isJudgedByCaller !== true) this.record(response.status < 500)
      return this.#open(response)
    } catch (failure) {
      this.#finish()
      this.#judge(failure)
      throw this.#late ?? failure
    }
  }

  /** Before the endpoint is chosen: a signature covers the authority. */
  async #authorize(request: RequestHead, hints: CloudHints | undefined): Promise<void> {
    const { name, settings } = this.#destination
    if (request.authority === '') request.authority = this.#destination.pick({ request, connection: plain })?.label ?? ''
    if (settings.auth === undefined) return
    await authorizeByCloud(request, settings.auth, hints).catch((error: unknown) => {
      throw new UpstreamError('connect', `${name} cannot be called: ${error instanceof ProxyError ? (error.detail ?? error.message) : 'no credentials'}`, error)
    })
    if (this.#late !== undefined) throw this.#late
  }

  async #send(request: RequestHead, failed: EndpointState | undefined): Promise<ResponseHead> {
    const { settings } = this.#destination
    const caller = { request, connection: plain }
    const endpoint = this.#options.pinned ?? this.#destination.pick(caller, failed)
    if (endpoint === undefined || endpoint === failed) throw new UpstreamError('connect', `${this.#destination.name} has no endpoints`)
    if (this.#late !== undefined) throw this.#late
    this.#take(endpoint)
    const sent = { ...request, authority: request.authority === '' ? endpoint.label : request.authority }
    if (settings.auth !== undefined) authenticate(sent.headers, settings.auth, this.#options.exchange)
    this.#call = this.#destination.poolFor(endpoint, caller).call(sent, { connectMs: this.#connectMs() })
    try {
      return await this.#call.response
    } catch (error) {
      const { body } = request
      const isElsewhere = this.#options.isGuarded === true && failed === undefined && this.#late === undefined
      if (!isElsewhere || !(error instanceof UpstreamError && error.failure === 'connect') || (body !== undefined && !(body instanceof BufferBody))) throw error
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

  #take(endpoint: EndpointState): void {
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
    // Of an answer that broke off nobody says how it was; what the caller gave up says nothing of the service.
    if (error !== undefined) this.#passage?.end(this.#late !== undefined || (error instanceof UpstreamError && error.failure !== 'cancelled') ? 1 : 'given up')
  }

  #finish(): void {
    clearTimeout(this.#timer)
    this.#release()
  }

  #judge(failure: unknown): void {
    const isGivenUp = this.#late === undefined && failure instanceof UpstreamError && failure.failure === 'cancelled'
    if (isGivenUp) return void this.#passage?.end('given up')
    // No connection within its time costs every call that time.
    this.#passage?.end(this.#late === undefined && failure instanceof UpstreamError && failure.failure === 'connect-timeout' ? 2 : 1)
    this.#recordFailure()
  }

  #startTimer(): void {
    const { timeoutMs = Infinity, exchange } = this.#options
    const limitMs = Math.min(timeoutMs, this.#destination.settings.requestMs ?? Infinity)
    const leftMs = exchange?.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - this.#startedAtMs
    if (leftMs <= 0) throw new ProxyError('REQUEST_TIMEOUT')
    if (limitMs === Infinity && leftMs === Infinity) return
    this.#timer = setTimeout(
      () => {
        const error =
          limitMs <= leftMs
            ? new UpstreamError('connect-timeout', `${this.#destination.name} took longer than ${limitMs} ms`)
            : new ProxyError('REQUEST_TIMEOUT')
        this.#late = error
        this.#body?.fail(error)
        this.#call?.cancel(error)
      },
      Math.min(limitMs, leftMs),
    )
  }
}

function enterCircuit(destination: Destination): Passage {
  const passage = circuitOf(destination).enter(performance.now())
  if (typeof passage !== 'number') return passage
  throw new UpstreamError('connect', `${destination.name} did not answer the last calls; the next is tried in ${Math.ceil(passage)} ms`)
}

function checkDestination({ name, error, settings: { broken, auth } }: Destination): void {
  if (error !== undefined) throw new UpstreamError('connect', `${name === 'invalid' ? 'the backendRef' : name} does not resolve: ${errorTable[error].text}`)
  if (broken !== undefined) throw new UpstreamError('connect', `${name} cannot be called: ${broken}`)
  if (auth?.kind === 'broken') throw new UpstreamError('connect', `${name} cannot be called: ${auth.reason}`)
}

function requestOf(callout: Callout, destination: Destination): RequestHead {
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
  }
}
