import type { Connection, OnFinish, OnRequest } from '../../exchange/exchange.ts'
import type { Deadlines } from '../../http/deadlines.ts'
import type { HeadLimits, MessageError } from '../../http/syntax.ts'

export interface Http1Options {
  readonly connection: Connection
  /** Bytes that were already read from the socket. */
  readonly initial?: Buffer | undefined
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  /** A request that was refused before it had a head to show: for counters and logs. */
  readonly onRefuse?: (error: MessageError) => void
  /** The connection is closed; called once. */
  readonly onClose?: () => void
  readonly limits?: HeadLimits
  readonly timeouts?: Partial<Http1Timeouts>
  /** CONNECT reaches `onRequest`; otherwise it is answered with 405. */
  readonly allowsConnect?: boolean
  readonly deadlines?: Deadlines
}

/** Milliseconds; 0 turns a limit off. */
export interface Http1Timeouts {
  /** From the first byte of a head, or of the connection, to the head's end: 408. */
  readonly headMs: number
  /** Between requests, and without a byte either way after an upgrade: silent close. */
  readonly idleMs: number
  /** While the client owes body bytes, or does not take the response: cut. */
  readonly bodyMs: number
}

export const defaultTimeouts: Http1Timeouts = { headMs: 30_000, idleMs: 600_000, bodyMs: 0 }

/** A client's connection, as its bind sees it. */
export interface Http1Server {
  /** No request is in flight or partly received. */
  readonly isIdle: boolean
  /** Lets the request in flight finish, says `connection: close`, then closes; idle connections close now. */
  drain(): void
  /** As `drain`; with `force`, cuts the request in flight. */
  close(force: boolean): void
}
