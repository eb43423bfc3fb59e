import type { Body, BodySink } from '../body.ts'
import { ChunkedDecoder } from './chunked.ts'
import type { Framing } from './fields.ts'
import type { HeadLimits } from '../syntax.ts'

/** How long bytes that were read are valid: for as long as they are referenced, until the call that passes them returns, or until their connection reads again. */
export type ChunkMemory = 'owned' | 'shared' | 'exclusive'

/** The connection that an IncomingBody is read from. */
export interface BodyOwner {
  /** The body got its sink: the owner delivers the held bytes and continues to read. */
  startBody(): void
  pauseBody(): void
  /** The owner delivers the held bytes and continues to read. */
  resumeBody(): void
  /** The body is complete; called before the sink's `onEnd`. `rest`: bytes after the body in the same read. */
  endBody(rest: Buffer | undefined): void
  /** The rest of the body is not needed. */
  cancelBody(error: Error | undefined): void
}

/**
 * A body that is read from a connection. The connection feeds it only while `isFlowing` and holds bytes otherwise.
 */
export class IncomingBody implements Body {
  readonly length: number | undefined
  /** Body bytes received, without framing. */
  bytes = 0
  state: 'unstarted' | 'flowing' | 'paused' | 'discarded' | 'ended' | 'failed' = 'unstarted'
  /** Whether a pending write of the sink still reads bytes that were fed as 'exclusive'. */
  isHeld = false
  readonly #owner: BodyOwner
  readonly #chunks: ChunkedDecoder | undefined
  /** Bytes not yet received; Infinity for a body that ends with the connection. */
  #remaining: number
  #sink: BodySink | undefined = undefined
  #memory: ChunkMemory = 'owned'
  #failure: Error | undefined = undefined

  constructor(framing: Framing, owner: BodyOwner, limits: HeadLimits) {
    this.#owner = owner
    this.length = typeof framing === 'number' ? framing : undefined
    this.#remaining = this.length ?? Infinity
    this.#chunks = framing === 'chunked' ? new ChunkedDecoder(limits) : undefined
  }

  get remaining(): number {
    return this.#remaining
  }

  get isFlowing(): boolean {
    return this.state === 'flowing' || this.state === 'discarded'
  }

  /** Whether the sink accepts memory that is reused; undefined without a sink. */
  get isBorrowing(): boolean | undefined {
    return this.#sink && this.#sink.onBorrowed !== undefined
  }

  get isOver(): boolean {
    return this.state === 'ended' || this.state === 'failed'
  }

  start(sink: BodySink): void {
    if (this.state !== 'unstarted') {
      // The connection closed before `start`.
      if (this.state === 'failed' && this.#failure !== undefined) sink.onError(this.#failure)
      return
    }
    this.#sink = sink
    this.state = 'flowing'
    this.#owner.startBody()
  }

  pause(): void {
    if (this.state !== 'flowing') return
    this.state = 'paused'
    this.#owner.pauseBody()
  }

  resume(): void {
    if (this.state !== 'paused') return
    this.state = 'flowing'
    this.isHeld = false
    this.#owner.resumeBody()
  }

  cancel(error?: Error): void {
    if (this.isOver || this.state === 'discarded') return
    this.#sink = undefined
    this.state = 'discarded'
    this.#owner.cancelBody(error)
  }

  /** Accepts at least one byte from the connection. Throws MessageError if the framing is invalid. */
  feed(input: Buffer, memory: ChunkMemory = 'owned'): void {
    this.#memory = memory
    if (this.#chunks !== undefined) {
      const end = this.#chunks.decode(input, this.#deliver)
      if (end !== -1) this.#end(end < input.length ? input.subarray(end) : undefined)
      return
    }
    if (input.length < this.#remaining) {
      this.#remaining -= input.length
      this.#deliver(input)
      return
    }
    const end = this.#remaining
    this.#remaining = 0
    if (end > 0) this.#deliver(end === input.length ? input : input.subarray(0, end))
    this.#end(end === input.length ? undefined : input.subarray(end))
  }

  /** The connection ended: completes a body without other framing, fails any other. */
  finish(error: Error): void {
    if (this.length === undefined && this.#chunks === undefined && !this.isOver) this.#end(undefined)
    else this.fail(error)
  }

  /** Ends the body with an error. */
  fail(error: Error): void {
    if (this.isOver) return
    this.state = 'failed'
    this.#failure = error
    const sink = this.#sink
    this.#sink = undefined
    sink?.onError(error)
  }

  // A property, because decode() calls it without a receiver.
  readonly #deliver = (chunk: Buffer): void => {
    this.bytes += chunk.length
    const sink = this.#sink
    if (sink === undefined) return
    if (this.#memory === 'owned') sink.onData(chunk)
    else if (sink.onBorrowed === undefined) sink.onData(Buffer.from(chunk))
    else if (sink.onBorrowed(chunk, this.#memory === 'exclusive')) this.isHeld = true
  }

  #end(rest: Buffer | undefined): void {
    // The sink may have cancelled the body while it received the last chunk.
    if (this.isOver) return
    this.state = 'ended'
    const sink = this.#sink
    this.#sink = undefined
    this.#owner.endBody(rest)
    sink?.onEnd(this.#chunks?.trailers)
  }
}
