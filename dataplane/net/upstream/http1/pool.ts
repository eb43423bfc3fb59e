import { sharedDeadlines, type Deadlines, type Waiter } from '../../../http/deadlines.ts'
import type { RequestHead } from '../../../http/message.ts'
import { responseHeadLimits, type HeadLimits } from '../../../http/syntax.ts'
import { Http1Call, type ConnectionPool } from './call.ts'
import { ClientConnection } from './connection.ts'
import { createConnector, type Connector } from './connect.ts'
import type { Transport, UpstreamCall, UpstreamPool } from '../types.ts'

/** Dependencies of an HTTP/1.1 pool. */
export interface Http1PoolOptions {
  readonly limits?: HeadLimits
  readonly deadlines?: Deadlines
  /** Replaces the default connector. */
  readonly connector?: Connector
}

/**
 * HTTP/1.1 connections to one endpoint (traffic.md §13). Reuses the most recently used idle connection, has no limit of connections, and
 * closes idle ones after `keepAlive.idleMs` or the shorter time that the upstream announces.
 */
export function createHttp1Pool(transport: Transport, options: Http1PoolOptions = {}): UpstreamPool {
  return new Http1Pool(transport, options)
}

class Http1Pool implements UpstreamPool, ConnectionPool, Waiter {
  deadlineMs = Infinity
  readonly transport: Transport
  readonly limits: HeadLimits
  readonly #deadlines: Deadlines
  readonly #connect: Connector
  readonly #maxIdle: number
  readonly #open = new Set<ClientConnection>()
  /** Idle connections, the most recently used at the end. */
  readonly #idle: ClientConnection[] = []
  #isClosed = false

  constructor(transport: Transport, options: Http1PoolOptions) {
    this.transport = transport
    this.#maxIdle = transport.keepAlive?.maxIdle ?? Infinity
    this.limits = options.limits ?? responseHeadLimits
    this.#deadlines = options.deadlines ?? sharedDeadlines
    // The version is fixed: ignore other ALPN protocols of the policy (traffic.md §13).
    const tls = transport.tls && { ...transport.tls, alpn: undefined }
    this.#connect = options.connector ?? createConnector({ ...transport, tls }, ['http/1.1'])
  }

  get size(): number {
    return this.#open.size
  }

  call(request: RequestHead, timeouts: { connectMs: number }): UpstreamCall {
    const call = new Http1Call(request, this, timeouts.connectMs)
    call.send(false)
    return call
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#idle.splice(0)) connection.destroy()
  }

  acquire(connectMs: number, isFresh: boolean, mayTunnel: boolean): ClientConnection {
    const idle = isFresh ? undefined : this.#idle.pop()
    if (idle !== undefined) return idle
    const connection = new ClientConnection(this.#connect, connectMs, this, mayTunnel)
    this.#open.add(connection)
    return connection
  }

  release(connection: ClientConnection, keepAliveSeconds: number | undefined): void {
    const { keepAlive } = this.transport
    if (keepAlive === undefined || this.#isClosed || connection.isClosed || this.#idle.length >= this.#maxIdle) return connection.destroy()
    // The upstream's timeout started when it sent the response: close before it does.
    const announcedMs = keepAliveSeconds === undefined ? Infinity : keepAliveSeconds * 1000 - 1000
    const idleMs = Math.min(keepAlive.idleMs, announcedMs)
    if (idleMs <= 0) return connection.destroy()
    if (this.deadlineMs === Infinity) this.#deadlines.add(this)
    connection.idleUntilMs = this.#deadlines.nowMs + idleMs
    if (connection.idleUntilMs < this.deadlineMs) this.deadlineMs = connection.idleUntilMs
    this.#idle.push(connection)
  }

  forget(connection: ClientConnection): void {
    this.#open.delete(connection)
    const at = this.#idle.lastIndexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /** Closes connections whose idle timeout has expired. */
  expire(): void {
    const now = this.#deadlines.nowMs
    for (const connection of this.#idle.filter((idle) => idle.idleUntilMs <= now)) connection.destroy()
    this.deadlineMs = this.#idle.reduce((soonest, idle) => Math.min(soonest, idle.idleUntilMs), Infinity)
    if (this.#idle.length === 0) this.#deadlines.remove(this)
  }
}
