import { createHash } from 'node:crypto'
import type { SharedRing } from '../../../runtime/shared-ring.ts'
import type { ValueStore } from '../../../runtime/value-store.ts'
import type { ReplyForm } from '../replay/index.ts'

/** A stored response, in the form that was recorded. */
export interface CachedResponse {
  readonly form: ReplyForm
  /** Without content coding. */
  readonly body: Buffer
  /** Unix time in milliseconds, because threads and replicas share it. */
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

/** Stored responses by key. Any of them may be missing at any time. */
export interface EntryStore {
  find(key: string, nowMs: number): CachedResponse | undefined | Promise<CachedResponse | undefined>
  store(key: string, entry: CachedResponse): void
}

/** Responses in the memory of this thread. Drops the least recently used one first. */
export class MemoryEntries implements EntryStore {
  /** In order of use. */
  readonly #entries = new Map<string, CachedResponse>()
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

  #add(key: string, entry: CachedResponse): void {
    this.#entries.set(key, entry)
    this.#bytes += sizeOf(entry)
  }

  #delete(key: string, entry: CachedResponse): void {
    this.#entries.delete(key)
    this.#bytes -= sizeOf(entry)
  }
}

const sizeOf = ({ body }: CachedResponse): number => body.length + ENTRY_OVERHEAD_BYTES

/** Responses in memory that all workers share. */
export class SharedEntries implements EntryStore {
  readonly #ring: SharedRing

  constructor(ring: SharedRing) {
    this.#ring = ring
  }

  find(key: string, nowMs: number): CachedResponse | undefined {
    const digest = digestOf(key)
    const found = this.#ring.get(digest)
    const entry = found && decodeEntry(found.value)
    if (entry === undefined || entry.expiresAtMs <= nowMs) return undefined
    // What is used stays.
    if (found?.isOld === true) this.#ring.set(digest, found.value)
    return entry
  }

  store(key: string, entry: CachedResponse): void {
    if (entry.body.length <= MAX_ENTRY_BYTES) this.#ring.set(digestOf(key), encodeEntry(entry))
  }
}

/** Bytes of the head of an entry at most. */
const MAX_HEAD_BYTES = 4096

/** Responses in a store that replicas share. Its failures are misses. */
export class RemoteEntries implements EntryStore {
  readonly #values: ValueStore

  constructor(values: ValueStore) {
    this.#values = values
  }

  async find(key: string, nowMs: number): Promise<CachedResponse | undefined> {
    const value = await this.#values.get(`proxy:llm:${key}`, MAX_ENTRY_BYTES + MAX_HEAD_BYTES)
    const entry = value ? decodeEntry(value) : undefined
    return entry === undefined || entry.expiresAtMs <= nowMs ? undefined : entry
  }

  store(key: string, entry: CachedResponse): void {
    if (entry.body.length <= MAX_ENTRY_BYTES) this.#values.set(`proxy:llm:${key}`, encodeEntry(entry), entry.expiresAtMs - entry.storedAtMs)
  }
}

const digestOf = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Prints an entry: the length of its head (4 bytes), the head in JSON, the body. */
export function encodeEntry({ body, ...head }: CachedResponse): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(text.length)
  return Buffer.concat([length, text, body])
}

const formats: readonly unknown[] = ['completions', 'messages', 'responses', 'gemini'] satisfies ReplyForm['format'][]

/** Reads an entry; undefined if it is none, because others may write the store. */
export function decodeEntry(bytes: Buffer): CachedResponse | undefined {
  const end = bytes.length < 4 ? Infinity : 4 + bytes.readUInt32LE(0)
  if (end > bytes.length) return undefined
  try {
    const { form, storedAtMs, expiresAtMs, cost } = JSON.parse(bytes.toString('utf8', 4, end)) as Partial<CachedResponse>
    const isValid = formats.includes(form?.format) && typeof form?.isStreaming === 'boolean' && Number.isFinite(storedAtMs) && Number.isFinite(expiresAtMs)
    if (!isValid || form === undefined || storedAtMs === undefined || expiresAtMs === undefined) return undefined
    return { form, storedAtMs, expiresAtMs, cost: typeof cost === 'number' ? cost : undefined, body: bytes.subarray(end) }
  } catch {
    return undefined
  }
}

/** The stored responses, and the requests of this worker whose responses are being recorded (llm.md §18.1). */
export class ResponseCache {
  readonly #local: EntryStore
  readonly #remote: EntryStore | undefined
  readonly #recordings = new Map<string, PromiseWithResolvers<void>>()

  constructor(local: EntryStore = new MemoryEntries(), remote?: EntryStore) {
    this.#local = local
    this.#remote = remote
  }

  /** The responses in Redis, if the process has one, or those in memory. */
  entriesOf(isRemote: boolean): EntryStore {
    return isRemote ? (this.#remote ?? this.#local) : this.#local
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
}
