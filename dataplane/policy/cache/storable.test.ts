import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../http/headers.ts'
import { directivesOf } from './directives.ts'
import { storableOf } from './storable.ts'

const nowMs = Date.parse('Tue, 01 Jul 2025 00:00:00 GMT')
const at = (seconds: number): string => new Date(nowMs + seconds * 1000).toUTCString()

function secondsLeft(lines: readonly [string, string][], { status = 200, isPersonal = false, delayMs = 0 } = {}): number | undefined {
  const storable = storableOf({ status, headers: HeaderList.from(lines), upgraded: undefined }, isPersonal, {
    requestedAtMs: nowMs - delayMs,
    receivedAtMs: nowMs,
  })
  return storable && (storable.freshness.lifetimeMs - storable.freshness.initialAgeMs) / 1000
}
const control = (value: string): [string, string] => ['cache-control', value]

describe('the time for which a response may be stored', () => {
  test.each<[string, [string, string][], number | undefined]>([
    ['no header', [], undefined],
    ['an etag only', [['etag', '"1"']], undefined],
    ['max-age', [control('max-age=60')], 60],
    ['max-age in quotes', [control('max-age="60"')], 60],
    ['max-age in another case, after others', [control('public, Max-Age=60')], 60],
    ['max-age of 10^30 seconds', [control(`max-age=1${'0'.repeat(30)}`)], 2 ** 31],
    ['s-maxage before max-age', [control('max-age=1, s-maxage=60')], 60],
    ['s-maxage=0 before max-age', [control('s-maxage=0, max-age=60')], undefined],
    ['max-age before expires', [control('max-age=60'), ['expires', at(5)]], 60],
    ['expires', [['expires', at(30)]], 30],
    [
      'expires, from date',
      [
        ['expires', at(30)],
        ['date', at(-10)],
      ],
      30,
    ],
    ['expires: 0', [['expires', '0']], undefined],
    [
      'two expires',
      [
        ['expires', at(30)],
        ['expires', at(60)],
      ],
      undefined,
    ],
    ['max-age twice, differently', [control('max-age=60'), control('max-age=50')], undefined],
    ['max-age twice, alike', [control('max-age=60'), control('max-age=60')], 60],
    ['max-age=-1', [control('max-age=-1')], undefined],
    ['max-age=1.5', [control('max-age=1.5')], undefined],
    ['an age', [control('max-age=60'), ['age', '50']], 10],
    ['an age over the lifetime', [control('max-age=60'), ['age', '60']], undefined],
    ['an age that is no number', [control('max-age=60'), ['age', 'x']], undefined],
    ['an old date', [control('max-age=60'), ['date', at(-20)]], 40],
    ['a date in the future', [control('max-age=60'), ['date', at(20)]], 60],
    ['an invalid date', [control('max-age=60'), ['date', 'now']], 60],
  ])('with %s', (_, lines, expected) => expect(secondsLeft(lines)).toBe(expected))

  test('is shorter by the time that the response took', () => {
    expect(secondsLeft([control('max-age=60'), ['age', '1']], { delayMs: 9000 })).toBe(50)
  })

  test('is 0 with a validator and no-cache or a response that is stale already', () => {
    for (const value of ['no-cache', 'no-cache="x-a"', 'max-age=0']) expect(secondsLeft([control(value), ['etag', '"1"']])).toBe(0)
  })
})

describe('a response is not stored', () => {
  test.each<[string, [string, string][], number]>([
    ['with no-store', [control('no-store')], 200],
    ['with private', [control('private')], 200],
    ['with private for a field', [control('private="x-a"')], 200],
    ['with a cookie', [['set-cookie', 'a=b']], 200],
    ['with vary: *', [['vary', 'accept, *']], 200],
    ['with more names in vary than a key covers', [['vary', Array.from({ length: 17 }, (__, index) => `x-${index}`).join()]], 200],
    ['with a cache-control that cannot be read', [control('public; x')], 200],
    ['with a quote that does not end', [control('a="')], 200],
    ['with more directives than are read', [control(Array.from({ length: 40 }, (__, index) => `x${index}`).join())], 200],
    ['in part', [['content-range', 'bytes 0-1/2']], 206],
    ['with status 206', [], 206],
    ['with status 302', [], 302],
    ['with status 304', [], 304],
    ['with status 500', [], 500],
  ])('%s', (_, lines, status) => expect(secondsLeft([control('max-age=60'), ...lines], { status })).toBeUndefined())

  test.each([200, 203, 204, 300, 301, 308, 404, 410])('unless its status is %i, for example', (status) => {
    expect(secondsLeft([control('max-age=60')], { status })).toBe(60)
  })
})

test.each([
  ['quotes that do not end', 'a="\\'.repeat(10_000)],
  ['a long name without an end', `${'a'.repeat(60_000)} x`],
])('a cache-control with %s is not read', (_, text) => {
  expect(directivesOf(new HeaderList(['cache-control', text]))).toBeUndefined()
})
