import type { Body, BodySink } from './body.ts'
import type { BodyHold } from './budget.ts'
import type { HeaderList } from './headers.ts'

/** Limit in bytes of the request body that is buffered for retries (traffic.md §8.11). */
const REPLAY_LIMIT_BYTES = 64 * 1024

/**
 * A request body that several attempts can send one after another. It buffers what the client has sent, up to 64 KiB and what `hold`
 * admits; past that `isReplayable` turns false and the current attempt is the last.
 */
export class ReplayableBody {
  readonly #source: Body
  readonly #hold: BodyHold | undefined
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #isStarted = false
  #end: { trailers: HeaderList | undefined } | undefined
  #error: Error | undefined
  #attempt: Attempt | undefined
  isReplayable: boolean

  constructor(source: Body, hold?: BodyHold) {
    this.#source = source
    this.#hold = hold
    this.isReplayable = source.length === undefined || source.length <= REPLAY_LIMIT_BYTES
  }

  /** The body of the next attempt. The previous one must have been cancelled. */
  nextAttempt(): Body {
    const attempt = new Attempt(this.#source.length, {
      start: (sink) => this.#startAttempt(attempt, sink),
      pause: () => this.#source.pause(),
      resume: () => this.#resume(attempt),
      // The source stays open for the next attempt. `ReplayableBody.cancel` ends it.
      cancel: () => {
        if (this.#attempt !== attempt) return
        this.#attempt = undefined
        if (this.#isStarted && this.#end === undefined) this.#source.pause()
      },
    })
    return attempt
  }

  cancel(error?: Error): void {
    this.#attempt = undefined
    this.#source.cancel(error)
  }

  #startAttempt(attempt: Attempt, sink: BodySink): void {
    this.#attempt = attempt
    attempt.sink = sink
    for (const chunk of this.#kept) {
      if (this.#attempt !== attempt) return
      sink.onData(chunk)
    }
    if (this.#attempt !== attempt) return
    if (this.#end !== undefined) sink.onEnd(this.#end.trailers)
    else if (this.#error !== undefined) sink.onError(this.#error)
    else if (this.#isStarted) this.#source.resume()
    else this.#startSource()
  }

  #startSource(): void {
    this.#isStarted = true
    this.#source.start({
      onData: (chunk) => {
        this.#keep(chunk)
        this.#attempt?.sink?.onData(chunk)
      },
      onEnd: (trailers) => {
        this.#end = { trailers }
        this.#attempt?.sink?.onEnd(trailers)
      },
      onError: (error) => {
        this.#error = error
        this.#attempt?.sink?.onError(error)
      },
    })
  }

  #keep(chunk: Buffer): void {
    if (!this.isReplayable) return
    const bytes = this.#keptBytes + chunk.length
    if (bytes <= REPLAY_LIMIT_BYTES && this.#hold?.reserve(chunk.length) === undefined) {
      this.#keptBytes = bytes
      this.#kept.push(chunk)
      return
    }
    this.isReplayable = false
    this.#hold?.free(this.#keptBytes)
    this.#keptBytes = 0
    this.#kept.length = 0
  }

  #resume(attempt: Attempt): void {
    if (this.#attempt === attempt) this.#source.resume()
  }
}

class Attempt implements Body {
  readonly length: number | undefined
  readonly #control: Omit<Body, 'length'>
  sink: BodySink | undefined

  constructor(length: number | undefined, control: Omit<Body, 'length'>) {
    this.length = length
    this.#control = control
  }

  start(sink: BodySink): void {
    this.#control.start(sink)
  }
  pause(): void {
    this.#control.pause()
  }
  resume(): void {
    this.#control.resume()
  }
  cancel(error?: Error): void {
    this.#control.cancel(error)
  }
}
