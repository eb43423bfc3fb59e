import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { TailRecorder } from './tail.ts'

function start(random = () => 0.5) {
  const clock = { ms: 1000 }
  const telemetry: Pick<Telemetry, 'observe'> = { observe: undefined }
  const recorder = new TailRecorder(telemetry, () => clock.ms, random)
  const finish = (target: string, status = 200, headers: Readonly<Record<string, string>> = {}): void => {
    const exchange = testExchange({ target }, headers)
    exchange.response = { status, headers: new HeaderList(['set-cookie', 'id=1', 'x-note', 'Bearer abcdefghijkl']) } as NonNullable<typeof exchange.response>
    exchange.finishedAtMs = exchange.startedAtMs + 3
    telemetry.observe?.(exchange)
  }
  const read = (tail = 't', filter?: string, limit = 10) => recorder.read({ tail, filter, limit })
  return { clock, telemetry, recorder, finish, read }
}

describe('a tail of requests', () => {
  test('returns each finished request once', () => {
    const { finish, read } = start()
    expect(read()).toEqual({ records: [], seen: 0, skipped: 0 })
    finish('/a?x=1', 503)
    const { records, seen } = read()
    expect(seen).toBe(1)
    expect(records).toMatchObject([
      { method: 'GET', path: '/a?x=1', status: 503, durationMs: 3, protocol: 'http', reason: 'Upstream', client: '127.0.0.1:40000' },
    ])
    expect(read().records).toEqual([])
  })

  test('redacts headers with credentials and credentials in other values', () => {
    const { finish, read } = start()
    read()
    finish('/', 200, { authorization: 'Bearer secret-of-bob', cookie: 'a=b', 'x-user': 'bob' })
    const [record] = read().records
    expect(record?.requestHeaders).toEqual([
      ['authorization', '<redacted>'],
      ['cookie', '<redacted>'],
      ['x-user', 'bob'],
    ])
    expect(record?.responseHeaders).toEqual([
      ['set-cookie', '<redacted>'],
      ['x-note', 'Bearer <redacted>'],
    ])
  })

  test('returns the requests for which its filter is true', () => {
    const { finish, read } = start()
    read('t', 'response.code >= 500')
    finish('/a', 200)
    finish('/b', 502)
    expect(read('t', 'response.code >= 500')).toMatchObject({ records: [{ path: '/b' }], seen: 2, skipped: 0 })
  })

  test('keeps at most as many requests as the reader wants and counts the others', () => {
    const { finish, read } = start()
    read()
    for (let i = 0; i < 50; i++) finish(`/${i}`)
    const { records, seen, skipped } = read()
    expect([records.length, seen, skipped]).toEqual([10, 50, 40])
  })

  test('makes few records that it does not return, and chooses evenly, under a steady load', () => {
    let state = 1
    const { finish, read } = start(() => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647)
    read()
    const chosen: number[] = []
    let made = 0
    for (let batch = 0; batch < 40; batch++) {
      for (let i = 0; i < 1000; i++) finish(`/${i}`)
      const { records, seen, skipped } = read()
      expect([seen, skipped]).toEqual([1000, 1000 - records.length])
      if (batch > 0) chosen.push(...records.map(({ path }) => Number(path.slice(1))))
      const last = Math.max(...records.map(({ id }) => Number(id.split('-').at(-1))))
      if (batch > 0) made = Math.max(made, last)
    }
    // Each of the 39 batches has 10 records of about 20 candidates, of which 17 are recorded; a reservoir of all requests would record 56.
    expect(chosen.length).toBeGreaterThan(39 * 9)
    expect(made / 40).toBeLessThan(25)
    expect(chosen.reduce((sum, path) => sum + path, 0) / chosen.length).toBeGreaterThan(400)
    expect(chosen.reduce((sum, path) => sum + path, 0) / chosen.length).toBeLessThan(600)
  })

  test('evaluates its filter for at most 2,000 requests between two reads', () => {
    const { finish, read } = start()
    read('t', 'request.path == "/x"')
    for (let i = 0; i < 2500; i++) finish('/y')
    expect(read('t', 'request.path == "/x"')).toEqual({ records: [], seen: 2500, skipped: 500 })
  })

  test('cuts long values', () => {
    const { finish, read } = start()
    read()
    finish(`/${'a'.repeat(10_000)}`)
    expect(read().records[0]?.path).toHaveLength(4097)
  })

  test('observes requests only while it is read', () => {
    const { clock, telemetry, recorder, read } = start()
    expect(telemetry.observe).toBeUndefined()
    read()
    expect(telemetry.observe).toBeDefined()
    clock.ms += 6000
    recorder.removeIdle()
    expect(telemetry.observe).toBeUndefined()
  })

  test('is rejected if 16 others are open', () => {
    const { clock, read } = start()
    for (let i = 0; i < 16; i++) read(`t${i}`)
    expect(() => read('one more')).toThrow('16 tails are open already')
    clock.ms += 6000
    expect(() => read('one more')).not.toThrow()
  })
})
