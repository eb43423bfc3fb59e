import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../../../http/headers.ts'
import { evictionOf, retryAfterMs } from './eviction.ts'

const NOW = Date.UTC(2026, 0, 1)

test.each<[string, Record<string, string>, number | undefined]>([
  ['retry-after in seconds', { 'retry-after': '7' }, 7000],
  ['retry-after as a date', { 'retry-after': new Date(NOW + 5000).toUTCString() }, 5000],
  ['a retry-after date in the past', { 'retry-after': new Date(NOW - 5000).toUTCString() }, undefined],
  ['retry-after-ms, which wins', { 'retry-after': '7', 'retry-after-ms': '250' }, 250],
  ['a reset in seconds', { 'x-ratelimit-reset': '12' }, 12_000],
  ['a reset as a time', { 'x-ratelimit-reset': String(NOW / 1000 + 30) }, 30_000],
  ['the earlier of two resets', { 'x-ratelimit-reset-requests': '1m30s', 'x-ratelimit-reset-tokens': '500ms' }, 500],
  ['a reset in seconds without unit', { 'x-ratelimit-reset-tokens': '2.5' }, 2500],
  ['no headers', {}, undefined],
  ['invalid values', { 'retry-after': 'soon', 'x-ratelimit-reset-tokens': 'x' }, undefined],
  ['a negative number', { 'retry-after': '-3' }, undefined],
])('the delay of a 429 is read from %s', (_, headers, expected) => expect(retryAfterMs(HeaderList.from(Object.entries(headers)), NOW)).toBe(expected))

describe('an unhealthy response', () => {
  const configured = { durationMs: 3000, restoreHealth: undefined, consecutiveFailures: undefined, healthThreshold: undefined }
  const limited = { status: 429, headers: new HeaderList(['retry-after', '7']) }

  test('evicts nothing without a policy', () => expect(evictionOf(undefined, limited, 100, NOW)).toBeUndefined())
  test('evicts as configured, if eviction is configured', () =>
    expect(evictionOf({ condition: undefined, eviction: configured }, limited, 100, NOW)).toBe(configured))
  test('evicts for the delay of a 429 otherwise', () =>
    expect(evictionOf({ condition: undefined, eviction: undefined }, limited, 100, NOW)?.durationMs).toBe(7000))
  test('evicts for the retry backoff without a delay', () =>
    expect(evictionOf({ condition: undefined, eviction: undefined }, undefined, 100, NOW)?.durationMs).toBe(100))
  test('evicts nothing without delay and backoff', () =>
    expect(evictionOf({ condition: undefined, eviction: undefined }, undefined, undefined, NOW)).toBeUndefined())
  test('evicts for its Retry-After only with status 429', () =>
    expect(evictionOf({ condition: undefined, eviction: undefined }, { ...limited, status: 503 }, undefined, NOW)).toBeUndefined())
})
