import { defaultJsonLimits, type JsonLimits } from '#api/json/index.ts'
import type { HeaderModifier, PathMatch, RouteRef } from '#gen/config/types.ts'
import type { ErrorFormat, ProxyError } from './error.ts'
import type { BodyHold } from '../../http/budget.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { forkSlots, type SlotHolder } from './slot.ts'
import type { RequestTrace } from './trace.ts'
import type { TokenBudgets } from './token-budgets.ts'

/** TLS session of a client connection. */
export interface TlsSession {
  readonly sni: string | undefined
  readonly alpn: string | undefined
  readonly protocol: string | undefined
  /** Certificate of the client; undefined unless it was verified. */
  readonly clientCertificate: ClientCertificate | undefined
}

export interface ClientCertificate {
  readonly pem: string
  readonly subject: string
  readonly subjectCn: string
  readonly issuer: string
  readonly subjectAltNames: readonly string[]
  /** PEM of the certificate and of those of its issuers that the client sent. */
  readonly chain?: string
}

/** A downstream connection. */
export interface Connection {
  readonly id: number
  /** Key of the bind. */
  readonly bind: string
  readonly localAddress: string
  readonly localPort: number
  /** Client address, after PROXY protocol. */
  readonly remoteAddress: string
  /** 0: unknown. */
  readonly remotePort: number
  /** Peer address of the socket, if a PROXY protocol header or a trusted proxy named another client. */
  readonly rawAddress?: string
  readonly rawPort?: number
  readonly tls: TlsSession | undefined
  /** Key of the listener that TLS selected by SNI; undefined for plaintext, where Host selects it per request. */
  readonly listener: string | undefined
}

/** Value of `backend.type` in expressions (traffic.md §9). */
export type BackendType = 'ai' | 'mcp' | 'static' | 'dynamic' | 'service' | 'unknown'

/** What expressions and budgets see of the backend that a rule picked, before the request is sent. */
export interface PickedBackend {
  readonly destination: { readonly name: string; readonly type: BackendType; readonly isA2a?: boolean }
  readonly service?: { readonly current: { isFree?(request: RequestHead): boolean } | undefined } | undefined
}

/** Names of a route in logs, metrics and policies. */
export interface RouteLabels {
  /** `<namespace>/<name>` of the Gateway. */
  readonly gateway: string
  readonly listener: string
  /** `<namespace>/<name>`. */
  readonly route: string
  readonly rule: string
  readonly kind?: RouteRef['kind']
}

/**
 * One request in flight: its head, values set by policies, the response, the timings. Servers create it, the route's chain
 * processes it, telemetry records it when it is finished.
 */
export class Exchange implements SlotHolder {
  /** Its client is the one that trusted proxies name (`frontend.http.clientIP`), once the listener has read their header. */
  connection: Connection
  readonly request: RequestHead
  /** Value of `x-request-id`; undefined until the listener has set it. */
  requestId: string | undefined = undefined
  /** As received, but for the normalization of the path; policies may rewrite `request`. */
  readonly receivedMethod: string
  receivedTarget: string
  readonly receivedAuthority: string
  /** Milliseconds of `performance.now()` at receipt of the request head. */
  readonly startedAtMs: number
  response: ResponseHead | undefined = undefined
  /** The error that the gateway responded with, if any; source of `error` and `reason` in logs. */
  error: ProxyError | undefined = undefined
  /** Formats error responses for the protocol of this client; undefined: text, or grpc-status for gRPC clients. */
  errorFormat: ErrorFormat | undefined = undefined
  /** Set when a policy responded without an error: redirects, CORS preflights, direct responses. */
  isLocalAnswer = false

