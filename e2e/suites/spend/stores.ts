import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Client, inParallel, randomOf, Tally } from './load.ts'
import { PRICES, startProvider, type Provider } from './provider.ts'

/** A counter of one window. */
export interface StoredCounter {
  readonly id: string
  /** Reservations included. */
  readonly amount: number
  /** Reservations that are not settled. */
  readonly reservations: number
}

/** A server with the counters of budgets. */
export interface CounterServer {
  /** Sections of `config` of the data planes. */
  readonly settings: object
  /** Kills it. */
  stop(): Promise<void>
  /** Starts it again. */
  resume(): Promise<void>
  /** Deletes the data of a server that is stopped. */
  erase(): void
  /** Stops its processes where they are, or continues them. */
  freeze(isFrozen: boolean): void
  counters(): Promise<StoredCounter[]>
  delete(): Promise<void>
}

/** Budgets by name; each has a route `/<name>`, LLM routes too. */
const BUDGETS = {
  requests: { limits: [{ requests: 300, window: 'Month' }], alertAt: [50] },
  rolling: { limits: [{ requests: 50, window: '8760h' }] },
  pair: {
    limits: [
      { requests: 60, window: 'Month' },
      { requests: 40, window: 'Month' },
    ],
  },
  tokens: { limits: [{ tokens: 20_000, window: 'Month' }] },
  'pair-tokens': {
    limits: [
      { tokens: 20_000, window: 'Month' },
      { tokens: 50_000, window: 'Month' },
    ],
  },
  dollars: { limits: [{ usd: '1000', window: 'Month' }], key: 'request.headers["x-team"]' },
  killed: { limits: [{ requests: 2000, window: 'Month' }] },
  erased: { limits: [{ tokens: 1_000_000, window: 'Month' }] },
  frozen: { limits: [{ tokens: 1_000_000, window: 'Month' }] },
  rejecting: { limits: [{ requests: 1000, window: 'Month' }] },
  allowing: { limits: [{ requests: 5, window: 'Month' }], onDisconnect: 'Allow' },
  broken: { limits: [{ requests: 1000, window: 'Month' }] },
} as const
type Name = keyof typeof BUDGETS

interface Replica {
  readonly dataplane: Dataplane
  readonly client: Client
}

/** Three replicas with budgets in one server. */
export class StoreFleet<S extends CounterServer> {
  readonly server: S
  readonly provider: Provider
  readonly #store: 'Redis' | 'Postgres'
  readonly #directory: string
  replicas: readonly Replica[] = []
  readonly #random = randomOf(7)

  private constructor(store: 'Redis' | 'Postgres', server: S, provider: Provider, directory: string) {
    this.#store = store
    this.server = server
    this.provider = provider
    this.#directory = directory
  }

  static async start<S extends CounterServer>(store: 'Redis' | 'Postgres', startServer: () => Promise<S>): Promise<StoreFleet<S>> {
    const directory = await mkdtemp(join(tmpdir(), 'spend-store-'))
    const fleet = new StoreFleet(store, await startServer(), await startProvider('127.0.0.1'), directory)
    // At once: each of them may create the tables.
    fleet.replicas = await Promise.all([fleet.startReplica('one', { WORKERS: '2' }), fleet.startReplica('two'), fleet.startReplica('three')])
    // Until the connections are there, requests are rejected.
    for (const { client } of fleet.replicas)
      for (let nth = 0; nth < 4; nth++) await waitUntil('the budget is charged', async () => (await client.send('/rejecting')).status === 200)
    return fleet
  }

