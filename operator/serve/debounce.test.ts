import { describe, expect, test } from '@jest/globals'
import { debounce } from './debounce.ts'
import { createManualClock } from './testing.ts'

describe('debounce', () => {
  test.each<[sentence: string, requestedAt: number[], runsAt: number[]]>([
    ['runs once, 10 ms after a single call', [0], [10]],
    ['runs once for a burst, 10 ms after its last call', [0, 5, 9, 18], [28]],
    ['runs once for each of two calls that are far apart', [0, 100], [10, 110]],
    ['runs after 1 s of continuous calls', Array.from({ length: 300 }, (_, index) => index * 5), [1000, 1505]],
  ])('%s', async (_, requestedAt, runsAt) => {
    const clock = createManualClock()
    const runs: number[] = []
    const { schedule } = debounce(() => runs.push(clock.now()), { quietMs: 10, maxMs: 1000 }, clock)
    for (const at of requestedAt) {
      await clock.advance(at - clock.now())
      schedule()
    }
    await clock.advance(2000)
    expect(runs).toEqual(runsAt)
  })

  test('does not run once it is cancelled', async () => {
    const clock = createManualClock()
    let runs = 0
    const { schedule, cancel } = debounce(() => (runs += 1), { quietMs: 10, maxMs: 1000 }, clock)
    schedule()
    cancel()
    await clock.advance(50)
    expect(runs).toBe(0)
  })
})
