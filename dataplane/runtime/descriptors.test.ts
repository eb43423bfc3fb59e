import { describe, expect, test } from '@jest/globals'
import { descriptorLimit } from './descriptors.ts'

const GIB = 1024 ** 3
const file = (soft: string) => (): string =>
  `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${soft}                20000                files\n`

describe('the limit of descriptors', () => {
  test.each([
    ['is RLIMIT_NOFILE', file('20000'), GIB, 20_000],
    ['is bounded by memory', file('1048576'), GIB / 4, 16_384],
    ['is bounded by memory if there is no limit', file('unlimited'), GIB / 4, 16_384],
    [
      'is none on systems that do not tell it',
      () => {
        throw new Error('ENOENT')
      },
      GIB,
      Infinity,
    ],
  ])('%s', (_, read, memory, expected) => {
    expect(descriptorLimit(read, memory)).toBe(expected)
  })

  test('of this process can be read', () => {
    expect(descriptorLimit()).toBeGreaterThan(0)
  })
})
