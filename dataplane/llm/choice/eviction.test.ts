import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../http/headers.ts'
import { evictionOf, retryAfterMs } from './eviction.ts'

const NOW = Date.UTC(2026, 0, 1)

test.each<[string, Record<string, string>, number | undefined]>([
  ['seconds', { 'retry-after': '7' }, 7000],
  ['a date', { 'retry-after': new Date(NOW + 5000).toUTCString() }, 5000],
  ['a date that is over', { 'retry-after': new Date(NOW - 5000).toUTCString() }, undefined],
  ['milliseconds win', { 'retry-after': '7', 'retry-after-ms': '250' }, 250],
  ['a reset in seconds', { 'x-ratelimit-reset': '12' }, 12_000],
  ['a reset as a time', { 'x-ratelimit-reset': String(NOW / 1000 + 30) }, 30_000],
  ['the nearer of two resets', { 'x-ratelimit-reset-requests': '1m30s', 'x-ratelimit-reset-tokens': '500ms' }, 500],
  ['plain seconds of a reset', { 'x-ratelimit-reset-tokens': '2.5' }, 2500],
  ['nothing', {}, undefined],
  ['nonsense', { 'retry-after': 'soon', 'x-ratelimit-reset-tokens': 'x' }, undefined],
  ['negative numbers', { 'retry-after': '-3' }, undefined],
])('when to come back: %s', (_, headers, expected) => expect(retryAfterMs(HeaderList.from(Object.entries(headers)), NOW)).toBe(expected))

describe('who is evicted', () => {
  const configured = { durationMs: 3000, restoreHealth: undefined, consecutiveFailures: undefined, healthThreshold: undefined }
  const limited = { status: 429, headers: new HeaderList(['retry-after', '7']) }

  test('nobody without a policy', () => expect(evictionOf(undefined, limited, 100, NOW)).toBeUndefined())
  test('as the policy says, where it does', () => expect(evictionOf({ condition: undefined, eviction: configured }, limited, 100, NOW)).toBe(configured))
  test('else as the upstream says', () => expect(evictionOf({ condition: undefined, eviction: undefined }, limited, 100, NOW)?.durationMs).toBe(7000))
  test('else for the back-off of retries', () => expect(evictionOf({ condition: undefined, eviction: undefined }, undefined, 100, NOW)?.durationMs).toBe(100))
  test('else nobody', () => expect(evictionOf({ condition: undefined, eviction: undefined }, undefined, undefined, NOW)).toBeUndefined())
  test('only a 429 says when to come back', () =>
    expect(evictionOf({ condition: undefined, eviction: undefined }, { ...limited, status: 503 }, undefined, NOW)).toBeUndefined())
})
