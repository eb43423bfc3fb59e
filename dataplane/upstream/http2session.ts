import { connect, type ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { connectFailure, type Connector } from './http1connect.ts'
import type { SessionPoolOwner } from './http2.ts'
import type { Http2Call } from './http2call.ts'
import { UpstreamError } from './types.ts'

/** Streams of a connection until the upstream says how many it takes. */
const assumedStreams = 100
/** More on one connection gains nothing, whatever the upstream allows. */
const maxStreams = 1000
const streamWindow = 262_144
const connectionWindow = 1_048_576

/** One connection to an upstream with the calls that share it. */
export class Http2UpstreamSession {
  /** For the pool: when an idle session is to be closed. */
  idleUntilMs = Infinity
  /** Stream ids above this were not processed, as GOAWAY said. */
  lastProcessedId = Infinity
  isClosed = false
  readonly #pool: SessionPoolOwner
  readonly #socket: Socket
  readonly #calls = new Set<Http2Call>()
  #session: ClientHttp2Session | undefined
  #room = assumedStreams
  #isLeaving = false
  #hasCarried = false
  #connectTimer: NodeJS.Timeout | undefined

  /** Connects, or takes a connection over that is ready. */
  constructor(pool: SessionPoolOwner, connect: Connector | Socket, connectMs = 0) {
    this.#pool = pool
    if (typeof connect !== 'function') {
      this.#socket = connect
      this.#begin()
      return
    }
    let error: NodeJS.ErrnoException | undefined
    const socket = (this.#socket = connect(() => this.#connected()))
    socket.on('error', (thrown) => (error ??= thrown))
    socket.once('close', () => {
      if (this.#session === undefined)
        this.#fail(error instanceof UpstreamError ? error : connectFailure(pool.transport, error ?? new Error('connection closed')))
    })
    this.#connectTimer = setTimeout(() => {
      const { host, port } = pool.transport
      this.#fail(new UpstreamError('connect-timeout', `${host}:${port}: no connection within ${connectMs} ms`))
    }, connectMs)
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
  run(call: Http2Call): void {
    this.#calls.add(call)
    this.idleUntilMs = Infinity
    if (this.#session !== undefined) call.begin(this.#session, this)
  }

  /** The call has ended, or left before it began. */
  leave(call: Http2Call): void {
    if (!this.#calls.delete(call)) return
    this.#hasCarried = true
    if (this.#calls.size > 0 || this.isClosed || this.#session === undefined) return
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
    clearTimeout(this.#connectTimer)
    // The authority is only Node's default for requests without one; ours always say theirs.
    const session = (this.#session = connect('http://upstream', {
      createConnection: () => this.#socket,
      settings: { enablePush: false, initialWindowSize: streamWindow, maxHeaderListSize: 65_536 },
      maxHeaderListPairs: 256,
      maxSessionMemory: 64,
    }))
    session.once('connect', () => session.setLocalWindowSize(connectionWindow))
    session.on('remoteSettings', ({ maxConcurrentStreams }) => (this.#room = Math.min(maxStreams, maxConcurrentStreams ?? maxStreams)))
    session.on('goaway', (_code: number, lastStreamId: number) => {
      this.#isLeaving = true
      this.lastProcessedId = lastStreamId
    })
    // Streams learn of it one by one.
    session.on('error', () => undefined)
    session.once('close', () => {
      this.isClosed = true
      this.#forget()
    })
    for (const call of this.#calls) call.begin(session, this)
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
