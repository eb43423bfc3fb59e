import type { Duplex } from 'node:stream'
import type { Body, BodySink } from '../body.ts'
import type { Framing } from './fields.ts'
import type { HeaderList } from '../headers.ts'
import { trailersAfter } from '../trailers.ts'
import { encodeTrailers } from './serialize.ts'

/** Chunks up to this size are joined with the head and with each other into one write. */
const MAX_JOINED_CHUNK = 4096
const MAX_JOINED_TEXT = 16_384

/** The connection that an OutgoingBody is written to. */
export interface OutgoingOwner {
  /** The last byte was written to the socket. */
  bodySent(): void
  /** The body failed or violated its framing. `isUnsent`: nothing was written yet; otherwise the connection must be closed. */
  bodyFailed(error: Error, isUnsent: boolean): void
}

/**
 * Writes a head and its body to a connection. Small chunks of one turn of the event loop are joined into one Latin-1 write (Latin-1 maps
 * bytes to characters one to one, and a string saves the copy into a Buffer); large chunks are written as they are.
 */
export class OutgoingBody implements BodySink {
  /** Body bytes written, without framing. */
  bytes = 0
  isDone = false
  readonly #socket: Duplex
  readonly #body: Body
  readonly #framing: Framing
  readonly #owner: OutgoingOwner
  readonly #headers: HeaderList | undefined
  #text: string
  #isFlushing = true
  #isBlocked = false
  #hasWritten = false

  /** `headers`: those of the head, for the choice of trailers. Undefined: trailers are not sent. */
  constructor(socket: Duplex, head: string, body: Body, framing: Framing, headers: HeaderList | undefined, owner: OutgoingOwner) {
    this.#socket = socket
    this.#text = head
    this.#body = body
    this.#framing = framing
    this.#headers = headers
    this.#owner = owner
  }

  get isBlocked(): boolean {
    return this.#isBlocked
  }

  start(): void {
    this.#body.start(this)
    this.#isFlushing = false
    this.#flush()
  }

  /** The socket accepts more data. */
  onDrain(): void {
    if (!this.#isBlocked || this.isDone) return
    this.#isBlocked = false
    this.#body.resume()
  }

  /** The connection closed or the message is no longer needed. */
  cancel(error?: Error): void {
    if (this.isDone) return
    this.isDone = true
    this.#text = ''
    this.#body.cancel(error)
  }

  onData(chunk: Buffer): void {
    if (this.isDone || chunk.length === 0) return
    this.bytes += chunk.length
    const isChunked = this.#framing === 'chunked'
    const isJoined = this.#joins(chunk)
    if (typeof this.#framing === 'number' && this.bytes > this.#framing) {
      this.#fail(new Error(`body is longer than its content-length ${this.#framing}`))
      return
    }
    if (isChunked) this.#text += `${chunk.length.toString(16)}\r\n`
    if (isJoined) {
      this.#text += isChunked ? `${chunk.toString('latin1')}\r\n` : chunk.toString('latin1')
      this.#flushSoon()
      return
    }
    const text = this.#text
    this.#text = ''
    this.#hasWritten = true
    if (text !== '' || isChunked) this.#socket.cork()
    if (text !== '') this.#socket.write(text, 'latin1')
    let hasRoom = this.#socket.write(chunk)
    if (isChunked) hasRoom = this.#socket.write('\r\n', 'latin1')
    if (text !== '' || isChunked) this.#socket.uncork()
    if (!hasRoom && this.#socket.writableLength > 0) this.#block()
  }

  onBorrowed(chunk: Buffer, canHold: boolean): boolean {
    if (this.isDone || this.#joins(chunk)) {
      this.onData(chunk)
      return false
    }
    const socket = this.#socket
    // A small chunk behind others would occupy a large buffer until the client has read them.
    if (!canHold || (chunk.length < socket.writableHighWaterMark && socket.writableLength > 0)) {
      this.onData(Buffer.from(chunk))
      return false
    }
    this.onData(chunk)
    return socket.writableLength > 0
  }

  /** Whether a chunk is copied into the text of the next write. */
  #joins(chunk: Buffer): boolean {
    return chunk.length <= MAX_JOINED_CHUNK && this.#text.length <= MAX_JOINED_TEXT
  }

  onEnd(trailers: HeaderList | undefined): void {
    if (this.isDone) return
    if (typeof this.#framing === 'number' && this.bytes !== this.#framing) {
      this.#fail(new Error(`body ended after ${this.bytes} of ${this.#framing} bytes`))
      return
    }
    if (this.#framing === 'chunked') {
      let lines = ''
      try {
        const sent = this.#headers && trailersAfter(this.#headers, trailers)
        if (sent !== undefined) lines = encodeTrailers(sent)
      } catch (error) {
        this.#fail(error as Error)
        return
      }
      this.#text += `0\r\n${lines}\r\n`
    }
    this.isDone = true
    this.#isFlushing = false
    this.#flush()
    this.#owner.bodySent()
  }

  onError(error: Error): void {
    if (this.isDone) return
    this.isDone = true
    this.#text = ''
    this.#owner.bodyFailed(error, !this.#hasWritten)
  }

  #fail(error: Error): void {
    this.isDone = true
    this.#text = ''
    this.#body.cancel(error)
    this.#owner.bodyFailed(error, !this.#hasWritten)
  }

  #block(): void {
    if (this.#isBlocked) return
    this.#isBlocked = true
    this.#body.pause()
  }

  #flushSoon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    process.nextTick(flushLater, this)
  }

  #flush(): void {
    const text = this.#text
    if (text === '') return
    this.#text = ''
    this.#hasWritten = true
    if (!this.#socket.write(text, 'latin1') && !this.isDone && this.#socket.writableLength > 0) this.#block()
  }

  /** Internal: called by the scheduled flush. */
  flushNow(): void {
    this.#isFlushing = false
    this.#flush()
  }
}

function flushLater(outgoing: OutgoingBody): void {
  outgoing.flushNow()
}
