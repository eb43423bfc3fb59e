import type { Logger } from '../../observe/telemetry/log.ts'
import { stackOf } from './stack.ts'
import type { Thread } from './thread.ts'

/** Milliseconds between two beats of a worker, and between two checks. */
export const BEAT_MS = 500
const CHECK_MS = 500
const REPORT_MS = 5000
const REPLACE_MS = 10_000
/** While no worker answers, the machine rather has too little CPU time. */
const REPLACE_ALL_MS = 60_000
/** A check that is so late was delayed itself: the machine was suspended or has no time. */
const LATE_MS = 3000

export interface WatchOptions {
  readonly beats: SharedArrayBuffer
  readonly log: Logger
  /** The thread of a worker that is online. */
  threadOf(index: number): Pick<Thread, 'threadId'> | undefined
  onBlocked(index: number): void
  /** Milliseconds of the monotonic clock; tests replace it. */
  readonly nowMs?: () => number
}

/** Finds workers whose event loop is blocked: logs their stack after 5 s, and has them replaced after 10 s. */
export class Watch {
  readonly #options: WatchOptions
  readonly #beats: BigInt64Array<SharedArrayBuffer>
  readonly #reported = new Set<object>()
  #timer: NodeJS.Timeout | undefined
  #checkedAtMs = 0
  /** Beats before it say nothing about workers. */
  #sinceMs = 0

  constructor(options: WatchOptions) {
    this.#options = options
    this.#beats = new BigInt64Array(options.beats)
  }

  start(): void {
    this.#checkedAtMs = this.#sinceMs = this.#now()
    this.#timer = setInterval(() => this.check(), CHECK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Called every 0.5 s. */
  check(): void {
    const now = this.#now()
    if (now - this.#checkedAtMs > LATE_MS) this.#sinceMs = now
    this.#checkedAtMs = now
    const silences = Array.from(this.#beats, (_, index) => now - Math.max(this.#sinceMs, Number(Atomics.load(this.#beats, index)) / 1e6))
    const replaceMs = silences.some((silentMs) => silentMs < REPORT_MS) ? REPLACE_MS : REPLACE_ALL_MS
    for (const [index, silentMs] of silences.entries()) {
      const thread = this.#options.threadOf(index)
      if (thread === undefined) continue
      if (silentMs < REPORT_MS) this.#reported.delete(thread)
      else if (silentMs >= replaceMs) this.#options.onBlocked(index)
      else if (!this.#reported.has(thread)) {
        this.#reported.add(thread)
        void this.#report(index, thread, silentMs)
      }
    }
  }

  #now(): number {
    return this.#options.nowMs?.() ?? Number(process.hrtime.bigint()) / 1e6
  }

  async #report(index: number, { threadId }: Pick<Thread, 'threadId'>, silentMs: number): Promise<void> {
    const stack = await stackOf(threadId).catch(() => undefined)
    this.#options.log.error('worker does not answer', {
      code: 'PX4014',
      worker: index,
      silentMs: Math.round(silentMs),
      stack: stack?.join(' < ') ?? 'unknown: in native code',
    })
  }
}
