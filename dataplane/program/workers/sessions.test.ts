import { describe, expect, test } from '@jest/globals'
import { allocateSessions, SharedSessions } from './sessions.ts'

describe('sessions of several workers', () => {
  const memory = allocateSessions()
  const [one, two] = [new SharedSessions(memory, 1), new SharedSessions(memory, 2)]

  test('are held by the worker that claimed them, until it releases them', () => {
    expect([one.holderOf('a'), two.holderOf('a')]).toEqual([0, 0])
    one.claim('a')
    expect([one.holderOf('a'), two.holderOf('a'), two.holderOf('b')]).toEqual([1, 1, 0])
    two.release('a')
    expect(two.holderOf('a')).toBe(1)
    one.release('a')
    expect([one.holderOf('a'), two.holderOf('a')]).toEqual([0, 0])
  })

  test('end in all workers', () => {
    expect(two.hasEnded('c')).toBe(false)
    one.end('c')
    expect([one.hasEnded('c'), two.hasEnded('c'), two.hasEnded('d')]).toEqual([true, true, false])
  })

  test('count changes together', () => {
    expect([one.changesOf('list'), two.changesOf('list')]).toEqual([0, 0])
    one.bumpChanges('list')
    two.bumpChanges('list')
    expect([one.changesOf('list'), two.changesOf('list'), one.changesOf('other')]).toEqual([2, 2, 0])
  })

  test('that ended take no cell from one that a worker holds', () => {
    for (let count = 0; count < 70_000; count++) one.end(`ended ${count}`)
    one.claim('late')
    expect(two.holderOf('late')).toBe(1)
  })
})
