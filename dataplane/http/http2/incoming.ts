import type { Http2Stream } from 'node:http2'
import type { Body, BodySink } from '../body.ts'
import { HeaderList } from '../headers.ts'
import { acceptsUnderscores, type MessageError, type Underscores } from '../syntax.ts'
import { isForbiddenTrailer } from '../trailers.ts'

/** Hop-by-hop fields, which HTTP/2 forbids (RFC 9113 §8.2.2). They are dropped on receipt and never sent. */
const hopFields = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'transfer-encoding', 'upgrade', 'te', 'trailer'])

/** Whether a field (lower case) is hop-by-hop. */
export function isHopField(name: string): boolean {
  return hopFields.has(name)
}

/** The message that an Http2Incoming belongs to. */
export interface Http2BodyOwner {
  /** The body got its sink. */
  startBody?(): void
  /** The body is complete; called before the sink's `onEnd`. */
  endBody?(): void
  /** The rest of the body is not needed. */
  cancelBody(error: Error | undefined): void
  /** The trailers are invalid. The owner fails the body. */
  rejectTrailers?(error: MessageError): void
}

/** A body that is read from an HTTP/2 stream. Pausing it stops the window of this stream only (RFC 9113 §5.2). */
export class Http2Incoming implements Body {
  readonly length: number | undefined
  /** Body bytes received. */
  bytes = 0
  isOver = false
  readonly #stream: Http2Stream
  readonly #owner: Http2BodyOwner
  #sink: BodySink | undefined
  #trailers: HeaderList | undefined
  #failure: Error | undefined
  hasStarted = false

  constructor(stream: Http2Stream, length: number | undefined, owner: Http2BodyOwner, underscores?: Underscores) {
    this.length = length
    this.#stream = stream
    this.#owner = owner
    // Node emits trailers before data that is not yet read.
    stream.on('trailers', (_headers: unknown, _flags: unknown, raw: string[]) => {
      try {
        this.#trailers = parseTrailers(raw, underscores)
      } catch (error) {
        this.#owner.rejectTrailers?.(error as MessageError)
      }
    })
  }

  start(sink: BodySink): void {
    if (this.hasStarted) return
    this.hasStarted = true
    if (this.#failure !== undefined) return sink.onError(this.#failure)
    if (this.isOver) return
    this.#sink = sink
    this.#owner.startBody?.()
    // Node has already emitted 'end' if the body is empty.
    if (this.#stream.readableEnded) return this.#end()
    this.#stream.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length
      this.#sink?.onData(chunk)
    })
    this.#stream.on('end', () => this.#end())
  }

  pause(): void {
    if (!this.isOver) this.#stream.pause()
  }

  resume(): void {
    if (!this.isOver && this.hasStarted) this.#stream.resume()
  }

  cancel(error?: Error): void {
    if (this.isOver) return
    this.isOver = true
    this.#sink = undefined
    this.#owner.cancelBody(error)
  }

  /** The stream ended before its body was complete. */
  fail(error: Error): void {
    if (this.isOver) return
    this.isOver = true
    this.#failure = error
    const sink = this.#sink
    this.#sink = undefined
    sink?.onError(error)
  }

  #end(): void {
    // Node ends the readable side on a reset too.
    if (this.#stream.rstCode !== 0) return this.fail(new Error(`stream was reset with code ${this.#stream.rstCode}`))
    if (this.length !== undefined && this.bytes !== this.length) return this.fail(new Error(`body ended after ${this.bytes} of ${this.length} bytes`))
    if (this.isOver) return
    this.isOver = true
    const sink = this.#sink
    this.#sink = undefined
    this.#owner.endBody?.()
    sink?.onEnd(this.#trailers)
  }
}

/** Throws MessageError. */
function parseTrailers(raw: readonly string[], underscores: Underscores | undefined): HeaderList | undefined {
  const trailers = new HeaderList()
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (name.charCodeAt(0) === 58 || isForbiddenTrailer(name)) continue
    if (!name.includes('_') || acceptsUnderscores(underscores)) trailers.append(name, raw[i + 1] ?? '')
  }
  return trailers.raw.length === 0 ? undefined : trailers
}
