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

const DEFAULT_LIMITS: KeyValueLimits = { maxEntries: 10_000, maxBytes: 4 * 1024 * 1024, maxKeyBytes: 512, maxValueBytes: 64 * 1024 }

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
    const { key } = call
    checkText('the key', key, this.#limits.maxKeyBytes)
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
        checkText('the value', call.value, this.#limits.maxValueBytes)
        this.#put(space, key, call.value, this.#end(call.ttlMs))
        return undefined
      case 'increment': {
        const { by } = call
        if (!Number.isSafeInteger(by)) throw new TypeError(`increment by ${String(by)}: give an integer`)
        const before = known === undefined ? 0 : Number(known.value)
        if (known !== undefined && !/^-?\d{1,16}$/.test(known.value)) throw new TypeError('the value is not an integer and cannot be incremented')
        const sum = before + by
        if (!Number.isSafeInteger(sum)) throw new TypeError(`${before} + ${by} is beyond the range of integers`)
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
    if (ttlMs === undefined) return Infinity
    if (typeof ttlMs !== 'number' || !(ttlMs > 0)) throw new TypeError(`the time to live is ${String(ttlMs)}: give a positive number`)
    return this.#nowMs() + ttlMs
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
