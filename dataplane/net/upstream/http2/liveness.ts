import type { Socket } from 'node:net'
import type { Deadlines, Waiter } from '../../../http/deadlines.ts'

/** In milliseconds. */
export interface LivenessSettings {
  /** Silence of the upstream, while calls wait, until a PING is sent. */
  readonly silenceMs: number
  /** Timeout of the acknowledgement. */
  readonly answerMs: number
  /** Minimum interval between two PINGs without other traffic: gRPC servers close connections that send more. */
  readonly restMs: number
}

export const defaultLiveness: LivenessSettings = { silenceMs: 10_000, answerMs: 10_000, restMs: 300_000 }

/**
 * Detects a dead connection, which TCP alone reports after a quarter of an hour: sends a PING if nothing is received after a call began, also if the
 * call has timed out meanwhile, and reports the connection as dead without an acknowledgement. A slow upstream is not affected.
 */
export class Liveness implements Waiter {
  deadlineMs = Infinity
  readonly #probe: () => void
  readonly #socket: Socket
  readonly #deadlines: Deadlines
  readonly #settings: LivenessSettings
  readonly #onDead: () => void
  #seenBytes = 0
  #isAsked = false
  /** Whether a call waits. */
  #isWatched = false
  #askAgainMs = 0

  /** `probe` sends a PING; its acknowledgement must be reported to `onProbed`. */
  constructor(probe: () => void, socket: Socket, deadlines: Deadlines, settings: LivenessSettings, onDead: () => void) {
    this.#probe = probe
    this.#socket = socket
    this.#deadlines = deadlines
    this.#settings = settings
    this.#onDead = onDead
  }

  /** A call waits for the upstream. */
  watch(): void {
    this.#isWatched = true
    if (this.deadlineMs !== Infinity) return
    this.#deadlines.add(this)
    this.#seenBytes = this.#socket.bytesRead
    this.deadlineMs = this.#deadlines.nowMs + this.#settings.silenceMs
  }

  /** No call waits any more. The PING stays due until something is received: calls that time out first would keep a dead connection alive. */
  rest(): void {
    this.#isWatched = false
    if (!this.#isAsked && this.#socket.bytesRead !== this.#seenBytes) this.end()
  }

  /** The connection is closed, or not silent. */
  end(): void {
    this.deadlineMs = Infinity
    this.#deadlines.remove(this)
  }

  expire(): void {
    const { silenceMs, answerMs, restMs } = this.#settings
    const now = this.#deadlines.nowMs
    const { bytesRead } = this.#socket
    const isSilent = bytesRead === this.#seenBytes
    this.#seenBytes = bytesRead
    if (this.#isAsked && isSilent) return this.#onDead()
    if (!isSilent && !this.#isWatched) return this.end()
    this.deadlineMs = now + (this.#isAsked ? answerMs : silenceMs)
    if (!isSilent) this.#askAgainMs = 0
    else if (now >= this.#askAgainMs) this.#ping(now + answerMs, now + restMs)
  }

  #ping(answerByMs: number, askAgainMs: number): void {
    this.#isAsked = true
    this.deadlineMs = answerByMs
    this.#askAgainMs = askAgainMs
    this.#probe()
  }

  /** The PING was acknowledged. */
  onProbed(): void {
    this.#isAsked = false
    // The acknowledgement alone does not count as traffic.
    this.#seenBytes = this.#socket.bytesRead
    if (!this.#isWatched) this.end()
    else if (this.deadlineMs !== Infinity) this.deadlineMs = this.#deadlines.nowMs + this.#settings.silenceMs
  }
}
