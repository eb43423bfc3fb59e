import { describe, expect, test } from '@jest/globals'
import { KeyValueStore, type KeyValueCall, type KeyValueLimits } from './key-value.ts'

function start(limits: Partial<KeyValueLimits> = {}) {
  let nowMs = 0
  const store = new KeyValueStore(limits, () => nowMs)
  return {
    store,
    wait: (ms: number) => (nowMs += ms),
    get: (key: string, space = 'a') => store.run(space, { operation: 'get', key }),
    set: (key: string, value: string, ttlMs?: number, space = 'a') => store.run(space, { operation: 'set', key, value, ttlMs }),
    remove: (key: string) => store.run('a', { operation: 'delete', key }),
    increment: (key: string, by = 1, ttlMs?: number) => store.run('a', { operation: 'increment', key, by, ttlMs }),
  }
}

describe('a key-value store', () => {
  test('returns, replaces and deletes values', () => {
    const { get, set, remove } = start()
    expect([get('k'), remove('k')]).toEqual([undefined, false])
    set('k', '1')
    set('k', '2')
    expect([get('k'), remove('k'), get('k')]).toEqual(['2', true, undefined])
  })

  test('keeps spaces apart, and drops one', () => {
    const { get, set, store } = start()
    set('k', 'of a')
    set('k', 'of b', undefined, 'b')
    store.drop('a')
    expect([get('k'), get('k', 'b')]).toEqual([undefined, 'of b'])
  })

  test('forgets values at the end of their time, and counts time of increments from the first', () => {
    const { get, set, increment, wait } = start()
    set('k', '1', 100)
    increment('n', 1, 100)
    wait(99)
    expect([get('k'), increment('n', 2, 100)]).toEqual(['1', 3])
    wait(1)
    expect([get('k'), increment('n', 5)]).toEqual([undefined, 5])
    wait(1e9)
    expect(get('n')).toBe('5')
  })

  test('drops the least recently used entries beyond the number and the bytes of a space', () => {
    const { get, set } = start({ maxEntries: 3, maxBytes: 20 })
    for (const key of ['a', 'b', 'c']) set(key, '1')
    get('a')
    set('d', '1')
    expect(['a', 'b', 'c', 'd'].map((key) => get(key))).toEqual(['1', undefined, '1', '1'])
    set('e', '12345678901234567')
    expect(['a', 'c', 'd', 'e'].map((key) => get(key))).toEqual([undefined, undefined, '1', '12345678901234567'])
  })

  test.each<[string, KeyValueCall, string]>([
    ['a key that is no text', { operation: 'get', key: 1 as never }, 'the key is not a string'],
    ['a long key', { operation: 'get', key: 'ä'.repeat(300) }, 'the key is longer than 512 bytes'],
    ['a value that is no text', { operation: 'set', key: 'k', value: {} as never, ttlMs: undefined }, 'the value is not a string'],
    ['a long value', { operation: 'set', key: 'k', value: 'x'.repeat(65_537), ttlMs: undefined }, 'the value is longer than 65536 bytes'],
    ['a time that is not positive', { operation: 'set', key: 'k', value: 'x', ttlMs: 0 }, 'the time to live is 0'],
    ['an increment by a fraction', { operation: 'increment', key: 'k', by: 0.5, ttlMs: undefined }, 'increment by 0.5'],
    ['an increment of a text', { operation: 'increment', key: 'text', by: 1, ttlMs: undefined }, 'not an integer'],
    ['an increment beyond the range of integers', { operation: 'increment', key: 'big', by: 1, ttlMs: undefined }, 'beyond the range'],
  ])('rejects %s', (_, call, message) => {
    const { store, set } = start()
    set('text', 'x')
    set('big', String(Number.MAX_SAFE_INTEGER))
    expect(() => store.run('a', call)).toThrow(message)
  })
})
