import type { Connection, OnFinish, OnRequest } from '../../../request/exchange/exchange.ts'
import type { Deadlines } from '../../../http/deadlines.ts'
import type { HeadLimits, MessageError } from '../../../http/syntax.ts'

/** Limit of pipelined bytes that are held while a request is in flight; beyond it the connection stops reading. */
export const MAX_HELD_BYTES = 16_384
/** How long a connection that is to close waits for its first request. */
export const FIRST_REQUEST_MS = 1000
/** How long a closed connection is still read, so that the client receives the last response instead of a reset. */
export const LINGER_MS = 2000

/** Options of `serveHttp1`. */
export interface Http1Options {
  readonly connection: Connection
  /** Bytes that were already read from the socket. */
  readonly initial?: Buffer | undefined
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  /** A request was rejected before its head was parsed: for metrics and logs. */
  readonly onRefuse?: (error: MessageError) => void
  /** The connection is closed; called once. */
  readonly onClose?: () => void
  readonly limits?: HeadLimits
  readonly timeouts?: Partial<Http1Timeouts>
  /** CONNECT is passed to `onRequest`; otherwise it is rejected with 405. */
  readonly allowsConnect?: boolean
  readonly deadlines?: Deadlines
}

/** In milliseconds; 0 disables a timeout. */
export interface Http1Timeouts {
  /** From the first byte of a head, or from the start of the connection, to the end of the head: 408. */
  readonly headMs: number
  /** Between requests, and without a byte in either direction after an upgrade: closes without a response. */
  readonly idleMs: number
  /** While the client neither sends the body nor reads the response: closes the connection. */
  readonly bodyMs: number
}

export const defaultTimeouts: Http1Timeouts = { headMs: 30_000, idleMs: 600_000, bodyMs: 0 }

/** A client's HTTP/1 connection. */
export interface Http1Server {
  /** No request is in flight or partly received. */
  readonly isIdle: boolean
  /** Finishes the request in flight with `connection: close`, then closes; closes an idle connection at once. With `keepNew`, one without a request yet stays open. */
  drain(keepNew?: boolean): void
  /** As `drain`, with one second for the first request of a new connection; with `force`, aborts the request in flight. */
  close(force: boolean): void
}
