import type { HeaderList } from './headers.ts'

/** Where a body flows to. Exactly one of onEnd and onError is called, last; none of the three after `Body.cancel`. */
export interface BodySink {
  onData(chunk: Buffer): void
  onEnd(trailers: HeaderList | undefined): void
  onError(error: Error): void
}

/**
 * A message body in flight: pushes chunks to one sink and obeys pause and resume. It is a plain interface because sockets
 * on both sides implement it themselves: no stream objects, no copies, back-pressure end to end.
 *
 * A sink that cannot take more calls `pause`, and `resume` once it can. After `pause` a source may still deliver what it had
 * already read (at most one socket read, 64 KiB). `onEnd` and `onData` may come synchronously from `start` or `resume`.
 */
export interface Body {
  /** Length in bytes where it is known in advance (`content-length`), else undefined. */
  readonly length: number | undefined
  /** Starts the flow. Called at most once. */
  start(sink: BodySink): void
  pause(): void
  resume(): void
  /** Gives the body up: its connection is closed unless the rest can be discarded cheaply. Idempotent, also before start. */
  cancel(error?: Error): void
}

/** Signals that a body is larger than its reader accepts. */
export class BodyTooLargeError extends Error {
  readonly limit: number
  constructor(limit: number) {
    super(`body exceeds ${limit} bytes`)
    this.limit = limit
  }
}

/** A body that is already in memory. */
export class BufferBody implements Body {
  readonly #chunk: Buffer
  readonly #trailers: HeaderList | undefined
  #sink: BodySink | undefined
  #isPaused = false
  #state: 'idle' | 'data' | 'end' | 'done' = 'idle'

  constructor(chunk: Buffer | string, trailers?: HeaderList) {
    this.#chunk = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    this.#trailers = trailers
  }

  get length(): number {
    return this.#chunk.length
  }

  /** The bytes, for readers that can do without the flow. */
  get bytes(): Buffer {
    return this.#chunk
  }

  start(sink: BodySink): void {
    if (this.#state === 'done') return
    this.#sink = sink
    this.#state = this.#chunk.length > 0 ? 'data' : 'end'
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
    this.#state = 'done'
  }

  #flow(): void {
    if (this.#state === 'data' && !this.#isPaused) {
      this.#state = 'end'
      this.#sink?.onData(this.#chunk)
    }
    if (this.#state === 'end' && !this.#isPaused) {
      this.#state = 'done'
      this.#sink?.onEnd(this.#trailers)
    }
  }
}

/** Reads a whole body. Rejects with BodyTooLargeError, after cancelling it, once more than `limit` bytes came. */
export function readBody(body: Body | undefined, limit: number): Promise<{ bytes: Buffer; trailers: HeaderList | undefined }> {
  if (body === undefined) return Promise.resolve({ bytes: Buffer.alloc(0), trailers: undefined })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    body.start({
      onData(chunk) {
        size += chunk.length
        if (size > limit) {
          const error = new BodyTooLargeError(limit)
          body.cancel(error)
          reject(error)
          return
        }
        chunks.push(chunk)
      },
      onEnd: (trailers) => resolve({ bytes: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), trailers }),
      onError: reject,
    })
  })
}
