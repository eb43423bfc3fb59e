import type { Buffer } from 'node:buffer'

/** A stored response, in the format of the client. */
export interface CachedResponse {
  readonly contentType: string
  readonly contentEncoding: string | undefined
  readonly body: Buffer
  readonly storedAtMs: number
  readonly expiresAtMs: number
  /** Cost of the recorded response; undefined without a price. */
  readonly cost: number | undefined
}

/** Bytes of all responses that one worker stores. */
const MAX_BYTES = 16 * 1024 * 1024
/** Bytes of the largest response that is stored. */
export const MAX_ENTRY_BYTES = 1024 * 1024
/** Bytes that an entry occupies besides its body. */
const ENTRY_OVERHEAD_BYTES = 1024

const sizeOf = ({ body }: CachedResponse): number => body.length + ENTRY_OVERHEAD_BYTES

/** The responses that one worker stores, and the requests whose responses are being recorded (llm.md §18.1). Drops the least recently used entry first. */
export class ResponseCache {
  /** In order of use. */
  readonly #entries = new Map<string, CachedResponse>()
  readonly #recordings = new Map<string, PromiseWithResolvers<void>>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Bytes in use; never more than the limit. */
  get bytes(): number {
    return this.#bytes
  }

  find(key: string, nowMs: number): CachedResponse | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#delete(key, entry)
    if (entry.expiresAtMs <= nowMs) return undefined
    this.#add(key, entry)
    return entry
  }

  store(key: string, entry: CachedResponse): void {
    const size = sizeOf(entry)
    if (entry.body.length > MAX_ENTRY_BYTES || size > this.#maxBytes) return
    const previous = this.#entries.get(key)
    if (previous !== undefined) this.#delete(key, previous)
    for (const [oldest, dropped] of this.#entries) {
      if (this.#bytes + size <= this.#maxBytes) break
      this.#delete(oldest, dropped)
    }
    this.#add(key, entry)
  }

  /** Resolves when the recording of the key ends; undefined if there is none. */
  recordingOf(key: string): Promise<void> | undefined {
    return this.#recordings.get(key)?.promise
  }

  /** Starts a recording. Returns the function that ends it; undefined if another request records the key. */
  startRecording(key: string): (() => void) | undefined {
    if (this.#recordings.has(key)) return undefined
    const recording = Promise.withResolvers<void>()
    this.#recordings.set(key, recording)
    return () => {
      if (this.#recordings.get(key) === recording) this.#recordings.delete(key)
      recording.resolve()
    }
  }

  #add(key: string, entry: CachedResponse): void {
    this.#entries.set(key, entry)
    this.#bytes += sizeOf(entry)
  }

  #delete(key: string, entry: CachedResponse): void {
    this.#entries.delete(key)
    this.#bytes -= sizeOf(entry)
  }
}
