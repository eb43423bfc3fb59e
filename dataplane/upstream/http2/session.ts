import { connect, type ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Deadlines } from '../../http/deadlines.ts'
import { connectFailure, type Connector } from '../http1/connect.ts'
import { Liveness, type LivenessSettings } from './liveness.ts'
import { UpstreamError, type Transport } from '../types.ts'

/** Calls that wait for a connection until the upstream says how many it takes. */
const ASSUMED_STREAMS = 100
/** More on one connection gains nothing, whatever the upstream allows. */
const MAX_STREAMS = 1000
const STREAM_WINDOW = 262_144
const CONNECTION_WINDOW = 1_048_576

/** What a session needs of its pool. */
export interface SessionOwner {
  readonly transport: Transport
  readonly deadlines: Deadlines
  readonly liveness: LivenessSettings
  /** Concurrent streams that the upstream allowed on its last connection; undefined before the first SETTINGS frame. */
  knownRoom: number | undefined
  /** The last call of the session has ended. */
  rest(session: Http2UpstreamSession): void
  /** The session is closed. */
  forget(session: Http2UpstreamSession): void
}

/** What a session needs of the calls that it carries. */
export interface SessionCall {
  /** The session is connected: the call may open its stream. */
  begin(client: ClientHttp2Session, session: Http2UpstreamSession): void
  /** Sends the call on another session: this one has no stream left for it. */
  send(isFresh: boolean): void
  /** The session failed before the call began. */
  fail(error: UpstreamError): void
}

/** One connection to an upstream with the calls that share it. */
export class Http2UpstreamSession {
  /** For the pool: when an idle session is to be closed. */
  idleUntilMs = Infinity
  /** Stream ids above this were not processed, as GOAWAY said. */
  lastProcessedId = Infinity
  isClosed = false
  /** The upstream did not answer any more. */
  isDead = false
  readonly #pool: SessionOwner
  readonly #socket: Socket
  readonly #calls = new Set<SessionCall>()
  #session: ClientHttp2Session | undefined
  #liveness: Liveness | undefined
  #room: number
  #isReady = false
  #isLeaving = false
  #hasCarried = false
  #connectTimer: NodeJS.Timeout | undefined

  /** Connects, or takes a connection over that is ready. */
  constructor(pool: SessionOwner, source: Connector | Socket, connectMs: number) {
    this.#pool = pool
    this.#room = pool.knownRoom ?? ASSUMED_STREAMS
    this.#connectTimer = setTimeout(() => {
      const { host, port } = pool.transport
      this.#fail(new UpstreamError('connect-timeout', `${host}:${port}: no connection within ${connectMs} ms`))
    }, connectMs)
    if (typeof source !== 'function') {
      this.#socket = source
      this.#begin()
      return
    }
    let error: NodeJS.ErrnoException | undefined
    const socket = (this.#socket = source(() => this.#connected()))
    socket.on('error', (thrown) => (error ??= thrown))
    socket.once('close', () => {
      if (this.#session === undefined)
        this.#fail(error instanceof UpstreamError ? error : connectFailure(pool.transport, error ?? new Error('connection closed')))
    })
  }

  get hasRoom(): boolean {
    return !this.#isLeaving && !this.isClosed && this.#calls.size < this.#room
  }

  get isIdle(): boolean {
    return this.#calls.size === 0
  }

  /** Nothing of what is sent now can have been lost to a connection that the upstream was about to close. */
  get isFresh(): boolean {
    return !this.#hasCarried
  }

  /** The session is over, or will be once its streams are. */
  get isLeaving(): boolean {
    return this.#isLeaving || this.isClosed
  }

  /** Begins the call once connected. */
  run(call: SessionCall): void {
    this.#calls.add(call)
    this.idleUntilMs = Infinity
    if (!this.#isReady || this.#session === undefined) return
    this.#liveness?.watch()
    call.begin(this.#session, this)
  }

  /** The call has ended, or left before it began. */
  leave(call: SessionCall): void {
    if (!this.#calls.delete(call)) return
    this.#hasCarried = true
    if (this.#calls.size > 0) return
    this.#liveness?.rest()
    if (this.isClosed || !this.#isReady) return
    if (this.#isLeaving) this.close()
    else this.#pool.rest(this)
  }

  close(): void {
    this.#isLeaving = true
    this.#forget()
    if (this.#session === undefined) this.#fail(new UpstreamError('cancelled', 'pool is closing'))
    else this.#session.close()
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
    // The authority is only Node's default for requests without one; ours always say theirs.
    const session = (this.#session = connect('http://upstream', {
      createConnection: () => this.#socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: 65_536 },
      maxHeaderListPairs: 256,
      maxSessionMemory: 64,
    }))
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW))
    session.on('remoteSettings', ({ maxConcurrentStreams }) => {
      this.#room = this.#pool.knownRoom = Math.min(MAX_STREAMS, maxConcurrentStreams ?? MAX_STREAMS)
      if (!this.#isReady) this.#ready(session)
    })
    session.on('goaway', (_code: number, lastStreamId: number) => {
      this.#isLeaving = true
      this.lastProcessedId = lastStreamId
    })
    // Streams learn of it one by one.
    session.on('error', () => undefined)
    // An alert after the handshake, as TLS 1.3 refuses a client's certificate (RFC 8446 §4.4.2.4), closes neither socket nor session by itself.
    this.#socket.once('error', (error) => {
      if (this.#isReady) this.#socket.destroy()
      else this.#fail(connectFailure(this.#pool.transport, error))
    })
    session.once('close', () => {
      if (!this.#isReady) return this.#fail(connectFailure(this.#pool.transport, new Error('closed before its settings came')))
      this.isClosed = true
      this.#liveness?.rest()
      this.#forget()
    })
  }

  /** As if the upstream had cut the connection. */
  #die(): void {
    this.isDead = true
    this.#isLeaving = true
    this.#forget()
    this.#socket.destroy()
  }

  /**
   * The upstream's settings are here, which open its side of the connection (RFC 9113 §3.4). Only now calls are sent: an upstream that
   * takes fewer streams would refuse the surplus, and a body that has begun cannot be sent elsewhere.
   */
  #ready(session: ClientHttp2Session): void {
    clearTimeout(this.#connectTimer)
    this.#isReady = true
    const { deadlines, liveness } = this.#pool
    this.#liveness = new Liveness(session, this.#socket, deadlines, liveness, () => this.#die())
    const surplus = [...this.#calls].slice(Math.max(1, this.#room))
    for (const call of surplus) this.#calls.delete(call)
    if (this.#calls.size > 0) this.#liveness.watch()
    for (const call of this.#calls) call.begin(session, this)
    for (const call of surplus) call.send(false)
  }

  /** There is no connection. */
  #fail(error: UpstreamError): void {
    if (this.isClosed) return
    this.isClosed = true
    clearTimeout(this.#connectTimer)
    this.#forget()
    this.#socket.destroy()
    for (const call of this.#calls) call.fail(error)
    this.#calls.clear()
  }

  #forget(): void {
    this.#pool.forget(this)
  }
}
