import { beforeEach, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { LocalRateLimit } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { Bucket } from './bucket.ts'
import { TokenBudgets } from '../../request/exchange/token-budgets.ts'

let nowMs = 0
let state: PolicyState
beforeEach(() => {
  nowMs = 5_000
  state = createPolicyState({ monotonicMs: () => nowMs })
})

/** Response of an LLM provider: its token usage, or rate limit headers of its own. */
interface Answer {
  readonly estimate?: number
  readonly tokens?: number
  readonly headers?: Record<string, string>
  readonly attempts?: number
}

/** Sends a request through the policies to an LLM backend or to another one. */
async function send(local: LocalRateLimit[], answer: Answer | 'no LLM') {
  const llm = async (exchange: Exchange): Promise<void> => {
    const { estimate, tokens, headers = {}, attempts = 1 } = answer === 'no LLM' ? {} : answer
    if (answer !== 'no LLM') for (let attempt = 0; attempt < attempts; attempt++) await exchange.tokenBudgets?.check(estimate)
    exchange.response = { status: 200, headers: HeaderList.from(Object.entries(headers)), body: undefined, upgraded: undefined }
    if (tokens !== undefined) exchange.tokenBudgets?.settle(tokens)
  }
  const exchange = testExchange()
  await compose(compilePolicies({ traffic: { rateLimit: { local } }, state }), llm)(exchange)
  const names = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}`)
  return [exchange.response?.status, ...names.map((name) => exchange.response?.headers.get(name))]
}

describe('a limit of tokens', () => {
  const local: LocalRateLimit[] = [{ tokens: 1000, unit: 'Minutes' }]

  test('admits the response that exceeds it, rejects the next request, and drops the excess at the refill (row 48)', async () => {
    expect(await send(local, { tokens: 1200 })).toEqual([200, '1000', '1000', '60'])
    expect(await send(local, { tokens: 1 })).toEqual([429, '1000', '0', '60'])
    nowMs += 59_999
    expect(await send(local, { tokens: 1 })).toEqual([429, '1000', '0', '1'])
    nowMs += 1
    expect(await send(local, { tokens: 1 })).toEqual([200, '1000', '1000', '60'])
  })

  test('is charged the usage of responses and admits while one token is left', async () => {
    await send(local, { tokens: 999 })
    expect(await send(local, { tokens: 1 })).toEqual([200, '1000', '1', '60'])
    expect(await send(local, {})).toEqual([429, '1000', '0', '60'])
  })

  test('must cover an estimated prompt, which is charged before the response', async () => {
    expect(await send(local, { estimate: 600 })).toEqual([200, '1000', '400', '60'])
    expect(await send(local, { estimate: 401 })).toEqual([429, '1000', '400', '60'])
    expect(await send(local, { estimate: 400, tokens: 100 })).toEqual([200, '1000', '0', '60'])
    expect(await send(local, {})).toEqual([200, '1000', '300', '60'])
  })

  test('counts the attempts of a request once', async () => {
    expect(await send(local, { estimate: 400, attempts: 3, tokens: 500 })).toEqual([200, '1000', '600', '60'])
    expect(await send(local, {})).toEqual([200, '1000', '500', '60'])
  })

  test('does not apply to traffic without an LLM', async () => {
    expect(await send(local, 'no LLM')).toEqual([200, undefined, undefined, undefined])
    await send(local, { tokens: 5000 })
    expect(await send(local, 'no LLM')).toEqual([200, undefined, undefined, undefined])
  })

  test('keeps x-ratelimit headers of the provider', async () => {
    expect(await send(local, { headers: { 'x-ratelimit-limit': '7' } })).toEqual([200, '7', undefined, undefined])
  })

  test('includes the burst in its budget', async () => {
    expect(await send([{ tokens: 10, unit: 'Seconds', burst: 5 }], {})).toEqual([200, '15', '15', '1'])
  })
})

describe('a limit of tokens beside one of requests', () => {
  const local: LocalRateLimit[] = [
    { requests: 2, unit: 'Seconds' },
    { tokens: 10, unit: 'Hours' },
  ]

  test('shares the x-ratelimit headers, and each limit rejects independently', async () => {
    expect(await send(local, { tokens: 9 })).toEqual([200, '2', '1', '1'])
    expect(await send(local, { tokens: 9 })).toEqual([200, '2', '0', '1'])
    expect(await send(local, {})).toEqual([429, '2', '0', '1'])
    nowMs += 1000
    expect(await send(local, {})).toEqual([429, '10', '0', '3599'])
  })
})

describe('the budgets of several policies', () => {
  const budget = (log: string[], name: string, refuses = false) => ({
    check: async (estimate: number): Promise<void> => {
      log.push(`${name} checks ${estimate}`)
      if (refuses) throw new ProxyError('RATE_LIMIT')
    },
    settle: (tokens: number): void => void log.push(`${name} settles ${tokens}`),
  })

  test('are checked in order and settled once', async () => {
    const log: string[] = []
    const budgets = new TokenBudgets(budget(log, 'local'))
    budgets.add(budget(log, 'global'))
    budgets.settle(1)
    await budgets.check(3)
    await budgets.check(4)
    budgets.settle(5)
    budgets.settle(6)
    expect(log).toEqual(['local checks 3', 'global checks 3', 'local settles 5', 'global settles 5'])
  })

  test('are not settled if one rejects', async () => {
    const log: string[] = []
    const budgets = new TokenBudgets(budget(log, 'local', true))
    budgets.add(budget(log, 'global'))
    await expect(budgets.check(0)).rejects.toMatchObject({ code: 'RATE_LIMIT' })
    budgets.settle(5)
    expect(log).toEqual(['local checks 0'])
  })
})

test('a budget stays between empty and full, whatever is charged and returned', () => {
  const step = fc.record({ waitMs: fc.nat(700), tokens: fc.integer({ min: -50, max: 50 }), estimate: fc.nat(30) })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.nat(20), fc.array(step, { maxLength: 100 }), (amount, burst, steps) => {
      const bucket = new Bucket({ amount, burst, unitMs: 1000, nowMs: 0 })
      let time = 0
      for (const { waitMs, tokens, estimate } of steps) {
        time += waitMs
        const { isAdmitted, remaining } = bucket.take(time, estimate)
        expect(remaining).toBeGreaterThanOrEqual(0)
        expect(remaining).toBeLessThanOrEqual(amount + burst)
        if (!isAdmitted) expect(remaining).toBeLessThan(Math.max(1, estimate))
        bucket.charge(time, tokens)
      }
    }),
  )
})
