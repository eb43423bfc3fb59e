import { describe, expect, test } from '@jest/globals'
import type { BudgetRow } from '#api/management/budgets.ts'
import { burnDown, fill, forecast, windowStart } from './forecast.ts'

const HOUR_MS = 3_600_000
const endMs = Date.parse('2027-02-01T00:00:00Z')
const row = (more: Partial<BudgetRow> = {}): BudgetRow => {
  const { limit = 100, used = 50 } = more
  return {
    policy: 'ns/p',
    budget: 'b',
    key: null,
    unit: 'usd',
    window: 'Day',
    limit,
    used,
    left: Math.max(0, limit - used),
    windowEndMs: endMs,
    isNearEnd: false,
    ...more,
  }
}
const at = (text: string): number => Date.parse(text)

describe('the start of a window', () => {
  test.each([
    ['Minute', '2027-01-31T23:59:00Z'],
    ['Hour', '2027-01-31T23:00:00Z'],
    ['Day', '2027-01-31T00:00:00Z'],
    ['Week', '2027-01-25T00:00:00Z'],
    ['Month', '2027-01-01T00:00:00Z'],
    ['90m', '2027-01-31T22:30:00Z'],
    ['1h30m', '2027-01-31T22:30:00Z'],
  ])('of %s is %s', (window, start) => {
    expect(new Date(windowStart(row({ window }))).toISOString()).toBe(start.replace('Z', '.000Z'))
  })
})

describe('the forecast of a budget', () => {
  test('continues the mean rate since the start of the window', () => {
    // Half of it was used in a quarter of the day.
    expect(forecast(row(), at('2027-01-31T06:00:00Z')).usedUpMs).toBe(at('2027-01-31T12:00:00Z'))
    const slow = forecast(row({ used: 20 }), at('2027-01-31T12:00:00Z'))
    expect([slow.usedUpMs, Math.round(slow.leftAtEnd)]).toEqual([undefined, 60])
  })

  test('follows the trend of the history', () => {
    const nowMs = at('2027-01-31T12:00:00Z')
    // Nothing until 11:00, then 10 in each 12 minutes.
    const history = [0, 12, 24, 36, 48].map((minutes, index) => ({ timeMs: nowMs - HOUR_MS + minutes * 60_000, used: index * 10 }))
    const { usedUpMs = 0 } = forecast(row({ used: 50, history }), nowMs)
    expect(usedUpMs).toBeCloseTo(nowMs + HOUR_MS, -3)
  })

  test('is now for a budget that is used up, and never for one that is not used', () => {
    const nowMs = at('2027-01-31T12:00:00Z')
    expect(forecast(row({ used: 120 }), nowMs).usedUpMs).toBe(nowMs)
    expect(forecast(row({ used: 0 }), nowMs)).toEqual({ rate: 0, usedUpMs: undefined, leftAtEnd: 100 })
    const falling = [30, 20, 10].map((used, index) => ({ timeMs: nowMs - (3 - index) * 600_000, used }))
    expect(forecast(row({ used: 5, window: '1h', windowEndMs: nowMs + HOUR_MS, history: falling }), nowMs).usedUpMs).toBeUndefined()
  })
})

describe('the burn-down of a budget', () => {
  test('begins with the limit at the start of the window, and goes on to the end', () => {
    const nowMs = at('2027-01-31T06:00:00Z')
    const history = [
      { timeMs: at('2027-01-31T03:00:00Z'), used: 30 },
      { timeMs: at('2027-01-30T03:00:00Z'), used: 90 },
    ]
    const { times, left, ahead } = burnDown(row({ history }), nowMs)
    expect(times.map((time) => new Date(time * 1000).getUTCHours())).toEqual([0, 3, 6, 12, 0])
    expect(left).toEqual([100, 70, 50, null, null])
    expect(ahead).toEqual([null, null, 50, 0, 0])
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test('of a budget that is used up has no forecast', () => {
    const { left, ahead } = burnDown(row({ used: 200 }), at('2027-01-31T06:00:00Z'))
    expect([left, ahead]).toEqual([
      [100, 0, null],
      [null, 0, 0],
    ])
  })
})

test('a period without requests has cost 0', () => {
  const since = at('2027-01-31T10:20:00Z')
  const { times, values } = fill([{ group: ['2027-01-31T11:00Z'], cost: 3 }], since, since + 3 * HOUR_MS, HOUR_MS)
  expect(times.map((time) => new Date(time * 1000).getUTCHours())).toEqual([10, 11, 12, 13])
  expect(values).toEqual([0, 3, 0, 0])
})
