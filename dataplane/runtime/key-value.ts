/** An operation on one key. `ttlMs` undefined: no end. */
export type KeyValueCall =
  | { readonly operation: 'get' | 'delete'; readonly key: string }
  | { readonly operation: 'set'; readonly key: string; readonly value: string; readonly ttlMs: number | undefined }
  /** Adds `by` to a decimal integer. `ttlMs` holds from the first one. */
  | { readonly operation: 'increment'; readonly key: string; readonly by: number; readonly ttlMs: number | undefined }

/** Result of get: the value or undefined; of set: undefined; of delete: whether the key existed; of increment: the new number. */
export type KeyValueResult = string | number | boolean | undefined

/** Limits of each space. */
export interface KeyValueLimits {
  readonly maxEntries: number
  /** Of keys and values, in bytes of UTF-8. */
  readonly maxBytes: number
  readonly maxKeyBytes: number
  readonly maxValueBytes: number
}

export const DEFAULT_LIMITS: KeyValueLimits = { maxEntries: 10_000, maxBytes: 4 * 1024 * 1024, maxKeyBytes: 512, maxValueBytes: 64 * 1024 }

export const NOT_AN_INTEGER = 'the value is not an integer and cannot be incremented'
export const BEYOND_INTEGERS = 'the sum is beyond the range of integers'

interface Entry {
  readonly value: string
  readonly bytes: number
  /** Infinity: never. */
  readonly expiresAtMs: number
}

interface Space {
  /** The least recently used one first. */
  readonly entries: Map<string, Entry>
  bytes: number
}

/** Values by space and key, in memory. A space that is full drops the entries that were unused for the longest time. */
export class KeyValueStore {
  readonly #spaces = new Map<string, Space>()
  readonly #limits: KeyValueLimits
  readonly #nowMs: () => number

  constructor(limits: Partial<KeyValueLimits> = {}, nowMs: () => number = () => performance.now()) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
    this.#nowMs = nowMs
  }

  /** Throws a TypeError for keys and values of a wrong type or beyond the limits, and for an increment of another value than an integer. */
  run(name: string, call: KeyValueCall): KeyValueResult {
    checkCall(call, this.#limits)
    const { key } = call
    let space = this.#spaces.get(name)
    if (space === undefined) {
      if (call.operation === 'get') return undefined
      if (call.operation === 'delete') return false
      this.#spaces.set(name, (space = { entries: new Map(), bytes: 0 }))
    }
    const known = this.#find(space, key)
    switch (call.operation) {
      case 'get':
        if (known !== undefined) touch(space, key, known)
        return known?.value
      case 'delete':
        remove(space, key)
        return known !== undefined
      case 'set':
        this.#put(space, key, call.value, this.#end(call.ttlMs))
        return undefined
      case 'increment': {
        const { by } = call
        const before = known === undefined ? 0 : Number(known.value)
        if (known !== undefined && !/^-?\d{1,16}$/.test(known.value)) throw new TypeError(NOT_AN_INTEGER)
        const sum = before + by
        if (!Number.isSafeInteger(sum)) throw new TypeError(BEYOND_INTEGERS)
        const end = this.#end(call.ttlMs)
        this.#put(space, key, String(sum), known?.expiresAtMs ?? end)
        return sum
      }
    }
  }

  /** Removes a space with its values. */
  drop(name: string): void {
    this.#spaces.delete(name)
  }

  #find(space: Space, key: string): Entry | undefined {
    const entry = space.entries.get(key)
    if (entry === undefined || entry.expiresAtMs > this.#nowMs()) return entry
    remove(space, key)
    return undefined
  }

  #end(ttlMs: number | undefined): number {
    return ttlMs === undefined ? Infinity : this.#nowMs() + ttlMs
  }

  #put(space: Space, key: string, value: string, expiresAtMs: number): void {
    remove(space, key)
    const bytes = Buffer.byteLength(key) + Buffer.byteLength(value)
    space.entries.set(key, { value, bytes, expiresAtMs })
    space.bytes += bytes
    const { maxEntries, maxBytes } = this.#limits
    for (const oldest of space.entries.keys()) {
      if (space.entries.size <= maxEntries && space.bytes <= maxBytes) return
      remove(space, oldest)
    }
  }
}

/** Throws a TypeError for keys, values, numbers and times of a wrong type or beyond the limits. */
export function checkCall(call: KeyValueCall, { maxKeyBytes, maxValueBytes }: Pick<KeyValueLimits, 'maxKeyBytes' | 'maxValueBytes'>): void {
  checkText('the key', call.key, maxKeyBytes)
  if (call.operation === 'set') checkText('the value', call.value, maxValueBytes)
  if (call.operation === 'increment' && !Number.isSafeInteger(call.by)) throw new TypeError(`increment by ${String(call.by)}: give an integer`)
  if (call.operation !== 'set' && call.operation !== 'increment') return
  const { ttlMs } = call
  if (ttlMs !== undefined && (typeof ttlMs !== 'number' || !(ttlMs > 0))) throw new TypeError(`the time to live is ${String(ttlMs)}: give a positive number`)
}

function remove(space: Space, key: string): void {
  const entry = space.entries.get(key)
  if (entry === undefined) return
  space.entries.delete(key)
  space.bytes -= entry.bytes
}

/** Makes an entry the most recently used one. */
function touch({ entries }: Space, key: string, entry: Entry): void {
  entries.delete(key)
  entries.set(key, entry)
}

function checkText(what: string, value: unknown, maxBytes: number): void {
  if (typeof value !== 'string') throw new TypeError(`${what} is not a string`)
  if (value.length > maxBytes || Buffer.byteLength(value) > maxBytes) throw new TypeError(`${what} is longer than ${maxBytes} bytes`)
}
