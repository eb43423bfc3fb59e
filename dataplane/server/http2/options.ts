import type { Connection, OnFinish, OnRequest } from '../../exchange/exchange.ts'
import type { Deadlines } from '../../http/deadlines.ts'

/** Sizes in bytes, times in milliseconds; 0 turns a time off (traffic.md §10). */
export interface Http2Settings {
  readonly streamWindow: number
  readonly connectionWindow: number
  readonly maxFrame: number
  readonly maxConcurrentStreams: number
  /** Names, values and 32 per field (RFC 9113 §6.5.2); a larger section costs its stream. */
  readonly maxHeaderList: number
  /** Without any stream. */
  readonly idleMs: number
  /** Between pings. */
  readonly keepAliveMs: number
  readonly keepAliveTimeoutMs: number
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
}

export interface Http2Options {
  readonly connection: Connection
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  /** A request that was refused before it had a head to show: for counters and logs. */
  readonly onRefuse?: (error: Error) => void
  readonly onClose?: () => void
  readonly settings?: Partial<Http2Settings>
  readonly deadlines?: Deadlines
}
