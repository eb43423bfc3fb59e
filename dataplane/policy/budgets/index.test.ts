import { beforeEach, describe, expect, test } from '@jest/globals'
import type { Budget } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { LlmDemand } from '../../request/exchange/token-budgets.ts'
import { HeaderList } from '../../http/headers.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { createRegistry, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { SharedHealthTable } from '../../net/upstream/balancer/shared-health.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import type { BudgetSection } from './compile.ts'
import { compileBudgets } from './index.ts'

const DAY_MS = 86_400_000
let nowMs = 0
let registry: Registry
let state: PolicyState
beforeEach(() => {
  nowMs = Date.parse('2026-11-23T10:00:00Z')
  registry = createRegistry()
  state = createPolicyState({ epochMs: () => nowMs, registry })
})

/** An LLM request that costs one dollar per token. */
interface Chat {
  readonly prompt?: number
  readonly max?: number
  readonly tokens?: number
  readonly unpriced?: boolean
}
interface Result {
  readonly status: number | undefined
  readonly text: string | undefined
  header(this: void, name: string): string | null
}

async function send(sections: readonly BudgetSection[] | Budget[], user: string | undefined, chat?: Chat, own = state): Promise<Result> {
  const all = sections.map((each) => ('limits' in each ? { policy: 'ns/p', budgets: [each] } : each))
  const exchange = testExchange({}, user === undefined ? {} : { 'x-user': user })
  const llm = async (): Promise<void> => {
    if (chat !== undefined) await exchange.tokenBudgets?.check(0, demandOf(chat))
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
    if (chat?.tokens !== undefined) exchange.tokenBudgets?.settle(chat.tokens, chat.unpriced === true ? undefined : chat.tokens)
  }
  await compose([compileBudgets(all, own)], llm)(exchange)
  return resultOf(exchange)
}
const demandOf = ({ prompt = 0, max, unpriced }: Chat): LlmDemand => ({
  model: 'm',
  promptTokens: prompt,
  maxTokens: max,
  priceOf: unpriced === true ? undefined : (input, output) => input + output,
})
const resultOf = ({ response, error }: Exchange): Result => ({
  status: response?.status,
  text: error instanceof Error ? error.message : undefined,
  header: (name) => response?.headers.get(name) ?? null,
})
const statusesOf = async (count: number, one: () => Promise<Result>): Promise<(number | undefined)[]> => {
  const statuses = []
  for (let i = 0; i < count; i++) statuses.push((await one()).status)
  return statuses
}
const exposition = (of = registry): string => [...of.expose('text')].join('')

const USER = 'request.headers["x-user"]'
const perUser = (more: Partial<Budget> = {}): Budget => ({ name: 'user', key: USER, limits: [{ requests: 2, window: 'Day' }], ...more })

test.each([[true], [false]])('x-budget-remaining-usd of an upstream does not reach clients (exposeRemaining: %p)', async (exposeRemaining) => {
  const exchange = testExchange({}, {})
  const upstream = async (): Promise<void> => {
    await exchange.tokenBudgets?.check(0, demandOf({ max: 10 }))
    exchange.response = { status: 200, headers: HeaderList.from([['X-Budget-Remaining-USD', '999999']]), body: undefined, upgraded: undefined }
  }
  const budgets: Budget[] = [{ name: 'b', limits: [{ usd: '100', window: 'Day' }], exposeRemaining }]
  await compose([compileBudgets([{ policy: 'ns/p', budgets }], state)], upstream)(exchange)
  expect(exchange.response?.headers.getAll('x-budget-remaining-usd')).toEqual(exposeRemaining ? ['90'] : [])
})

