import type { Body, BodySink } from '../../http/body.ts'
import type { BodyHold } from '../../http/budget.ts'
import type { HeaderList } from '../../http/headers.ts'

/**
 * A body whose beginning can be read in advance: `peek` reads up to a limit, and `start` then delivers the whole body. Back-pressure
 * reaches the source; chunks that it delivers before it pauses are held.
 */
export class PeekedBody implements Body {
  readonly #source: Body
  #kept: Buffer[] = []
  #end: { readonly trailers: HeaderList | undefined } | undefined
  #error: Error | undefined
  #sink: BodySink | undefined
  #isPaused = false
  #isFlowing = false
  #isDone = false

  constructor(source: Body) {
    this.#source = source
  }

  /** Length of the source, so that the message keeps its framing. */
  get length(): number | undefined {
    return this.#source.length
  }

  /** The body was neither started nor cancelled. */
  get isIdle(): boolean {
    return this.#sink === undefined && !this.#isDone
  }

  /**
   * Reads until the end, or until more than `limitBytes` were received. Rejects if the body fails before, or if `hold` does not admit it. Call
   * it once, before `start`.
   */
  peek(limitBytes: number, hold?: BodyHold): Promise<{ prefix: Buffer; isComplete: boolean; trailers: HeaderList | undefined }> {
    return new Promise((resolve, reject) => {
      let size = 0
      const finish = (): void => {
        const prefix = this.#join()
        resolve({ prefix: prefix.subarray(0, limitBytes), isComplete: size <= limitBytes, trailers: this.#end?.trailers })
      }
      this.#source.start({
        onData: (chunk) => {
          if (this.#isDone) return
          if (this.#sink !== undefined && this.#kept.length === 0) return this.#sink.onData(chunk)
          const isPast = size > limitBytes
          const excess = isPast ? undefined : hold?.reserve(chunk.length)
          if (excess !== undefined) {
            hold?.free(size)
            this.cancel(excess)
            return reject(excess)
          }
          this.#kept.push(chunk)
          size += chunk.length
          if (isPast || size <= limitBytes) return
          this.#source.pause()
          finish()
        },
        onEnd: (trailers) => {
          this.#end = { trailers }
          if (size <= limitBytes) finish()
          this.#flow()
        },
        onError: (error) => {
          if (this.isIdle && size <= limitBytes) {
            hold?.free(size)
            this.#kept = []
          }
          this.#error = error
          reject(error)
          this.#flow()
        },
      })
    })
  }

  start(sink: BodySink): void {
    if (!this.isIdle) return
    this.#sink = sink
    this.#flow()
  }

  pause(): void {
    this.#isPaused = true
    this.#source.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#kept = []
    this.#source.cancel(error)
  }

  /** The held chunks in one piece. They become views of it, so that the bytes are in memory once. */
  #join(): Buffer {
    if (this.#kept.length === 1 && this.#kept[0]) return this.#kept[0]
    const joined = Buffer.concat(this.#kept)
    let at = 0
    this.#kept = this.#kept.map(({ length }) => joined.subarray(at, (at += length)))
    return joined
  }

  /** Delivers the held chunks. The sink may pause, resume and cancel during the calls. */
  #flow(): void {
    const sink = this.#sink
    if (sink === undefined || this.#isFlowing) return
    this.#isFlowing = true
    while (!this.#isPaused && !this.#isDone) {
      const chunk = this.#kept.shift()
      if (chunk === undefined) break
      sink.onData(chunk)
    }
    this.#isFlowing = false
    if (this.#isPaused || this.#isDone) return
    if (this.#end === undefined && this.#error === undefined) return this.#source.resume()
    this.#isDone = true
    if (this.#error === undefined) sink.onEnd(this.#end?.trailers)
    else sink.onError(this.#error)
  }
}
