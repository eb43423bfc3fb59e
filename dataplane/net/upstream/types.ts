import type { LoopMarks } from './loop.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'

/**
 * An HTTP call to one endpoint. `request.authority` becomes Host or `:authority`; the pool adds the hop-by-hop headers that
 * its protocol needs.
 */
export interface UpstreamCall {
  /** Resolves with the response head; rejects with an UpstreamError. */
  readonly response: Promise<ResponseHead>
  /** Cancels the call and its bodies; `response` rejects if it is still pending. Idempotent. */
  cancel(reason: Error): void
}

/** A pool of connections to one endpoint with one transport configuration. */
export interface UpstreamPool {
  call(request: RequestHead, timeouts: { connectMs: number }): UpstreamCall
  /** Open connections, for stats. */
  readonly size: number
  /** Closes idle connections now and busy ones when their call ends. */
  close(): void
}

/** Stage at which a call failed; determines whether it may be retried. */
export type UpstreamFailure =
  /** Refused, unreachable, TLS failure, reset before any byte was sent: safe to retry on another endpoint. */
  | 'connect'
  | 'connect-timeout'
  | 'dns'
  /** Closed or reset after the request was sent, before a complete response head. */
  | 'reset'
  /** The upstream violated HTTP: ambiguous framing, invalid head. */
  | 'protocol'
  /** 101 without a request for it, or to another protocol. */
  | 'upgrade'
  /** The client chose a destination that is not admitted. */
  | 'forbidden'
  /** Too many connections are open. */
  | 'limit'
  /** The config names an address that no connection may go to. */
  | 'denied'
  | 'cancelled'

/** Why a call has no response head, or why its body failed. Messages contain addresses, never header values. */
export class UpstreamError extends Error {
  readonly failure: UpstreamFailure
  /** Until the next call is tried, if that is known. */
  readonly retryAfterMs: number | undefined
  constructor(failure: UpstreamFailure, message: string, cause?: unknown, retryAfterMs?: number) {
    super(message, { cause })
    this.name = 'UpstreamError'
    this.failure = failure
    this.retryAfterMs = retryAfterMs
  }
}

/** Connections to an endpoint through an HTTP proxy (backend policy `tunnel`). */
export interface Tunnel {
  /** Identifies the tunnel: connections through one are not used for another. */
  readonly key: string
  /** Sends CONNECT for `authority` to the proxy. Throws an UpstreamError if the proxy is unavailable. */
  connect(authority: string): UpstreamCall
}

/** Judges each connection by the address that it goes to. */
export interface ConnectGuard {
  /** Connections with guards of one key are interchangeable. */
  readonly key: string
  /** Why a connection is not admitted, for logs; undefined: it is. `host` is as the client wrote it, `address` is the IP address that it resolved to. */
  reject(host: string, address: string, port: number): string | undefined
}

/** Connections of one backend, with all of its policies and endpoints. */
export interface ConnectionShare {
  /** Counts a connection that is about to be opened; an error if the limit is reached. */
  take(): UpstreamError | undefined
  /** A counted connection is closed. */
  give(): void
}

/** How to reach an endpoint: the transport part of a pool's key. */
export interface Transport {
  readonly host: string
  readonly port: number
  /** Undefined: plaintext. */
  readonly tls: UpstreamTls | undefined
  /** `maxIdle`: maximum number of idle connections; default unlimited. */
  readonly keepAlive: { readonly idleMs: number; readonly maxIdle?: number | undefined } | undefined
  /** TCP keepalive of idle connections; undefined: none. */
  readonly probes?: TcpProbes | undefined
  /** HTTP proxy; undefined: none. */
  readonly tunnel?: Tunnel | undefined
  /** For destinations that clients choose; undefined: they are as the config says. */
  readonly guard?: ConnectGuard | undefined
  /** Marks the requests; undefined: they carry no mark. */
  readonly marks?: LoopMarks | undefined
  /** Counts and limits the connections; undefined: no limit. */
  readonly connections?: ConnectionShare | undefined
  /** Receives the seconds that each new connection took to become ready, including its TLS handshake. */
  readonly onConnected?: (seconds: number) => void
}

/** TCP keepalive: the first probe after `timeMs`, then one each `intervalMs`; the connection fails after `retries` unanswered probes. */
export interface TcpProbes {
  readonly timeMs: number
  readonly intervalMs: number
  readonly retries: number
}

/** TLS settings of connections to an endpoint. */
export interface UpstreamTls {
  /** SNI; undefined for IP addresses without one configured. */
  readonly servername: string | undefined
  /** PEM trust anchors; undefined: system CAs. */
  readonly ca: readonly string[] | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** Names of which the certificate must have one; undefined: `servername`. */
  readonly subjectAltNames: readonly { readonly type: 'Hostname' | 'URI'; readonly value: string }[] | undefined
  readonly verify: 'full' | 'chain' | 'none'
  readonly alpn: readonly string[] | undefined
}
