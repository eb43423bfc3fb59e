import { setImmediate } from 'node:timers/promises'
import type { Clock } from './debounce.ts'

/** A clock that moves only by `advance`. */
export interface ManualClock extends Clock {
  /** Moves on by so many milliseconds and runs due timers in order. Promises settle before each timer and at the end. */
  advance(byMs: number): Promise<void>
  /** Number of timers that have not run. */
  pending(): number
}

export function createManualClock(): ManualClock {
  let time = 0
  const timers = new Set<{ readonly at: number; readonly run: () => void }>()
  return {
    now: () => time,
    after(delayMs, run) {
      const timer = { at: time + Math.max(0, delayMs), run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    pending: () => timers.size,
    async advance(byMs) {
      const end = time + byMs
      for (;;) {
        await setImmediate()
        const next = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0]
        if (!next) break
        timers.delete(next)
        time = next.at
        next.run()
      }
      time = end
    },
  }
}
