import { createHash } from 'node:crypto'

/** 64-bit words of a cell: key, time of use, six words of content. */
const CELL_WORDS = 8
const CELL_BYTES = CELL_WORDS * BigInt64Array.BYTES_PER_ELEMENT
const USED_AT = 1
const CONTENT = 2
/** Key of a cell that a thread is filling. */
const FILLING = 1n
const EMPTY = 0n
const MAX_PROBES = 128
/** A thread that fills a cell needs less than a microsecond, unless it was terminated meanwhile. */
const MAX_SPINS = 100_000
/** Attempts to reuse a cell while other threads reuse the same ones. */
const MAX_EVICTIONS = 8
/** A cell that was not used for so long may be reused for another name if there is no empty one. */
const STALE_SECONDS = 3600n

/** Number of 64-bit words that a user of a cell has. */
export const CONTENT_WORDS = CELL_WORDS - CONTENT

/** Memory for `count` cells, a power of two. Pages that hold no cell use no memory. */
export const allocateCells = (count: number): SharedArrayBuffer => new SharedArrayBuffer(count * CELL_BYTES)

/**
 * A hash table of small cells in shared memory. Threads find a cell by its name, without messages: the thread that opens a name first
 * initializes the cell. Cells are never removed. One that was unused for an hour is reused when the table is full.
 *
 * With `evicts`, a full table reuses the cell that was unused for the longest time, however short: for names that clients choose.
 */
export class SharedCells {
  readonly #words: BigInt64Array<SharedArrayBuffer>
  readonly #mask: number
  readonly #evicts: boolean
  #evictions = 0

  constructor(memory: SharedArrayBuffer, { evicts = false }: { readonly evicts?: boolean } = {}) {
    this.#words = new BigInt64Array(memory)
    this.#mask = memory.byteLength / CELL_BYTES - 1
    this.#evicts = evicts
  }

  /** Number of cells that this thread has reused for another name. */
  get evictions(): number {
    return this.#evictions
  }

