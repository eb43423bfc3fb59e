import { constants, type Http2Stream } from 'node:http2'
import { addAbortSignal } from 'node:stream'
import type { Body, BodySink } from '../body.ts'
import type { HeaderList } from '../headers.ts'
import { isHopField } from './incoming.ts'
import { isFieldValue, isToken } from '../syntax.ts'

/** A first chunk up to this size waits for the rest of the turn, to leave together with the head and END_STREAM. */
const MAX_HELD_CHUNK = 16_384

export interface Http2OutgoingOwner {
  /** Sends the head; the stream's writable side is the body's then. Undefined: it cannot be sent any more. */
  open(options: { readonly endStream: boolean; readonly waitForTrailers: boolean }): Http2Stream | undefined
  /** The last byte was handed to the stream. */
  bodySent(): void
  /** The body broke off: what was sent is incomplete. */
  bodyFailed(error: Error): void
}

/**
 * Writes a head and its body to an HTTP/2 stream. The head waits until the end of the turn: a message that is complete by then
 * leaves as HEADERS and one DATA frame, and only others ask nghttp2 to leave room for trailers, which costs a round through it.
 */
export class Http2Outgoing implements BodySink {
  /** Body bytes written. */
  bytes = 0
  isDone = false
  readonly #body: Body
  readonly #owner: Http2OutgoingOwner
  #stream: Http2Stream | undefined
  #held: Buffer | undefined
  #trailers: HeaderList | undefined
  #isBlocked = false

  constructor(body: Body, owner: Http2OutgoingOwner) {
    this.#body = body
    this.#owner = owner
  }

  start(): void {
    this.#body.start(this)
    if (!this.isDone && this.#stream === undefined) process.nextTick(openLater, this)
  }

  /** The stream is gone or the message is not wanted any more. */
  cancel(error?: Error): void {
    if (this.isDone) return
    this.isDone = true
    this.#held = undefined
    this.#body.cancel(error)
  }

  /** For the scheduled opening only. */
  openNow(): void {
    if (this.isDone || this.#stream !== undefined) return
    this.#open()
  }

  onData(chunk: Buffer): void {
    if (this.isDone || chunk.length === 0) return
    this.bytes += chunk.length
    if (this.#stream === undefined) {
      if (this.#held === undefined && chunk.length <= MAX_HELD_CHUNK) {
        this.#held = chunk
        return
      }
      this.#open()
    }
    this.#write(chunk)
  }

  onEnd(trailers: HeaderList | undefined): void {
    if (this.isDone) return
    const { length } = this.#body
    if (length !== undefined && length !== this.bytes) return this.#break(new Error(`body ended after ${this.bytes} of ${length} bytes`))
    this.isDone = true
    const held = this.#held
    this.#held = undefined
    this.#trailers = trailers
    if (this.#stream !== undefined) this.#stream.end()
    else {
      const endStream = held === undefined && trailers === undefined
      const stream = this.#owner.open({ endStream, waitForTrailers: trailers !== undefined })
      if (stream !== undefined && trailers !== undefined) stream.once('wantTrailers', () => sendTrailers(stream, trailers))
      if (held !== undefined) stream?.end(held)
      else if (!endStream) stream?.end()
    }
    this.#owner.bodySent()
  }

  onError(error: Error): void {
    if (this.isDone) return
    this.isDone = true
    this.#held = undefined
    this.#owner.bodyFailed(error)
  }

  #break(error: Error): void {
    this.isDone = true
    this.#held = undefined
    this.#body.cancel(error)
    this.#owner.bodyFailed(error)
  }

  #open(): void {
    const stream = this.#owner.open({ endStream: false, waitForTrailers: true })
    if (stream === undefined) return this.cancel()
    this.#stream = stream
    stream.once('wantTrailers', () => sendTrailers(stream, this.#trailers))
    stream.on('drain', () => this.#drained())
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#write(held)
  }

  #write(chunk: Buffer): void {
    if (this.#stream?.write(chunk) !== false || this.#isBlocked || this.isDone) return
    this.#isBlocked = true
    this.#body.pause()
  }

  #drained(): void {
    if (!this.#isBlocked || this.isDone) return
    this.#isBlocked = false
    this.#body.resume()
  }
}

/**
 * Resets a stream. Node's `close(code)` ends an open writable side first, and the peer would take what it got for the whole;
 * destroying does not.
 */
export function resetStream(stream: Http2Stream, why: 'cancelled' | 'broken'): void {
  if (stream.destroyed) return
  if (stream.writableEnded) stream.close(why === 'cancelled' ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_INTERNAL_ERROR)
  else if (why === 'cancelled') addAbortSignal(AbortSignal.abort(), stream)
  else stream.destroy(new Error('message broke off'))
}

function openLater(outgoing: Http2Outgoing): void {
  outgoing.openNow()
}

function sendTrailers(stream: Http2Stream, trailers: HeaderList | undefined): void {
  if (stream.destroyed || stream.closed) return
  try {
    stream.sendTrailers(trailers === undefined ? {} : toRecord(trailers))
  } catch (error) {
    stream.destroy(error as Error)
  }
}

/** Trailers in the only form that Node takes. Throws when one cannot be carried. */
function toRecord(trailers: HeaderList): Record<string, string[]> {
  const record: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const [name, value] of trailers) if (isWritableField(name, value)) (record[name] ??= []).push(value)
  return record
}

/** Names that were seen to be tokens; bounded, because policies and clients choose them. False: a field of one hop, not to be written. */
const checkedNames = new Map<string, boolean>()

/** Whether a field goes onto the wire. Throws for what would read differently behind a later HTTP/1.1 hop. */
export function isWritableField(name: string, value: string): boolean {
  let isWritable = checkedNames.get(name)
  if (isWritable === undefined) {
    if (!isToken(name)) throw new Error('header name holds a character that HTTP cannot carry')
    isWritable = !isHopField(name) && name !== 'host'
    if (checkedNames.size < 2000) checkedNames.set(name, isWritable)
  }
  if (isWritable && !isFieldValue(value)) throw new Error(`header ${name} holds a character that HTTP cannot carry`)
  return isWritable
}
