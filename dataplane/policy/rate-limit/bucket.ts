/** What is left of a budget, as the x-ratelimit headers say it. */
export interface Allowance {
  readonly isAdmitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the next refill; above 0. */
  readonly resetMs: number
}

/**
 * A budget that starts full and gets `amount` at the end of each full unit since it was made, in steps, up to amount + burst
 * (traffic.md §8.9). Time is counted from the start, so that no rounding adds up.
 */
export class Bucket {
  readonly #amount: number
  readonly #capacity: number
  readonly #unitMs: number
  readonly #startedAtMs: number
  #left: number
  #units = 0

  constructor(options: { amount: number; burst: number; unitMs: number; nowMs: number }) {
    this.#amount = options.amount
    this.#capacity = options.amount + options.burst
    this.#unitMs = options.unitMs
    this.#startedAtMs = options.nowMs
    this.#left = this.#capacity
  }

  /** Takes `count` if that many are left. With 0 it only asks whether anything is left. */
  take(nowMs: number, count = 1): Allowance {
    this.#refill(nowMs)
    const isAdmitted = this.#left >= Math.max(1, count)
    if (isAdmitted) this.#left -= count
    const resetMs = (this.#units + 1) * this.#unitMs - (nowMs - this.#startedAtMs)
    return { isAdmitted, limit: this.#capacity, remaining: this.#left, resetMs }
  }

  /** Charges what is already spent, or gives back when negative. There are no debts: what it cannot pay is forgotten. */
  charge(nowMs: number, count: number): void {
    this.#refill(nowMs)
    this.#left = Math.min(this.#capacity, Math.max(0, this.#left - count))
  }

  #refill(nowMs: number): void {
    const units = Math.floor((nowMs - this.#startedAtMs) / this.#unitMs)
    if (units <= this.#units) return
    this.#left = Math.min(this.#capacity, this.#left + (units - this.#units) * this.#amount)
    this.#units = units
  }
}
