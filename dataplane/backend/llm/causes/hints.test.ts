import { expect, test } from '@jest/globals'
import { HeaderList } from '../../../http/headers.ts'
import { causeOf } from './index.ts'
import { MAX_HINT_MS, readHints } from './hints.ts'

const NOW = Date.UTC(2026, 0, 1)
const date = (ms: number): string => new Date(NOW + ms).toUTCString()

test.each<[string, Record<string, string>, number | undefined]>([
  ['retry-after in seconds', { 'retry-after': '7' }, 7000],
  ['retry-after with a fraction', { 'retry-after': '0.25' }, 250],
  ['retry-after as a date', { 'retry-after': date(5000) }, 5000],
  ['a retry-after date in the past', { 'retry-after': date(-5000) }, undefined],
  ['retry-after-ms, which wins', { 'retry-after': '7', 'retry-after-ms': '250' }, 250],
  ['retry-after before a reset', { 'retry-after': '7', 'x-ratelimit-reset-tokens': '1s' }, 7000],
  ['a reset in seconds', { 'x-ratelimit-reset': '12' }, 12_000],
  ['a reset as a time', { 'x-ratelimit-reset': String(NOW / 1000 + 30) }, 30_000],
  ['a reset as a time in milliseconds', { 'x-ratelimit-reset': String(NOW + 30_000) }, 30_000],
  ['a reset as a date of RFC 3339', { 'anthropic-ratelimit-tokens-reset': new Date(NOW + 9000).toISOString() }, 9000],
  ['the earlier of two resets', { 'x-ratelimit-reset-requests': '1m30s', 'x-ratelimit-reset-tokens': '500ms' }, 500],
  [
    'the reset of the limit that is used up',
    { 'x-ratelimit-reset-requests': '6m0s', 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-tokens': '1s', 'x-ratelimit-remaining-tokens': '99' },
    360_000,
  ],
  ['a reset in seconds without unit', { 'x-ratelimit-reset-tokens': '2.5' }, 2500],
  ['a delay that is not believed', { 'retry-after': '999999999' }, MAX_HINT_MS],
  ['no headers', {}, undefined],
  ['invalid values', { 'retry-after': 'soon', 'x-ratelimit-reset-tokens': 'x' }, undefined],
  ['a negative number', { 'retry-after': '-3' }, undefined],
  ['a number that is none in HTTP', { 'retry-after': '0x10' }, undefined],
])('the delay is read from %s', (_, headers, expected) => expect(readHints(HeaderList.from(Object.entries(headers)), NOW).retryAfterMs).toBe(expected))

test.each([
  ['true', true],
  ['false', false],
  ['perhaps', undefined],
])('x-should-retry: %s is read', (value, expected) => expect(readHints(HeaderList.from([['x-should-retry', value]]), NOW).shouldRetry).toBe(expected))

test.each([
  ['34s', 34_000],
  ['34.074824224s', 34_075],
  ['soon', undefined],
])('RetryInfo of a body of Google is read: %s', (retryDelay, expected) => {
  const body = {
    error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'm', details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }] },
  }
  expect(causeOf('gemini', 429, HeaderList.from([]), Buffer.from(JSON.stringify(body)), NOW).retryAfterMs).toBe(expected)
})
