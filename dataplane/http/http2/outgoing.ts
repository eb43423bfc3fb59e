import { constants, type Http2Stream } from 'node:http2'
import { addAbortSignal } from 'node:stream'
import type { Body, BodySink } from '../body.ts'
import type { HeaderList } from '../headers.ts'
import { isHopField } from './incoming.ts'
import { trailersAfter } from '../trailers.ts'
import { isFieldValue, isToken } from '../syntax.ts'

/** A first chunk up to this size is held until the end of the turn, to be sent together with the head and END_STREAM. */
const MAX_HELD_CHUNK = 16_384

/** The message that an Http2Outgoing belongs to. */
export interface Http2OutgoingOwner {
  /** Sends the head and returns the stream to write the body to. Undefined: the head can no longer be sent. */
  open(options: { readonly endStream: boolean; readonly waitForTrailers: boolean }): Http2Stream | undefined
  /** The last byte was written to the stream. */
  bodySent(): void
  /** The body failed: the message is incomplete. `isUnsent`: the head was not sent either. */
  bodyFailed(error: Error, isUnsent: boolean): void
}

/**
 * Writes a head and its body to an HTTP/2 stream. The head is held until the end of the turn: a message that is complete by then
 * is sent as HEADERS and one DATA frame. Only longer messages set `waitForTrailers`, which costs another call into nghttp2.
 */
export class Http2Outgoing implements BodySink {
  /** Body bytes written. */
  bytes = 0
  isDone = false
  readonly #body: Body
  readonly #headers: HeaderList
  readonly #owner: Http2OutgoingOwner
  #stream: Http2Stream | undefined
  #held: Buffer | undefined
  #trailers: HeaderList | undefined
  #isBlocked = false

  /** `headers`: those of the head, for the choice of trailers. */
  constructor(body: Body, headers: HeaderList, owner: Http2OutgoingOwner) {
    this.#body = body
    this.#headers = headers
    this.#owner = owner
  }

  start(): void {
    this.#body.start(this)
    if (!this.isDone && this.#stream === undefined) process.nextTick(openLater, this)
  }

  /** The stream closed or the message is no longer needed. */
  cancel(error?: Error): void {
    if (this.isDone) return
    this.isDone = true
    this.#held = undefined
    this.#body.cancel(error)
  }

  /** Internal: called by the scheduled open. */
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

  onEnd(received: HeaderList | undefined): void {
    if (this.isDone) return
    const trailers = trailersAfter(this.#headers, received)
    const { length } = this.#body
    if (length !== undefined && length !== this.bytes) return this.#fail(new Error(`body ended after ${this.bytes} of ${length} bytes`))
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
    this.#owner.bodyFailed(error, this.#stream === undefined)
  }

  #fail(error: Error): void {
    this.isDone = true
    this.#held = undefined
    this.#body.cancel(error)
    this.#owner.bodyFailed(error, this.#stream === undefined)
  }

  #open(): void {
    const stream = this.#owner.open({ endStream: false, waitForTrailers: true })
    if (stream === undefined) return this.cancel()
    this.#stream = stream
    stream.once('wantTrailers', () => sendTrailers(stream, this.#trailers))
    stream.on('drain', () => this.#onDrain())
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#write(held)
  }

  #write(chunk: Buffer): void {
    if (this.#stream?.write(chunk) !== false || this.#isBlocked || this.isDone) return
    this.#isBlocked = true
    this.#body.pause()
  }

  #onDrain(): void {
    if (!this.#isBlocked || this.isDone) return
    this.#isBlocked = false
    this.#body.resume()
  }
}

/**
 * Resets a stream. Node's `close(code)` ends an open writable side first, and the peer would take a partial message for a complete
 * one; `destroy` does not.
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

/** Trailers in the form that Node requires. Throws if a field cannot be written. */
function toRecord(trailers: HeaderList): Record<string, string[]> {
  const record: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const [name, value] of trailers) if (isWritableField(name, value)) (record[name] ??= []).push(value)
  return record
}

/** Cache of names that are valid tokens; bounded, because policies and clients choose them. False: a hop-by-hop field, not written. */
const checkedNames = new Map<string, boolean>()

/** Whether a field is written to an HTTP/2 stream. Throws for text that a later HTTP/1.1 hop would read differently. */
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