  async startReplica(name: string, env: Readonly<Record<string, string>> = { WORKERS: '1' }): Promise<Replica> {
    const port = await findFreePort()
    const file = join(this.#directory, `${name}.json`)
    const routes = Object.entries(BUDGETS).map(([budget, fields]) => ({
      name: budget,
      matches: [{ path: { type: 'PathPrefix', value: `/${budget}` } }],
      policies: {
        budgets: [{ name: budget, store: this.#store, ...fields }],
        ...('requests' in fields.limits[0] && { directResponse: { status: 200, body: 'ok' } }),
      },
      ...(!('requests' in fields.limits[0]) && {
        backends: [
          {
            ai: { provider: { openai: {}, host: '127.0.0.1', port: this.provider.port } },
            policies: {
              auth: { key: 'k' },
              ai: { routes: { '*': 'Completions' }, prices: { m: { input: String(PRICES.input), output: String(PRICES.output) } } },
            },
          },
        ],
      }),
    }))
    await writeFile(file, JSON.stringify({ config: this.server.settings, binds: [{ port, addresses: ['127.0.0.1'], listeners: [{ routes }] }] }))
    const dataplane = await startDataplane({ config: { file }, env, log: 'info' })
    return { dataplane, client: new Client(`http://127.0.0.1:${port}`) }
  }

  async stop(): Promise<void> {
    for (const { client, dataplane } of this.replicas) {
      client.close()
      await dataplane.stop()
    }
    await this.server.delete()
    await this.provider.close()
    await rm(this.#directory, { recursive: true, force: true })
  }

  get first(): Client {
    const [first] = this.replicas
    if (first === undefined) throw new Error('no replica')
    return first.client
  }

  /** The first replica gets 80 % of the load, the second 15 %. */
  pick(): Client {
    const value = this.#random()
    return this.replicas[value < 0.8 ? 0 : value < 0.95 ? 1 : 2]?.client ?? this.first
  }

  get(name: Name, client = this.pick()): ReturnType<Client['send']> {
    return client.send(`/${name}`)
  }

  /** A chat, again while the server does not answer in time. */
  async chat(...args: Parameters<Client['chat']>): ReturnType<Client['chat']> {
    for (;;) {
      const answer = await this.pick().chat(...args)
      if (answer.status !== 503) return answer
      await wait(100)
    }
  }

  logs(): string {
    return this.replicas.flatMap(({ dataplane }) => dataplane.program.lines.map(({ text }) => text)).join('\n')
  }

  /** Sum of a metric over the replicas. */
  async metric(text: string): Promise<number> {
    const pages = await Promise.all(this.replicas.map(({ dataplane }) => dataplane.metrics()))
    return pages.flatMap((page) => page.split('\n')).reduce((sum, line) => sum + (line.startsWith(text) ? Number(line.split(' ').at(-1)) : 0), 0)
  }

  /** Ids of all counters. */
  async known(): Promise<Set<string>> {
    return new Set((await this.server.counters()).map(({ id }) => id))
  }

  /** The counters that were not known before. */
  async counters(known: ReadonlySet<string> = new Set()): Promise<StoredCounter[]> {
    return (await this.server.counters()).filter(({ id }) => !known.has(id))
  }
}

/** Tests budgets of three replicas in a server. `more`: tests of its own. */
export function testBudgetsIn<S extends CounterServer>(
  store: 'Redis' | 'Postgres',
  startServer: () => Promise<S>,
  more: (fleetOf: () => StoreFleet<S>) => void,
): void {
  let fleet: StoreFleet<S>
  beforeAll(async () => {
    fleet = await StoreFleet.start(store, startServer)
  }, 180_000)
  afterAll(() => fleet.stop())

  describe(`budgets in ${store} of three replicas`, () => {
    testLimits(() => fleet)
    testFailures(() => fleet)
    testAbsence(() => fleet)
    more(() => fleet)
  })
}

function testLimits(fleetOf: () => StoreFleet<CounterServer>): void {
  // A request that a loaded server does not answer in time is rejected, and may be counted.
  test.each([
    ['requests', 300],
    ['rolling', 50],
    ['pair', 40],
  ] as const)('%s: %i of the requests are admitted, exactly', async (name, limit) => {
    const fleet = fleetOf()
    const tally = new Tally()
    await inParallel(limit * 2, 60, async () => tally.add(await fleet.get(name)))
    expect(tally.statuses.filter((status) => status !== 503)).toEqual([200, 429])
    expect(tally.of(200)).toBeLessThanOrEqual(limit)
    expect(tally.of(200)).toBeGreaterThanOrEqual(limit - tally.of(503))
    if (name === 'requests') {
      await waitUntil('the alert is counted', async () => (await fleet.metric('proxy_budget_alerts_total{policy')) > 0)
      expect(await fleet.metric('proxy_budget_alerts_total{policy')).toBe(1)
    }
  })

  test.each(['tokens', 'pair-tokens'] as const)('%s: parallel chats exceed a budget by the last one at most, and reservations are settled', async (name) => {
    const fleet = fleetOf()
    const known = await fleet.known()
    const tally = new Tally()
    await inParallel(400, 100, async (index) => {
      const use = { input: 20 + (index % 7), output: 50 + (index % 90), ms: 5, isStream: index % 2 === 0 }
      tally.add(await fleet.chat(`/${name}`, name, use))
    })
    const sales = fleet.provider.sales.get(name)
    expect(tally.statuses).toEqual([200, 429])
    expect(sales?.tokens).toBeGreaterThan(15_000)
    expect(sales?.tokens).toBeLessThanOrEqual(20_000 + (sales?.maxTokens ?? 0))
    let found: StoredCounter[] = []
    await waitUntil('everything is settled', async () => {
      found = await fleet.counters(known)
      return found.length === 1 && found[0]?.reservations === 0
    })
    expect(found[0]?.amount).toBe(sales?.tokens)
  })
}

function testFailures(fleetOf: () => StoreFleet<CounterServer>): void {
  test('dollars of teams are the sums of the provider, though the server is killed while chats are in flight', async () => {
    const fleet = fleetOf()
    const { provider, server } = fleet
    const known = await fleet.known()
    const running = inParallel(300, 30, (index) =>
      fleet.pick().chat('/dollars', `team-${index % 3}`, { input: 30 + (index % 11), output: 40 + (index % 13), ms: 60, isStream: index % 2 === 0 }),
    )
    await waitUntil('chats are answered', () => (provider.sales.get('team-0')?.requests ?? 0) > 5)
    await server.stop()
    await server.resume()
    await running
    const sold = (): number[] => [0, 1, 2].map((team) => (provider.sales.get(`team-${team}`)?.micros ?? 0) * 10).sort((a, b) => a - b)
    let found: StoredCounter[] = []
    await waitUntil('everything is settled', async () => {
      found = await fleet.counters(known)
      return found.every(({ reservations }) => reservations === 0)
    })
    expect(found.map(({ amount }) => amount).sort((a, b) => a - b)).toEqual(sold())
  })

  test('a budget is never exceeded while the server is killed and started under load', async () => {
    const fleet = fleetOf()
    const parallel = 40
    const tally = new Tally()
    let sent = 0
    const load = async (): Promise<void> => {
      // Rejections of the time without a server are not paid for.
      while (tally.of(429) < 100) {
        const answer = await fleet.get('killed')
        sent++
        tally.add(answer)
      }
    }
    const running = Promise.all(Array.from({ length: parallel }, load))
    for (const part of [300, 900]) {
      await waitUntil(`${part} requests are admitted`, () => tally.of(200) > part)
      await fleet.server.stop()
      const rejected = tally.of(503)
      await waitUntil('requests are rejected', () => tally.of(503) > rejected)
      await fleet.server.resume()
    }
    await running
    expect(tally.statuses).toEqual([200, 429, 503])
    expect(sent).toBeGreaterThan(2000)
    expect(tally.of(200)).toBeLessThanOrEqual(2000)
    // Requests that were in flight when the server was killed may be counted without being admitted.
    expect(tally.of(200)).toBeGreaterThanOrEqual(2000 - 2 * parallel)
  })
}

function testAbsence(fleetOf: () => StoreFleet<CounterServer>): void {
  test('chats in flight are charged for what they used when the server comes back without its data', async () => {
    const fleet = fleetOf()
    const known = await fleet.known()
    const chats = Array.from({ length: 20 }, (_, index) => fleet.pick().chat('/erased', 'erased', { input: 30 + index, output: 40, ms: 3000, isStream: true }))
    await waitUntil('chats are reserved', async () => (await fleet.counters(known)).some(({ reservations }) => reservations === 20))
    await fleet.server.stop()
    fleet.server.erase()
    await fleet.server.resume()
    for (const { status } of await Promise.all(chats)) expect(status).toBe(200)
    await waitUntil('they are charged', async () => {
      const [counter] = await fleet.counters()
      return (counter?.amount ?? 0) === fleet.provider.sales.get('erased')?.tokens
    })
  })

  test('while the server hangs, requests wait for a bounded time; onDisconnect rejects them or admits the budget of each replica', async () => {
    const fleet = fleetOf()
    await waitUntil('the server is used', async () => (await fleet.get('rejecting', fleet.first)).status === 200)
    const known = await fleet.known()
    fleet.server.freeze(true)
    try {
      const began = performance.now()
      // Its statement is run later, when nobody waits for it.
      const lost = await fleet.first.chat('/frozen', 'frozen', { input: 30, output: 40 })
      const rejected = await fleet.get('rejecting', fleet.first)
      expect([lost.status, rejected.status, rejected.headers['retry-after'], rejected.body]).toEqual([
        503,
        503,
        '1',
        expect.stringContaining('budget not available: budget "rejecting" cannot be charged now'),
      ])
      const statuses = []
      for (let nth = 0; nth < 7; nth++) statuses.push((await fleet.get('allowing', fleet.first)).status)
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(await fleet.metric('proxy_budget_disconnected_total')).toBeGreaterThan(0)
      await waitUntil('the log has the cause', () => /PX40(37|39)/.test(fleet.logs()))
    } finally {
      fleet.server.freeze(false)
    }
    await waitUntil('the server is used again', async () => (await fleet.get('rejecting', fleet.first)).status === 200)
    await waitUntil('a chat is charged', async () => (await fleet.first.chat('/frozen', 'frozen', { input: 30, output: 40 })).status === 200)
    await waitUntil('what was reserved for nobody is returned', async () => {
      const found = (await fleet.counters(known)).filter(({ amount }) => amount > 0)
      return (
        found.length > 0 &&
        found.every(({ reservations }) => reservations === 0) &&
        found.some(({ amount }) => amount === fleet.provider.sales.get('frozen')?.tokens)
      )
    })
  })
}
