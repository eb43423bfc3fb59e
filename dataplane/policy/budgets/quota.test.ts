import { beforeEach, describe, expect, test } from '@jest/globals'
import type { Budget } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { HeaderList } from '../../http/headers.ts'
import type { QuotaBucket, QuotaMemory, Quotas } from '../../runtime/quotas.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { createRegistry, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { SharedHealthTable } from '../../net/upstream/balancer/shared-health.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { compileBudgets } from './index.ts'
import { clearAssignment, isAssigned, takeUsage, writeAssignment, type Strategy } from './quota.ts'

const SECOND_NS = 1_000_000_000n

/** Assigns what a test says, or nothing. */
class FakeQuotas implements Quotas {
  readonly asked: QuotaBucket[] = []
  readonly memories = new Map<string, QuotaMemory>()
  strategy: Strategy | undefined
  ttlMs = Infinity

  assign(bucket: QuotaBucket, memory?: () => QuotaMemory | undefined): Promise<boolean> {
    this.asked.push(bucket)
    const own = memory?.()
    if (own === undefined) return Promise.resolve(false)
    this.memories.set(bucket.counter, own)
    if (this.strategy !== undefined) this.write(this.strategy)
    return Promise.resolve(this.strategy !== undefined)
  }

  write(strategy: Strategy): void {
    for (const memory of this.memories.values()) writeAssignment(memory, { strategy, expiresMs: nowMs + this.ttlMs }, nowMs)
  }

  take(): { allowed: number; denied: number }[] {
    return this.memories
      .values()
      .map((memory) => takeUsage(memory))
      .toArray()
  }
}

let nowMs = 0
let quotas: FakeQuotas
let registry: Registry
let state: PolicyState
beforeEach(() => {
  nowMs = Date.parse('2026-11-23T10:00:00Z')
  quotas = new FakeQuotas()
  registry = createRegistry()
  state = createPolicyState({ epochMs: () => nowMs, registry, quotas })
})

const SERVICE = { backendRef: { address: 'quota.test:1' }, domain: 'shop' }
const budget = (more: Partial<Budget> = {}): Budget => ({
  name: 'user',
  key: 'request.headers["x-user"]',
  limits: [{ requests: 2, window: 'Day' }],
  quotaService: SERVICE,
  ...more,
})

async function send(budgets: readonly Budget[], user = 'ann', own = state): Promise<{ status: number | undefined; text: string; headers: HeaderList }> {
  const exchange = testExchange({}, { 'x-user': user })
  await compose([compileBudgets([{ policy: 'ns/p', budgets }], own)], () => {
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
    return Promise.resolve()
  })(exchange)
  const { response, error } = exchange
  return { status: response?.status, text: error instanceof Error ? error.message : '', headers: response?.headers ?? new HeaderList() }
}
const statuses = async (count: number, ...args: Parameters<typeof send>): Promise<(number | undefined)[]> => {
  const all = []
  for (let nth = 0; nth < count; nth++) all.push((await send(...args)).status)
  return all
}

