import { callFailureClass, isCallFailure } from '../../net/callout/grpc.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { createBodyHold } from '../../request/exchange/held.ts'
import type { Body, BodySink } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import { bodyMessage, mutateTrailers, trailersMessage, type Direction, type Reply } from './messages.ts'
import type { ProcessorSession, Streaming } from './session.ts'

/** Bytes that may be queued for a slow reader before the source is paused. */
const HIGH_WATER_BYTES = 256 * 1024
/** Maximum number of bytes that a processor may send more than it received. */
const MOST_BYTES = 64 * 1024 * 1024

/** A body that is streamed through the processor. The processor's output replaces it (FULL_DUPLEX_STREAMED). */
export class DuplexBody implements Body, Streaming {
  readonly length = undefined
  readonly #session: ProcessorSession
  readonly #direction: Direction
  readonly #source: Body
  #sink: BodySink | undefined
  #queue: Buffer[] = []
  #queued = 0
  readonly #reservation = createBodyHold()
  #isPaused = false
  #isHeld = false
  #sourceTrailers: HeaderList | undefined
  #end: { readonly trailers: HeaderList | undefined } | undefined
  #error: Error | undefined
  #isDone = false
  /** Whether a part of the body was sent to the processor. */
  hasStarted = false

  constructor(session: ProcessorSession, direction: Direction, source: Body) {
    this.#session = session
    this.#direction = direction
    this.#source = source
  }

  // Source side.

  opened(): void {
    if (this.hasStarted || this.#isDone) return
    this.hasStarted = true
    this.#source.start({
      onData: (chunk) => {
        if (!this.#session.send(bodyMessage(this.#direction, chunk, false))) this.#hold()
      },
      onEnd: (trailers) => {
        this.#sourceTrailers = trailers
        if (trailers === undefined) this.#session.send(bodyMessage(this.#direction, Buffer.alloc(0), true))
        else this.#session.send(trailersMessage(this.#direction, trailers))
      },
      onError: (error) => this.#break(error),
    })
  }

  drained(): void {
    this.#release()
  }

  #hold(): void {
    this.#isHeld = true
    this.#source.pause()
  }

  #release(): void {
    if (!this.#isHeld || this.#isDone || this.#queued > HIGH_WATER_BYTES) return
    this.#isHeld = false
    this.#source.resume()
  }

  /** Returns the unread source, if nothing was sent to the processor. */
  releaseSource(): Body {
    this.#finishReading()
    this.#session.remove(this)
    return this.#source
  }

  // Processor side.

  receive(reply: Reply): boolean {
    if (reply.case === `${this.#direction}Trailers`) {
      this.#finish(mutateTrailers(this.#sourceTrailers, (reply.value as { headerMutation?: Parameters<typeof mutateTrailers>[1] }).headerMutation))
      return true
    }
    if (reply.case !== 'requestBody' && reply.case !== 'responseBody') return false
    if (reply.case !== `${this.#direction}Body`) return false
    const mutation = reply.value.response?.bodyMutation?.mutation
    if (mutation?.case !== 'streamedResponse') {
      this.#session.fail(new UpstreamError('protocol', 'a reply about a streamed body has no streamed_response'))
      return true
    }
    const { body, endOfStream } = mutation.value
    this.#push(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
    if (endOfStream) this.#finish(this.#sourceTrailers)
    return true
  }

  #push(chunk: Buffer): void {
    if (chunk.length === 0 || this.#isDone) return
    this.#queue.push(chunk)
    this.#queued += chunk.length
    this.#flow()
    const excess = this.#queued > 0 ? this.#reservation.resize(this.#queued) : undefined
    if (excess !== undefined) this.#session.fail(excess)
    else if (this.#queued > MOST_BYTES) this.#session.fail(new UpstreamError('protocol', 'the processor makes too much of a body'))
    else if (this.#queued > HIGH_WATER_BYTES) this.#hold()
  }

  #finish(trailers: HeaderList | undefined): void {
    this.#end ??= { trailers }
    this.#session.remove(this)
    this.#flow()
  }

  fail(error: Error): void {
    // The reader of a response reports the error; for a request, the policy itself responds.
    this.#break(
      this.#direction === 'response' && !(error instanceof ProxyError)
        ? new ProxyError('EXT_PROC', { detail: isCallFailure(error) ? callFailureClass(error) : error.message, cause: error })
        : error,
    )
  }

  #break(error: Error): void {
    if (this.#isDone || this.#end !== undefined) return
    this.#error = error
    // A body that was not started may still be forwarded without the processor.
    if (this.hasStarted) this.#source.cancel(error)
    this.#session.ignore(this.#direction)
    this.#session.remove(this)
    this.#flow()
  }

  // Reader side.

  start(sink: BodySink): void {
    this.#sink = sink
    this.#flow()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#finishReading()
    this.#source.cancel(error)
    this.#session.ignore(this.#direction)
    this.#session.remove(this)
  }

  #flow(): void {
    const sink = this.#sink
    if (sink === undefined || this.#isDone) return
    if (this.#error !== undefined) {
      this.#finishReading()
      return sink.onError(this.#error)
    }
    while (!this.#isPaused && !this.#isDone) {
      const chunk = this.#queue.shift()
      if (chunk === undefined) break
      this.#queued -= chunk.length
      sink.onData(chunk)
    }
    if (!this.#isDone) this.#reservation.resize(this.#queued)
    this.#release()
    if (this.#isPaused || this.#isDone || this.#end === undefined || this.#queue.length > 0) return
    this.#finishReading()
    sink.onEnd(this.#end.trailers)
  }

  #finishReading(): void {
    this.#isDone = true
    this.#queue = []
    this.#reservation.release()
  }
}
