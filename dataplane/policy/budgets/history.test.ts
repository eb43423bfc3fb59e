import { describe, expect, test } from '@jest/globals'
import type { BudgetRow, BudgetUse } from '#api/management/budgets.ts'
import { BudgetHistory } from './history.ts'

const row = (used: number, more: Partial<BudgetRow> = {}): BudgetRow => {
  return {
    policy: 'ns/p',
    budget: 'team',
    key: 'red',
    unit: 'usd',
    window: 'Month',
    limit: 100,
    used,
    left: 100 - used,
    windowEndMs: 1e9,
    isNearEnd: false,
    ...more,
  }
}
const use = (timeMs: number, ...rows: BudgetRow[]): BudgetUse => ({ timeMs, rows, isCut: false })

describe('the history of budgets', () => {
  test('has a point at most every 30 s, and those of each key apart', async () => {
    let now = use(0, row(1), row(5, { key: null }))
    const history = new BudgetHistory(() => Promise.resolve(now))
    for (const [timeMs, used] of [
      [0, 1],
      [10_000, 2],
      [30_000, 3],
      [61_000, 4],
    ] as const) {
      now = use(timeMs, row(used), row(5, { key: null }))
      await history.read()
    }
    const [red, all] = (await history.read()).rows
    expect(red?.history).toEqual([
      { timeMs: 0, used: 1 },
      { timeMs: 30_000, used: 3 },
      { timeMs: 61_000, used: 4 },
    ])
    expect(all?.history?.map(({ used }) => used)).toEqual([5, 5, 5])
  })

  test('has at most 120 points over any time, and ends with the window', async () => {
    let now = use(0, row(0))
    const history = new BudgetHistory(() => Promise.resolve(now))
    for (let sample = 0; sample < 5000; sample++) {
      now = use(sample * 30_000, row(sample / 100))
      history.add(now)
    }
    const points = (await history.read()).rows[0]?.history ?? []
    expect(points.length).toBeLessThanOrEqual(120)
    expect(points.length).toBeGreaterThan(50)
    expect(points[0]).toEqual({ timeMs: 0, used: 0 })
    expect((points.at(-1)?.timeMs ?? 0) / (5000 * 30_000)).toBeGreaterThan(0.95)
    now = use(5000 * 30_000, row(1))
    expect((await history.read()).rows[0]?.history).toEqual([{ timeMs: 5000 * 30_000, used: 1 }])
  })

  test('goes on when a rolling window gets a part back, and forgets budgets that are gone', async () => {
    const rolling = { window: '1h' }
    let now = use(0, row(9, rolling))
    const history = new BudgetHistory(() => Promise.resolve(now))
    history.add(now)
    now = use(60_000, row(4, rolling))
    expect((await history.read()).rows[0]?.history?.map(({ used }) => used)).toEqual([9, 4])
    history.add(use(90_000))
    now = use(120_000, row(5, rolling))
    expect((await history.read()).rows[0]?.history?.map(({ used }) => used)).toEqual([5])
  })
})
