import type { Logger } from '../telemetry/log.ts'
import { stackOf } from './stack.ts'
import type { Thread } from './thread.ts'

/** Milliseconds between two beats of a worker, and between two checks. */
export const BEAT_MS = 500
const CHECK_MS = 500
const REPORT_MS = 5000
const REPLACE_MS = 10_000
/** A check that is so late was delayed itself: the machine was suspended or has no time. */
const LATE_MS = 3000

export interface WatchOptions {
  readonly beats: SharedArrayBuffer
  readonly log: Logger
  /** The thread of a worker that is online. */
  threadOf(index: number): Thread | undefined
  onBlocked(index: number): void
}

/** Finds workers whose event loop is blocked: logs their stack after 5 s, and has them replaced after 10 s. */
export class Watch {
  readonly #options: WatchOptions
  readonly #beats: BigInt64Array<SharedArrayBuffer>
  readonly #reported = new Set<Thread>()
  #timer: NodeJS.Timeout | undefined
  #checkedAtMs = 0
  /** Beats before it say nothing about workers. */
  #sinceMs = 0

  constructor(options: WatchOptions) {
    this.#options = options
    this.#beats = new BigInt64Array(options.beats)
  }

  start(): void {
    this.#checkedAtMs = this.#sinceMs = nowMs()
    this.#timer = setInterval(() => this.#check(), CHECK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #check(): void {
    const now = nowMs()
    if (now - this.#checkedAtMs > LATE_MS) this.#sinceMs = now
    this.#checkedAtMs = now
    for (let index = 0; index < this.#beats.length; index++) {
      const thread = this.#options.threadOf(index)
      if (thread === undefined) continue
      const silentMs = now - Math.max(this.#sinceMs, Number(Atomics.load(this.#beats, index)) / 1e6)
      if (silentMs < REPORT_MS) this.#reported.delete(thread)
      else if (silentMs >= REPLACE_MS) this.#options.onBlocked(index)
      else if (!this.#reported.has(thread)) {
        this.#reported.add(thread)
        void this.#report(index, thread, silentMs)
      }
    }
  }

  async #report(index: number, thread: Thread, silentMs: number): Promise<void> {
    const stack = await stackOf(thread.threadId).catch(() => undefined)
    this.#options.log.error('worker does not answer', {
      code: 'PX4014',
      worker: index,
      silentMs: Math.round(silentMs),
      stack: stack?.join(' < ') ?? 'unknown: in native code',
    })
  }
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6