  /** Opens the cell of a name. `initialize` sets the content of a new cell, whose words are 0. Undefined if the table is full. */
  open(name: string, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): SharedCell | undefined {
    const key = keyOf(name)
    const index = this.#find(key) ?? this.#claim(key, initialize)
    return index === undefined ? undefined : new SharedCell(this.#words, index, key, () => this.open(name, initialize))
  }

  /** The cell of a name if a thread has opened it. */
  find(name: string): SharedCell | undefined {
    const key = keyOf(name)
    const index = this.#find(key)
    return index === undefined ? undefined : new SharedCell(this.#words, index, key, () => this.find(name))
  }

  /** Number of cells, empty ones included. */
  get size(): number {
    return this.#mask + 1
  }

  /** Calls `visit` for each cell of a range that has a name, with the digest of the name. */
  scan(first: number, count: number, visit: (cell: number, key: bigint, content: BigInt64Array<SharedArrayBuffer>) => void): void {
    for (let cell = first; cell < first + count; cell++) {
      const index = cell * CELL_WORDS
      const key = Atomics.load(this.#words, index)
      if (key !== EMPTY && key !== FILLING) visit(cell, key, this.#words.subarray(index + CONTENT, index + CELL_WORDS))
    }
  }

  /** Opens a cell by the digest of its name, from `scan` of an earlier process. Returns false if there is no empty cell. */
  restore(key: bigint, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): boolean {
    if (key === EMPTY || key === FILLING) return false
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const index = this.#indexOf(key, probe)
      if (Atomics.load(this.#words, index) !== EMPTY) continue
      this.#fill(index, key, initialize)
      return true
    }
    return false
  }

  /** Index of the first word of a cell. */
  #find(key: bigint): number | undefined {
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const index = this.#indexOf(key, probe)
      const found = this.#settledKey(index)
      if (found === key) return index
      if (found === EMPTY) return undefined
    }
    return undefined
  }

  #claim(key: bigint, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): number | undefined {
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const index = this.#indexOf(key, probe)
      if (this.#settledKey(index) === EMPTY && Atomics.compareExchange(this.#words, index, EMPTY, FILLING) === EMPTY) {
        this.#fill(index, key, initialize)
        return index
      }
      // Another thread may have opened the same name.
      if (this.#settledKey(index) === key) return index
    }
    return this.#evicts ? this.#evict(key, initialize) : this.#reuse(key, initialize)
  }

  /** Reuses the cell that was unused for the longest time. Another thread that reuses it first may have opened the same name. */
  #evict(key: bigint, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): number | undefined {
    for (let attempt = 0; attempt < MAX_EVICTIONS; attempt++) {
      const found = attempt === 0 ? undefined : this.#find(key)
      if (found !== undefined) return found
      const index = this.#leastRecent(key)
      const old = Atomics.load(this.#words, index)
      if (old === FILLING || Atomics.compareExchange(this.#words, index, old, FILLING) !== old) continue
      this.#fill(index, key, initialize)
      this.#evictions++
      return index
    }
    return undefined
  }

  #leastRecent(key: bigint): number {
    let oldest = this.#indexOf(key, 0)
    for (let probe = 1; probe < MAX_PROBES; probe++) {
      const index = this.#indexOf(key, probe)
      if (Atomics.load(this.#words, index + USED_AT) < Atomics.load(this.#words, oldest + USED_AT)) oldest = index
    }
    return oldest
  }

  #reuse(key: bigint, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): number | undefined {
    const now = nowSeconds()
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const index = this.#indexOf(key, probe)
      const old = Atomics.load(this.#words, index)
      const isStale = old !== EMPTY && old !== FILLING && now - Atomics.load(this.#words, index + USED_AT) > STALE_SECONDS
      if (!isStale || Atomics.compareExchange(this.#words, index, old, FILLING) !== old) continue
      this.#fill(index, key, initialize)
      this.#evictions++
      return index
    }
    return undefined
  }

  #fill(index: number, key: bigint, initialize: (content: BigInt64Array<SharedArrayBuffer>) => void): void {
    const content = this.#words.subarray(index + CONTENT, index + CELL_WORDS)
    content.fill(0n)
    initialize(content)
    Atomics.store(this.#words, index + USED_AT, nowSeconds())
    Atomics.store(this.#words, index, key)
  }

  /** The key of a cell, once no thread is filling it. */
  #settledKey(index: number): bigint {
    let key = Atomics.load(this.#words, index)
    for (let spin = 0; key === FILLING && spin < MAX_SPINS; spin++) key = Atomics.load(this.#words, index)
    return key
  }

  #indexOf(key: bigint, probe: number): number {
    return ((Number(BigInt.asUintN(31, key)) + probe) & this.#mask) * CELL_WORDS
  }
}

/** A cell of a SharedCells. Read and write its words with Atomics. */
export class SharedCell {
  readonly #words: BigInt64Array<SharedArrayBuffer>
  readonly #index: number
  readonly #key: bigint
  readonly #reopen: () => SharedCell | undefined
  readonly content: BigInt64Array<SharedArrayBuffer>

  /** Created by SharedCells only. */
  constructor(words: BigInt64Array<SharedArrayBuffer>, index: number, key: bigint, reopen: () => SharedCell | undefined) {
    this.#words = words
    this.#index = index
    this.#key = key
    this.#reopen = reopen
    this.content = words.subarray(index + CONTENT, index + CELL_WORDS)
  }

  /** False once the cell was reused for another name. */
  get isCurrent(): boolean {
    return Atomics.load(this.#words, this.#index) === this.#key
  }

  /** Call before each use: this cell, or a new one of the same name if this one was reused meanwhile. */
  touch(): SharedCell | undefined {
    if (!this.isCurrent) return this.#reopen()
    const now = nowSeconds()
    if (Atomics.load(this.#words, this.#index + USED_AT) !== now) Atomics.store(this.#words, this.#index + USED_AT, now)
    return this
  }
}

/** 64 bits of a digest: with 65,000 names, two have the same key with a probability of 1 in 8 billion. */
function keyOf(name: string): bigint {
  const key = createHash('sha256').update(name).digest().readBigInt64LE()
  return key === EMPTY || key === FILLING ? 2n : key
}

/** The monotonic clock, which all threads share. */
const nowSeconds = (): bigint => BigInt(Math.floor(processMs() / 1000))

/** Difference between `performance.now()` of this thread and the clock that all threads share, the monotonic clock of the machine. */
export const CLOCK_OFFSET_MS: number = Number(process.hrtime.bigint()) / 1e6 - performance.now()

const processMs = (): number => performance.now() + CLOCK_OFFSET_MS
