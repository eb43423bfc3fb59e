import type { Duplex } from 'node:stream'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../../http/deadlines.ts'
import { Http2Connection } from '../../../http/http2/connection.ts'
import {
  ConnectionError,
  MAX_STREAM_ID,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  settingBytes,
  SETTINGS_ENABLE_CONNECT_PROTOCOL,
  SETTINGS_INITIAL_WINDOW_SIZE,
  SETTINGS_MAX_CONCURRENT_STREAMS,
  SETTINGS_MAX_FRAME_SIZE,
  SETTINGS_MAX_HEADER_LIST_SIZE,
  STREAM_CLOSED,
} from '../../../http/http2/frames.ts'
import type { HeaderProblem } from '../../../http/http2/hpack.ts'
import { Http2ServerStream, type ServerStreamOwner } from './stream.ts'
import { defaultHttp2Settings, type Http2Options, type Http2Settings } from './options.ts'

/** A client's HTTP/2 connection. */
export interface Http2Server {
  readonly isIdle: boolean
  /** Sends GOAWAY, finishes the open streams, then closes. */
  drain(): void
  /** As `drain`; with `force`, aborts the open streams. */
  close(force: boolean): void
}

/** Maximum time between the first GOAWAY, which still accepts new streams, and the second (RFC 9113 §6.8). */
const NOTICE_MS = 1000
/** Ranges of skipped stream identifiers that are remembered. */
const MAX_SKIPPED = 16
/** Payloads of PING: keep-alive, and the one that follows the first GOAWAY. */
const KEEP_ALIVE = 'keepaliv'
const DRAIN = 'draining'

/**
 * Serves HTTP/2 on an accepted socket, plaintext by prior knowledge or decrypted with ALPN h2 (RFC 9113). `initial`: what the caller has read from
 * the socket; it must not read from it any more.
 */
export function serveHttp2(socket: Duplex, options: Http2Options, initial?: Buffer): Http2Server {
  const connection = new ServerConnection(socket, options)
  connection.begin(initial)
  return connection
}

class ServerConnection extends Http2Connection<Http2ServerStream> implements Http2Server, ServerStreamOwner, Waiter {
  deadlineMs = Infinity
  readonly options: Http2Options
  readonly scheme: 'http' | 'https'
  readonly settings: Http2Settings
  readonly deadlines: Deadlines
  /** Requests whose handler has not returned; those of streams that were reset count too. */
  #running = 0
  #skipped: { readonly from: number; readonly to: number }[] = []
  #idleAtMs = Infinity
  #pingAtMs = Infinity
  #isPinging = false
  #isDraining = false
  /** Streams above are not accepted any more. */
  #lastAccepted = MAX_STREAM_ID
  #closeAtMs = Infinity

  constructor(socket: Duplex, options: Http2Options) {
    const settings = { ...defaultHttp2Settings, ...options.settings }
    const deadlines = options.deadlines ?? sharedDeadlines
    super(socket, settings, true, () => deadlines.nowMs)
    this.options = options
    this.settings = settings
    this.scheme = options.connection.tls === undefined ? 'http' : 'https'
    this.deadlines = deadlines
  }

  begin(initial: Buffer | undefined): void {
    const { settings } = this
    this.deadlines.add(this)
    this.#becomeIdle()
    if (settings.keepAliveMs > 0) this.#pingAtMs = this.deadlines.nowMs + settings.keepAliveMs
    this.#schedule()
    this.open(
      settingBytes(SETTINGS_MAX_CONCURRENT_STREAMS, settings.maxConcurrentStreams) +
        settingBytes(SETTINGS_INITIAL_WINDOW_SIZE, settings.streamWindow) +
        settingBytes(SETTINGS_MAX_FRAME_SIZE, settings.maxFrame) +
        settingBytes(SETTINGS_MAX_HEADER_LIST_SIZE, settings.maxHeaderList) +
        settingBytes(SETTINGS_ENABLE_CONNECT_PROTOCOL, 1),
      initial,
    )
  }

  get isIdle(): boolean {
    return this.streams.size === 0
  }

