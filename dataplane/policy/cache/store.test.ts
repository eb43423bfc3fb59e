import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../http/headers.ts'
import { HttpCache, type CachedResponse } from './store.ts'

const freshness = { lifetimeMs: 1000, initialAgeMs: 0 }
const response = (length: number): CachedResponse => ({ status: 200, headers: new HeaderList(), body: Buffer.alloc(length), freshness, storedAtMs: 0 })
const plain = { freshness, vary: [] }
const none = new HeaderList()
const key = (uri: string) => ({ uri, group: 'g' })

describe('the store of the cache', () => {
  test('drops the least recently used response when its memory is full', () => {
    const cache = new HttpCache(7000)
    for (const uri of ['a', 'b', 'c']) cache.store(key(uri), none, plain, response(1000))
    cache.find(key('a'), none)
    cache.store(key('d'), none, plain, response(1000))
    expect(['a', 'b', 'c', 'd'].map((uri) => typeof cache.find(key(uri), none))).toEqual(['object', 'string', 'object', 'object'])
    expect(cache.bytes).toBeLessThanOrEqual(7000)
  })

  test('stores no response that is larger than its memory', () => {
    const cache = new HttpCache(5000)
    cache.store(key('a'), none, plain, response(6000))
    expect([cache.find(key('a'), none), cache.bytes]).toEqual(['uri-miss', 0])
  })

  test('releases the memory of a URI that was invalidated, in all groups and variants', () => {
    const cache = new HttpCache()
    const vary = { freshness, vary: ['x-a'] }
    for (const group of ['g', 'h']) for (const value of ['1', '2']) cache.store({ uri: 'a', group }, new HeaderList(['x-a', value]), vary, response(10))
    expect(cache.bytes).toBeGreaterThan(4000)
    cache.invalidate('a')
    expect([cache.bytes, cache.find(key('a'), none)]).toEqual([0, 'uri-miss'])
  })

  test('drops the variants of a response whose vary changed', () => {
    const cache = new HttpCache()
    const request = new HeaderList(['x-a', '1', 'x-b', '1'])
    cache.store(key('a'), request, { freshness, vary: ['x-a'] }, response(10))
    const { bytes } = cache
    cache.store(key('a'), request, { freshness, vary: ['x-b'] }, response(10))
    expect(cache.bytes).toBe(bytes)
    expect(typeof cache.find(key('a'), request)).toBe('object')
    expect(cache.find(key('a'), new HeaderList(['x-a', '1']))).toBe('vary-miss')
  })

  test('tells a header that is missing from one that is empty', () => {
    const cache = new HttpCache()
    const vary = { freshness, vary: ['x-a'] }
    cache.store(key('a'), new HeaderList(['x-a', '']), vary, response(10))
    expect(cache.find(key('a'), none)).toBe('vary-miss')
    expect(typeof cache.find(key('a'), new HeaderList(['x-a', '']))).toBe('object')
  })
})
