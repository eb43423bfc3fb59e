import { describe, expect, test } from '@jest/globals'
import type { RequestRecord } from '#api/management/requests.ts'
import { columns, readChoice } from './columns.ts'
import { addBatch, emptyTail, filterLike, phasesOf } from './records.ts'
import { toDraft } from './repeat.ts'

const record: RequestRecord = {
  id: '1',
  timeMs: 0,
  method: 'POST',
  host: 'shop.example',
  path: '/cart?id=1',
  version: 'HTTP/1.1',
  status: 503,
  protocol: 'http',
  durationMs: 10,
  gateway: 'default/web',
  listener: 'http',
  route: 'default/shop',
  rule: 'cart',
  backend: null,
  endpoint: null,
  client: '127.0.0.1:1',
  reason: 'Upstream',
  error: null,
  retries: 0,
  requestBytes: 2,
  responseBytes: 0,
  timings: { upstreamMs: 1, responseHeadMs: 7, answeredMs: 8 },
  requestHeaders: [
    ['authorization', '<redacted>'],
    ['content-length', '2'],
    ['x-a', '"><script>'],
  ],
  responseHeaders: [],
  fields: {},
  pod: null,
}

describe('the live tail', () => {
  test('keeps the newest records first, and no more than 500', () => {
    const batch = (first: number, count: number) => ({
      records: Array.from({ length: count }, (_, index) => ({ ...record, id: String(first + index) })),
      seen: count + 1,
      skipped: 1,
    })
    const tail = [batch(0, 400), batch(400, 0), batch(400, 200)].reduce(addBatch, emptyTail)
    expect([tail.records.length, tail.records[0]?.id, tail.records.at(-1)?.id, tail.seen, tail.skipped]).toEqual([500, '599', '100', 603, 3])
  })

  test('filters for requests like one', () => {
    expect(filterLike(record)).toBe('request.method == "POST" && request.host == "shop.example" && request.path == "/cart" && response.code == 503')
  })

  test('reads a stored choice of columns in their order, without unknown ones', () => {
    expect(readChoice('["path","gone","time"]')).toEqual(['time', 'path'])
    for (const text of [null, '', '{}', '[]', '["gone"]', '[']) expect(readChoice(text)).toBeUndefined()
  })

  test('shows every column for a request without response, route and timings', () => {
    const bare = { ...record, route: null, gateway: null, listener: null, status: 0, timings: { upstreamMs: null, responseHeadMs: null, answeredMs: null } }
    for (const { text } of columns) expect(typeof text(bare)).toBe('string')
  })
})

describe('the phases of a request', () => {
  test('cover its duration', () => {
    expect(phasesOf(record).map(({ startMs, durationMs }) => [startMs, durationMs])).toEqual([
      [0, 1],
      [1, 6],
      [7, 1],
      [8, 2],
    ])
  })

  test('are one for a response of the gateway itself', () => {
    expect(phasesOf({ durationMs: 3, timings: { upstreamMs: null, responseHeadMs: null, answeredMs: 3 } })).toEqual([
      { label: 'Gateway', startMs: 0, durationMs: 3, tone: 'plain' },
    ])
  })

  test('end with the request if the upstream did not respond', () => {
    const phases = phasesOf({ durationMs: 9, timings: { upstreamMs: 2, responseHeadMs: null, answeredMs: null } })
    expect(phases.map(({ durationMs }) => durationMs)).toEqual([2, 7, 0, 0])
  })
})

test('a repeated request has its headers, without those of the connection and those that were redacted', () => {
  expect(toDraft(record)).toEqual({
    method: 'POST',
    url: 'shop.example/cart?id=1',
    listener: 'default/web.http',
    headers: 'x-a: "><script>',
    body: '',
    note: 'Repeats a recorded request. Not recorded: the value of authorization, the body.',
  })
})
