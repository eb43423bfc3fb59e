import { expect, test } from '@jest/globals'
import { backoffDelay, withJitter } from './backoff.ts'

test('the delay doubles with each failure up to the maximum', () => {
  const delays = [0, 1, 2, 5, 6, 10_000].map((failure) => backoffDelay(failure, { initialMs: 1000, maxMs: 30_000 }))
  expect(delays).toEqual([1000, 2000, 4000, 30_000, 30_000, 30_000])
  expect(backoffDelay(10_000, { initialMs: 0, maxMs: 30_000 })).toBe(0)
})

test('jitter randomizes the upper half of a delay', () => {
  expect([0, 0.5, 1].map((random) => withJitter(100, () => random))).toEqual([50, 75, 100])
})
