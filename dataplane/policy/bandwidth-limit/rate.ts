/** Bytes that may be ahead of the rate, as time: short enough for a steady flow, long enough for few timers. */
const BURST_MS = 100

/** A rate of bytes that many bodies share: each takes its bytes and learns how long to wait. */
export class Rate {
  readonly #bytesPerMs: number
  readonly #nowMs: () => number
  /** Time until which the rate is used up. */
  #usedUntilMs = -Infinity
  /** Most bytes to take at once: those of half a burst, so that the bodies that share the rate alternate. */
  readonly slice: number

  constructor(bytesPerSecond: number, nowMs: () => number) {
    this.#bytesPerMs = bytesPerSecond / 1000
    this.#nowMs = nowMs
    this.slice = Math.max(1, Math.floor((this.#bytesPerMs * BURST_MS) / 2))
  }

  /** Takes bytes. Returns the milliseconds until they may be sent, 0 for at once. */
  take(bytes: number): number {
    const nowMs = this.#nowMs()
    const startMs = Math.max(this.#usedUntilMs, nowMs - BURST_MS)
    this.#usedUntilMs = startMs + bytes / this.#bytesPerMs
    return Math.max(0, Math.ceil(this.#usedUntilMs - nowMs))
  }
}
