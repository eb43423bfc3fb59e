import type { HeaderModifier, PathMatch, RouteRef } from '#gen/config/types.ts'
import type { ErrorFormat, ProxyError } from './error.ts'
import type { RequestHead, ResponseHead } from '../http/message.ts'
import { forkSlots, type SlotHolder } from './slot.ts'
import type { RequestTrace } from './trace.ts'
import type { TokenBudgets } from './token-budgets.ts'

/** What is known of a client's TLS session. */
export interface TlsSession {
  readonly sni: string | undefined
  readonly alpn: string | undefined
  readonly protocol: string | undefined
  /** The client's certificate as PEM and parsed names; only when it was verified. */
  readonly clientCertificate: ClientCertificate | undefined
}

export interface ClientCertificate {
  readonly pem: string
  readonly subject: string
  readonly subjectCn: string
  readonly issuer: string
  readonly subjectAltNames: readonly string[]
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
  readonly remotePort: number
  /** The socket's own peer, where a PROXY protocol header named another client. */
  readonly rawAddress?: string
  readonly rawPort?: number
  readonly tls: TlsSession | undefined
  /** Key of the listener that TLS selected by SNI; undefined for plaintext, where Host selects it per request. */
  readonly listener: string | undefined
}

/** As expressions call it: `backend.type` (traffic.md §9). */
export type BackendType = 'ai' | 'mcp' | 'static' | 'dynamic' | 'service' | 'unknown'

/** What expressions see of a backend before the request is sent. */
export interface NamedBackend {
  readonly name: string
  readonly type: BackendType
}

/** Names that logs, metrics and policies know a route by. */
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
 * One request in flight: its head, what policies wrote, the response, the timings. Servers make it, the route's chain
 * works on it, telemetry reads it when it is finished.
 */
export class Exchange implements SlotHolder {
  readonly connection: Connection
  readonly request: RequestHead
  /** As received; policies may rewrite `request`. */
  readonly receivedMethod: string
  readonly receivedTarget: string
  readonly receivedAuthority: string
  /** Milliseconds of `performance.now()` at receipt of the request head. */
  readonly startedAtMs: number
  response: ResponseHead | undefined = undefined
  /** Set when the gateway itself answered because of an error; what `error` and `reason` show in logs. */
  error: ProxyError | undefined = undefined
  /** How this client wants errors told; undefined: as text, or as gRPC callers do. */
  errorFormat: ErrorFormat | undefined = undefined
  /** Set when a policy answered without an error: redirects, CORS preflights, direct responses. */
  isLocalAnswer = false

  labels: Partial<RouteLabels> | undefined = undefined
  /** The backend that the rule picked by weight, before its policies run (traffic.md §5 step 5). */
  picked: NamedBackend | undefined = undefined
  /** `host:port` of the endpoint that answered. */
  endpoint: string | undefined = undefined
  /** Where the request was sent, or would have been had there been an endpoint: the label of metrics. */
  backend: string | undefined = undefined
  /** What kind of backend it is. */
  backendType: BackendType | undefined = undefined
  /** Response filters of the chosen backendRef; they run after those of the rule (traffic.md §5, Response). */
  backendResponseHeaders: readonly HeaderModifier[] | undefined = undefined
  /** Path condition of the rule that the request matched: prefix rewriting and span names need it. */
  pathMatch: PathMatch | undefined = undefined
  /** A rewrite fixed the authority: automatic host rewriting leaves it alone. */
  isAuthorityFixed = false
  /** hostRewrite Auto was asked for: Services too are called by their own name. */
  isHostRewritten = false
  /** `performance.now()` after which the whole exchange, body included, is late; undefined: never. */
  deadlineAtMs: number | undefined = undefined
  /** Limits of LLM tokens that the request is under; who speaks to an LLM asks and settles them. */
  tokenBudgets: TokenBudgets | undefined = undefined
  /** The endpoint whose `pending` counts this exchange until it is finished. */
  pendingOn: { pending: number } | undefined = undefined
  /** Number of the attempt that answered, from 0. */
  retryAttempt = 0
  upstreamStartedAtMs = 0
  responseHeadAtMs = 0
  /** When the response was ready for the client. */
  answeredAtMs = 0
  finishedAtMs = 0
  requestBytes = 0
  responseBytes = 0
  /** Why the response was cut short, if it was. */
  cutBy: 'client' | 'upstream' | 'timeout' | 'shutdown' | undefined = undefined
  /** grpc-status from headers or trailers. */
  grpcStatus: string | undefined = undefined

  /** Set while somebody on the admin port traces this very request. */
  trace: RequestTrace | undefined = undefined

  /** Values of slots; see slot.ts. */
  slots: unknown[] | undefined = undefined
  #onAbort: ((error: Error) => void)[] | undefined = undefined
  #aborted: Error | undefined = undefined

  constructor(connection: Connection, request: RequestHead, startedAtMs: number) {
    this.connection = connection
    this.request = request
    this.receivedMethod = request.method
    this.receivedTarget = request.target
    this.receivedAuthority = request.authority
    this.startedAtMs = startedAtMs
  }

  /** For a copy of the request that goes elsewhere: it sees what policies left so far, and leaves nothing here. */
  fork(request: RequestHead): Exchange {
    const copy = new Exchange(this.connection, request, this.startedAtMs)
    copy.labels = this.labels
    copy.backend = this.backend
    copy.backendType = this.backendType
    copy.isHostRewritten = this.isHostRewritten
    copy.isAuthorityFixed = this.isAuthorityFixed
    copy.slots = forkSlots(this.slots)
    return copy
  }

  get abortReason(): Error | undefined {
    return this.#aborted
  }

  /** The server calls this when the client is gone; whatever works for it stops. */
  abort(reason: Error): void {
    if (this.#aborted !== undefined) return
    this.#aborted = reason
    const callbacks = this.#onAbort
    this.#onAbort = undefined
    if (callbacks) for (const callback of callbacks) callback(reason)
  }

  /** Calls back once the client is gone, at once if it already is. */
  onAbort(callback: (error: Error) => void): void {
    if (this.#aborted !== undefined) callback(this.#aborted)
    else (this.#onAbort ??= []).push(callback)
  }
}

/**
 * What servers call for each request. On return `exchange.response` is set; it never rejects. The server then writes the
 * response, and calls `OnFinish` once its last byte is handed to the socket or the exchange was cut.
 */
export type OnRequest = (exchange: Exchange) => Promise<void> | void
export type OnFinish = (exchange: Exchange) => void
