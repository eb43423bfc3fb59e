import { expect, test } from '@jest/globals'
import { setBounded } from './bounded.ts'

test('the oldest entry of a full map gives way, and one that is set again is the newest', () => {
  const map = new Map<string, number>()
  for (const [at, key] of ['a', 'b', 'a', 'c'].entries()) setBounded(map, key, at, 2)
  expect([...map]).toEqual([
    ['a', 2],
    ['c', 3],
  ])
})
