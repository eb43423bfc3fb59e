import type { BodyHold } from './budget.ts'
import type { HeaderList } from './headers.ts'

/** Receives a body. Exactly one of onEnd and onError is called, last; no method is called after `Body.cancel`. */
export interface BodySink {
  onData(chunk: Buffer): void
  /**
   * Accepts a chunk in memory that the source reuses. A sink without this method receives such chunks through `onData`, as copies.
   * The chunk is valid until the method returns; with `canHold`, the sink may also pass it to a write that is still pending then.
   * Returns whether it did. The source reads into other memory after that, or, if the sink has paused it, into the same memory once
   * the sink resumes it: the sink must not do so while the write is pending.
   */
  onBorrowed?(chunk: Buffer, canHold: boolean): boolean
  onEnd(trailers: HeaderList | undefined): void
  onError(error: Error): void
}

/**
 * A message body in flight: pushes chunks to one sink and obeys pause and resume. It is a plain interface because sockets
 * on both sides implement it themselves, without stream objects or copies and with back-pressure end to end.
 *
 * A sink that cannot accept more calls `pause`, and `resume` once it can. After `pause` a source may still deliver what it had
 * already read (at most one socket read, 256 KiB). `start` and `resume` may call `onData` and `onEnd` synchronously.
 */
export interface Body {
  /** Length in bytes if it is known in advance (`content-length`). */
  readonly length: number | undefined
  /** Starts the flow. Called at most once. */
  start(sink: BodySink): void
  pause(): void
  resume(): void
  /** Abandons the body: its connection is closed unless the rest can be discarded cheaply. Idempotent; allowed before `start`. */
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

/** A body that is already in memory, in one piece or several. */
export class BufferBody implements Body {
  readonly #chunks: readonly Buffer[]
  readonly #trailers: HeaderList | undefined
  #joined: Buffer | undefined
  #sink: BodySink | undefined
  #sent = 0
  #isPaused = false
  #state: 'idle' | 'data' | 'done' = 'idle'

  constructor(content: Buffer | string | readonly Buffer[], trailers?: HeaderList) {
    if (typeof content === 'string') this.#chunks = [Buffer.from(content)]
    else this.#chunks = Buffer.isBuffer(content) ? [content] : content
    this.#trailers = trailers
  }

  get length(): number {
    return this.#chunks.reduce((sum, { length }) => sum + length, 0)
  }

  /** All bytes at once, for readers that need no streaming. */
  get bytes(): Buffer {
    return (this.#joined ??= this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : (this.#chunks[0] ?? Buffer.alloc(0)))
  }

  /** A new body of the same bytes, without trailers. */
  copy(): BufferBody {
    return new BufferBody(this.#chunks)
  }

  start(sink: BodySink): void {
    if (this.#state === 'done') return
    this.#sink = sink
    this.#state = 'data'
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
    while (this.#state === 'data' && !this.#isPaused) {
      const chunk = this.#chunks[this.#sent++]
      if (chunk === undefined) {
        this.#state = 'done'
        this.#sink?.onEnd(this.#trailers)
      } else if (chunk.length > 0) this.#sink?.onData(chunk)
    }
  }
}

/**
 * Reads a complete body. After more than `limit` bytes it cancels the body and rejects with BodyTooLargeError. With a `hold`, it reserves the
 * bytes, cancels the body and rejects with the error of the hold if that fails, and frees them if the body fails; the caller frees them otherwise.
 */
export function readBody(body: Body | undefined, limit: number, hold?: BodyHold): Promise<{ bytes: Buffer; trailers: HeaderList | undefined }> {
  if (body === undefined) return Promise.resolve({ bytes: Buffer.alloc(0), trailers: undefined })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (error: Error): void => {
      hold?.free(size)
      chunks.length = 0
      reject(error)
    }
    body.start({
      onData(chunk) {
        const error = size + chunk.length > limit ? new BodyTooLargeError(limit) : hold?.reserve(chunk.length)
        if (error !== undefined) {
          body.cancel(error)
          return fail(error)
        }
        size += chunk.length
        chunks.push(chunk)
      },
      onEnd: (trailers) => resolve({ bytes: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), trailers }),
      onError: fail,
    })
  })
}
