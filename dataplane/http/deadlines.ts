/** Something with a deadline. It may change `deadlineMs` at any time; Infinity: no deadline. */
export interface Waiter {
  deadlineMs: number
  /** Called on each tick after the deadline has passed, until it sets another one. */
  expire(): void
}

/**
 * One coarse timer for all connections: to change a deadline is an assignment, not a new timer. Deadlines fire up to `resolutionMs` late.
 */
export class Deadlines {
  readonly #resolutionMs: number
  readonly #waiters = new Set<Waiter>()
  #timer: NodeJS.Timeout | undefined = undefined
  #nowMs = performance.now()

  constructor(resolutionMs = 250) {
    this.#resolutionMs = resolutionMs
  }

  /** Time of the last tick, in milliseconds of `performance.now()`. */
  get nowMs(): number {
    return this.#nowMs
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
    if (this.#timer !== undefined) return
    this.#nowMs = performance.now()
    this.#timer = setInterval(() => this.#tick(), this.#resolutionMs)
    this.#timer.unref()
  }

  remove(waiter: Waiter): void {
    this.#waiters.delete(waiter)
    if (this.#waiters.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    const now = performance.now()
    this.#nowMs = now
    for (const waiter of this.#waiters) if (waiter.deadlineMs <= now) waiter.expire()
  }
}

/** Default of all connections. */
export const sharedDeadlines = new Deadlines()
