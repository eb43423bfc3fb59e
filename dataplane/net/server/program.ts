import type { Socket } from 'node:net'
import type { Connection } from '../../request/exchange/exchange.ts'
import type { HeadLimits, MessageError } from '../../http/syntax.ts'
import type { Http1Timeouts } from './http1/connection.ts'
import type { Http2Settings } from './http2/options.ts'
import type { ProxyProtocolSettings } from './proxy-protocol.ts'
import type { TlsChoice } from './tls.ts'

/** Behavior of a port. Replaced as a whole on a config change; a connection keeps its initial program. */
export interface BindProgram {
  /** Protocol without TLS; 'none' closes such connections. */
  readonly plaintext: 'http' | 'tcp' | 'none'
  /** Whether there are HTTPS or TLS listeners. With plaintext 'tcp' and without TLS nothing is read before `handleTcp`: the upstream may send first. */
  readonly hasTls: boolean
  /** Key of the listener for plaintext TCP. */
  readonly tcpListener?: string | undefined
  /** Selects the TLS settings for an SNI (lower case). Undefined closes the connection. */
  selectTls(sni: string | undefined): TlsChoice | undefined
  /** Owns the connection from here on: must relay or destroy it. */
  handleTcp(tcp: TcpConnection): void
  readonly settings?: ConnectionSettings | undefined
  /** PROXY protocol headers of load balancers; undefined: none are read. */
  readonly proxyProtocol?: ProxyProtocolSettings | undefined
  /** Network authorization: called once per connection, after the TLS handshake and before HTTP. Default: admits all. */
  admits?(connection: Connection): boolean
}

/** Settings of client connections. */
export interface ConnectionSettings {
  readonly http1?: { readonly limits?: HeadLimits; readonly timeouts?: Partial<Http1Timeouts> }
  readonly http2?: Partial<Http2Settings>
  /** Timeout in milliseconds until the protocol is detected and the handshake is done; 0: none. */
  readonly handshakeMs?: number
  /** Age in milliseconds at which a connection is drained. */
  readonly maxConnectionMs?: number | undefined
  readonly keepAlive?: TcpKeepAlive | undefined
}

/** Milliseconds. */
interface TcpKeepAlive {
  readonly timeMs: number
  readonly intervalMs: number
  readonly retries: number
}

/** A connection to relay as bytes: plaintext TCP, terminated TLS, or TLS passthrough. */
export interface TcpConnection {
  readonly connection: Connection
  readonly listener: string
  readonly sni: string | undefined
  /** Paused, half-open allowed. A TLSSocket if TLS was terminated. */
  readonly socket: Socket
  /** Bytes that were already read and must be sent first. */
  readonly initial: Buffer | undefined
}

/** Protocol of a client connection, as metrics report it. */
export type DownstreamProtocol = 'http' | 'https' | 'tcp' | 'tls'

/** Meter of one connection, for metrics. */
export interface ConnectionMeter {
  /** Bytes on the wire since the last call. */
  addBytes(received: number, sent: number): void
  close(): void
}

/** Why a connection was closed before it was served. */
export type DropCause =
  /** `networkAuthorization` denied it. */
  | 'authorization'
  /** Its PROXY protocol header is missing or invalid. */
  | 'proxy_protocol'
  /** It uses another protocol than the port. */
  | 'protocol'
  /** No listener has its server name, or there is no rule for it. */
  | 'listener'
  /** The TLS handshake failed. */
  | 'handshake'
  | 'timeout'
  /** The client disconnected. */
  | 'closed'
  /** It could not be accepted, for example for lack of file descriptors. */
  | 'accept'
  /** The thread has too many connections. */
  | 'limit'

/** Events of a bind. All are optional; none may throw. */
export interface BindHooks {
  /** The protocol and listener of a new connection are known; `listener` is undefined for plaintext HTTP. */
  onConnection?(protocol: DownstreamProtocol, listener: string | undefined): ConnectionMeter | undefined
  onHandshake?(protocol: DownstreamProtocol, listener: string, seconds: number): void
  /** A connection was closed before it was served; `reason` is for the debug log, `cause` for metrics. */
  onDrop?(reason: string, remoteAddress: string, cause: DropCause): void
  /** A request was rejected before its head was parsed. */
  onRefuse?(error: MessageError, connection: Connection): void
}
