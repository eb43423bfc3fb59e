import type { Socket } from 'node:net'
import type { Deadlines } from '../../../http/deadlines.ts'
import { connectFailure, type Connector } from '../http1/connect.ts'
import { SLOW_MS } from '../tcp.ts'
import { Http2ClientConnection, type ConnectionOwner } from './connection.ts'
import { Liveness, type LivenessSettings } from './liveness.ts'
import type { StreamCall } from './stream.ts'
import { UpstreamError, type Transport } from '../types.ts'

/** Assumed stream limit until the upstream announces its own. */
const ASSUMED_STREAMS = 100
/** Upper bound of streams per connection, whatever the upstream allows: more do not improve throughput. */
const MAX_STREAMS = 1000

/** The pool of a session. */
export interface SessionOwner {
  readonly transport: Transport
  readonly deadlines: Deadlines
  readonly liveness: LivenessSettings
  /** Concurrent streams that the upstream allowed on its last connection; undefined before the first SETTINGS frame. */
  knownRoom: number | undefined
  /** The session is ready: it may take the calls that wait for others. */
  ready(session: Http2UpstreamSession): void
  /** The session needs long to connect: `connectMs` are left. */
  slow(session: Http2UpstreamSession, connectMs: number): void
  /** The last call of the session has ended. */
  rest(session: Http2UpstreamSession): void
  /** The session is closed. */
  forget(session: Http2UpstreamSession): void
}

/** A call on a session. */
export interface SessionCall extends StreamCall {
  /** For the session: the one that counts the call. A field instead of a Set of calls, whose storage would hold finished calls (`StreamTable`). */
  heldBy: Http2UpstreamSession | undefined
  /** The session is connected: the call may open its stream. */
  begin(connection: Http2ClientConnection, session: Http2UpstreamSession): void
  /** Sends the call on another session, because this one has no stream left. */
  send(isFresh: boolean): void
  /** The session failed before the call opened its stream. */
  fail(error: UpstreamError): void
}

/** An HTTP/2 connection to an upstream with the calls that share it. */
export class Http2UpstreamSession implements ConnectionOwner {
  /** For the pool: time at which the idle session is closed. */
  idleUntilMs = Infinity
  /** Last processed stream id of GOAWAY; streams above it were not processed. */
  lastProcessedId = Infinity
  isClosed = false
  /** The upstream did not acknowledge a PING. */
  isDead = false
  readonly #pool: SessionOwner
  readonly #socket: Socket
  /** Number of calls that wait or run. */
  #calls = 0
  /** Calls that wait until the session is ready. */
  #waiting: SessionCall[] = []
  #connection: Http2ClientConnection | undefined
  #liveness: Liveness | undefined
  #room: number
  #isReady = false
  #isClosing = false
  #hasServed = false
  #connectTimer: NodeJS.Timeout | undefined
  readonly #slowTimer: NodeJS.Timeout

