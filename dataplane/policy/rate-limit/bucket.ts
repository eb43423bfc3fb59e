/** The state of a budget for the x-ratelimit headers. */
export interface Allowance {
  readonly isAdmitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the next refill, greater than 0. */
  readonly resetMs: number
}

/** A budget that requests or tokens are charged to. */
export interface Budget {
  /** Takes `count` if as many are left. 0 checks whether anything is left. */
  take(nowMs: number, count?: number): Allowance
  /** Charges what was spent already; a negative count is returned. What is spent beyond the budget is forgotten with the next refill only. */
  charge(nowMs: number, count: number): void
}

/** Size and start of a budget. */
export interface BudgetTerms {
  readonly amount: number
  readonly burst: number
  readonly unitMs: number
  /** Now, by `performance.now()` or, in tests, another clock, as in `take` and `charge`. */
  readonly nowMs: number
}

/**
 * A budget that starts full and is refilled by `amount` at the end of each unit of time, up to amount + burst (traffic.md §8.9). Units are
 * counted from the creation, so that rounding errors do not add up.
 */
export class Bucket implements Budget {
  readonly #amount: number
  readonly #capacity: number
  readonly #unitMs: number
  readonly #startedAtMs: number
  #left: number
  #units = 0

  constructor(options: BudgetTerms) {
    this.#amount = options.amount
    this.#capacity = options.amount + options.burst
    this.#unitMs = options.unitMs
    this.#startedAtMs = options.nowMs
    this.#left = this.#capacity
  }

  take(nowMs: number, count = 1): Allowance {
    this.#refill(nowMs)
    const isAdmitted = this.#left >= Math.max(1, count)
    if (isAdmitted) this.#left -= count
    const resetMs = (this.#units + 1) * this.#unitMs - (nowMs - this.#startedAtMs)
    return { isAdmitted, limit: this.#capacity, remaining: Math.max(0, this.#left), resetMs }
  }

  charge(nowMs: number, count: number): void {
    this.#refill(nowMs)
    this.#left = Math.min(this.#capacity, this.#left - count)
  }

  #refill(nowMs: number): void {
    const units = Math.floor((nowMs - this.#startedAtMs) / this.#unitMs)
    if (units <= this.#units) return
    this.#left = Math.min(this.#capacity, Math.max(0, this.#left) + (units - this.#units) * this.#amount)
    this.#units = units
  }
}
