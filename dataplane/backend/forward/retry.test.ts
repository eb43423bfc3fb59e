import { expect, test } from '@jest/globals'
import { ProxyError } from '../../request/exchange/error.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { attemptsOf } from '../../observe/telemetry/attempts.ts'
import { testExchange } from '../../testing/exchange.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import { setRetryHeader, withRetries } from './retry.ts'

const HOUR_MS = 3_600_000
const response = (status: number): ResponseHead => ({ status, headers: new HeaderList(), body: undefined, upgraded: undefined })
const planOf = (backoffMs: number) => ({ codes: new Set([503]), attempts: 2, backoffMs })

test('a client that disconnects ends the backoff, and no further attempt is made', async () => {
  const exchange = testExchange()
  const numbers: number[] = []
  const outcome = withRetries(exchange, planOf(HOUR_MS), async (number) => {
    numbers.push(number)
    return response(503)
  })
  await new Promise((resolve) => setImmediate(resolve))
  exchange.abort(new UpstreamError('cancelled', 'the client disconnected'))
  expect((await outcome).status).toBe(503)
  expect(numbers).toEqual([0])
})

test('the backoff ends at the deadline of the exchange with REQUEST_TIMEOUT', async () => {
  const exchange = testExchange()
  exchange.deadlineAtMs = performance.now() + 20
  const outcome = withRetries(exchange, planOf(HOUR_MS), async () => response(503))
  await expect(outcome).rejects.toThrow(expect.objectContaining({ code: 'REQUEST_TIMEOUT' }))
})

test('the last outcome is returned or thrown unchanged', async () => {
  const error = new UpstreamError('connect', 'refused')
  await expect(withRetries(testExchange(), planOf(0), () => Promise.reject(error))).rejects.toBe(error)
  await expect(withRetries(testExchange(), undefined, () => Promise.reject(error))).rejects.toBe(error)
  const last = response(503)
  expect(await withRetries(testExchange(), planOf(0), async (_, isLast) => (isLast ? last : response(503)))).toBe(last)
})

test.each<[string, number, Error]>([
  ['a connection failure', 3, new UpstreamError('connect', 'refused')],
  ['a connection reset', 3, new UpstreamError('reset', 'closed')],
  ['a connect timeout', 3, new UpstreamError('connect-timeout', 'late')],
  ['a DNS failure', 3, new UpstreamError('dns', 'ENOTFOUND')],
  ['an upstream timeout', 3, new ProxyError('UPSTREAM_TIMEOUT')],
  ['a protocol error', 1, new UpstreamError('protocol', 'two lengths')],
  ['an upstream without endpoints', 1, new ProxyError('NO_HEALTHY_BACKENDS')],
  ['an internal error', 1, new TypeError('a defect')],
])('%s leads to a total of %d attempts', async (_, attempts, error) => {
  let count = 0
  const outcome = withRetries(testExchange(), planOf(0), () => (count++, Promise.reject(error)))
  await expect(outcome).rejects.toBe(error)
  expect(count).toBe(attempts)
})

test('a caller can forbid a retry by the outcome', async () => {
  let count = 0
  const canRetry = (outcome: ResponseHead | Error): boolean => outcome instanceof Error
  expect((await withRetries(testExchange(), planOf(0), async () => (count++, response(503)), { canRetry })).status).toBe(503)
  expect(count).toBe(1)
})

test('attempts are recorded unless the caller records its calls itself', async () => {
  const [recorded, own] = [testExchange(), testExchange()]
  await withRetries(recorded, planOf(0), async () => response(503))
  await withRetries(own, planOf(0), async () => response(503), { recordsAttempts: false })
  expect([attemptsOf(recorded).length, attemptsOf(own).length]).toEqual([3, 0])
  expect([recorded.retryAttempt, own.retryAttempt]).toEqual([2, 2])
})

test('x-retry-attempt is set on attempts after the first', () => {
  const headers = new HeaderList()
  setRetryHeader(headers, 0)
  expect(headers.get('x-retry-attempt')).toBeUndefined()
  setRetryHeader(headers, 2)
  expect(headers.get('x-retry-attempt')).toBe('2')
})
