import { expect, test } from '@jest/globals'
import { createWeightedPicker } from './weights.ts'

/** How often each index is picked when random runs evenly through [0, 1). */
function countPicks(weights: number[], rounds = 1000): number[] {
  let round = 0
  const pick = createWeightedPicker(weights, () => round++ / rounds)
  const counts = weights.map(() => 0)
  for (let i = 0; i < rounds; i++) {
    const index = pick?.() ?? -1
    counts[index] = (counts[index] ?? 0) + 1
  }
  return counts
}

test.each([
  [
    [9, 1],
    [900, 100],
  ],
  [
    [1, 1, 2],
    [250, 250, 500],
  ],
  [
    [0, 1],
    [0, 1000],
  ],
  [
    [1, 0, 1],
    [500, 0, 500],
  ],
  [[5], [1000]],
  [
    [0, 1_000_000, 0],
    [0, 1000, 0],
  ],
])('the picker returns the indexes of the weights %j %j times', (weights, expected) => {
  expect(countPicks(weights)).toEqual(expected)
})

test.each([[[]], [[0, 0]]])('there is no picker for the weights %j', (weights) => {
  expect(createWeightedPicker(weights, Math.random)).toBeUndefined()
})

test('both ends of the random range select a positive weight', () => {
  expect(createWeightedPicker([0, 1, 1, 0], () => 0)?.()).toBe(1)
  expect(createWeightedPicker([0, 1, 1, 0], () => 1 - Number.EPSILON)?.()).toBe(2)
})
