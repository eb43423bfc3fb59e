import type { Windows } from '#api/budget-window.ts'

/** Memory of a counter: 64-bit words, which other threads may use too. */
export interface CounterMemory {
  readonly words: BigInt64Array
}

/**
 * The memory of a counter. Called before each use, because shared memory may be given to another counter. With `isReading` the use does not
 * count as one, and memory that was given away is undefined.
 */
export interface MemoryOf {
  (): CounterMemory
  (isReading: true): CounterMemory | undefined
}

/** The words of the even and the odd window, of the highest alert, and the start of the latest window in milliseconds since 1970. */
export const COUNTER_WORDS = 4
const ALERT = 2
const LATEST = 3
/** Word of a cell of shared memory: 1 if the counter outlives the process, 0 if the quota server or a store knows it. */
export const SAVED_WORD = 5

/** The low 44 bits of a word are the amount; those above are the number of its window, plus 1. */
const MAX_AMOUNT = 2 ** 44 - 1
/**
 * Reservations fill a counter up to here, above the largest limit; the rest is for what was used. So a sum of reservations never takes the
 * place of usage, which would be lost when they are returned.
 */
export const MAX_RESERVED = 2 ** 43 + 2 ** 42
export const INDEX_COUNT = 2 ** 18

/** Converts words to numbers, because arithmetic of BigInts is slow. */
const converter = new DataView(new ArrayBuffer(8))
/** Bits of the amount in the high half of a word. */
const HIGH_AMOUNT_BITS = 12
const HALF = 2 ** 32

/** What counts against a limit at a time. */
export interface CounterReading {
  /** In the unit of the counter, reserved amounts included. */
  readonly used: number
  /** End of the current window, milliseconds since 1970. */
  readonly endMs: number
}

/** Result of a reservation. Amounts are in the unit of the counter. */
export interface Reservation {
  readonly isAdmitted: boolean
  /** The share of this replica does not cover the amount, and more may be had. */
  readonly isShort?: boolean
  /** What the counter has grown by, and what a settlement takes back: 0, or the whole amount as far as the counter has space for it. */
  readonly taken: number
  /** Number of the window to settle in. */
  readonly index: number
  /** What counts against the limit before the reservation. */
  readonly used: number
  /** Milliseconds until the window ends or, if the limit is reached, until there is something left. */
  readonly resetMs: number
  /** The limit that a rate limit quota service has assigned in place of the own one; Infinity: none. */
  readonly assigned?: number
}

/**
 * Adds up spending in windows, exactly also when several threads do it at once: number of the window and amount are one word. A word of
 * another window is as good as empty, so nothing has to be cleared when a window ends.
 */
export class Counter {
  readonly #memory: MemoryOf
  protected readonly windows: Windows

  constructor(memory: MemoryOf, windows: Windows) {
    this.#memory = memory
    this.windows = windows
  }

  protected get words(): BigInt64Array {
    return this.#memory().words
  }

  /**
   * Reserves `amount`. A request that needs more than is left is admitted, but reserves all of it: what other requests return then does not
   * admit another one before its usage is known.
   * @param needed what must be left to be admitted
   * @param isForced the reservation is made even if the limit is reached
   */
  reserve(epochMs: number, limit: number, amount: number, needed: number, isForced = false): Reservation {
    const { words } = this.#memory()
    const window = this.currentWindow(words, epochMs)
    const { index, startMs, endMs } = window
    const slot = index & 1
    for (;;) {
      const word = Atomics.load(words, slot)
      const current = amountOf(word, index)
      const previous = this.#previous(words, index)
      const lengthMs = endMs - startMs
      const elapsed = Math.min(1, Math.max(0, (epochMs - startMs) / lengthMs))
      const used = current + previous * (1 - elapsed)
      const left = Math.max(0, limit - used)
      // Rounding of the previous window's share must not deny a whole unit.
      const isAdmitted = left + 1e-6 >= needed && left > 0
      const resetMs = isAdmitted ? endMs - epochMs : this.opensAfterMs({ current, previous, limit, needed, elapsed, lengthMs })
      if (!isAdmitted && !isForced) return { isAdmitted, taken: 0, index, used, resetMs }
      const taken = toTaken(amount, current)
      if (Atomics.compareExchange(words, slot, word, toWord(index, current + taken)) === word) return { isAdmitted, taken, index, used, resetMs }
    }
  }

