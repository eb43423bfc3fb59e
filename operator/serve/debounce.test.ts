import { describe, expect, test } from '@jest/globals'
import { debounce, type Clock } from './debounce.ts'

/** A clock that moves only when told. */
function createTestClock(): Clock & { advance(ms: number): void } {
  let now = 0
  const timers = new Set<{ at: number; run: () => void }>()
  return {
    now: () => now,
    after(delayMs, run) {
      const timer = { at: now + delayMs, run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      const end = now + ms
      for (;;) {
        const next = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0]
        if (next === undefined) break
        timers.delete(next)
        now = next.at
        next.run()
      }
      now = end
    },
  }
}

describe('debounce', () => {
  test.each<[sentence: string, asksAt: number[], runsAt: number[]]>([
    ['runs once, 10 ms after a single ask', [0], [10]],
    ['runs once for a burst, 10 ms after its last ask', [0, 5, 9, 18], [28]],
    ['runs once for each of two asks that are far apart', [0, 100], [10, 110]],
    ['runs after 1 s although the asking goes on', Array.from({ length: 300 }, (_, index) => index * 5), [1000, 1505]],
  ])('%s', (_, asksAt, runsAt) => {
    const clock = createTestClock()
    const runs: number[] = []
    const { ask } = debounce(() => runs.push(clock.now()), { quietMs: 10, maxMs: 1000 }, clock)
    for (const at of asksAt) {
      clock.advance(at - clock.now())
      ask()
    }
    clock.advance(2000)
    expect(runs).toEqual(runsAt)
  })

  test('does not run once it is cancelled', () => {
    const clock = createTestClock()
    let runs = 0
    const { ask, cancel } = debounce(() => (runs += 1), { quietMs: 10, maxMs: 1000 }, clock)
    ask()
    cancel()
    clock.advance(50)
    expect(runs).toBe(0)
  })
})
