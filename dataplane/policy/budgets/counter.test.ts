import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { amountOf, Counter, COUNTER_WORDS, INDEX_COUNT, indexOf, toWord } from './counter.ts'
import { compileWindows } from '#api/budget-window.ts'

const START = Date.parse('2026-11-23T00:00:00Z')
const counterOf = (window: string): Counter => {
  const memory = { words: new BigInt64Array(COUNTER_WORDS) }
  return new Counter(() => memory, compileWindows(window))
}

describe('a counter of a calendar window', () => {
  test('admits a request while anything is left, and reserves all of it', () => {
    const counter = counterOf('Day')
    expect(counter.reserve(START, 100, 60, 1)).toMatchObject({ isAdmitted: true, taken: 60, used: 0 })
    expect(counter.reserve(START, 100, 60, 1)).toMatchObject({ isAdmitted: true, taken: 60, used: 60 })
    expect(counter.reserve(START + 3_600_000, 100, 60, 1)).toMatchObject({ isAdmitted: false, taken: 0, resetMs: 23 * 3_600_000 })
  })

  test('does not admit another request by what others return while the last one exceeds the limit', () => {
    const counter = counterOf('Day')
    const { index } = counter.reserve(START, 100, 95, 1)
    const last = counter.reserve(START, 100, 60, 1)
    counter.settle(index, -10)
    expect(counter.reserve(START, 100, 60, 1).isAdmitted).toBe(false)
    counter.settle(index, 20 - last.taken)
    expect(counter.reserve(START, 100, 60, 1)).toMatchObject({ isAdmitted: false, used: 105 })
  })

  test('starts empty in the next window, and drops what is settled in a window that is over', () => {
    const counter = counterOf('Day')
    const { index, taken } = counter.reserve(START, 100, 100, 1)
    expect(counter.reserve(START + 86_400_000, 100, 1, 1)).toMatchObject({ isAdmitted: true, used: 0 })
    counter.reserve(START + 2 * 86_400_000, 100, 1, 1)
    expect(counter.settle(index, 50 - taken)).toBeUndefined()
    expect(counter.reserve(START + 2 * 86_400_000, 100, 1, 1).used).toBe(1)
  })

  test('a settled window keeps what it used over its limit', () => {
    const counter = counterOf('Day')
    const { index, taken } = counter.reserve(START, 100, 10, 1)
    expect(counter.settle(index, 250 - taken)).toBe(250)
    expect(counter.reserve(START, 300, 10, 1)).toMatchObject({ isAdmitted: true, used: 250 })
  })

  test('a clock that is set back does not open a window again', () => {
    const counter = counterOf('Day')
    counter.reserve(START + 86_400_000, 100, 100, 1)
    expect(counter.reserve(START + 86_399_000, 100, 1, 1).isAdmitted).toBe(false)
  })

  test('each alert is claimed once per window', () => {
    const counter = counterOf('Day')
    expect([counter.claimAlert(7, 50), counter.claimAlert(7, 50), counter.claimAlert(7, 80), counter.claimAlert(7, 50)]).toEqual([true, false, true, false])
    expect(counter.claimAlert(8, 50)).toBe(true)
  })
})

describe('a counter of a rolling window', () => {
  test.each([INDEX_COUNT - 1, INDEX_COUNT, INDEX_COUNT + 1, 2 * INDEX_COUNT])('is empty after %d windows without a request', (idle) => {
    const counter = counterOf('1s')
    for (const second of [0, 1]) counter.reserve(START + second * 1000, 100, 100, 1)
    const nowMs = START + (idle + 1) * 1000
    expect(counter.read(nowMs)?.used).toBe(0)
    expect(counter.reserve(nowMs, 100, 30, 1)).toMatchObject({ isAdmitted: true, used: 0 })
    expect(counter.read(nowMs)?.used).toBe(30)
  })

  test('counts the part of the previous window that is less than a window ago', () => {
    const counter = counterOf('1m')
    for (let i = 0; i < 10; i++) counter.reserve(START + 59_000, 10, 1, 1)
    expect(counter.reserve(START + 60_000, 10, 1, 1)).toMatchObject({ isAdmitted: false, resetMs: 6000 })
    expect(counter.reserve(START + 66_000, 10, 1, 1)).toMatchObject({ isAdmitted: true, used: 9 })
    expect(counter.reserve(START + 180_000, 10, 1, 1)).toMatchObject({ isAdmitted: true, used: 0 })
  })

  test('opens when it says so, and not before', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 200 }), (limit, gaps) => {
        const counter = counterOf('30s')
        let now = START
        for (const gap of gaps) {
          now += gap
          const { isAdmitted, resetMs } = counter.reserve(now, limit, 1, 1)
          if (isAdmitted) continue
          expect(counter.reserve(now + resetMs - 2, limit, 0, 1).isAdmitted).toBe(false)
          now += resetMs + 1
          expect(counter.reserve(now, limit, 1, 1).isAdmitted).toBe(true)
        }
      }),
    )
  })
})

test('amounts that are reserved and settled add up', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 2000 })), { maxLength: 100 }), (requests) => {
      const counter = counterOf('Month')
      let spent = 0
      for (const [estimate, actual] of requests) {
        const { isAdmitted, index, taken } = counter.reserve(START, 20_000, estimate, 1)
        expect(isAdmitted).toBe(spent < 20_000)
        if (!isAdmitted) continue
        counter.settle(index, actual - taken)
        spent += actual
      }
      expect(counter.reserve(START, 1e9, 0, 1).used).toBe(spent)
    }),
  )
})

test('a word has the amount in its low 44 bits and the number of its window, plus 1, above them', () => {
  expect([amountOf(0n, 0), indexOf(0n)]).toEqual([0, -1])
  fc.assert(
    fc.property(fc.nat({ max: 2 * INDEX_COUNT }), fc.integer({ min: 0, max: 2 ** 44 - 1 }), (index, amount) => {
      const word = toWord(index, amount)
      expect(word).toBe((BigInt((index % INDEX_COUNT) + 1) << 44n) | BigInt(amount))
      expect([indexOf(word), amountOf(word, index), amountOf(word, index + 1)]).toEqual([index % INDEX_COUNT, amount, 0])
    }),
    { examples: [[INDEX_COUNT - 1, 2 ** 44 - 1]] },
  )
  expect(amountOf(toWord(1, 2 ** 50), 1)).toBe(2 ** 44 - 1)
  expect(amountOf(toWord(1, -1), 1)).toBe(0)
  expect(() => toWord(1, NaN)).toThrow('not a number')
})