  drain(): void {
    if (this.#isDraining || this.isClosed) return
    this.#isDraining = true
    // Requests in transit are still served, because the client learns of the shutdown before any stream is refused.
    this.goaway(MAX_STREAM_ID, NO_ERROR)
    this.ping(DRAIN)
    this.#closeAtMs = this.deadlines.nowMs + NOTICE_MS
    this.#schedule()
  }

  close(force: boolean): void {
    if (!force) return this.drain()
    for (const stream of this.streams.values()) stream.cut('shutdown')
    this.output.flush()
    this.socket.destroy()
  }

  expire(): void {
    const now = this.deadlines.nowMs
    if (now >= this.#closeAtMs || now >= this.#idleAtMs) this.#closeInOrder()
    if (now >= this.#pingAtMs) this.#keepAlive(now)
    this.#schedule()
  }

  // Streams.

  handlerStarted(): void {
    this.#running++
  }

  handlerReturned(): void {
    this.#running--
  }

  protected override acceptHeaders(id: number, fields: readonly string[], endStream: boolean, problem: HeaderProblem | undefined): void {
    if (id <= this.lastPeerId) return this.#rejectOld(id)
    if ((id & 1) === 0) throw new ConnectionError(PROTOCOL_ERROR, 'client used an even stream identifier')
    if (id > this.lastPeerId + 2) this.#skip(this.lastPeerId + 1, id - 1)
    this.lastPeerId = id
    if (id > this.#lastAccepted) return
    const { maxConcurrentStreams } = this.settings
    // A client that resets its streams must not start more work than one that waits (CVE-2023-44487).
    if (this.streams.size >= maxConcurrentStreams || this.#running >= 2 * maxConcurrentStreams) {
      this.refuse(id, REFUSED_STREAM, endStream)
      return this.guard.countReset()
    }
    if (problem === 'malformed') {
      this.refuse(id, PROTOCOL_ERROR, endStream)
      return this.guard.countReset()
    }
    this.turnRequests++
    this.#idleAtMs = Infinity
    const stream = new Http2ServerStream(this, id)
    this.streams.set(stream)
    const violation = stream.serve(fields, endStream, problem)
    if (violation === undefined) return
    this.reset(stream, violation)
    this.guard.countReset()
  }

  /** HEADERS on a stream that is closed, or that was never opened. */
  #rejectOld(id: number): void {
    if (this.wasReset(id)) return
    const wasUsed = (id & 1) === 1 && !this.#skipped.some(({ from, to }) => from <= id && id <= to)
    throw wasUsed
      ? new ConnectionError(STREAM_CLOSED, 'HEADERS on a closed stream')
      : new ConnectionError(PROTOCOL_ERROR, 'stream identifier is not higher than the previous')
  }

  #skip(from: number, to: number): void {
    this.#skipped.push({ from, to })
    if (this.#skipped.length > MAX_SKIPPED) this.#skipped.shift()
  }

  protected override isIdleId(id: number): boolean {
    return id > this.lastPeerId || (id & 1) === 0
  }

  protected override onPeerReset(): void {
    this.guard.countReset()
  }

  protected override onStreamClosed(): void {
    if (this.streams.size > 0) return
    this.#becomeIdle()
    this.#schedule()
    if (this.#lastAccepted !== MAX_STREAM_ID) this.shutdown(undefined, 'connection is drained')
  }

  protected override onGoaway(): void {
    // The client opens no more streams, and closes the connection when it is done.
  }

  protected override onSettings(): void {
    // Nothing here depends on them.
  }

  // The connection.

  protected override onPingAck(payload: string): void {
    if (payload === DRAIN && this.#isDraining) this.#closeInOrder()
    if (payload !== KEEP_ALIVE || !this.#isPinging) return
    this.#isPinging = false
    this.#pingAtMs = this.deadlines.nowMs + this.settings.keepAliveMs
    this.#schedule()
  }

  protected override onClosed(): void {
    this.deadlines.remove(this)
    this.options.onClose?.()
  }

  #becomeIdle(): void {
    this.#idleAtMs = this.settings.idleMs > 0 ? this.deadlines.nowMs + this.settings.idleMs : Infinity
  }

  #keepAlive(now: number): void {
    if (this.#isPinging) {
      this.socket.destroy()
      return
    }
    this.#isPinging = true
    this.#pingAtMs = now + this.settings.keepAliveTimeoutMs
    this.ping(KEEP_ALIVE)
  }

  #closeInOrder(): void {
    this.#isDraining = true
    this.#closeAtMs = Infinity
    this.#idleAtMs = Infinity
    if (this.isClosed || this.#lastAccepted !== MAX_STREAM_ID) return
    this.#lastAccepted = this.lastPeerId
    this.goaway(this.lastPeerId, NO_ERROR)
    if (this.streams.size === 0) this.shutdown(undefined, 'connection is drained')
  }

  #schedule(): void {
    this.deadlineMs = Math.min(this.#idleAtMs, this.#pingAtMs, this.#closeAtMs)
  }
}
