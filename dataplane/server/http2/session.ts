import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../http/deadlines.ts'
import { Http2ServerStream, type Http2StreamOwner } from './stream.ts'
import { defaultHttp2Settings, type Http2Options, type Http2Settings } from './options.ts'

/** A client's connection, as its bind sees it. */
export interface Http2Server {
  readonly isIdle: boolean
  /** Announces the end (GOAWAY), lets streams finish, then closes. */
  drain(): void
  /** As `drain`; with `force`, cuts the streams in flight. */
  close(force: boolean): void
}

/** How long after the first GOAWAY, which admits all streams, the second one follows at the latest (RFC 9113 §6.8). */
const NOTICE_MS = 1000
const ALL_STREAMS = 2 ** 31 - 1

/**
 * Speaks HTTP/2 on an accepted socket, plaintext by prior knowledge or decrypted with ALPN h2 (RFC 9113). Bytes that were read
 * already must be back in the socket (`unshift`), and nobody else may listen for its data.
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
      // Only their size limits fields (traffic.md §10); each counts for 32 and more, what Node's own limit of 128 does not know.
      maxHeaderListPairs: Math.ceil(settings.maxHeaderList / 32),
      // Floods cost the connection: bad frames, refused streams, resets (CVE-2023-44487), settings, pings.
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
      streamResetBurst: 1000,
      streamResetRate: 33,
      maxSettings: 32,
      maxOutstandingPings: 10,
      // Megabytes; windows of paused streams are part of it.
      maxSessionMemory: Math.max(10, Math.ceil((settings.streamWindow * settings.maxConcurrentStreams) / 1_048_576) + 2),
    }))
    session.on('stream', (stream, _headers, flags, raw) => this.#serve(stream, flags, raw))
    // The session destroys itself; its streams learn of it one by one.
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
    // Requests that are on their way are still served: the client knows of the end before we refuse any.
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
