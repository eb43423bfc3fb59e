import type { ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Deadlines, Waiter } from '../../http/deadlines.ts'

/** Milliseconds. */
export interface LivenessSettings {
  /** Without a byte from the upstream, while calls wait for it, until it is asked. */
  readonly silenceMs: number
  /** For its answer. */
  readonly answerMs: number
  /** Between two questions with nothing else between them: gRPC servers end connections that ask more often. */
  readonly restMs: number
}

export const defaultLiveness: LivenessSettings = { silenceMs: 10_000, answerMs: 10_000, restMs: 300_000 }

/**
 * Notices that the upstream of a connection is gone without a word, which TCP alone tells after a quarter of an hour: when nothing comes
 * while calls wait, it is asked by PING, and given up when it does not answer. Upstreams that only take their time are left alone.
 */
export class Liveness implements Waiter {
  deadlineMs = Infinity
  readonly #session: ClientHttp2Session
  readonly #socket: Socket
  readonly #deadlines: Deadlines
  readonly #settings: LivenessSettings
  readonly #onDead: () => void
  #seenBytes = 0
  #isAsked = false
  #askAgainMs = 0

  constructor(session: ClientHttp2Session, socket: Socket, deadlines: Deadlines, settings: LivenessSettings, onDead: () => void) {
    this.#session = session
    this.#socket = socket
    this.#deadlines = deadlines
    this.#settings = settings
    this.#onDead = onDead
  }

  /** A call waits. */
  watch(): void {
    if (this.deadlineMs !== Infinity) return
    this.#deadlines.add(this)
    this.#seenBytes = this.#socket.bytesRead
    this.deadlineMs = this.#deadlines.nowMs + this.#settings.silenceMs
  }

  /** No call waits any more. */
  rest(): void {
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
    this.deadlineMs = now + (this.#isAsked ? answerMs : silenceMs)
    if (!isSilent) this.#askAgainMs = 0
    else if (now >= this.#askAgainMs) this.#ask(now + answerMs, now + restMs)
  }

  #ask(answerByMs: number, askAgainMs: number): void {
    this.#isAsked = true
    this.deadlineMs = answerByMs
    this.#askAgainMs = askAgainMs
    this.#session.ping(() => {
      this.#isAsked = false
      // The answer alone is no sign that there is more to come.
      this.#seenBytes = this.#socket.bytesRead
      if (this.deadlineMs !== Infinity) this.deadlineMs = this.#deadlines.nowMs + this.#settings.silenceMs
    })
  }
}
