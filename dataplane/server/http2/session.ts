import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../http/deadlines.ts'
import { Http2ServerStream, type Http2StreamOwner } from './stream.ts'
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
const ALL_STREAMS = 2 ** 31 - 1

/**
 * Serves HTTP/2 on an accepted socket, plaintext by prior knowledge or decrypted with ALPN h2 (RFC 9113). The caller must put bytes that
 * it has read back into the socket (`unshift`) and must not read from it any more.
 */
export function serveHttp2(socket: Duplex, options: Http2Options): Http2Server {
  return new Http2Connection(socket, options)
}

class Http2Connection implements Http2Server, Http2StreamOwner, Waiter {
  deadlineMs = Infinity
  readonly options: Http2Options
  readonly scheme: 'http' | 'https'
  readonly #session: ServerHttp2Session
  readonly settings: Http2Settings
  readonly #deadlines: Deadlines
  readonly #streams = new Set<Http2ServerStream>()
  #idleAtMs = Infinity
  #pingAtMs = Infinity
  #isPinging = false
  #isDraining = false
  #closeAtMs = Infinity

  constructor(socket: Duplex, options: Http2Options) {
    this.options = options
    this.scheme = options.connection.tls === undefined ? 'http' : 'https'
    this.#deadlines = options.deadlines ?? sharedDeadlines
    const settings = (this.settings = { ...defaultHttp2Settings, ...options.settings })
    const session = (this.#session = performServerHandshake(socket, {
      settings: {
        initialWindowSize: settings.streamWindow,
        maxFrameSize: settings.maxFrame,
        maxConcurrentStreams: settings.maxConcurrentStreams,
        maxHeaderListSize: settings.maxHeaderList,
        enablePush: false,
      },
      // Fields are limited by total size only (traffic.md §10), so disable Node's limit of 128 fields; each counts as 32 bytes or more.
      maxHeaderListPairs: Math.ceil(settings.maxHeaderList / 32),
      // Floods close the connection: bad frames, refused streams, resets (CVE-2023-44487), settings, pings.
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      streamResetBurst: 1000,
      streamResetRate: 33,
      maxSettings: 32,
      maxOutstandingPings: 10,
      // In megabytes, including the windows of paused streams.
      maxSessionMemory: Math.max(10, Math.ceil((settings.streamWindow * settings.maxConcurrentStreams) / 1_048_576) + 2),
    }))
    session.on('stream', (stream, _headers, flags, raw) => this.#serve(stream, flags, raw))
    // The session destroys itself and emits an event on each stream.
    session.on('error', () => undefined)
    session.once('close', () => this.#closed())
    if (session.destroyed) return
    if (settings.connectionWindow > 65_535) session.setLocalWindowSize(settings.connectionWindow)
    this.#deadlines.add(this)
    this.#becomeIdle()
    if (settings.keepAliveMs > 0) this.#pingAtMs = this.#deadlines.nowMs + settings.keepAliveMs
    this.#schedule()
  }

  get isIdle(): boolean {
    return this.#streams.size === 0
  }

  drain(): void {
    if (this.#isDraining || this.#session.destroyed) return
    this.#isDraining = true
    // Requests in transit are still served, because the client learns of the shutdown before any stream is refused.
    this.#session.goaway(0, ALL_STREAMS)
    this.#session.ping((error) => {
      if (error === null) this.#closeInOrder()
    })
    this.#closeAtMs = this.#deadlines.nowMs + NOTICE_MS
    this.#schedule()
  }

  close(force: boolean): void {
    if (!force) return this.drain()
    for (const stream of this.#streams) stream.cut('shutdown')
    this.#session.destroy()
  }

  streamClosed(stream: Http2ServerStream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    this.#becomeIdle()
    this.#schedule()
  }

  expire(): void {
    const now = this.#deadlines.nowMs
    if (now >= this.#closeAtMs || now >= this.#idleAtMs) this.#closeInOrder()
    if (now >= this.#pingAtMs) this.#keepAlive(now)
    this.#schedule()
  }

  #serve(stream: ServerHttp2Stream, flags: number, raw: string[]): void {
    this.#idleAtMs = Infinity
    const served = new Http2ServerStream(stream, this)
    this.#streams.add(served)
    served.serve(flags, raw)
  }

  #becomeIdle(): void {
    this.#idleAtMs = this.settings.idleMs > 0 ? this.#deadlines.nowMs + this.settings.idleMs : Infinity
  }

  #keepAlive(now: number): void {
    if (this.#isPinging) return this.#session.destroy()
    const { keepAliveMs, keepAliveTimeoutMs } = this.settings
    this.#isPinging = true
    this.#pingAtMs = now + keepAliveTimeoutMs
    this.#session.ping(() => {
      this.#isPinging = false
      this.#pingAtMs = this.#deadlines.nowMs + keepAliveMs
      this.#schedule()
    })
  }

  #closeInOrder(): void {
    this.#isDraining = true
    this.#closeAtMs = Infinity
    this.#idleAtMs = Infinity
    this.#session.close()
  }

  #schedule(): void {
    this.deadlineMs = Math.min(this.#idleAtMs, this.#pingAtMs, this.#closeAtMs)
  }

  #closed(): void {
    this.#deadlines.remove(this)
    this.options.onClose?.()
  }
}
