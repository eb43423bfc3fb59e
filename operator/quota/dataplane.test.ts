import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Budget, Policy } from '#gen/config/types.ts'
import { isTrueWithin, waitUntil } from '../../e2e/harness/wait.ts'
import type { QuotaStore } from './server.ts'
import { createQuotaServer } from './server.ts'
import { createConfigServer } from '../serve/server.ts'
import { createConfigStore } from '../../dataplane/config/store.ts'
import { compose } from '../../dataplane/request/exchange/compose.ts'
import { HeaderList } from '../../dataplane/http/headers.ts'
import { compileBudgets } from '../../dataplane/policy/budgets/index.ts'
import { createPolicyState } from '../../dataplane/policy/state.ts'
import { readSettings } from '../../dataplane/program/settings.ts'
import { createShares } from '../../dataplane/program/shares.ts'
import { createLogging } from '../../dataplane/observe/telemetry/log.ts'
import { createRegistry } from '../../dataplane/observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../dataplane/testing/exchange.ts'
import { ShareKeeper } from '../../dataplane/program/quota/keeper.ts'
import { QuotaStream, type QuotaStreamOptions } from '../../dataplane/program/quota/stream.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const budget = (more: Partial<Budget> = {}): Budget => ({ name: 'team', scope: 'Gateway', limits: [{ requests: 1000, window: 'Day' }], ...more })

/** The config stream and the quota service of an operator, for the Gateway ns/gw with one policy. */
async function startOperator(budgets: readonly Budget[], { port = 0, store, epochMs }: { port?: number; store?: QuotaStore; epochMs?: () => number } = {}) {
  const quota = createQuotaServer({ store, ...(epochMs && { epochMs }) })
  const server = createConfigServer({ services: [quota.service] })
  quota.publish({ gateways: new Map([['ns/gw', [{ kind: 'policy', message: { policy: { namespace: 'ns', name: 'p' }, traffic: { budgets } } }]]]) })
  const listening = await server.listen(`127.0.0.1:${port}`)
  let isStopped = false
  const stop = async (): Promise<void> => {
    if (isStopped) return
    isStopped = true
    await quota.close()
    await server.close()
  }
  closers.push(stop)
  return { port: listening, quota, stop }
}

interface Answer {
  readonly status: number | undefined
  header(this: void, name: string): string | null
}

/** The budgets of one replica, without its sockets. */
class Replica {
  readonly registry = createRegistry()
  readonly #policy: ReturnType<typeof compileBudgets>
  readonly #stream: QuotaStream
  isConnected = false

  constructor(port: number, budgets: readonly Budget[], epochMs = Date.now, timeouts?: QuotaStreamOptions['timeouts']) {
    const keeper: ShareKeeper = new ShareKeeper({ onUrgent: () => this.#stream.hurry(), epochMs })
    this.#policy = compileBudgets([{ policy: 'ns/p', budgets }], createPolicyState({ registry: this.registry, shares: keeper, epochMs }))
    this.#stream = new QuotaStream({
      address: `http://127.0.0.1:${port}`,
      node: { namespace: 'ns', gateway: 'gw' },
      keeper,
      ...(timeouts && { timeouts }),
      onConnected: () => (this.isConnected = true),
      onDisconnected: () => (this.isConnected = false),
    })
    closers.push(() => this.close())
  }

  close(): Promise<void> {
    return this.#stream.close()
  }

