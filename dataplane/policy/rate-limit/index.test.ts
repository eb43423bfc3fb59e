import { beforeEach, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { LocalRateLimit } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { Bucket } from './bucket.ts'
import { headersOf } from './headers.ts'

let nowMs = 0
let state: PolicyState
beforeEach(() => {
  nowMs = 5_000
  state = createPolicyState({ monotonicMs: () => nowMs })
})

type Upstream = Parameters<typeof mountPolicies>[1]

async function send(local: LocalRateLimit[], upstream: Upstream = {}, init: RequestInit = {}) {
  const { response, isForwarded } = await mountPolicies(compilePolicies({ traffic: { rateLimit: { local } }, state }), upstream).request('http://host/', init)
  const numbers = ['limit', 'remaining', 'reset'].map((name) => response.headers.get(`x-ratelimit-${name}`))
  return { status: response.status, text: await response.text(), isForwarded, numbers, response }
}

const sendMany = async (count: number, local: LocalRateLimit[]) => {
  const results = []
  for (let index = 0; index < count; index++) results.push(await send(local))
  return results
}

describe('a limit of requests', () => {
  test('admits the rate plus burst and sets x-ratelimit headers on every response', async () => {
    const results = await sendMany(3, [{ requests: 1, unit: 'Hours', burst: 1 }])
    expect(results.map(({ status, numbers }) => [status, ...numbers])).toEqual([
      [200, '2', '1', '3600'],
      [200, '2', '0', '3600'],
      [429, '2', '0', '3600'],
    ])
    expect(results[2]).toMatchObject({ text: 'rate limit exceeded', isForwarded: false })
  })

  test('is refilled once per unit, up to the burst', async () => {
    const local: LocalRateLimit[] = [{ requests: 2, unit: 'Seconds', burst: 1 }]
    expect((await sendMany(4, local)).map(({ status }) => status)).toEqual([200, 200, 200, 429])
    nowMs += 999
    expect(await send(local)).toMatchObject({ status: 429, numbers: ['3', '0', '1'] })
    nowMs += 1
    expect((await sendMany(3, local)).map(({ status }) => status)).toEqual([200, 200, 429])
    nowMs += 60_500
    expect(await send(local)).toMatchObject({ status: 200, numbers: ['3', '2', '1'] })
  })

  test('sets x-ratelimit headers on errors too', async () => {
    const { status, numbers } = await send([{ requests: 5, unit: 'Minutes' }], { error: new ProxyError('NO_HEALTHY_BACKENDS') })
    expect([status, ...numbers]).toEqual([503, '5', '4', '60'])
  })

  test('keeps x-ratelimit headers of the upstream', async () => {
    const { numbers } = await send([{ requests: 5, unit: 'Minutes' }], { headers: { 'x-ratelimit-limit': '10, 10;w=60' } })
    expect(numbers).toEqual(['10, 10;w=60', null, null])
  })

  test('rejects a gRPC call with a grpc-status', async () => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Hours' }]
    await send(local)
    const { response, numbers } = await send(local, {}, { headers: { 'content-type': 'application/grpc' } })
    expect([response.status, response.headers.get('grpc-status'), ...numbers]).toEqual([200, '8', '1', '0', '3600'])
  })
})

describe('several limits', () => {
  test('must all admit a request, and the headers are those of the one with the least left', async () => {
    const results = await sendMany(3, [
      { requests: 10, unit: 'Hours' },
      { requests: 2, unit: 'Seconds' },
    ])
    expect(results.map(({ status, numbers }) => [status, ...numbers])).toEqual([
      [200, '2', '1', '1'],
      [200, '2', '0', '1'],
      [429, '2', '0', '1'],
    ])
  })

  test('are charged up to the one that rejects', async () => {
    const local: LocalRateLimit[] = [
      { requests: 3, unit: 'Hours' },
      { requests: 1, unit: 'Seconds' },
    ]
    expect((await sendMany(2, local)).map(({ status }) => status)).toEqual([200, 429])
    nowMs += 1000
    expect(await send(local)).toMatchObject({ status: 200, numbers: ['3', '0', '3599'] })
    nowMs += 1000
    expect(await send(local)).toMatchObject({ status: 429, numbers: ['3', '0', '3598'] })
  })

  test('of tokens do not apply to requests', async () => {
    const results = await sendMany(2, [
      { tokens: 1, unit: 'Hours' },
      { requests: 2, unit: 'Hours' },
    ])
    expect(results.map(({ status, numbers }) => [status, numbers[0]])).toEqual([
      [200, '2'],
      [200, '2'],
    ])
  })
})

describe('budgets', () => {
  test('are shared by all routes of a target and new with a new version of the policy', async () => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Hours' }]
    expect([(await send(local)).status, (await send(local)).status]).toEqual([200, 429])
    expect((await send([...local])).status).toBe(200)
  })

  test('never admit more than was refilled, whatever the clock does', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.nat(20), fc.array(fc.nat(700), { maxLength: 300 }), (amount, burst, steps) => {
        const bucket = new Bucket({ amount, burst, unitMs: 1000, nowMs: 7 })
        let time = 7
        let admitted = 0
        for (const step of steps) {
          time += step
          const { isAdmitted, remaining, resetMs } = bucket.take(time)
          if (isAdmitted) admitted++
          const filled = amount + burst + Math.floor((time - 7) / 1000) * amount
          expect(admitted).toBeLessThanOrEqual(filled)
          expect(remaining).toBeLessThanOrEqual(amount + burst)
          expect(resetMs).toBe(1000 - ((time - 7) % 1000))
        }
      }),
    )
  })

  test('do not drift at 100,000 requests per second', () => {
    const bucket = new Bucket({ amount: 1000, burst: 0, unitMs: 1000, nowMs: 0 })
    let admitted = 0
    for (let event = 0; event < 500_000; event++) if (bucket.take(event / 100).isAdmitted) admitted++
    expect(admitted).toBe(5000)
  })
})

test.each([
  [0, '1'],
  [1, '1'],
  [1000, '1'],
  [59_001, '60'],
])('a rejection with a reset in %i ms says when to retry', (resetMs, seconds) => {
  expect(headersOf({ isAdmitted: false, limit: 2, remaining: 0, resetMs })['retry-after']).toBe(seconds)
})
