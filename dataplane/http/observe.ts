import type { Body, BodySink } from './body.ts'
import type { HeaderList } from './headers.ts'

/** Receives the events of a body; every member is optional. `onClose` is called exactly once, whatever ends the body. */
export interface BodyObserver {
  onData?(chunk: Buffer): void
  onTrailers?(trailers: HeaderList | undefined): void
  /** Called at the end of a complete body, which closes when the promise is fulfilled; it must not reject. Undefined: at once. */
  onComplete?(): Promise<void> | undefined
  onClose?(error: Error | undefined): void
}

/** Forwards a body unchanged and reports its events to an observer. `fail` aborts it. */
export class ObservedBody implements Body {
  readonly #source: Body
  readonly #observer: BodyObserver
  #sink: BodySink | undefined
  #isClosed = false

  constructor(source: Body, observer: BodyObserver) {
    this.#source = source
    this.#observer = observer
  }

  get length(): number | undefined {
    return this.#source.length
  }

  start(sink: BodySink): void {
    if (this.#isClosed) return
    this.#sink = sink
    const isUnread = this.#observer.onData === undefined
    this.#source.start({
      // An observer of data may keep chunks.
      ...(isUnread && sink.onBorrowed && { onBorrowed: (chunk, canHold) => !this.#isClosed && sink.onBorrowed?.(chunk, canHold) === true }),
      onData: (chunk) => {
        this.#observer.onData?.(chunk)
        if (!this.#isClosed) sink.onData(chunk)
      },
      onEnd: (trailers) => {
        this.#observer.onTrailers?.(trailers)
        const work = this.#observer.onComplete?.()
        if (work === undefined) this.#end(sink, trailers)
        else void work.then(() => this.#end(sink, trailers))
      },
      onError: (error) => {
        if (this.#close(error)) sink.onError(error)
      },
    })
  }

  pause(): void {
    this.#source.pause()
  }

  resume(): void {
    this.#source.resume()
  }

  cancel(error?: Error): void {
    if (this.#close(error)) this.#source.cancel(error)
  }

  /** Cancels the source and passes the error to the sink: for deadlines and guards. */
  fail(error: Error): void {
    if (!this.#close(error)) return
    this.#source.cancel(error)
    this.#sink?.onError(error)
  }

  #end(sink: BodySink, trailers: HeaderList | undefined): void {
    if (this.#close(undefined)) sink.onEnd(trailers)
  }

  #close(error: Error | undefined): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    this.#observer.onClose?.(error)
    return true
  }
}
