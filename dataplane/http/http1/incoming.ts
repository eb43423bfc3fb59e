import type { Body, BodySink } from '../body.ts'
import { ChunkedDecoder } from './chunked.ts'
import type { Framing } from './fields.ts'
import type { HeadLimits } from '../syntax.ts'

/** The connection that a body is read from. */
export interface BodyOwner {
  /** The body has a sink now: deliver what was held back, and read on. */
  startBody(): void
  pauseBody(): void
  /** Deliver what was held back, and read on. */
  resumeBody(): void
  /** The body is complete; called before the sink learns of it. `rest` came after it in the same read. */
  endBody(rest: Buffer | undefined): void
  /** Nobody wants the rest. */
  cancelBody(error: Error | undefined): void
}

/**
 * A body as it comes off a connection. The connection feeds it only while `isFlowing`; it holds bytes back otherwise.
 */
export class IncomingBody implements Body {
  readonly length: number | undefined
  /** Body bytes received, without framing. */
  bytes = 0
  state: 'unstarted' | 'flowing' | 'paused' | 'discarded' | 'ended' | 'failed' = 'unstarted'
  readonly #owner: BodyOwner
  readonly #chunks: ChunkedDecoder | undefined
  /** Bytes to come; Infinity for a body that ends with the connection. */
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
      // Its connection went away before anyone asked.
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

  /** Takes bytes off the connection, at least one. Throws MessageError on broken framing. */
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

  /** The connection ended: that completes a body without other framing, and breaks any other. */
  finish(error: Error): void {
    if (this.length === undefined && this.#chunks === undefined && !this.isOver) this.#end(undefined)
    else this.fail(error)
  }

  /** Breaks the body off. */
  fail(error: Error): void {
    if (this.isOver) return
    this.state = 'failed'
    this.#failure = error
    const sink = this.#sink
    this.#sink = undefined
    sink?.onError(error)
  }

  // Property, not method: decode() calls it without a receiver.
  readonly #deliver = (chunk: Buffer): void => {
    this.bytes += chunk.length
    this.#sink?.onData(chunk)
  }

  #end(rest: Buffer | undefined): void {
    // The sink may have broken the body off while it took the last chunk.
    if (this.isOver) return
    this.state = 'ended'
    const sink = this.#sink
    this.#sink = undefined
    this.#owner.endBody(rest)
    sink?.onEnd(this.#chunks?.trailers)
  }
}