  labels: Partial<RouteLabels> | undefined = undefined
  /** The backend that the rule picked by weight, before its policies run (traffic.md §5 step 5). */
  picked: PickedBackend | undefined = undefined
  /** `host:port` of the endpoint that responded. */
  endpoint: string | undefined = undefined
  /** Backend of the request, even if it had no endpoint: a label of metrics. */
  backend: string | undefined = undefined
  /** Type of `backend`. */
  backendType: BackendType | undefined = undefined
  /** Response filters of the chosen backendRef; they run after those of the rule (traffic.md §5, Response). */
  backendResponseHeaders: readonly HeaderModifier[] | undefined = undefined
  /** Path condition of the rule that the request matched: prefix rewriting and span names need it. */
  pathMatch: PathMatch | undefined = undefined
  /** A rewrite set the authority: automatic host rewriting does not change it. */
  isAuthorityFixed = false
  /** hostRewrite Auto is set: requests to Services carry the name of the Service too. */
  isHostRewritten = false
  /** `performance.now()` at which the exchange, body included, times out; undefined: never. */
  deadlineAtMs: number | undefined = undefined
  /** Limits of JSON in the bodies of this exchange. */
  jsonLimits: JsonLimits = defaultJsonLimits
  /** Limits of LLM tokens; LLM services check and settle them. */
  tokenBudgets: TokenBudgets | undefined = undefined
  /** Endpoint whose `pending` to decrement when the exchange is finished. */
  pendingOn: { pending: number } | undefined = undefined
  /** Index of the attempt that responded, from 0. */
  retryAttempt = 0
  upstreamStartedAtMs = 0
  responseHeadAtMs = 0
  /** `performance.now()` when the response was ready for the client; 0: not yet. */
  answeredAtMs = 0
  finishedAtMs = 0
  requestBytes = 0
  responseBytes = 0
  /** What cut the response short; undefined: nothing. */
  cutBy: 'client' | 'upstream' | 'timeout' | 'shutdown' | undefined = undefined
  /** grpc-status from headers or trailers. */
  grpcStatus: string | undefined = undefined

  /** Set if a client of the admin endpoint traces this request. */
  trace: RequestTrace | undefined = undefined

  /** Reservations for buffered bodies; see held.ts. */
  held: BodyHold | undefined = undefined
  /** The exchange that this one is a fork of, directly or not. */
  origin: Exchange | undefined = undefined
  /** Values of slots; see slot.ts. */
  slots: unknown[] | undefined = undefined
  #onAbort: ((error: Error) => void)[] | undefined = undefined
  #aborted: Error | undefined = undefined
  /** The reason for which a part of the chain is cancelled at the moment. */
  #cancelled: Error | undefined = undefined

  constructor(connection: Connection, request: RequestHead, startedAtMs: number) {
    this.connection = connection
    this.request = request
    this.receivedMethod = request.method
    this.receivedTarget = request.target
    this.receivedAuthority = request.authority
    this.startedAtMs = startedAtMs
  }

  /** Creates an exchange for a copy of the request, such as a mirror. It starts with the values set so far; changes do not flow back. */
  fork(request: RequestHead): Exchange {
    const copy = new Exchange(this.connection, request, this.startedAtMs)
    copy.origin = this.origin ?? this
    copy.labels = this.labels
    copy.requestId = this.requestId
    copy.backend = this.backend
    copy.backendType = this.backendType
    copy.isHostRewritten = this.isHostRewritten
    copy.isAuthorityFixed = this.isAuthorityFixed
    copy.jsonLimits = this.jsonLimits
    copy.slots = forkSlots(this.slots)
    return copy
  }

  get abortReason(): Error | undefined {
    return this.#aborted
  }

  /** Called by the server when the client disconnects; calls back all `onAbort` listeners. */
  abort(reason: Error): void {
    if (this.#aborted !== undefined && this.#aborted !== this.#cancelled) return
    this.#aborted = reason
    const callbacks = this.#onAbort
    this.#onAbort = undefined
    if (callbacks) for (const callback of callbacks) callback(reason)
  }

  /** Number of `onAbort` listeners: those of the rest of a chain come after it. */
  get listeners(): number {
    return this.#onAbort?.length ?? 0
  }

  /** Cancels the rest of a chain as if the client had disconnected, and waits until it has ended. `after`: number of `onAbort` listeners before it started. */
  async cancelRest(rest: Promise<void>, after: number, reason: Error): Promise<void> {
    const { error } = this
    const callbacks = this.#onAbort?.splice(after) ?? []
    if (this.#aborted === undefined) this.#aborted = this.#cancelled = reason
    for (const callback of callbacks) callback(reason)
    await rest.catch(() => undefined)
    if (this.#aborted === reason) this.#aborted = undefined
    this.#cancelled = undefined
    this.error = error
  }

  /** Calls back when the client disconnects, or at once if it already has. */
  onAbort(callback: (error: Error) => void): void {
    if (this.#aborted !== undefined) callback(this.#aborted)
    else (this.#onAbort ??= []).push(callback)
  }
}

/**
 * Called by servers for each request. Sets `exchange.response`; never rejects. The server then writes the response, and calls
 * `OnFinish` when its last byte is handed to the socket or the exchange was cut.
 */
export type OnRequest = (exchange: Exchange) => Promise<void> | void
export type OnFinish = (exchange: Exchange) => void
