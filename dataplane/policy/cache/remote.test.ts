import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../http/headers.ts'
import { FakeValues } from '../../testing/values.ts'
import { RemoteResponses } from './remote.ts'
import type { CachedResponse, CacheKey } from './store.ts'

const freshness = { lifetimeMs: 60_000, initialAgeMs: 0 }
const plain = { freshness, vary: [] }
const none = new HeaderList()
const keyOf = (): CacheKey => ({ uri: 'a', group: 'g' })

function start() {
  const values = new FakeValues()
  const clock = { nowMs: 1_000_000 }
  // The monotonic clock of each process starts at another time.
  const open = (offset: number) => new RemoteResponses(values, { monotonicMs: () => clock.nowMs - offset, epochMs: () => clock.nowMs })
  const [one, other] = [open(500), open(900_000)]
  const response = (headers: string[] = ['x-a', '1']): CachedResponse => {
    return { status: 200, headers: new HeaderList(headers), body: Buffer.from('hello'), freshness, storedAtMs: clock.nowMs - 500 }
  }
  const store = async (headers?: string[]) => {
    const key = keyOf()
    await one.find(key, none)
    one.store(key, none, plain, response(headers))
  }
  return { values, clock, one, other, response, store }
}

describe('responses in a store of several processes', () => {
  test('are found by another process with their age', async () => {
    const { clock, other, store } = start()
    await store()
    clock.nowMs += 7000
    const found = await other.find(keyOf(), none)
    expect(found).toMatchObject({ status: 200, body: Buffer.from('hello'), freshness })
    expect(typeof found === 'object' && clock.nowMs - 900_000 - found.storedAtMs).toBe(7000)
  })

  test('are missing after an invalidation, also one between the request and the response', async () => {
    const { one, other, store, response } = start()
    await store()
    other.invalidate('a')
    expect(await one.find(keyOf(), none)).toBe('uri-miss')
    const key = keyOf()
    await one.find(key, none)
    other.invalidate('a')
    one.store(key, none, plain, response())
    expect(await other.find(keyOf(), none)).toBe('uri-miss')
  })

  test('are missing if it is not known whether they were invalidated, and not stored then', async () => {
    const { values, one, other, store, response } = start()
    await store()
    values.fails = (key) => key.includes(':mark:')
    const key = keyOf()
    expect(await other.find(key, none)).toBe('uri-miss')
    values.values.clear()
    one.store(key, none, plain, response())
    expect(values.values.size).toBe(0)
  })

  test('are dropped by the request that finds them outdated', async () => {
    const { one, other, store } = start()
    await store()
    await other.remove(keyOf(), none)
    expect(await one.find(keyOf(), none)).toBe('uri-miss')
  })

  test.each([
    ['nothing', () => Buffer.alloc(0)],
    ['a length beyond the end', () => Buffer.from([255, 255, 255, 255])],
    ['no JSON', () => headOf('{')],
    ['null', () => headOf('null')],
    ['a header with a line break', (head: object) => headOf(JSON.stringify({ ...head, headers: ['x-a', 'b\r\nset-cookie: c'] }))],
    ['a header name that is none', (head: object) => headOf(JSON.stringify({ ...head, headers: ['x a', 'b'] }))],
    ['half a header', (head: object) => headOf(JSON.stringify({ ...head, headers: ['x-a'] }))],
    ['a status that is none', (head: object) => headOf(JSON.stringify({ ...head, status: 42 }))],
    ['no freshness', (head: object) => headOf(JSON.stringify({ ...head, freshness: {} }))],
    ['the mark of another time', (head: object) => headOf(JSON.stringify({ ...head, mark: 'x' }))],
  ])('are missing if the store has %s instead', async (_, write) => {
    const { values, one, store } = start()
    await store()
    const [name = ''] = [...values.values.keys()].filter((key) => key.includes(':response:'))
    const before = values.values.get(name) ?? Buffer.alloc(4)
    const head = JSON.parse(before.toString('utf8', 4, 4 + before.readUInt32LE(0))) as object
    expect(await one.find(keyOf(), none)).toMatchObject({ status: 200 })
    values.values.set(name, write(head))
    expect(await one.find(keyOf(), none)).toBe('uri-miss')
  })

  test.each(['{', '"a"', '[1]', '{}'])('are missing if the store has %s as names of vary', async (text) => {
    const { values, one, store } = start()
    await store()
    for (const name of values.values.keys()) if (name.includes(':vary:')) values.values.set(name, Buffer.from(text))
    expect(await one.find(keyOf(), none)).toBe('uri-miss')
  })
})

function headOf(text: string): Buffer {
  const head = Buffer.alloc(4 + Buffer.byteLength(text))
  head.writeUInt32LE(Buffer.byteLength(text))
  head.write(text, 4)
  return head
}
