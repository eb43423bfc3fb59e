import { beforeEach, describe, expect, test } from '@jest/globals'
import type { Budget } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { HeaderList } from '../../http/headers.ts'
import { scriptStores, type Script, type ScriptOutcome, type ScriptStore } from '../../runtime/value-store.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { compileBudgets } from './index.ts'
import { readLimits } from './report.ts'
import { CLAIM_ALERT, RESERVE, SETTLE } from './scripts.ts'

/** What the scripts do, in memory; `e2e/suites/spend/redis.e2e.ts` runs them in Redis. */
class FakeRedis implements ScriptStore {
  readonly hashes = new Map<string, Map<string, string>>()
  /** Fails scripts; `late`: they run nevertheless. */
  failure: 'none' | 'refused' | 'late' = 'none'
  settlements = 0

  evaluate(script: Script, keys: readonly string[], args: readonly string[]): Promise<ScriptOutcome> {
    if (this.failure === 'refused') return Promise.resolve({ error: 'no connection', mayRun: false })
    const value = script === RESERVE ? this.#reserve(keys, args) : script === SETTLE ? this.#settle(keys, args) : this.#claim(keys, args)
    return Promise.resolve(this.failure === 'late' ? { error: 'too late', mayRun: true } : { value })
  }

  #of(key = ''): Map<string, string> {
    return this.hashes.get(key) ?? new Map<string, string>()
  }

  #add(key: string, change: number): number {
    const hash = this.#of(key)
    this.hashes.set(key, hash)
    const amount = Math.max(0, Number(hash.get('v') ?? 0) + change)
    hash.set('v', String(amount))
    return amount
  }

  #reserve(keys: readonly string[], [id = '', ...args]: readonly string[]): unknown[] {
    const places = Array.from({ length: keys.length / 3 }, (_, nth) => {
      let [previous = '', current = '', part] = [keys[nth * 3], keys[nth * 3 + 1], Number(args[nth * 6 + 2])]
      const next = keys[nth * 3 + 2] ?? ''
      const isNext = this.hashes.has(next)
      if (isNext) [previous, current, part] = [current, next, part < 0 ? part : 1]
      const [used, before] = [Number(this.#of(current).get('v') ?? 0), part > 0 ? Number(this.#of(previous).get('v') ?? 0) : 0]
      const isAdmitted = Number(args[nth * 6 + 1]) - used - before * Math.max(0, part) + 1e-6 >= 1
      return { current, isAdmitted, isForced: args[nth * 6 + 3] === '1', values: [Number(isNext), Number(isAdmitted), used, before] }
    })
    const isReserved = places.every(({ isAdmitted, isForced }) => isAdmitted || isForced)
    const rows = places.flatMap(({ current, values }, nth) => {
      if (!isReserved) return [...values, '']
      this.#add(current, Number(args[nth * 6]))
      const hash = this.#of(current)
      if (args[nth * 6 + 4] === '1') hash.set(id, args[nth * 6] ?? '')
      if (!hash.has('g')) hash.set('g', id)
      return [...values, hash.get('g')]
    })
    return [Number(isReserved), ...rows]
  }

  #settle(keys: readonly string[], args: readonly string[]): number[] {
    this.settlements++
    return keys.map((key, nth) => {
      const [id = '', used = '', g] = args.slice(nth * 4)
      const hash = this.#of(key)
      const taken = id === '' ? undefined : hash.get(id)
      const isSame = hash.get('g') === g
      hash.delete(id)
      const change = taken !== undefined ? Number(used) - Number(taken) : (id === '') === isSame ? Number(used) : 0
      return change === 0 ? Number(hash.get('v') ?? 0) : this.#add(key, change)
    })
  }

  #claim([key = '']: readonly string[], [percent = '']: readonly string[]): number {
    const hash = this.#of(key)
    if (!hash.has('v') || Number(hash.get('a') ?? 0) >= Number(percent)) return 0
    hash.set('a', percent)
    return 1
  }
}

let nowMs = 0
let redis: FakeRedis
let lines: unknown[][] = []
beforeEach(() => {
  nowMs = Date.parse('2026-11-23T10:00:00Z')
  redis = new FakeRedis()
  lines = []
})

function replica(store: ScriptStore | undefined = redis, aheadMs = 0): PolicyState {
  const registry = createRegistry()
  if (store !== undefined) scriptStores.set(registry, store)
  const add = (message: string, fields: object = {}): void => void lines.push([message, fields])
  const log: Logger = { error: add, warn: add, info: add, debug: add, trace: add, isEnabled: () => true }
  return createPolicyState({ epochMs: () => nowMs + aheadMs, registry, log })
}

interface Chat {
  readonly max: number
  /** Called before the usage is known. */
  readonly before?: () => void
  readonly tokens: number
}