describe('a budget of requests', () => {
  test('rejects what exceeds it, names itself and the end of its window, and opens then', async () => {
    expect(await statusesOf(2, () => send([perUser()], 'ann'))).toEqual([200, 200])
    const rejected = await send([perUser()], 'ann')
    expect([rejected.status, rejected.text]).toEqual([429, 'budget exceeded: budget "user" of 2 requests per Day is used up until 2026-11-24T00:00:00Z'])
    expect(['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'].map(rejected.header)).toEqual(['2', '0', '50400', '50400'])
    expect((await send([perUser()], 'bob')).status).toBe(200)
    nowMs = Date.parse('2026-11-24T00:00:00Z')
    expect((await send([perUser()], 'ann')).status).toBe(200)
  })

  test('keeps what was spent when the policy is edited', async () => {
    expect(await statusesOf(3, () => send([perUser()], 'ann'))).toEqual([200, 200, 429])
    const raised = perUser({ limits: [{ requests: 4, window: 'Day' }] })
    expect(await statusesOf(3, () => send([raised], 'ann'))).toEqual([200, 200, 429])
  })

  test('without a key in the request rejects, or ignores the request', async () => {
    const rejected = await send([perUser()], undefined)
    expect([rejected.status, rejected.text]).toEqual([403, 'request not allowed: the request has no key for budget "user"'])
    expect(await statusesOf(3, () => send([perUser({ onMissingKey: 'Ignore' })], undefined))).toEqual([200, 200, 200])
  })

  test('holds in each of several policies', async () => {
    const sections = [
      { policy: 'ns/gateway', budgets: [perUser({ limits: [{ requests: 5, window: 'Day' }] })] },
      { policy: 'ns/route', budgets: [perUser({ limits: [{ requests: 3, window: 'Day' }] })] },
    ]
    expect(await statusesOf(4, () => send(sections, 'ann'))).toEqual([200, 200, 200, 429])
    // The fourth request was rejected, so it is not charged to the budget of the Gateway.
    expect(await statusesOf(3, () => send(sections.slice(0, 1), 'ann'))).toEqual([200, 200, 429])
  })

  test('charges the parent too', async () => {
    const budgets: Budget[] = [{ name: 'all', limits: [{ requests: 3, window: 'Day' }], models: 'llm.requestModel == "other"' }, perUser({ parent: 'all' })]
    const sections = [{ policy: 'ns/p', budgets }]
    expect(await statusesOf(2, () => send(sections, 'ann'))).toEqual([200, 200])
    expect(await statusesOf(2, () => send(sections, 'bob'))).toEqual([200, 429])
  })

  test.each([[[5, 2]], [[2, 5]]])('with limits of %j in one window admits the lower number', async (amounts) => {
    const pair = perUser({ limits: amounts.map((requests) => ({ requests, window: 'Day' })) })
    expect(await statusesOf(4, () => send([pair], 'ann'))).toEqual([200, 200, 429, 429])
    const chats = perUser({ name: 'chats', limits: amounts.map((tokens) => ({ tokens: tokens * 10, window: 'Day' })) })
    expect((await send([chats], 'ann', { prompt: 5, max: 5, tokens: 8 })).header('x-ratelimit-remaining')).toBe('10')
    expect((await send([chats], 'ann', { prompt: 0, max: 1, tokens: 1 })).header('x-ratelimit-remaining')).toBe('11')
  })

  test('is charged once by a policy that applies to the Gateway and to the route', async () => {
    const section = { policy: 'ns/p', budgets: [perUser()] }
    expect(await statusesOf(3, () => send([section, { ...section, budgets: [perUser()] }], 'ann'))).toEqual([200, 200, 429])
  })

  test('counts what was spent once, however many windows limit it', async () => {
    const windows = ['1m', 'Hour', 'Day']
    await statusesOf(3, () => send([perUser({ limits: windows.map((window) => ({ requests: 100, window })) })], 'ann'))
    expect(exposition()).toContain('proxy_budget_spent_total{policy="ns/p",budget="user",unit="requests"} 3\n')
  })

  test('audits what exceeds it, and counts outcomes', async () => {
    const audited = perUser({ onExceeded: 'Audit' })
    expect(await statusesOf(4, () => send([audited], 'ann'))).toEqual([200, 200, 200, 200])
    expect(exposition()).toContain('proxy_budget_exceeded_total{policy="ns/p",budget="user",unit="requests",outcome="audited"} 2')
    expect(exposition()).toContain('proxy_budget_spent_total{policy="ns/p",budget="user",unit="requests"} 4')
  })

  test('reports each percentage once per window', async () => {
    const alerting = perUser({ limits: [{ requests: 10, window: 'Day' }], alertAt: [50, 80] })
    await statusesOf(10, () => send([alerting], 'ann'))
    expect(exposition()).toContain('proxy_budget_alerts_total{policy="ns/p",budget="user",unit="requests",percent="50"} 1')
    expect(exposition()).toContain('proxy_budget_alerts_total{policy="ns/p",budget="user",unit="requests",percent="80"} 1')
    nowMs += DAY_MS
    await statusesOf(5, () => send([alerting], 'ann'))
    expect(exposition()).toContain('percent="50"} 2')
  })
})