describe('a budget with a rate limit quota service', () => {
  test('asks for the bucket of policy, budget and key once, and admits by the assignment', async () => {
    quotas.strategy = { size: 3, periodNs: 10n * SECOND_NS }
    expect(await statuses(4, [budget()])).toEqual([200, 200, 200, 429])
    expect(quotas.asked).toEqual([
      {
        service: { backendRef: { address: 'quota.test:1' }, domain: 'shop', intervalMs: 1000 },
        id: { policy: 'ns/p', budget: 'user', key: 'ann' },
        counter: 'ns/p user requests Day kann',
      },
    ])
    nowMs += 10_000
    expect(await statuses(2, [budget()])).toEqual([200, 429])
    expect(quotas.take()).toEqual([{ allowed: 4, denied: 2 }])
  })

  test('names the bucket as the policy says; long keys are digests, and empty ones left out', async () => {
    quotas.strategy = 'allow'
    const quotaService = { ...SERVICE, bucket: { name: 'api' }, keyName: 'user', reportingInterval: '5s' }
    for (const user of ['ann', 'x'.repeat(300), '']) await send([budget({ quotaService })], user)
    expect(quotas.asked.map(({ id }) => id)).toEqual([
      { name: 'api', user: 'ann' },
      { name: 'api', user: expect.stringMatching(/^sha256:.{44}$/) },
      { name: 'api' },
    ])
    expect(quotas.asked[0]?.service.intervalMs).toBe(5000)
  })

  test('responses tell the assigned limit, and rejections when the bucket has a token', async () => {
    quotas.strategy = { size: 2, periodNs: 30n * SECOND_NS }
    const first = await send([budget()])
    expect(['limit', 'remaining', 'reset'].map((name) => first.headers.get(`x-ratelimit-${name}`))).toEqual(['2', '1', '30'])
    await send([budget()])
    const rejected = await send([budget()])
    expect(rejected.text).toBe('budget exceeded: budget "user" is used up until 2026-11-23T10:00:30Z')
    expect(['x-ratelimit-limit', 'retry-after'].map((name) => rejected.headers.get(name))).toEqual(['2', '30'])
  })

  test('ALLOW_ALL has no limit and no headers, DENY_ALL admits nothing', async () => {
    quotas.strategy = 'allow'
    expect(await statuses(5, [budget()])).toEqual([200, 200, 200, 200, 200])
    expect((await send([budget()])).headers.get('x-ratelimit-limit')).toBeUndefined()
    quotas.write('deny')
    expect(await statuses(2, [budget()])).toEqual([429, 429])
    expect(quotas.take()).toEqual([{ allowed: 6, denied: 2 }])
  })

  test('without an assignment, and after it has expired, onDisconnect decides', async () => {
    const alone = budget({ onDisconnect: 'Allow' })
    expect((await send([budget()])).text).toBe('budget not available: this replica has no share of budget "user" now')
    // The limit of the budget, for this replica alone.
    expect(await statuses(3, [alone])).toEqual([200, 200, 429])
    expect(quotas.take()).toEqual([{ allowed: 2, denied: 2 }])
    quotas.ttlMs = 5000
    quotas.strategy = 'allow'
    expect(await statuses(2, [budget()])).toEqual([200, 200])
    quotas.strategy = undefined
    nowMs += 4999
    expect((await send([budget()])).status).toBe(200)
    nowMs += 1
    expect((await send([budget()])).status).toBe(503)
    expect([...registry.expose('text')].join('')).toContain('proxy_budget_disconnected_total{policy="ns/p",budget="user",unit="requests",outcome="admitted"} 3')
  })

  test('another rate keeps the tokens that are used', async () => {
    quotas.strategy = { size: 10, periodNs: SECOND_NS }
    await statuses(8, [budget()])
    quotas.write({ size: 10, periodNs: 4n * SECOND_NS })
    expect(await statuses(3, [budget()])).toEqual([200, 200, 429])
    quotas.write({ size: 4, periodNs: 4n * SECOND_NS })
    expect(await statuses(1, [budget()])).toEqual([429])
    nowMs += 4000
    expect(await statuses(2, [budget()])).toEqual([200, 429])
  })

  test('a clock that is set back gives nothing, and the bucket fills from then on', async () => {
    quotas.strategy = { size: 2, periodNs: SECOND_NS }
    await statuses(2, [budget()])
    nowMs -= 3_600_000
    expect(await statuses(1, [budget()])).toEqual([429])
    nowMs += 1000
    expect(await statuses(2, [budget()])).toEqual([200, 429])
    nowMs += 3_600_000
    expect(await statuses(3, [budget()])).toEqual([200, 200, 429])
  })

  test('the largest and the slowest buckets do not overflow', async () => {
    quotas.strategy = { size: 2 ** 32 - 1, periodNs: 2n ** 60n }
    expect(await statuses(3, [budget()])).toEqual([200, 200, 429])
    quotas.write({ size: 2 ** 32 - 1, periodNs: 1n })
    nowMs += 10_000
    expect(await statuses(3, [budget()])).toEqual([200, 200, 200])
  })

  test('limits that a service cannot assign are never asked for', async () => {
    quotas.strategy = 'allow'
    const limits = [
      { requests: 2, window: 'Day' },
      { requests: 9, window: '1m' },
    ]
    expect(await statuses(1, [budget({ limits })])).toEqual([503])
    expect(await statuses(3, [budget({ limits, onDisconnect: 'Allow' })], 'bob')).toEqual([200, 200, 429])
    expect(quotas.asked).toEqual([])
  })

  test('a request that another budget rejects is returned', async () => {
    quotas.strategy = { size: 2, periodNs: SECOND_NS }
    const other: Budget = { name: 'other', limits: [{ requests: 1, window: 'Day' }] }
    expect(await statuses(4, [budget(), other])).toEqual([200, 429, 429, 429])
    expect(await statuses(2, [budget()])).toEqual([200, 429])
    expect(quotas.take()).toEqual([{ allowed: 2, denied: 1 }])
  })

  test('Audit admits, and counts requests beyond the assignment as allowed', async () => {
    quotas.strategy = { size: 1, periodNs: SECOND_NS }
    expect(await statuses(3, [budget({ onExceeded: 'Audit' })])).toEqual([200, 200, 200])
    expect(quotas.take()).toEqual([{ allowed: 3, denied: 0 }])
  })

  test('workers share the assignment and its tokens', async () => {
    quotas.strategy = { size: 10, periodNs: 60n * SECOND_NS }
    const memory = allocateCells(64)
    const worker = (): PolicyState => {
      const budgetCells = new SharedCells(memory, { evicts: true })
      const epoch = new SharedArrayBuffer(8)
      const shared = {
        cells: budgetCells,
        keyedCells: budgetCells,
        budgetCells,
        health: new SharedHealthTable(budgetCells, epoch),
        keyValue: () => Promise.reject(new Error('no plugin')),
        nameOf: () => undefined,
      }
      return createPolicyState({ epochMs: () => nowMs, quotas, shared })
    }
    const [a, b] = [worker(), worker()]
    expect([await statuses(4, [budget()], 'ann', a), await statuses(8, [budget()], 'ann', b)].flat().filter((status) => status === 200)).toHaveLength(10)
    expect(quotas.asked).toHaveLength(1)
    expect(quotas.take()).toEqual([{ allowed: 10, denied: 2 }])
  })

  test('an assignment that is removed is asked for again', async () => {
    quotas.strategy = 'allow'
    await send([budget()])
    for (const memory of quotas.memories.values()) {
      clearAssignment(memory)
      expect(isAssigned(memory, nowMs)).toBe(false)
    }
    await send([budget()])
    expect(quotas.asked).toHaveLength(2)
  })
})