async function send(
  state: PolicyState,
  budgets: Budget[],
  chat?: Chat,
): Promise<{ status: number | undefined; text: string | undefined; remaining: string | null }> {
  const exchange = testExchange({}, {})
  const llm = async (): Promise<void> => {
    if (chat !== undefined) await exchange.tokenBudgets?.check(0, { model: 'm', promptTokens: 0, maxTokens: chat.max, priceOf: (_, output) => output })
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
    chat?.before?.()
    if (chat !== undefined) exchange.tokenBudgets?.settle(chat.tokens, chat.tokens)
  }
  await compose([compileBudgets([{ policy: 'ns/p', budgets }], state)], llm)(exchange)
  const { response, error } = exchange
  return {
    status: response?.status,
    text: error instanceof Error ? error.message : undefined,
    remaining: response?.headers.get('x-ratelimit-remaining') ?? null,
  }
}
async function statusesOf(count: number, one: (nth: number) => ReturnType<typeof send>): Promise<(number | undefined)[]> {
  const statuses = []
  for (let nth = 0; nth < count; nth++) statuses.push((await one(nth)).status)
  return statuses
}
const budget = (more: Partial<Budget> = {}): Budget => ({ name: 'b', store: 'Redis', limits: [{ requests: 3, window: 'Day' }], ...more })
const amounts = (): number[] => [...redis.hashes.values()].map((hash) => Number(hash.get('v')))
const exposition = ({ registry }: PolicyState): string => [...registry.expose('text')].join('')
const tokens = budget({ limits: [{ tokens: 100, window: 'Day' }] })

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('a budget in Redis', () => {
  test('is shared by replicas, names its end, and is reported', async () => {
    const replicas = [replica(), replica()]
    expect(await statusesOf(4, (nth) => send(replicas[nth % 2] ?? replica(), [budget()]))).toEqual([200, 200, 200, 429])
    const rejected = await send(replicas[0] ?? replica(), [budget()])
    expect([rejected.text, rejected.remaining]).toEqual(['budget exceeded: budget "b" of 3 requests per Day is used up until 2026-11-24T00:00:00Z', '0'])
    const [limit] = await readLimits(replicas[1]?.registry ?? createRegistry(), nowMs)
    expect(limit?.keys).toEqual([{ key: null, used: 3, endMs: Date.parse('2026-11-24T00:00:00Z') }])
    nowMs = Date.parse('2026-11-24T00:00:00Z')
    expect((await send(replica(), [budget()])).status).toBe(200)
  })

  test('takes nothing from any budget for a request that one of them rejects', async () => {
    const budgets = [budget({ name: 'large', limits: [{ requests: 10, window: 'Day' }] }), budget({ limits: [{ requests: 2, window: 'Day' }] })]
    expect(await statusesOf(5, () => send(replica(), budgets))).toEqual([200, 200, 429, 429, 429])
    expect(amounts()).toEqual([2, 2])
  })

  test('returns what it took from budgets of the replica', async () => {
    const state = replica()
    const own: Budget = { name: 'own', limits: [{ requests: 3, window: 'Day' }] }
    expect(await statusesOf(3, () => send(state, [own, budget({ limits: [{ requests: 1, window: 'Day' }] })]))).toEqual([200, 429, 429])
    expect(await statusesOf(3, () => send(state, [own]))).toEqual([200, 200, 429])
  })

  test('reserves the estimate, and is settled by the usage', async () => {
    const state = replica()
    expect((await send(state, [tokens], { max: 60, tokens: 50, before: () => expect(amounts()).toEqual([60]) })).status).toBe(200)
    expect(amounts()).toEqual([50])
    expect((await send(state, [tokens], { max: 500, tokens: 55 })).status).toBe(200)
    expect((await send(replica(), [tokens], { max: 1, tokens: 1 })).status).toBe(429)
    expect([...(redis.hashes.values().next().value?.keys() ?? [])].toSorted()).toEqual(['g', 'v'])
  })

  test('with two limits in one window is charged and settled once', async () => {
    const pair = [100, 50].map((amount) => ({ tokens: amount, window: 'Day' }))
    expect((await send(replica(), [budget({ limits: pair })], { max: 60, tokens: 30, before: () => expect(amounts()).toEqual([50]) })).status).toBe(200)
    expect(amounts()).toEqual([30])
    expect((await send(replica(), [budget({ limits: pair })], { max: 20, tokens: 20 })).status).toBe(200)
    expect((await send(replica(), [budget({ limits: pair })], { max: 1, tokens: 1 })).text).toMatch('budget "b" of 50 tokens per Day is used up')
  })

  test('rolls: the previous window counts for the part that is within reach', async () => {
    const rolling = budget({ limits: [{ requests: 10, window: '24h' }] })
    nowMs = Date.parse('2026-11-23T23:59:59.999Z')
    expect(await statusesOf(11, () => send(replica(), [rolling]))).toEqual([...Array.from({ length: 10 }, () => 200), 429])
    nowMs = Date.parse('2026-11-24T12:00:00Z')
    expect(await statusesOf(6, () => send(replica(), [rolling]))).toEqual([200, 200, 200, 200, 200, 429])
  })

  test('does not open a window again for a replica whose clock is behind', async () => {
    nowMs = Date.parse('2026-11-23T23:59:59.900Z')
    const [late, early] = [replica(), replica(redis, 200)]
    expect(await statusesOf(4, (nth) => send(nth % 2 === 0 ? early : late, [budget()]))).toEqual([200, 200, 200, 429])
    expect(amounts()).toEqual([3])
  })

  test('admits what exceeds it if it only audits', async () => {
    const state = replica()
    expect(await statusesOf(5, () => send(state, [budget({ onExceeded: 'Audit' })]))).toEqual([200, 200, 200, 200, 200])
    expect(exposition(state)).toContain('proxy_budget_exceeded_total{policy="ns/p",budget="b",unit="requests",outcome="audited"} 2')
    expect(amounts()).toEqual([5])
  })

  test('reports an alert once, by one of the replicas', async () => {
    const replicas = [replica(), replica()]
    const alerting = budget({ limits: [{ requests: 10, window: 'Day' }], alertAt: [50] })
    await statusesOf(10, (nth) => send(replicas[nth % 2] ?? replica(), [alerting]))
    await until(() => lines.length > 0)
    expect(lines).toEqual([['budget reached a percentage of a limit', expect.objectContaining({ code: 'PX4021', percent: 50 })]])
  })
})

