import { expect, test } from '@jest/globals'
import { ReadMemory } from './read-memory.ts'

const MIB = 1024 * 1024

test.each([
  ['in a small container, after each 8 MiB', 256 * MIB, 12],
  ['without a limit, after each 32 MiB', 0, 3],
  ['with much memory, after each 32 MiB', 1024 * MIB, 3],
])('buffers are collected %s', (_, limit, expected) => {
  let collections = 0
  const memory = new ReadMemory(limit, () => collections++)
  for (let read = 0; read < 96 * MIB; read += 65_536) memory.add(65_536)
  expect(collections).toBe(expected)
})

test('nothing is counted without a collector', () => {
  expect(() => new ReadMemory(256 * MIB, undefined).add(64 * MIB)).not.toThrow()
})