  /** One request; with `tokens` an LLM request that uses so many after a while. */
  async send(user = 'ann', chat?: { readonly tokens: number; readonly max: number; readonly ms: number }): Promise<Answer> {
    const exchange = testExchange({}, { 'x-user': user })
    const end = async (): Promise<void> => {
      if (chat !== undefined) {
        await exchange.tokenBudgets?.check(0, { model: 'm', promptTokens: 0, maxTokens: chat.max, priceOf: undefined })
        await wait(chat.ms)
      }
      exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
      exchange.tokenBudgets?.settle(chat?.tokens ?? 0)
    }
    await compose([this.#policy], end)(exchange)
    const { response } = exchange
    return { status: response?.status, header: (name) => response?.headers.get(name) ?? null }
  }

  /** Sends requests at a rate until the time is over; returns the numbers of responses by status. */
  async sendFor(ms: number, perSecond: number, counts: Map<number, number>): Promise<void> {
    const startMs = performance.now()
    const pending: Promise<void>[] = []
    for (let sent = 0; ;) {
      const elapsed = performance.now() - startMs
      for (; sent < (Math.min(elapsed, ms) * perSecond) / 1000; sent++)
        pending.push(this.send().then(({ status = 0 }) => void counts.set(status, (counts.get(status) ?? 0) + 1)))
      if (elapsed >= ms) break
      await wait(5)
    }
    await Promise.all(pending)
  }

  count(name: RegExp): number {
    return [...this.registry.expose('text')]
      .join('')
      .split('\n')
      .filter((line) => name.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
}

/** Forwards connections to a port of loopback, but keeps back what the server sends while it holds. */
async function startRelay(target: number) {
  const clients: Socket[] = []
  const servers: Socket[] = []
  let isHolding = false
  const relay = createServer((client) => {
    const server = connect(target, '127.0.0.1').on('data', (bytes) => client.write(bytes))
    if (isHolding) server.pause()
    client.pipe(server)
    clients.push(client)
    servers.push(server)
    for (const socket of [client, server]) socket.on('error', () => undefined).on('close', () => [client, server].forEach((each) => each.destroy()))
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  closers.push(() => {
    relay.close()
    for (const client of clients) client.destroy()
  })
  return {
    port: (relay.address() as AddressInfo).port,
    connections: () => clients.length,
    hold(holds: boolean): void {
      isHolding = holds
      for (const server of servers) {
        if (holds) server.pause()
        else server.resume()
      }
    },
  }
}

const admitted = (counts: ReadonlyMap<number, number>): number => counts.get(200) ?? 0

describe('a budget of all replicas', () => {
  test('admits exactly its limit under a load that is skewed, and that moves', async () => {
    const { port } = await startOperator([budget()])
    const replicas = [0, 1, 2].map(() => new Replica(port, [budget()]))
    const counts = new Map<number, number>()
    await Promise.all(replicas.map((replica, index) => replica.sendFor(1500, [600, 40, 5][index] ?? 0, counts)))
    await Promise.all(replicas.map((replica, index) => replica.sendFor(2000, [5, 40, 600][index] ?? 0, counts)))
    expect(admitted(counts)).toBe(1000)
    expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([200, 429])
  })

  test('is exceeded by at most the request under way on each replica, with 100 parallel streams', async () => {
    const tokens = [budget({ limits: [{ tokens: 20_000, window: 'Day' }] })]
    const { port } = await startOperator(tokens)
    const replicas = [0, 1, 2].map(() => new Replica(port, tokens))
    let used = 0
    const stream = async (replica: Replica): Promise<void> => {
      for (let call = 0; call < 5; call++) {
        const { status } = await replica.send('ann', { tokens: 300, max: 300, ms: 20 })
        if (status === 200) used += 300
      }
    }
    await Promise.all(Array.from({ length: 100 }, (_, index) => stream(replicas[index % 3] as Replica)))
    expect(used).toBeGreaterThanOrEqual(20_000 - 3 * 300)
    expect(used).toBeLessThanOrEqual(20_000 + 3 * 300)
  })

  test('gives an unused share to a replica that needs it in about a second', async () => {
    const few = [budget({ limits: [{ requests: 100, window: 'Day' }] })]
    const { port } = await startOperator(few)
    const [holder, other] = [new Replica(port, few), new Replica(port, few)]
    // The holder has a share for later.
    for (let count = 0; count < 40; count++) await holder.send()
    const startMs = performance.now()
    const statuses = await Promise.all(Array.from({ length: 60 }, () => other.send()))
    expect(statuses.filter(({ status }) => status === 200)).toHaveLength(60)
    expect(performance.now() - startMs).toBeLessThan(1500)
    expect((await other.send()).status).toBe(429)
    expect((await holder.send()).status).toBe(429)
  })

  test('with a rolling window counts what was used in the window before once', async () => {
    let nowMs = Date.parse('2026-11-24T10:00:05Z')
    const epochMs = (): number => nowMs
    const minute = [budget({ limits: [{ requests: 100, window: '1m' }] })]
    const { port } = await startOperator(minute, { epochMs })
    const replicas = [0, 1].map(() => new Replica(port, minute, epochMs))
    const exhaust = async (): Promise<number> => {
      let count = 0
      for (const replica of replicas) while ((await replica.send()).status === 200) count++
      return count
    }
    expect(await exhaust()).toBe(100)
    nowMs = Date.parse('2026-11-24T10:01:30Z')
    expect(await exhaust()).toBe(50)
    expect(await isTrueWithin(1000, async () => (await exhaust()) > 0)).toBe(false)
  })

  test('has a counter for each key, and says what is left of all', async () => {
    const keyed = [budget({ key: 'request.headers["x-user"]', limits: [{ requests: 4, window: 'Day' }] })]
    const { port } = await startOperator(keyed)
    const [one, two] = [new Replica(port, keyed), new Replica(port, keyed)]
    expect([(await one.send('ann')).status, (await two.send('ann')).status, (await one.send('bob')).status]).toEqual([200, 200, 200])
    expect(await isTrueWithin(3000, async () => (await two.send('eve')).header('x-ratelimit-remaining') === '3')).toBe(true)
    for (const replica of [one, two]) await replica.send('ann')
    expect([(await one.send('ann')).status, (await two.send('ann')).status]).toEqual([429, 429])
  })

  test('outlives the operator, which divides what is left when it is back', async () => {
    const few = [budget({ limits: [{ requests: 300, window: 'Day' }] })]
    const first = await startOperator(few)
    const replicas = [0, 1, 2].map(() => new Replica(first.port, few))
    const counts = new Map<number, number>()
    await Promise.all(replicas.map((replica) => replica.sendFor(300, 100, counts)))
    const before = admitted(counts)
    expect(before).toBeGreaterThan(50)
    await first.stop()
    await waitUntil('no replica is connected', () => replicas.every(({ isConnected }) => !isConnected), 5000)
    // The last shares go on.
    for (const replica of replicas) expect((await replica.send()).status).toBe(200)
    await startOperator(few, { port: first.port })
    await waitUntil('all replicas are connected', () => replicas.every(({ isConnected }) => isConnected), 10_000)
    await Promise.all(replicas.map((replica) => replica.sendFor(1500, 200, counts)))
    expect(admitted(counts) + 3).toBe(300)
  })

  test('keeps what was used by a replica that restarts', async () => {
    const few = [budget({ limits: [{ requests: 20, window: 'Day' }] })]
    const { port } = await startOperator(few)
    const first = new Replica(port, few)
    for (let count = 0; count < 20; count++) expect((await first.send()).status).toBe(200)
    await first.close()
    expect((await new Replica(port, few).send()).status).toBe(429)
  })

  test.each([
    ['Reject', 503, 'rejected'],
    ['Allow', 200, 'admitted'],
  ] as const)('of a replica without an operator: onDisconnect %s responds %i', async (onDisconnect, status, outcome) => {
    const own = [budget({ onDisconnect, limits: [{ requests: 2, window: 'Day' }] })]
    const { port, stop } = await startOperator(own)
    await stop()
    const replica = new Replica(port, own)
    expect((await replica.send()).status).toBe(status)
    expect(replica.count(new RegExp(`^proxy_budget_disconnected_total.*${outcome}`))).toBe(1)
    // As with scope Replica, the full budget holds for this one.
    const more = [await replica.send(), await replica.send()]
    expect(more.map((each) => each.status)).toEqual(onDisconnect === 'Allow' ? [200, 429] : [503, 503])
  })
})

describe('an operator that responds late', () => {
  const keyed = [budget({ key: 'request.headers["x-user"]', limits: [{ requests: 100, window: 'Day' }] })]

  test('is waited for on the same stream: requests are rejected meanwhile, and shares in force are used', async () => {
    const { port } = await startOperator(keyed)
    const relay = await startRelay(port)
    relay.hold(true)
    const replica = new Replica(relay.port, keyed, Date.now, { silentMs: 200, responseMs: 60_000 })
    expect((await replica.send('ann')).status).toBe(503)
    relay.hold(false)
    await waitUntil('a request has a share', async () => (await replica.send('ann')).status === 200)
    relay.hold(true)
    await waitUntil('the operator is silent', () => !replica.isConnected)
    expect([(await replica.send('ann')).status, (await replica.send('bob')).status]).toEqual([200, 503])
    relay.hold(false)
    await waitUntil('another key has a share', async () => (await replica.send('bob')).status === 200)
    expect([replica.isConnected, relay.connections()]).toEqual([true, 1])
  })

  test('is given up after a longer time, and reached by another connection', async () => {
    const { port } = await startOperator(keyed)
    const relay = await startRelay(port)
    relay.hold(true)
    const replica = new Replica(relay.port, keyed, Date.now, { silentMs: 50, responseMs: 150 })
    await waitUntil('there are more connections', () => relay.connections() > 1)
    relay.hold(false)
    expect(await isTrueWithin(60_000, async () => (await replica.send('ann')).status === 200)).toBe(true)
  })
})

test('a data plane connects when its config has a budget of all replicas, before the first request', async () => {
  const { port, quota } = await startOperator([budget()])
  const store = createConfigStore()
  const settings = readSettings({ XDS_ADDRESS: `http://127.0.0.1:${port}`, NAMESPACE: 'ns', GATEWAY: 'gw' }, {})
  const registry = createRegistry()
  const writer = { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined }
  const shares = createShares(settings, createLogging({ writer }), () => registry)
  closers.push(() => shares?.close())
  shares?.follow(store)
  const apply = (name: string, budgets: Budget[]): void => {
    const policy = { kind: 'ProxyPolicy', namespace: 'ns', name } as const
    const message: Policy = { key: `traffic/ns/${name}:0`, policy, target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { budgets } }
    store.apply('stream', { upserts: [{ kind: 'policy', message }], removals: [] })
  }
  apply('own', [budget({ scope: 'Replica' }), budget({ name: 'other', store: 'Redis' })])
  await wait(0)
  expect([...registry.expose('text')].join('')).not.toContain('proxy_budget_shares_connected')
  apply('shared', [budget()])
  await waitUntil('it is connected', () => [...registry.expose('text')].join('').includes('proxy_budget_shares_connected 1'))
  expect(quota.stats().streams).toBe(1)
})
