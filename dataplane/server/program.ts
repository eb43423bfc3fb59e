import type { Socket } from 'node:net'
import type { Connection } from '../exchange/exchange.ts'
import type { HeadLimits } from '../http/syntax.ts'
import type { Http1Timeouts } from './http1/connection.ts'
import type { Http2Settings } from './http2/options.ts'
import type { ProxyProtocolSettings } from './proxy-protocol.ts'
import type { TlsChoice } from './tls.ts'

/** What a port does with connections. Replaced as a whole on a config change; a connection keeps the one that it began with. */
export interface BindProgram {
  /** What is spoken without TLS; 'none' closes such connections. */
  readonly plaintext: 'http' | 'tcp' | 'none'
  /** There are HTTPS or TLS listeners. With plaintext 'tcp' and without TLS nothing is read before `handleTcp`: the server may speak first. */
  readonly hasTls: boolean
  /** Key of the listener for plaintext TCP. */
  readonly tcpListener?: string | undefined
  /** `sni` is lower case. Undefined closes the connection. */
  selectTls(sni: string | undefined): TlsChoice | undefined
  /** Takes a connection over: it must be relayed or destroyed. */
  handleTcp(tcp: TcpConnection): void
  readonly settings?: ConnectionSettings | undefined
  /** Headers that load balancers put in front of connections; undefined: none are read. */
  readonly proxyProtocol?: ProxyProtocolSettings | undefined
  /** Asked once for each connection, when all is known of it and before anything is answered: TLS is done, HTTP not begun. Default: all. */
  admits?(connection: Connection): boolean
}

export interface ConnectionSettings {
  readonly http1?: { readonly limits?: HeadLimits; readonly timeouts?: Partial<Http1Timeouts> }
  readonly http2?: Partial<Http2Settings>
  /** Until the protocol is known and the handshake is done; 0: no limit. */
  readonly handshakeMs?: number
  /** Age in milliseconds at which a connection is asked to close. */
  readonly maxConnectionMs?: number | undefined
  readonly keepAlive?: TcpKeepAlive | undefined
}

/** Milliseconds. */
interface TcpKeepAlive {
  readonly timeMs: number
  readonly intervalMs: number
  readonly retries: number
}

/** A connection to be relayed as bytes: plaintext TCP, TLS that ended here, or TLS that passes through. */
export interface TcpConnection {
  readonly connection: Connection
  readonly listener: string
  readonly sni: string | undefined
  /** Paused, half-open allowed. A TLSSocket where TLS ended here. */
  readonly socket: Socket
  /** Bytes that were read already and belong at the front. */
  readonly initial: Buffer | undefined
}

export type DownstreamProtocol = 'http' | 'https' | 'tcp' | 'tls'

/** One connection, for metrics. */
export interface ConnectionMeter {
  /** Bytes on the wire since the last call. */
  addBytes(received: number, sent: number): void
  close(): void
}

/** Why a connection was closed before it carried anything. */
export type DropCause =
  /** `networkAuthorization` does not let it in. */
  | 'authorization'
  /** Its PROXY protocol header is missing or broken. */
  | 'proxy_protocol'
  /** Something else is spoken here. */
  | 'protocol'
  /** Nobody listens for its server name, or there is no rule for it. */
  | 'listener'
  /** TLS failed, for the client's reasons or for want of a certificate. */
  | 'handshake'
  | 'timeout'
  /** The client left. */
  | 'closed'
  /** It could not be accepted: file descriptors have run out, say. */
  | 'accept'

/** What a bind tells while it works. All optional; none may throw. */
export interface BindHooks {
  /** Protocol and listener of a new connection are known; `listener` is undefined for plaintext HTTP. */
  onConnection?(protocol: DownstreamProtocol, listener: string | undefined): ConnectionMeter | undefined
  onHandshake?(protocol: DownstreamProtocol, listener: string, seconds: number): void
  /** A connection was closed before it carried anything; `reason` is for a debug log, `cause` for metrics. */
  onDrop?(reason: string, remoteAddress: string, cause: DropCause): void
  /** A request that could not be read. */
  onRefuse?(error: Error, connection: Connection): void
}
