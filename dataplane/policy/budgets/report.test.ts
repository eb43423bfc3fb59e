import { describe, expect, test } from '@jest/globals'
import type { Budget, Policy } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { compileBudgets } from './index.ts'
import { Ledger } from './ledger.ts'
import { readLimits, reportBudgets } from './report.ts'
import { compileWindows } from '#api/budget-window.ts'

const NOW = Date.parse('2026-11-23T10:00:00Z')
const MIDNIGHT = Date.parse('2026-11-24T00:00:00Z')
const USER = 'request.headers["x-user"]'

const stateOf = (shared?: PolicyState['shared']): PolicyState => createPolicyState({ epochMs: () => NOW, registry: createRegistry(), shared })
const policyOf = (budgets: Budget[]): Policy => ({
  key: 'traffic/ns/p:0',
  policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
  target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
  traffic: { budgets },
})

/** Sends requests with a key. */
async function send(state: PolicyState, budgets: Budget[], user: string, count = 1): Promise<void> {
  const policy = compileBudgets([{ policy: 'ns/p', budgets }], state)
  for (let i = 0; i < count; i++) await compose([policy], () => Promise.resolve())(testExchange({}, { 'x-user': user }))
}

describe('the report of budgets', () => {
  test('shows what is left by key and window, the highest used part first, and reserves nothing', async () => {
    const state = stateOf()
    const budgets: Budget[] = [{ name: 'user', key: USER, limits: [{ requests: 10, window: 'Day' }], alertAt: [50, 80] }]
    await send(state, budgets, 'ann', 3)
    await send(state, budgets, 'bob', 8)
    const read = async () => reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)], NOW)
    await read()
    const limit = { policy: 'ns/p', budget: 'user', unit: 'requests', window: 'Day', limit: 10, windowEndMs: MIDNIGHT }
    expect(await read()).toEqual({
      timeMs: NOW,
      rows: [
        { ...limit, key: 'bob', used: 8, left: 2, isNearEnd: true },
        { ...limit, key: 'ann', used: 3, left: 7, isNearEnd: false },
      ],
      isCut: false,
    })
  })

  test('shows one row for two limits in one window', async () => {
    const state = stateOf()
    const budgets: Budget[] = [{ name: 'user', key: USER, limits: [5, 4].map((requests) => ({ requests, window: 'Day' })) }]
    await send(state, budgets, 'ann', 3)
    const { rows } = reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)], NOW)
    expect(rows.map(({ limit, used, left }) => ({ limit, used, left }))).toEqual([{ limit: 4, used: 3, left: 1 }])
  })

  test('shows dollars and tokens in their units, and 90 % as near the end without alerts', async () => {
    const state = stateOf()
    const budgets: Budget[] = [
      {
        name: 'all',
        limits: [
          { usd: '2.5', window: 'Day' },
          { tokens: 100, window: '1h' },
        ],
      },
    ]
    const exchange = testExchange()
    const llm = async (): Promise<void> => {
      await exchange.tokenBudgets?.check(0, { model: 'm', promptTokens: 1, maxTokens: 1, priceOf: (input, output) => input + output })
      exchange.tokenBudgets?.settle(90, 2)
    }
    await compose([compileBudgets([{ policy: 'ns/p', budgets }], state)], llm)(exchange)
    const { rows } = reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)], NOW)
    expect(rows).toMatchObject([
      { key: null, unit: 'tokens', limit: 100, used: 90, left: 10, isNearEnd: true },
      { key: null, unit: 'usd', limit: 2.5, used: 2, left: 0.5, isNearEnd: false },
    ])
  })

  test('leaves out windows that are over and budgets that are not in force', async () => {
    const state = stateOf()
    const budgets: Budget[] = [{ name: 'user', key: USER, limits: [{ requests: 10, window: 'Day' }] }]
    await send(state, budgets, 'ann')
    expect(reportBudgets([policyOf(budgets)], [await readLimits(state.registry, MIDNIGHT)]).rows).toEqual([])
    expect(reportBudgets([], [await readLimits(state.registry, NOW)]).rows).toEqual([])
  })

  test('contains the maximum of the threads, of which each knows the keys that it has used', () => {
    const budgets: Budget[] = [{ name: 'b', key: USER, limits: [{ requests: 10, window: 'Day' }] }]
    const threadOf = (...keys: [string, number][]) => [
      { name: 'ns/p b requests Day', keys: keys.map(([key, used]) => ({ key, used, endMs: MIDNIGHT })), isCut: false },
    ]
    const { rows } = reportBudgets([policyOf(budgets)], [threadOf(['x', 2]), threadOf(['x', 5], ['y', 1]), threadOf(['x', 3])])
    expect(rows.map(({ key, used }) => [key, used])).toEqual([
      ['x', 5],
      ['y', 1],
    ])
  })

  test('shows credentials and long keys as digests', async () => {
    const digestOf = async (key: string, value: string): Promise<string | null | undefined> => {
      const state = stateOf()
      const budgets: Budget[] = [{ name: 'b', key, limits: [{ requests: 10, window: 'Day' }] }]
      Ledger.of(state).find('ns/p b requests Day', value, compileWindows('Day')).reserve(NOW, 10, 1, 1)
      return reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)]).rows[0]?.key
    }
    const digest = /^sha256:[\w+/]{43}=$/
    for (const key of ['request.headers.authorization', 'request.headers["x-api-key"]', 'request.headers["x-auth-token"]', 'apiKey.key'])
      expect(await digestOf(key, 'top-secret')).toMatch(digest)
    expect(await digestOf('apiKey.team', 'x'.repeat(300))).toMatch(digest)
    expect(await digestOf('apiKey.team', 'blue')).toBe('blue')
    expect(await digestOf('string(source.address)', 'Bearer abcdefghijkl')).toBe('Bearer <redacted>')
  })

  test('is bounded and keeps the keys that used most', async () => {
    const state = stateOf()
    const budgets: Budget[] = [{ name: 'b', key: USER, limits: [{ requests: 1000, window: 'Day' }] }]
    const ledger = Ledger.of(state)
    for (let i = 1; i <= 450; i++) ledger.find('ns/p b requests Day', `k${i}`, compileWindows('Day')).reserve(NOW, 1000, i, 1)
    const { rows, isCut } = reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)])
    expect([rows.length, rows[0]?.key, rows.at(-1)?.key, isCut]).toEqual([100, 'k450', 'k351', true])
  })

  test('leaves out a counter whose shared memory was given to another key', async () => {
    const cells = new SharedCells(allocateCells(1), { evicts: true })
    const state = stateOf({ budgetCells: cells } as unknown as PolicyState['shared'])
    const budgets: Budget[] = [{ name: 'b', key: USER, limits: [{ requests: 10, window: 'Day' }] }]
    await send(state, budgets, 'ann', 2)
    await send(state, budgets, 'bob', 3)
    const { rows } = reportBudgets([policyOf(budgets)], [await readLimits(state.registry, NOW)])
    expect(rows.map(({ key, used }) => [key, used])).toEqual([['bob', 3]])
  })
})
