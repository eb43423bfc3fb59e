import { describe, expect, test } from '@jest/globals'
import { formatDuration, parseDuration, parseTimeout } from './duration.ts'

describe('durations', () => {
  test.each([
    ['10s', 10_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['0s', 0],
    ['1h1m1s1ms', 3_661_001],
    ['99999h', 359_996_400_000],
  ])('%s is parsed as %d ms', (text, ms) => expect(parseDuration(text)).toBe(ms))

  test.each(['', '1', '1.5s', '-1s', '10us', '1d', '1h1m1s1ms1s', '100000s', ' 1s'])('%j is rejected by parseDuration', (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  )

  test.each([
    ['596h', 2_145_600_000],
    ['597h', 2_147_483_647],
    ['99999h', 2_147_483_647],
    ['1', undefined],
  ])('a timeout of %s is parsed as %s ms', (text, ms) => expect(parseTimeout(text)).toBe(ms))

  test('formatDuration is the inverse of parseDuration for whole milliseconds', () => {
    for (const ms of [0, 1, 999, 1000, 61_000, 3_600_000, 5_400_500]) expect(parseDuration(formatDuration(ms))).toBe(ms)
  })
})
