import type { Buffer } from 'node:buffer'

/** Values that other processes share, such as those in Redis. Any of them may be missing at any time. */
export interface ValueStore {
  /** Resolves with undefined if the value is missing or larger than `maxBytes`, with null if it cannot be read in time. Never rejects. */
  get(key: string, maxBytes: number): Promise<Buffer | undefined | null>
  /** Sets a value for a time, and does not wait. */
  set(key: string, value: Buffer, ttlMs: number): void
  remove(key: string): void
}

/** The store of a thread by its registry; none: the process has no such store. */
export const valueStores = new WeakMap<object, ValueStore>()
