import { BufferBody } from '../../../http/body.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import type { CallSink, ConnectionOwner, ClientConnection } from './connection.ts'
import { UpstreamError, type UpstreamCall } from '../types.ts'

/** The pool of a call. */
export interface ConnectionPool extends ConnectionOwner {
  /** Returns a connection that carries no call: an idle one unless `isFresh`. `mayTunnel`: the response may turn it into a tunnel. */
  acquire(connectMs: number, isFresh: boolean, mayTunnel: boolean): ClientConnection
}

/** Idempotent methods, which may be sent again even if the upstream has processed the first request (RFC 9110 §9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** A request and its response. Uses a second connection if the upstream closed the first one while it was idle. */
export class Http1Call implements UpstreamCall, CallSink {
  readonly response: Promise<ResponseHead>
  request: RequestHead
  readonly #pool: ConnectionPool
  readonly #connectMs: number
  #connection: ClientConnection | undefined = undefined
  #isSettled = false
  #resolve: (response: ResponseHead) => void = () => undefined
  #reject: (error: Error) => void = () => undefined

  constructor(request: RequestHead, pool: ConnectionPool, connectMs: number) {
    this.request = request
    this.#pool = pool
    this.#connectMs = connectMs
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Sends the call on a connection. Upgrades use a new connection, which is never reused. */
  send(isRetry: boolean): void {
    const { upgrade, method } = this.request
    const mayTunnel = upgrade !== undefined || method === 'CONNECT'
    this.#connection = this.#pool.acquire(this.#connectMs, isRetry || mayTunnel, mayTunnel)
    this.#connection.send(this)
  }

  cancel(reason: Error): void {
    const error = new UpstreamError('cancelled', 'call was cancelled', reason)
    this.#connection?.abandon(this, error)
    this.fail(error)
  }

  /** The head was received. The call occupies its connection until the body ends. */
  succeed(response: ResponseHead): void {
    this.#isSettled = true
    this.#resolve(response)
  }

  fail(error: Error): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#connection = undefined
    this.request.body?.cancel(error)
    this.#reject(error)
  }

  /**
   * The connection closed before any byte of the response. An idle connection was most likely closed before the request arrived:
   * sends it again, once, if that is safe.
   */
  lose(error: UpstreamError, wasReused: boolean, hasStartedBody: boolean): void {
    if (this.#isSettled) return
    const { body, method } = this.request
    const isReplayable = body === undefined || !hasStartedBody || body instanceof BufferBody
    if (!wasReused || !isReplayable || !idempotent.has(method)) return this.fail(error)
    if (hasStartedBody && body instanceof BufferBody) this.request = { ...this.request, body: body.copy() }
    this.send(true)
  }
}
