/** Timers, injected so that tests own time. */
export interface Clock {
  now(): number
  /** Runs `callback` after `delayMs`; the result cancels it. */
  after(delayMs: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}

export interface DebounceTimes {
  /** Run after this long without a further call. */
  readonly quietMs: number
  /** Run at the latest this long after the first call. */
  readonly maxMs: number
}

/** Runs `action` once for a burst of `schedule` calls. */
export function debounce(action: () => void, times: DebounceTimes, clock: Clock): { readonly schedule: () => void; readonly cancel: () => void } {
  let firstCalledAt: number | undefined
  let cancelTimer = (): void => {}
  const run = (): void => {
    firstCalledAt = undefined
    action()
  }
  return {
    schedule() {
      const now = clock.now()
      firstCalledAt ??= now
      cancelTimer()
      cancelTimer = clock.after(Math.max(0, Math.min(times.quietMs, firstCalledAt + times.maxMs - now)), run)
    },
    cancel() {
      cancelTimer()
      firstCalledAt = undefined
    },
  }
}