  /** Reads without a reservation. Undefined if the memory was given to another counter. */
  read(epochMs: number): CounterReading | undefined {
    const words = this.#memory(true)?.words
    if (words === undefined) return undefined
    const { index, startMs, endMs } = this.currentWindow(words, epochMs, true)
    const rest = 1 - Math.min(1, Math.max(0, (epochMs - startMs) / (endMs - startMs)))
    if (this.#isLongAgo(Atomics.load(words, LATEST), index)) return { used: 0, endMs }
    return { used: amountOf(Atomics.load(words, index & 1), index) + this.#previous(words, index) * rest, endMs }
  }

  /** Corrects a reservation. Spending of a window that is over is dropped. Returns what the window has then; undefined if it is over. */
  settle(index: number, change: number): number | undefined {
    const { words } = this.#memory()
    const slot = index & 1
    for (;;) {
      const word = Atomics.load(words, slot)
      if (indexOf(word) !== index % INDEX_COUNT) return undefined
      const amount = Math.max(0, amountOf(word, index) + change)
      if (Atomics.compareExchange(words, slot, word, toWord(index, amount)) === word) return amount
    }
  }

  /** Counts what was used for good: only shares of a budget of all replicas need it. */
  spend(index: number, amount: number): void {
    void index
    void amount
  }

  /** Records that an alert was reported in a window. Returns false if it, or a higher one, was reported before. */
  claimAlert(index: number, percent: number): boolean {
    const { words } = this.#memory()
    for (;;) {
      const word = Atomics.load(words, ALERT)
      if (amountOf(word, index) >= percent) return false
      if (Atomics.compareExchange(words, ALERT, word, toWord(index, percent)) === word) return true
    }
  }

  /** Spending of the previous window, of which a part counts in a rolling one. */
  #previous(words: BigInt64Array, index: number): number {
    return this.windows.isRolling ? amountOf(Atomics.load(words, (index & 1) ^ 1), index - 1) : 0
  }

  /** The window of a time. After a clock was set back, also before a restart, the latest window stays the current one, so that nobody gets one twice. */
  protected currentWindow(words: BigInt64Array, epochMs: number, isReading = false): ReturnType<Windows['at']> {
    for (;;) {
      const word = Atomics.load(words, LATEST)
      const latestMs = Number(word)
      const window = this.windows.at(Math.max(epochMs, latestMs))
      if (isReading || window.startMs <= latestMs) return window
      if (this.#isLongAgo(word, window.index)) this.#clear(words, word)
      if (Atomics.compareExchange(words, LATEST, word, BigInt(Math.floor(window.startMs))) === word) return window
    }
  }

  /** Whether the latest window was so long ago that words may have the number of a current one: 3 days for windows of a second. */
  #isLongAgo(latest: bigint, index: number): boolean {
    return latest > 0n && index - this.windows.at(Number(latest)).index >= INDEX_COUNT - 1
  }

  #clear(words: BigInt64Array, latest: bigint): void {
    for (const slot of [0, 1, ALERT]) {
      const old = Atomics.load(words, slot)
      // Another thread may have begun the window, and reserved in it, before the word was read.
      if (Atomics.load(words, LATEST) === latest) Atomics.compareExchange(words, slot, old, 0n)
    }
  }

  /** Milliseconds until `needed` is left. */
  protected opensAfterMs({ current, previous, limit, needed, elapsed, lengthMs }: State): number {
    const untilEnd = (1 - elapsed) * lengthMs
    if (!this.windows.isRolling) return Math.max(1, Math.ceil(untilEnd))
    const free = limit - Math.max(needed, 1)
    // Within this window the share of the previous one shrinks; in the next one, that of this one does.
    const wait = current <= free ? (1 - (free - current) / previous - elapsed) * lengthMs : untilEnd + (1 - Math.max(0, free) / current) * lengthMs
    return Math.max(1, Math.ceil(wait))
  }
}

interface State {
  readonly current: number
  readonly previous: number
  readonly limit: number
  readonly needed: number
  /** Part of the window that is over. */
  readonly elapsed: number
  readonly lengthMs: number
}

export function indexOf(word: bigint): number {
  converter.setBigInt64(0, word)
  return (converter.getUint32(0) >>> HIGH_AMOUNT_BITS) - 1
}

export function amountOf(word: bigint, index: number): number {
  if (indexOf(word) !== index % INDEX_COUNT) return 0
  return (converter.getUint32(0) % 2 ** HIGH_AMOUNT_BITS) * HALF + converter.getUint32(4)
}

/** An amount that a client or an upstream has named, as a counter can hold it: a whole number. Not a number is the largest amount. */
export function toAmount(amount: number): number {
  return Number.isNaN(amount) ? MAX_RESERVED : Math.min(MAX_RESERVED, Math.max(0, Math.round(amount)))
}

/** The part of a reservation that a counter has space for. */
export const toTaken = (amount: number, current: number): number => Math.max(0, Math.min(toAmount(amount), MAX_RESERVED - current))

/** Number 0 in the upper bits is an empty word. Throws a RangeError for NaN, which would make it one. */
export function toWord(index: number, amount: number): bigint {
  if (Number.isNaN(amount)) throw new RangeError('the amount of a budget is not a number')
  const rounded = Math.min(MAX_AMOUNT, Math.max(0, Math.round(amount)))
  converter.setUint32(0, ((index % INDEX_COUNT) + 1) * 2 ** HIGH_AMOUNT_BITS + Math.floor(rounded / HALF))
  converter.setUint32(4, rounded % HALF)
  return converter.getBigInt64(0)
}
