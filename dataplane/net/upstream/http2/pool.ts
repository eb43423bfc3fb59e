import type { Socket } from 'node:net'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../../http/deadlines.ts'
import type { RequestHead } from '../../../http/message.ts'
import { createConnector, type Connector } from '../http1/connect.ts'
import { Http2Call, type SessionSource } from './call.ts'
import { defaultLiveness, type LivenessSettings } from './liveness.ts'
import { Http2UpstreamSession } from './session.ts'
import { MAX_ATTEMPTS } from '../tcp.ts'
import type { Transport, UpstreamCall, UpstreamPool } from '../types.ts'

/** Dependencies of an HTTP/2 pool. */
export interface Http2PoolOptions {
  readonly deadlines?: Deadlines
  /** Replaces the default connector. */
  readonly connector?: Connector
  readonly liveness?: LivenessSettings
}

/** A pool that can also adopt an open connection. */
export interface Http2Pool extends UpstreamPool {
  adopt(socket: Socket, connectMs: number): void
}

/**
 * HTTP/2 connections to one endpoint (traffic.md §13). Calls share a connection up to the number of streams that the upstream
 * allows; further calls open another. Over TLS the upstream must select h2 by ALPN; plaintext uses prior knowledge.
 */
export function createHttp2Pool(transport: Transport, options: Http2PoolOptions = {}): Http2Pool {
  return new SessionPool(transport, options)
}

class SessionPool implements Http2Pool, SessionSource, Waiter {
  deadlineMs = Infinity
  readonly transport: Transport
  knownRoom: number | undefined
  readonly deadlines: Deadlines
  readonly liveness: LivenessSettings
  readonly #connect: Connector
  readonly #sessions: Http2UpstreamSession[] = []
  #isClosed = false

  constructor(transport: Transport, options: Http2PoolOptions) {
    this.transport = transport
    this.deadlines = options.deadlines ?? sharedDeadlines
    this.liveness = options.liveness ?? defaultLiveness
    // The version is fixed: ignore other ALPN protocols of the policy (traffic.md §13).
    const tls = transport.tls && { ...transport.tls, alpn: undefined }
    this.#connect = options.connector ?? createConnector({ ...transport, tls }, ['h2'])
  }

  get size(): number {
    return this.#sessions.length
  }

  call(request: RequestHead, timeouts: { connectMs: number }): UpstreamCall {
    const call = new Http2Call(request, this, timeouts.connectMs)
    call.send(false)
    return call
  }

  adopt(socket: Socket, connectMs: number): void {
    this.#sessions.push(new Http2UpstreamSession(this, socket, connectMs))
  }

  close(): void {
    this.#isClosed = true
    for (const session of this.#sessions.slice()) if (session.isIdle) session.close()
  }

  acquire(connectMs: number, isFresh: boolean): Http2UpstreamSession {
    const known = isFresh ? undefined : (this.#sessions.find((session) => session.isReady && session.hasRoom) ?? this.#sessions.find(({ hasRoom }) => hasRoom))
    if (known !== undefined) return known
    const session = new Http2UpstreamSession(this, this.#connect, connectMs)
    this.#sessions.push(session)
    return session
  }

  /** Opens another connection beside one that may have stalled. */
  slow(_: Http2UpstreamSession, connectMs: number): void {
    if (this.#isClosed || this.#sessions.filter(({ isReady }) => !isReady).length >= MAX_ATTEMPTS) return
    this.#sessions.push(new Http2UpstreamSession(this, this.#connect, connectMs))
  }

  ready(session: Http2UpstreamSession): void {
    for (const other of this.#sessions.slice()) {
      if (other.isReady || other === session) continue
      for (const call of other.yieldWaiting()) call.send(false)
    }
  }

  rest(session: Http2UpstreamSession): void {
    const { keepAlive } = this.transport
    if (keepAlive === undefined || this.#isClosed || keepAlive.idleMs <= 0) return session.close()
    const { maxIdle } = keepAlive
    if (maxIdle !== undefined && this.#sessions.length > maxIdle && this.#sessions.filter(({ isIdle }) => isIdle).length > maxIdle) return session.close()
    if (this.deadlineMs === Infinity) this.deadlines.add(this)
    session.idleUntilMs = this.deadlines.nowMs + keepAlive.idleMs
    if (session.idleUntilMs < this.deadlineMs) this.deadlineMs = session.idleUntilMs
  }

  forget(session: Http2UpstreamSession): void {
    const at = this.#sessions.indexOf(session)
    if (at !== -1) this.#sessions.splice(at, 1)
  }

  /** Closes sessions whose idle timeout has expired. */
  expire(): void {
    const now = this.deadlines.nowMs
    for (const session of this.#sessions.slice()) if (session.isIdle && session.idleUntilMs <= now) session.close()
    const idle = this.#sessions.filter((session) => session.isIdle)
    this.deadlineMs = idle.reduce((soonest, session) => Math.min(soonest, session.idleUntilMs), Infinity)
    if (this.deadlineMs === Infinity) this.deadlines.remove(this)
  }
}