describe('a budget of tokens', () => {
  const daily = perUser({ limits: [{ tokens: 100, window: 'Day' }] })

  test('reserves the prompt and the most output, and is corrected by the usage', async () => {
    expect((await send([daily], 'ann', { prompt: 10, max: 20, tokens: 15 })).header('x-ratelimit-remaining')).toBe('70')
    expect((await send([daily], 'ann', { prompt: 10, max: 20, tokens: 90 })).header('x-ratelimit-remaining')).toBe('55')
    expect((await send([daily], 'ann', { prompt: 1 })).status).toBe(429)
  })

  test('reserves no more than what is left, so that parallel requests exceed it by one request at most', async () => {
    const first = send([daily], 'ann', { prompt: 10, max: 1000 })
    expect((await first).status).toBe(200)
    expect((await send([daily], 'ann', { prompt: 1, max: 1 })).status).toBe(429)
  })

  test('is not charged for requests that are not to an LLM', async () => {
    expect(await statusesOf(5, () => send([perUser({ limits: [{ tokens: 1, window: 'Day' }] })], 'ann'))).toEqual([200, 200, 200, 200, 200])
  })

  test('returns what a rejected request has reserved from other budgets', async () => {
    const sections = [
      { policy: 'ns/a', budgets: [perUser({ limits: [{ tokens: 100, window: 'Day' }] })] },
      { policy: 'ns/b', budgets: [perUser({ limits: [{ tokens: 10, window: 'Day' }] })] },
    ]
    await send(sections, 'ann', { prompt: 5, max: 5, tokens: 10 })
    expect((await send(sections, 'ann', { prompt: 50, max: 50 })).status).toBe(429)
    expect((await send(sections.slice(0, 1), 'ann', { prompt: 40, max: 50 })).header('x-ratelimit-remaining')).toBe('0')
  })
})

describe('a budget of dollars', () => {
  const monthly = perUser({ limits: [{ usd: '100', window: 'Month' }], exposeRemaining: true })

  test('is charged the price, and exposes what is left', async () => {
    expect((await send([monthly], 'ann', { prompt: 10, max: 10, tokens: 15 })).header('x-budget-remaining-usd')).toBe('80')
    expect((await send([monthly], 'ann', { prompt: 10, max: 10, tokens: 85 })).header('x-budget-remaining-usd')).toBe('65')
    const rejected = await send([monthly], 'ann', { prompt: 1 })
    expect([rejected.status, rejected.text]).toEqual([429, 'budget exceeded: budget "user" of 100 USD per Month is used up until 2026-12-01T00:00:00Z'])
    expect(rejected.header('x-budget-remaining-usd')).toBe('0')
    expect(exposition()).toContain('proxy_budget_spent_total{policy="ns/p",budget="user",unit="usd"} 100')
  })

  test('rejects a model without a price, unless it is allowed', async () => {
    const rejected = await send([monthly], 'ann', { unpriced: true })
    expect([rejected.status, rejected.text]).toEqual([403, 'model not allowed: budget "user" needs a price of m (ai.prices, ai.priceCatalog)'])
    expect((await send([perUser({ ...monthly, unpriced: 'Allow' })], 'ann', { unpriced: true, tokens: 9 })).status).toBe(200)
  })

  test('adds up prices of a fraction of a cent to the cent', async () => {
    const cent = perUser({ limits: [{ usd: '1', window: 'Month' }], exposeRemaining: true })
    const tiny = async (): Promise<void> => {
      const exchange = testExchange({}, { 'x-user': 'ann' })
      const llm = async (): Promise<void> => {
        await exchange.tokenBudgets?.check(0, { model: 'm', promptTokens: 1, maxTokens: 1, priceOf: () => 0.000_01 })
        exchange.tokenBudgets?.settle(2, 0.000_003_3)
      }
      await compose([compileBudgets([{ policy: 'ns/p', budgets: [cent] }], state)], llm)(exchange)
    }
    for (let i = 0; i < 10_000; i++) await tiny()
    const { header } = await send([cent], 'ann', { prompt: 0, max: 0 })
    expect(Number(header('x-budget-remaining-usd'))).toBeCloseTo(1 - 0.033, 4)
  })
})

test('a budget is shared by all workers', async () => {
  const memory = allocateCells(64)
  const workers = [0, 1].map(() => {
    const cells = new SharedCells(allocateCells(8))
    const shared = {
      cells,
      keyedCells: cells,
      budgetCells: new SharedCells(memory, { evicts: true }),
      health: new SharedHealthTable(cells, SharedHealthTable.allocateEpoch()),
      nameOf: () => 's',
      keyValue: () => Promise.resolve(undefined),
    }
    return createPolicyState({ epochMs: () => nowMs, shared, registry: createRegistry() })
  })
  const statuses = []
  for (const own of [...workers, ...workers]) statuses.push((await send([perUser({ limits: [{ requests: 3, window: 'Day' }] })], 'ann', undefined, own)).status)
  expect(statuses).toEqual([200, 200, 200, 429])
})

test('keys are bounded: beyond 10,000 the least recently used one starts again, and is counted', async () => {
  const once = perUser({ limits: [{ requests: 1, window: 'Month' }] })
  for (let i = 0; i < 10_000; i++) await send([once], `user ${i}`)
  expect((await send([once], 'user 0')).status).toBe(429)
  expect((await send([once], 'new')).status).toBe(200)
  expect((await send([once], 'user 0')).status).toBe(429)
  expect(exposition()).toContain('proxy_budget_evicted_keys_total 1')
  expect((await send([once], 'user 1')).status).toBe(200)
})
