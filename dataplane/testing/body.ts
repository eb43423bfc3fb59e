import type { Body, BodySink } from '../http/body.ts'
import type { HeaderList } from '../http/headers.ts'

/** A body that a test pushes manually. `asked` records the calls of the consumer. */
export class ManualBody implements Body {
  readonly length: number | undefined
  readonly asked: string[] = []
  /** The sink of `start`, until `cancel`. */
  sink: BodySink | undefined

  constructor(length?: number) {
    this.length = length
  }

  push(text: string, encoding?: BufferEncoding): void {
    this.sink?.onData(Buffer.from(text, encoding))
  }

  end(trailers?: HeaderList): void {
    this.sink?.onEnd(trailers)
  }

  fail(error: Error): void {
    this.sink?.onError(error)
  }

  start(sink: BodySink): void {
    this.asked.push('start')
    this.sink = sink
  }

  pause(): void {
    this.asked.push('pause')
  }

  resume(): void {
    this.asked.push('resume')
  }

  cancel(): void {
    this.asked.push('cancel')
    this.sink = undefined
  }
}

/** A body of `length` bytes in chunks of 64 KiB, for tests of limits. */
export class LongBody implements Body {
  readonly length: number
  isCancelled = false
  #left: number
  #sink: BodySink | undefined
  #isPaused = false

  constructor(length: number) {
    this.length = length
    this.#left = length
  }

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

  cancel(): void {
    this.isCancelled = true
    this.#sink = undefined
  }

  #flow(): void {
    while (!this.#isPaused && this.#sink !== undefined && this.#left > 0) {
      const size = Math.min(this.#left, 65_536)
      this.#left -= size
      this.#sink.onData(Buffer.alloc(size, 'a'))
    }
    if (this.#isPaused || this.#left > 0) return
    const sink = this.#sink
    this.#sink = undefined
    sink?.onEnd(undefined)
  }
}
