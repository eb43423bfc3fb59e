import { beforeEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import type { LocalRateLimit } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import type { Policy } from '../../request/exchange/context.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { SharedHealthTable } from '../../net/upstream/balancer/shared-health.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { compileLocalRateLimit } from './index.ts'
import { KeyedBudgets, MAX_KEYS } from './keyed.ts'

let nowMs = 0
let state: PolicyState
beforeEach(() => {
  nowMs = 5_000
  state = createPolicyState({ monotonicMs: () => nowMs })
})

const USER = 'request.headers["x-user"]'
const byUser: LocalRateLimit[] = [{ requests: 1, unit: 'Hours', key: USER }]

interface Sent {
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly prepare?: (exchange: Exchange) => void
  readonly tokens?: number
}

/** Sends a request through a policy to an upstream, which reports the usage of `tokens`. */
async function sendThrough(policy: Policy, { headers = {}, body, prepare, tokens }: Sent): Promise<unknown[]> {
  const exchange = testExchange(body === undefined ? {} : { method: 'POST', body: new BufferBody(body) }, headers)
  prepare?.(exchange)
  const upstream = async (): Promise<void> => {
    if (tokens !== undefined) await exchange.tokenBudgets?.check(0)
    exchange.response = { status: 200, headers: new HeaderList([]), body: undefined, upgraded: undefined }
    if (tokens !== undefined) exchange.tokenBudgets?.settle(tokens)
  }
  await compose([policy], upstream)(exchange)
  return [exchange.response?.status, exchange.response?.headers.get('x-ratelimit-remaining')]
}

const send = (local: LocalRateLimit[], sent: Sent) => sendThrough(compileLocalRateLimit(local, state), sent)
const asUser = (user: string): Sent => ({ headers: { 'x-user': user } })

describe('a local rate limit with a key', () => {
  test('has a budget for each value, with headers of its own', async () => {
    expect(await send(byUser, asUser('ann'))).toEqual([200, '0'])
    expect(await send(byUser, asUser('ann'))).toEqual([429, '0'])
    expect(await send(byUser, asUser('bob'))).toEqual([200, '0'])
    nowMs += 3_600_000
    expect(await send(byUser, asUser('ann'))).toEqual([200, '0'])
  })

  test('counts the units of a budget from the first request of its key', async () => {
    const policy = compileLocalRateLimit(byUser, state)
    nowMs += 1_800_000
    await sendThrough(policy, asUser('ann'))
    nowMs += 3_599_999
    expect(await sendThrough(policy, asUser('ann'))).toEqual([429, '0'])
    nowMs += 1
    expect(await sendThrough(policy, asUser('ann'))).toEqual([200, '0'])
  })

  test.each(['((', USER, 'null', 'jwt.sub'])('has one budget for all requests without a value of %s', async (key) => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Hours', key }]
    expect([await send(local, {}), await send(local, {})]).toEqual([
      [200, '0'],
      [429, '0'],
    ])
  })

  test('does not confuse an absent key with any text', async () => {
    await send(byUser, {})
    for (const user of ['none', '', 'knone']) expect(await send(byUser, asUser(user))).toEqual([200, '0'])
  })

  test('distinguishes API keys, although expressions print them redacted', async () => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Hours', key: 'apiKey.key' }]
    const withKey = (key: string): Sent => ({ prepare: (exchange) => variables.apiKey.set(exchange, { key: new Secret(key) }) })
    expect([await send(local, withKey('a')), await send(local, withKey('b')), await send(local, withKey('a'))]).toEqual([
      [200, '0'],
      [200, '0'],
      [429, '0'],
    ])
  })

  test('reads the body for the name of a tool', async () => {
    const local: LocalRateLimit[] = [{ requests: 1, unit: 'Hours', key: 'json(request.body).params.name' }]
    const call = (name: string): Sent => ({ body: JSON.stringify({ method: 'tools/call', params: { name } }) })
    expect([await send(local, call('add')), await send(local, call('sub')), await send(local, call('add'))]).toEqual([
      [200, '0'],
      [200, '0'],
      [429, '0'],
    ])
  })

  test('applies beside a limit of all requests', async () => {
    const local: LocalRateLimit[] = [...byUser, { requests: 2, unit: 'Hours' }]
    const results = []
    for (const user of ['ann', 'ann', 'bob', 'eve']) results.push((await send(local, asUser(user)))[0])
    expect(results).toEqual([200, 429, 200, 429])
  })

  test('charges the tokens of a response to its key', async () => {
    const local: LocalRateLimit[] = [{ tokens: 10, unit: 'Hours', key: USER }]
    expect(await send(local, { ...asUser('ann'), tokens: 12 })).toEqual([200, '10'])
    expect(await send(local, { ...asUser('ann'), tokens: 1 })).toEqual([429, '0'])
    expect(await send(local, { ...asUser('bob'), tokens: 1 })).toEqual([200, '10'])
  })
})

describe('the budgets of an entry by key', () => {
  const terms = { amount: 1, burst: 0, unitMs: 3_600_000 }
  const evicted = (registry: PolicyState['registry']): number => {
    const found = /^proxy_rate_limit_evicted_keys_total (\d+)$/m.exec([...registry.expose('text')].join(''))
    return Number(found?.[1])
  }

  test('are limited in number: the key that was unused for the longest time is dropped and counted', () => {
    const registry = createRegistry()
    const budgets = new KeyedBudgets(terms, { monotonicMs: () => nowMs, shared: undefined, registry }, 'a')
    for (let index = 0; index < MAX_KEYS; index++) budgets.find(`user ${index}`).take(nowMs)
    const first = budgets.find('user 0')
    expect(evicted(registry)).toBe(0)
    budgets.find('new')
    expect(evicted(registry)).toBe(1)
    expect(budgets.find('user 0')).toBe(first)
    expect(budgets.find('user 1').take(nowMs).isAdmitted).toBe(true)
    expect(evicted(registry)).toBe(2)
  })

  test('of long keys differ by the whole key', () => {
    const budgets = new KeyedBudgets(terms, { monotonicMs: () => nowMs, shared: undefined, registry: createRegistry() }, 'a')
    const long = 'x'.repeat(100_000)
    expect(budgets.find(`${long}a`)).toBe(budgets.find(`${long}a`))
    expect(budgets.find(`${long}a`)).not.toBe(budgets.find(`${long}b`))
  })

  test('are shared by all workers, and a full table evicts and counts', async () => {
    const [memory, epoch] = [allocateCells(8), SharedHealthTable.allocateEpoch()]
    const registries = [createRegistry(), createRegistry()]
    const workers = registries.map((registry) => {
      const cells = new SharedCells(allocateCells(8))
      const shared = {
        cells,
        budgetCells: cells,
        keyedCells: new SharedCells(memory, { evicts: true }),
        health: new SharedHealthTable(cells, epoch),
        nameOf: () => 'section',
        keyValue: () => Promise.resolve(undefined),
      }
      return compileLocalRateLimit(byUser, createPolicyState({ monotonicMs: () => nowMs, shared, registry }))
    })
    const statuses = []
    for (const policy of [...workers, ...workers]) statuses.push((await sendThrough(policy, asUser('ann')))[0])
    expect(statuses).toEqual([200, 429, 429, 429])
    for (let index = 0; index < 20; index++) await sendThrough(workers[0] as Policy, asUser(`user ${index}`))
    expect(registries.map(evicted)).toEqual([13, 0])
  })
})