describe('a budget in Redis that cannot be used', () => {
  test.each(['refused', 'late'] as const)('rejects with 503 and logs once (%s)', async (failure) => {
    const state = replica()
    redis.failure = failure
    const rejected = await send(state, [budget()])
    expect([rejected.status, rejected.text]).toEqual([503, 'budget not available: budget "b" cannot be charged now'])
    expect((await send(state, [budget()])).status).toBe(503)
    expect(lines).toEqual([['budgets cannot be charged in Redis', expect.objectContaining({ code: 'PX4037' })]])
    expect(exposition(state)).toContain('proxy_budget_disconnected_total{policy="ns/p",budget="b",unit="requests",outcome="rejected"} 2')
  })

  test('logs each cause once, and again after it worked', async () => {
    const state = replica()
    for (const failure of ['refused', 'late', 'refused', 'late', 'none', 'refused'] as const) {
      redis.failure = failure
      await send(state, [budget()])
    }
    expect(lines.map(([text, fields]) => [text, (fields as { error?: string } | undefined)?.error])).toEqual([
      ['budgets cannot be charged in Redis', 'no connection'],
      ['budgets cannot be charged in Redis', 'too late'],
      ['budgets can be charged in Redis again', undefined],
      ['budgets cannot be charged in Redis', 'no connection'],
    ])
  })

  test('rejects if config.redis is not set, or admits the full budget of this replica', async () => {
    const without = createPolicyState({ epochMs: () => nowMs, registry: createRegistry() })
    expect((await send(without, [budget()])).status).toBe(503)
    expect(await statusesOf(4, () => send(without, [budget({ onDisconnect: 'Allow' })]))).toEqual([200, 200, 200, 429])
  })

  test('settles later what a request has used', async () => {
    const state = replica()
    await send(state, [tokens], { max: 60, tokens: 7, before: () => (redis.failure = 'refused') })
    expect(amounts()).toEqual([60])
    redis.failure = 'none'
    await until(() => amounts()[0] === 7)
  })

  test('settles once, though the response of the first attempt was lost', async () => {
    const state = replica()
    await send(state, [tokens], { max: 60, tokens: 7, before: () => (redis.failure = 'late') })
    expect(amounts()).toEqual([7])
    redis.failure = 'none'
    await send(state, [tokens], { max: 20, tokens: 20 })
    await until(() => redis.settlements === 3)
    expect(amounts()).toEqual([27])
  })

  test('returns a reservation whose response was lost', async () => {
    redis.failure = 'late'
    expect((await send(replica(), [tokens], { max: 60, tokens: 7 })).status).toBe(503)
    expect(amounts()).toEqual([60])
    redis.failure = 'none'
    await until(() => amounts()[0] === 0)
  })

  test('is charged for what was used if the data was lost meanwhile', async () => {
    await send(replica(), [tokens], { max: 60, tokens: 7, before: () => redis.hashes.clear() })
    expect(amounts()).toEqual([7])
  })
})

test('the scripts differ', () => {
  expect(new Set([RESERVE, SETTLE, CLAIM_ALERT].map(({ sha }) => sha)).size).toBe(3)
})
