/** Something that must not wait beyond a moment. It moves `deadlineMs` as it likes; Infinity: waits for nothing. */
export interface Waiter {
  deadlineMs: number
  /** Called once per tick while the deadline has passed; moves or ends it. */
  expire(): void
}

/**
 * One coarse timer for all connections: moving a deadline is an assignment, not a timer. Deadlines fire up to one resolution late.
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

/** What connections use unless they are given their own. */
export const sharedDeadlines = new Deadlines()