  /** Connects, or adopts a connection that is ready. */
  constructor(pool: SessionOwner, source: Connector | Socket, connectMs: number) {
    this.#pool = pool
    this.#room = pool.knownRoom ?? ASSUMED_STREAMS
    this.#connectTimer = setTimeout(() => {
      const { host, port } = pool.transport
      this.#fail(new UpstreamError('connect-timeout', `${host}:${port}: no connection within ${connectMs} ms`))
    }, connectMs)
    this.#slowTimer = setTimeout(() => pool.slow(this, Math.max(1, connectMs - SLOW_MS)), SLOW_MS)
    if (typeof source !== 'function') {
      this.#socket = source
      this.#begin()
      return
    }
    let error: NodeJS.ErrnoException | undefined
    const socket = (this.#socket = source(() => this.#connected()))
    socket.on('error', (thrown) => (error ??= thrown))
    socket.once('close', () => {
      if (this.#connection === undefined)
        this.#fail(error instanceof UpstreamError ? error : connectFailure(pool.transport, error ?? new Error('connection closed')))
    })
  }

  get hasRoom(): boolean {
    return !this.isClosing && this.#calls < this.#room && this.#connection?.hasIds !== false
  }

  get isReady(): boolean {
    return this.#isReady
  }

  get isIdle(): boolean {
    return this.#calls === 0
  }

  /** Whether no call has ended on the session yet, so that the upstream cannot be closing it as idle. */
  get isFresh(): boolean {
    return !this.#hasServed
  }

  /** The session is closed, or will be once its streams end. */
  get isClosing(): boolean {
    return this.#isClosing || this.isClosed || this.#connection?.isClosed === true
  }

  /** Starts the call once connected. */
  run(call: SessionCall): void {
    call.heldBy = this
    this.#calls++
    this.idleUntilMs = Infinity
    if (!this.#isReady || this.#connection === undefined) return void this.#waiting.push(call)
    this.#liveness?.watch()
    call.begin(this.#connection, this)
  }

  /** The call has ended, or was cancelled before it started. */
  release(call: SessionCall): void {
    if (call.heldBy !== this) return
    this.#drop(call)
    if (this.#waiting.length > 0) this.#waiting = this.#waiting.filter((waiting) => waiting !== call)
    this.#hasServed = true
    if (this.#calls > 0) return
    this.#liveness?.rest()
    if (this.isClosed || !this.#isReady || this.#connection?.isClosed === true) return
    if (this.#isClosing) this.close()
    else this.#pool.rest(this)
  }

  /** Gives up the calls that wait, for a session that is ready. */
  yieldWaiting(): readonly SessionCall[] {
    const waiting = this.#waiting
    this.#waiting = []
    for (const call of waiting) this.#drop(call)
    return waiting
  }

  close(): void {
    this.#isClosing = true
    this.#forget()
    if (this.#connection === undefined) this.#fail(new UpstreamError('cancelled', 'pool is closing'))
    else if (this.#calls === 0) this.#connection.close()
  }

  #connected(): void {
    const { tls, host, port } = this.#pool.transport
    const { alpnProtocol } = this.#socket as Socket & { alpnProtocol?: string | false | null }
    if (tls !== undefined && alpnProtocol !== 'h2') {
      this.#socket.destroy(new UpstreamError('connect', `${host}:${port}: upstream does not offer h2 by ALPN`))
      return
    }
    this.#begin()
  }

  #begin(): void {
    // In TLS 1.3 the upstream rejects a client certificate by an alert after the handshake (RFC 8446 §4.4.2.4), which does not close the socket.
    this.#socket.once('error', (error) => {
      if (this.#isReady) this.#socket.destroy()
      else this.#fail(connectFailure(this.#pool.transport, error))
    })
    this.#connection = new Http2ClientConnection(this.#socket, this, () => this.#pool.deadlines.nowMs)
  }

  onSettings(maxStreams: number): void {
    this.#room = this.#pool.knownRoom = Math.min(MAX_STREAMS, maxStreams)
    if (!this.#isReady && !this.isClosed) this.#ready()
  }

  onGoaway(lastId: number): void {
    this.#isClosing = true
    this.lastProcessedId = lastId
    if (this.#isReady && this.#calls === 0) this.close()
  }

  onCallClosed(call: StreamCall): void {
    this.release(call as SessionCall)
  }

  onProbed(): void {
    this.#liveness?.onProbed()
  }

  onConnectionClosed(): void {
    if (!this.#isReady) return this.#fail(connectFailure(this.#pool.transport, new Error('closed before its settings came')))
    this.isClosed = true
    this.#liveness?.end()
    this.#forget()
  }

  /** Handles a dead connection like one that the upstream closed. */
  #die(): void {
    this.isDead = true
    this.#isClosing = true
    this.#forget()
    this.#socket.destroy()
  }

  /**
   * The upstream's SETTINGS were received (RFC 9113 §3.4). Calls are sent only now: an upstream with a lower stream limit would refuse the
   * surplus, and a body that has started cannot be sent elsewhere.
   */
  #ready(): void {
    const connection = this.#connection
    if (connection === undefined) return
    clearTimeout(this.#connectTimer)
    clearTimeout(this.#slowTimer)
    this.#isReady = true
    const { deadlines, liveness } = this.#pool
    this.#liveness = new Liveness(
      () => connection.probe(),
      this.#socket,
      deadlines,
      liveness,
      () => this.#die(),
    )
    const waiting = this.#waiting
    this.#waiting = []
    const surplus = waiting.splice(Math.max(1, this.#room))
    for (const call of surplus) this.#drop(call)
    if (this.#calls > 0) this.#liveness.watch()
    // The start of a call may cancel another.
    for (const call of waiting) if (call.heldBy === this) call.begin(connection, this)
    for (const call of surplus) call.send(false)
    this.#pool.ready(this)
    if (this.#calls === 0 && !this.isClosing) this.#pool.rest(this)
  }

  /** The connection could not be established. */
  #fail(error: UpstreamError): void {
    if (this.isClosed) return
    this.isClosed = true
    clearTimeout(this.#connectTimer)
    clearTimeout(this.#slowTimer)
    this.#forget()
    this.#socket.destroy()
    const waiting = this.#waiting
    this.#waiting = []
    for (const call of waiting) this.#drop(call)
    for (const call of waiting) call.fail(error)
  }

  #drop(call: SessionCall): void {
    call.heldBy = undefined
    this.#calls--
  }

  #forget(): void {
    this.#pool.forget(this)
  }
}
