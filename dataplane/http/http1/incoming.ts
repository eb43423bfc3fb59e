import type { Body, BodySink } from '../body.ts'
import { ChunkedDecoder } from './chunked.ts'
import type { Framing } from './fields.ts'
import type { HeadLimits } from '../syntax.ts'

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
  readonly #owner: BodyOwner
  readonly #chunks: ChunkedDecoder | undefined
  /** Bytes not yet received; Infinity for a body that ends with the connection. */
  #remaining: number
  #sink: BodySink | undefined = undefined
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
    this.#owner.resumeBody()
  }

  cancel(error?: Error): void {
    if (this.isOver || this.state === 'discarded') return
    this.#sink = undefined
    this.state = 'discarded'
    this.#owner.cancelBody(error)
  }

  /** Accepts at least one byte from the connection. Throws MessageError if the framing is invalid. */
  feed(input: Buffer): void {
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
    this.#sink?.onData(chunk)
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
