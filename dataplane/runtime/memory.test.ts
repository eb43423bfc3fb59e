import { describe, expect, test } from '@jest/globals'
import { defaultHeldBytes } from './memory.ts'

const MIB = 1024 * 1024

describe('the default limit of buffered bodies', () => {
  test.each([
    ['a quarter of the limit of the cgroup', 512 * MIB, 8192 * MIB, 128 * MIB],
    ['half of what is beyond 192 MiB in a small container', 256 * MIB, 8192 * MIB, 32 * MIB],
    ['at least 16 MiB', 128 * MIB, 8192 * MIB, 16 * MIB],
    ['a quarter of the machine without a limit', 0, 8192 * MIB, 2048 * MIB],
    ['a quarter of the machine under a limit above it', 2 ** 63, 8192 * MIB, 2048 * MIB],
  ])('is %s', (_, constrained, total, expected) => {
    expect(defaultHeldBytes(constrained, total)).toBe(expected)
  })
})
