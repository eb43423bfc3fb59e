import type { Underscores } from '../syntax.ts'
import { ConnectionError, ENHANCE_YOUR_CALM } from './frames.ts'

/** Limits of a connection that both roles have. Sizes in bytes. */
export interface ConnectionLimits {
  readonly streamWindow: number
  readonly connectionWindow: number
  readonly maxFrame: number
  /** Names, values and 32 per field of a header section (RFC 9113 §6.5.2). */
  readonly maxHeaderList: number
  readonly underscores: Underscores | undefined
  /** Refills the window of the connection on receipt, not when bodies are consumed. */
  readonly creditsOnReceipt?: boolean
}

/** Window of every stream and connection until SETTINGS or WINDOW_UPDATE change it (RFC 9113 §6.9.2). */
export const DEFAULT_WINDOW = 65_535

/** How many bytes the peer may send on a stream or a connection (RFC 9113 §5.2). The peer is credited when the bytes are consumed. */
export class ReceiveWindow {
  readonly #size: number
  #available: number
  #consumed = 0

  /** `available`: what the peer may send now; `size`: what it may send at most, once it knows. */
  constructor(available: number, size: number) {
    this.#available = available
    this.#size = size
  }

  /** Receives bytes. Returns whether the window admits them. */
  receive(bytes: number): boolean {
    this.#available -= bytes
    return this.#available >= 0
  }

  /** The peer acknowledged another initial window. */
  change(bytes: number): void {
    this.#available += bytes
  }

  /** Bytes were consumed. Returns the increment to send to the peer: 0 until half of the window was consumed. */
  consume(bytes: number): number {
    this.#consumed += bytes
    if (this.#consumed * 2 < this.#size) return 0
    const increment = this.#consumed
    this.#consumed = 0
    this.#available += increment
    return increment
  }
}

/** Events up to a burst, and a number per second beyond it. */
class Bucket {
  readonly #burst: number
  readonly #perMs: number
  #left: number
  #filledMs: number

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst
    this.#left = burst
    this.#perMs = perSecond / 1000
    this.#filledMs = nowMs
  }

  /** Counts an event. Returns whether the limit admits it. */
  admit(nowMs: number): boolean {
    if (this.#left < 1) {
      this.#left = Math.min(this.#burst, this.#left + (nowMs - this.#filledMs) * this.#perMs)
      this.#filledMs = nowMs
    }
    return --this.#left >= 0
  }
}

/** WINDOW_UPDATE frames with less are counted as idle frames. */
export const SMALL_INCREMENT = 256

/** Counts frames that cost much and carry nothing. Limits are per connection; each throws ConnectionError. */
export class FloodGuard {
  readonly #now: () => number
  readonly #idle: Bucket
  readonly #resets: Bucket

  /** `now`: milliseconds, may be coarse. */
  constructor(now: () => number) {
    this.#now = now
    this.#idle = new Bucket(20_000, 10_000, now())
    this.#resets = new Bucket(1000, 33, now())
  }

  /**
   * A frame that carries no data: SETTINGS, PING, PRIORITY, an unknown frame, an empty DATA or CONTINUATION frame, or a small WINDOW_UPDATE
   * (CVE-2019-9511, -9512, -9513, -9515, -9518). The limit leaves a margin for gRPC clients, which send a PING per round trip.
   */
  countIdleFrame(): void {
    if (!this.#idle.admit(this.#now())) throw new ConnectionError(ENHANCE_YOUR_CALM, 'too many frames without data')
  }

  /** The peer reset a stream (CVE-2023-44487), opened one beyond the limit, or made this side reset one (CVE-2025-8671). */
  countReset(): void {
    if (!this.#resets.admit(this.#now())) throw new ConnectionError(ENHANCE_YOUR_CALM, 'too many reset streams')
  }
}
