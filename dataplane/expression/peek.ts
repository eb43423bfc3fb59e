import type { Body, BodySink } from '../http/body.ts'
import type { HeaderList } from '../http/headers.ts'

/**
 * A body of which the beginning was read: `peek` reads up to a limit, and whoever starts it afterwards gets all of it. Back-pressure
 * reaches the source; what it delivers before it heeds a pause is kept.
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

  /** That of the source, so that the message keeps its framing. */
  get length(): number | undefined {
    return this.#source.length
  }

  /** Nobody started or cancelled it. */
  get isIdle(): boolean {
    return this.#sink === undefined && !this.#isDone
  }

  /**
   * Reads until the end, or until more than `limitBytes` came. Rejects when the body breaks off before. Called once, before `start`.
   */
  peek(limitBytes: number): Promise<{ prefix: Buffer; isComplete: boolean; trailers: HeaderList | undefined }> {
    return new Promise((resolve, reject) => {
      let size = 0
      const finish = (): void => {
        const prefix = this.#kept.length === 1 && this.#kept[0] ? this.#kept[0] : Buffer.concat(this.#kept)
        resolve({ prefix: prefix.subarray(0, limitBytes), isComplete: size <= limitBytes, trailers: this.#end?.trailers })
      }
      this.#source.start({
        onData: (chunk) => {
          if (this.#isDone) return
          if (this.#sink !== undefined && this.#kept.length === 0) return this.#sink.onData(chunk)
          this.#kept.push(chunk)
          const isPast = size > limitBytes
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

  /** Sinks may pause, resume and cancel from within. */
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
