import type { Body, BodySink } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { Rate } from './rate.ts'

/** Delivers a body at a rate. The source is paused while bytes wait, so that at most one of its reads is held. */
export class ThrottledBody implements Body {
  readonly #source: Body
  readonly #rate: Rate
  #sink: BodySink | undefined
  /** Bytes that wait, in order. */
  #waiting: Buffer[] = []
  #timer: NodeJS.Timeout | undefined
  /** The next slice has its bytes of the rate. */
  #isPermitted = false
  #isPaused = false
  #hasPausedSource = false
  #isFlowing = false
  #isDone = false
  #end: { readonly trailers: HeaderList | undefined } | undefined

  constructor(source: Body, rate: Rate) {
    this.#source = source
    this.#rate = rate
  }

  get length(): number | undefined {
    return this.#source.length
  }

  start(sink: BodySink): void {
    if (this.#isDone) return
    this.#sink = sink
    this.#source.start({
      onData: (chunk) => {
        if (this.#isDone) return
        this.#waiting.push(chunk)
        this.#flow()
      },
      onEnd: (trailers) => {
        this.#end = { trailers }
        this.#flow()
      },
      onError: (error) => {
        if (this.#isDone) return
        this.#stop()
        sink.onError(error)
      },
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#pauseSource()
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#stop()
    this.#source.cancel(error)
  }

  #pauseSource(): void {
    this.#hasPausedSource = true
    this.#source.pause()
  }

  /** Not for each chunk: sources deliver the next one during the call. */
  #resumeSource(): void {
    if (!this.#hasPausedSource) return
    this.#hasPausedSource = false
    this.#source.resume()
  }

  #stop(): void {
    this.#isDone = true
    this.#waiting = []
    clearTimeout(this.#timer)
  }

  /** Delivers what the rate permits. The sink may pause, resume and cancel during the calls. */
  #flow(): void {
    if (this.#isFlowing) return
    this.#isFlowing = true
    while (!this.#isPaused && !this.#isDone && this.#timer === undefined) {
      const [chunk] = this.#waiting
      if (chunk === undefined) break
      const slice = chunk.subarray(0, this.#rate.slice)
      if (!this.#isPermitted && !this.#take(slice.length)) break
      this.#isPermitted = false
      if (slice.length === chunk.length) this.#waiting.shift()
      else this.#waiting[0] = chunk.subarray(slice.length)
      this.#sink?.onData(slice)
    }
    this.#isFlowing = false
    if (this.#isPaused || this.#isDone || this.#waiting.length > 0) return
    if (this.#end === undefined) return this.#resumeSource()
    this.#isDone = true
    this.#sink?.onEnd(this.#end.trailers)
  }

  /** Takes the bytes of a slice. Returns whether it may be delivered now, else a timer continues. */
  #take(bytes: number): boolean {
    const waitMs = this.#rate.take(bytes)
    if (waitMs === 0) return true
    this.#pauseSource()
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isPermitted = true
      this.#flow()
    }, waitMs)
    return false
  }
}
