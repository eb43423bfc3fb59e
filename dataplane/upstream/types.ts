import type { RequestHead, ResponseHead } from '../http/message.ts'

/**
 * One HTTP call to one endpoint. `request.authority` becomes Host or `:authority`; hop-by-hop headers are added back by the client
 * as its protocol needs them.
 */
export interface UpstreamCall {
  /** Resolves with the response head; rejects with an UpstreamError. */
  readonly response: Promise<ResponseHead>
  /** Stops the call and its bodies; `response` rejects if it is still pending. Idempotent. */
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

export type UpstreamFailure =
  /** Refused, unreachable, TLS failure, reset before any byte was sent: safe to try elsewhere. */
  | 'connect'
  | 'connect-timeout'
  | 'dns'
  /** Closed or reset after the request was sent, before a complete response head. */
  | 'reset'
  /** The upstream broke HTTP: ambiguous framing, bad head. */
  | 'protocol'
  /** 101 that nobody asked for, or to another protocol. */
  | 'upgrade'
  | 'cancelled'

/** Why a call has no response head, or why its body broke off. Messages name addresses, never header values. */
export class UpstreamError extends Error {
  readonly failure: UpstreamFailure
  constructor(failure: UpstreamFailure, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'UpstreamError'
    this.failure = failure
  }
}

/** How connections to an endpoint reach it through an HTTP proxy (backend policy `tunnel`). */
export interface Tunnel {
  /** Tells tunnels apart: connections through one are not used for another. */
  readonly key: string
  /** Sends CONNECT for `authority` to the proxy. Throws an UpstreamError when there is nobody to ask. */
  connect(authority: string): UpstreamCall
}

/** How to reach an endpoint: the transport part of a pool's key. */
export interface Transport {
  readonly host: string
  readonly port: number
  /** Undefined: plaintext. */
  readonly tls: UpstreamTls | undefined
  readonly keepAlive: { readonly idleMs: number } | undefined
  /** Probes of idle connections by the system; undefined: none. */
  readonly probes?: TcpProbes | undefined
  /** Through which proxy; undefined: none. */
  readonly tunnel?: Tunnel | undefined
  /** Told how many seconds each new connection took to become usable, its TLS handshake included. */
  readonly onConnected?: (seconds: number) => void
}

/** TCP keep-alive: the first probe after `timeMs`, then one each `intervalMs`, and after `retries` without answer it is over. */
export interface TcpProbes {
  readonly timeMs: number
  readonly intervalMs: number
  readonly retries: number
}

export interface UpstreamTls {
  /** SNI; undefined for IP addresses without one configured. */
  readonly servername: string | undefined
  /** PEM trust anchors; undefined: system CAs. */
  readonly ca: readonly string[] | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** Names of which the certificate must carry one; undefined: `servername`. */
  readonly subjectAltNames: readonly { readonly type: 'Hostname' | 'URI'; readonly value: string }[] | undefined
  readonly verify: 'full' | 'chain' | 'none'
  readonly alpn: readonly string[] | undefined
}
