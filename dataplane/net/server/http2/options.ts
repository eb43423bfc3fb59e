import type { Connection, OnFinish, OnRequest } from '../../../request/exchange/exchange.ts'
import type { Deadlines } from '../../../http/deadlines.ts'
import type { MessageError, Underscores } from '../../../http/syntax.ts'

/** Sizes in bytes, times in milliseconds; 0 disables a timeout (traffic.md §10). */
export interface Http2Settings {
  readonly streamWindow: number
  readonly connectionWindow: number
  readonly maxFrame: number
  readonly maxConcurrentStreams: number
  /** Names, values and 32 per field (RFC 9113 §6.5.2); the stream of a larger section is reset. */
  readonly maxHeaderList: number
  /** Timeout without any stream. */
  readonly idleMs: number
  /** Interval between pings. */
  readonly keepAliveMs: number
  readonly keepAliveTimeoutMs: number
  /** Timeout of a tunnel without a byte in either direction. */
  readonly tunnelIdleMs: number
  /** What happens to fields, trailers too, with underscores in their names. */
  readonly underscores: Underscores
}

export const defaultHttp2Settings: Http2Settings = {
  streamWindow: 262_144,
  connectionWindow: 1_048_576,
  maxFrame: 16_384,
  maxConcurrentStreams: 128,
  maxHeaderList: 16_384,
  idleMs: 600_000,
  keepAliveMs: 0,
  keepAliveTimeoutMs: 20_000,
  tunnelIdleMs: 600_000,
  underscores: 'Allow',
}

/** Options of `serveHttp2`. */
export interface Http2Options {
  readonly connection: Connection
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  /** A request was rejected before its head was parsed: for metrics and logs. */
  readonly onRefuse?: (error: MessageError) => void
  readonly onClose?: () => void
  readonly settings?: Partial<Http2Settings>
  readonly deadlines?: Deadlines
}
