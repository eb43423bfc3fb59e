import type { Body, BodySink } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'

/** A body with its first bytes replaced and its trailers changed. */
export class ChangedBody implements Body {
  readonly #source: Body
  readonly #change: BodyChange
  #skip: number
  #isClosed = false

  constructor(source: Body, change: BodyChange) {
    this.#source = source
    this.#change = change
    this.#skip = change.prefix?.replaced ?? 0
  }

  /** The length of the source, so that the message keeps its framing. */
  get length(): number | undefined {
    return this.#change.prefix === undefined ? this.#source.length : undefined
  }

  start(sink: BodySink): void {
    const { prefix, onTrailers } = this.#change
    if (prefix !== undefined && prefix.bytes.length > 0) sink.onData(prefix.bytes)
    this.#source.start({
      onData: (chunk) => {
        const rest = this.#skip > 0 ? chunk.subarray(this.#skip) : chunk
        this.#skip = Math.max(0, this.#skip - chunk.length)
        if (rest.length > 0) sink.onData(rest)
      },
      onEnd: (trailers) => {
        if (trailers === undefined || onTrailers === undefined) {
          this.#close()
          return sink.onEnd(trailers)
        }
        onTrailers(trailers).then(
          (changed) => {
            if (this.#close()) sink.onEnd(changed)
          },
          (error: Error) => {
            if (this.#close()) sink.onError(error)
          },
        )
      },
      onError: (error) => {
        this.#close()
        sink.onError(error)
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
    this.#close()
    this.#source.cancel(error)
  }

  #close(): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    this.#change.onClose()
    return true
  }
}

/** Changes of a body by the processor. */
export interface BodyChange {
  /** `bytes` replace the first `replaced` bytes. */
  readonly prefix?: { readonly bytes: Buffer; readonly replaced: number }
  readonly onTrailers?: ((trailers: HeaderList) => Promise<HeaderList | undefined>) | undefined
  /** Called once, when the body ended. */
  readonly onClose: () => void
}
