import { CLOCK_OFFSET_MS, type SharedCell } from '../../runtime/shared-cells.ts'
import type { Allowance, Budget, BudgetTerms } from './bucket.ts'

/** Fractions of a token that are counted: API keys may have budgets that are no whole numbers. */
const SCALE = 1000
const LEFT = 0
const UNITS = 1
const STARTED_AT = 2
/** Rounding errors of the start, which is stored in microseconds. */
const TOLERANCE_MS = 0.001

/**
 * A budget that all workers of the data plane charge, in a cell of shared memory. Behaves like a `Bucket`. No lock: a worker that ends
 * in the middle of a charge stops no other.
 */
export class SharedBucket implements Budget {
  #cell: SharedCell
  readonly #terms: BudgetTerms

  constructor(cell: SharedCell, terms: BudgetTerms) {
    this.#cell = cell
    this.#terms = terms
  }

  take(nowMs: number, count = 1): Allowance {
    const { amount, burst, unitMs } = this.#terms
    const words = this.#refill(nowMs)
    const needed = toWord(Math.max(1, count))
    const charged = toWord(count)
    let left = Atomics.load(words, LEFT)
    let isAdmitted = false
    while (left >= needed) {
      const before = Atomics.compareExchange(words, LEFT, left, left - charged)
      isAdmitted = before === left
      left = isAdmitted ? left - charged : before
      if (isAdmitted) break
    }
    const resetMs = (Number(Atomics.load(words, UNITS)) + 1) * unitMs - (nowMs - this.#startedAtMs(words))
    return { isAdmitted, limit: amount + burst, remaining: Math.max(0, Math.floor(Number(left) / SCALE)), resetMs }
  }

  charge(nowMs: number, count: number): void {
    const words = this.#refill(nowMs)
    this.#add(words, -toWord(count))
  }

  /** The thread that sees a unit end first adds its amount. */
  #refill(nowMs: number): BigInt64Array<SharedArrayBuffer> {
    const { amount, unitMs } = this.#terms
    this.#cell = this.#cell.touch() ?? this.#cell
    const { content: words } = this.#cell
    const units = BigInt(Math.floor((nowMs - this.#startedAtMs(words) + TOLERANCE_MS) / unitMs))
    const before = Atomics.load(words, UNITS)
    if (units > before && Atomics.compareExchange(words, UNITS, before, units) === before) this.#add(words, (units - before) * toWord(amount), true)
    return words
  }

  /** Adds to what is left, up to the capacity. A refill forgets what was spent beyond the budget. */
  #add(words: BigInt64Array<SharedArrayBuffer>, change: bigint, isRefill = false): void {
    const capacity = toWord(this.#terms.amount + this.#terms.burst)
    let left = Atomics.load(words, LEFT)
    for (;;) {
      const sum = (isRefill && left < 0n ? 0n : left) + change
      const next = sum > capacity ? capacity : sum
      const before = Atomics.compareExchange(words, LEFT, left, next)
      if (before === left) return
      left = before
    }
  }

  /** The start of the budget by the clock of this thread. */
  #startedAtMs(words: BigInt64Array<SharedArrayBuffer>): number {
    return Number(Atomics.load(words, STARTED_AT)) / 1000 - CLOCK_OFFSET_MS
  }
}

/** Sets the content of a new cell: a full budget that starts now. */
export function initializeBucket(words: BigInt64Array<SharedArrayBuffer>, { amount, burst, nowMs }: BudgetTerms): void {
  words[LEFT] = toWord(amount + burst)
  words[UNITS] = 0n
  words[STARTED_AT] = BigInt(Math.round((nowMs + CLOCK_OFFSET_MS) * 1000))
}

const toWord = (count: number): bigint => BigInt(Math.round(count * SCALE))
