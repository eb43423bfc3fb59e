import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createClient } from '@redis/client'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Redis } from '../callouts/redis.ts'
import { Client, inParallel, randomOf, Tally } from './load.ts'
import { PRICES, startProvider, type Provider } from './provider.ts'

/** Budgets by name; each has a route `/<name>`, LLM routes too. */
const BUDGETS = {
  requests: { limits: [{ requests: 300, window: 'Month' }], alertAt: [50] },
  rolling: { limits: [{ requests: 50, window: '8760h' }] },
  tokens: { limits: [{ tokens: 20_000, window: 'Month' }] },
  dollars: { limits: [{ usd: '1000', window: 'Month' }], key: 'request.headers["x-team"]' },
  killed: { limits: [{ requests: 2000, window: 'Month' }] },
  erased: { limits: [{ tokens: 1_000_000, window: 'Month' }] },
  rejecting: { limits: [{ requests: 1000, window: 'Month' }] },
  allowing: { limits: [{ requests: 5, window: 'Month' }], onDisconnect: 'Allow' },
  broken: { limits: [{ requests: 1000, window: 'Month' }] },
} as const
type Name = keyof typeof BUDGETS

let directory: string
let provider: Provider
let redis: Redis
let replicas: readonly { readonly dataplane: Dataplane; readonly client: Client }[] = []

async function start(name: string, env: Readonly<Record<string, string>>): Promise<(typeof replicas)[number]> {
  const port = await findFreePort()
  const file = join(directory, `${name}.json`)
  const routes = Object.entries(BUDGETS).map(([budget, fields]) => ({
    name: budget,
    matches: [{ path: { type: 'PathPrefix', value: `/${budget}` } }],
    policies: {
      budgets: [{ name: budget, store: 'Redis', ...fields }],
      ...('requests' in fields.limits[0] && { directResponse: { status: 200, body: 'ok' } }),
    },
    ...(!('requests' in fields.limits[0]) && {
      backends: [
        {
          ai: { provider: { openai: {}, host: '127.0.0.1', port: provider.port } },
          policies: {
            auth: { key: 'k' },
            ai: { routes: { '*': 'Completions' }, prices: { m: { input: String(PRICES.input), output: String(PRICES.output) } } },
          },
        },
      ],
    }),
  }))
  const settings = { url: `rediss://localhost:${redis.port}`, passwordFile: redis.files.password, caFile: redis.files.authority }
  await writeFile(file, JSON.stringify({ config: { redis: settings }, binds: [{ port, addresses: ['127.0.0.1'], listeners: [{ routes }] }] }))
  const dataplane = await startDataplane({ config: { file }, env, log: 'info' })
  return { dataplane, client: new Client(`http://127.0.0.1:${port}`) }
}

const connect = (ca: string) => createClient({ password: 'p@ss:word/1', socket: { host: 'localhost', port: redis.port, tls: true as const, ca } })

/** Runs a command on the counters. */
async function counters<T>(run: (client: ReturnType<typeof connect>) => Promise<T>): Promise<T> {
  const client = connect(await readFile(redis.files.authority, 'utf8'))
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await run(client)
  } finally {
    client.destroy()
  }
}

/** The hashes of all counters, without those of before. */
const readCounters = (known: ReadonlySet<string> = new Set()): Promise<Record<string, string>[]> =>
  counters(async (client) => {
    const keys = (await client.keys('proxy:budget:*')).filter((key) => !known.has(key))
    return Promise.all(keys.map((key) => client.hGetAll(key)))
  })
const keysOf = (): Promise<Set<string>> => counters(async (client) => new Set(await client.keys('proxy:budget:*')))

const random = randomOf(7)
/** The first replica gets 80 % of the load, the second 15 %. */
function pick(): Client {
  const value = random()
  const replica = replicas[value < 0.8 ? 0 : value < 0.95 ? 1 : 2]
  if (replica === undefined) throw new Error('no replica')
  return replica.client
}
const get = (name: Name, client = pick()): ReturnType<Client['send']> => client.send(`/${name}`)
const logs = (): string => replicas.flatMap(({ dataplane }) => dataplane.program.lines.map(({ text }) => text)).join('\n')
const metric = async (text: string): Promise<number> => {
  const pages = await Promise.all(replicas.map(({ dataplane }) => dataplane.metrics()))
  return pages.flatMap((page) => page.split('\n')).reduce((sum, line) => sum + (line.startsWith(text) ? Number(line.split(' ').at(-1)) : 0), 0)
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spend-redis-'))
  provider = await startProvider('127.0.0.1')
  redis = await Redis.start({ isDurable: true })
  replicas = await Promise.all([start('one', { WORKERS: '2' }), start('two', { WORKERS: '1' }), start('three', { WORKERS: '1' })])
  // Until the connections are there, requests are rejected.
  for (const { client } of replicas)
    for (let nth = 0; nth < 4; nth++) await waitUntil('the budget is charged', async () => (await client.send('/rejecting')).status === 200)
}, 180_000)
afterAll(async () => {
  for (const { client, dataplane } of replicas) {
    client.close()
    await dataplane.stop()
  }
  await redis.delete()
  await provider.close()
  await rm(directory, { recursive: true, force: true })
})

describe('budgets in Redis of three replicas', () => {
  test.each([
    ['requests', 300],
    ['rolling', 50],
  ] as const)('%s: %i of the requests are admitted, exactly', async (name, limit) => {
    const tally = new Tally()
    await inParallel(limit * 2, 60, async () => tally.add(await get(name)))
    expect([tally.statuses, tally.of(200)]).toEqual([[200, 429], limit])
    if (name === 'requests') {
      await waitUntil('the alert is counted', async () => (await metric('proxy_budget_alerts_total{policy')) > 0)
      expect(await metric('proxy_budget_alerts_total{policy')).toBe(1)
    }
  })

  test('parallel chats exceed a budget of tokens by the last one at most, and reservations are settled', async () => {
    const known = await keysOf()
    const tally = new Tally()
    await inParallel(400, 100, async (index) => {
      const use = { input: 20 + (index % 7), output: 50 + (index % 90), ms: 5, isStream: index % 2 === 0 }
      tally.add(await pick().chat('/tokens', 'tokens', use))
    })
    const sales = provider.sales.get('tokens')
    expect(tally.statuses).toEqual([200, 429])
    expect(sales?.tokens).toBeGreaterThan(15_000)
    expect(sales?.tokens).toBeLessThanOrEqual(20_000 + (sales?.maxTokens ?? 0))
    let found: Record<string, string>[] = []
    await waitUntil('everything is settled', async () => {
      found = await readCounters(known)
      return (
        found.length === 1 &&
        Object.keys(found[0] ?? {})
          .sort()
          .join() === 'g,v'
      )
    })
    expect(Number(found[0]?.['v'])).toBe(sales?.tokens)
  })

  test('dollars of teams are the sums of the provider, though Redis is killed while chats are in flight', async () => {
    const known = await keysOf()
    const running = inParallel(300, 30, (index) =>
      pick().chat('/dollars', `team-${index % 3}`, { input: 30 + (index % 11), output: 40 + (index % 13), ms: 60, isStream: index % 2 === 0 }),
    )
    await waitUntil('chats are answered', () => (provider.sales.get('team-0')?.requests ?? 0) > 5)
    await redis.stop()
    await redis.resume()
    await running
    const sold = (): number[] => [0, 1, 2].map((team) => (provider.sales.get(`team-${team}`)?.micros ?? 0) * 10).sort((a, b) => a - b)
    let found: Record<string, string>[] = []
    await waitUntil('everything is settled', async () => {
      found = await readCounters(known)
      return found.every((hash) => Object.keys(hash).every((field) => field === 'g' || field === 'v'))
    })
    expect(found.map(({ v }) => Number(v)).sort((a, b) => a - b)).toEqual(sold())
  })

  test('a budget is never exceeded while Redis is killed and started under load', async () => {
    const parallel = 40
    const tally = new Tally()
    let sent = 0
    const load = async (): Promise<void> => {
      // Rejections of the time without Redis are not paid for.
      while (tally.of(429) < 100) {
        const answer = await get('killed')
        sent++
        tally.add(answer)
      }
    }
    const running = Promise.all(Array.from({ length: parallel }, load))
    for (const part of [300, 900]) {
      await waitUntil(`${part} requests are admitted`, () => tally.of(200) > part)
      await redis.stop()
      const rejected = tally.of(503)
      await waitUntil('requests are rejected', () => tally.of(503) > rejected)
      await redis.resume()
    }
    await running
    expect(tally.statuses).toEqual([200, 429, 503])
    expect(sent).toBeGreaterThan(2000)
    expect(tally.of(200)).toBeLessThanOrEqual(2000)
    // Requests that were in flight when the server was killed may be counted without being admitted.
    expect(tally.of(200)).toBeGreaterThanOrEqual(2000 - 2 * parallel)
  })

  test('chats in flight are charged for what they used when Redis comes back without its data', async () => {
    const known = await keysOf()
    const chats = Array.from({ length: 20 }, (_, index) => pick().chat('/erased', 'erased', { input: 30 + index, output: 40, ms: 3000, isStream: true }))
    await waitUntil('chats are reserved', async () => (await readCounters(known)).some((hash) => Object.keys(hash).length === 22))
    await redis.stop()
    redis.erase()
    await redis.resume()
    for (const { status } of await Promise.all(chats)) expect(status).toBe(200)
    await waitUntil('they are charged', async () => {
      const [hash] = await readCounters()
      return Number(hash?.['v'] ?? 0) === provider.sales.get('erased')?.tokens
    })
  })

  test('while Redis hangs, requests wait for a bounded time; onDisconnect rejects them or admits the budget of each replica', async () => {
    const [first] = replicas
    if (first === undefined) throw new Error('no replica')
    await waitUntil('Redis is used', async () => (await get('rejecting', first.client)).status === 200)
    redis.signal('SIGSTOP')
    try {
      const began = performance.now()
      const rejected = await get('rejecting', first.client)
      expect([rejected.status, rejected.headers['retry-after'], rejected.body]).toEqual([
        503,
        '1',
        expect.stringContaining('budget not available: budget "rejecting" cannot be charged now'),
      ])
      const statuses = []
      for (let nth = 0; nth < 7; nth++) statuses.push((await get('allowing', first.client)).status)
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(await metric('proxy_budget_disconnected_total')).toBeGreaterThan(0)
      await waitUntil('the log has the cause', () => /PX4037/.test(logs()))
    } finally {
      redis.signal('SIGCONT')
    }
    await waitUntil('Redis is used again', async () => (await get('rejecting', first.client)).status === 200)
  })

  test('a value of another program is an error, and rejects', async () => {
    const known = await keysOf()
    await waitUntil('the budget is charged', async () => (await get('broken')).status === 200)
    const [key = ''] = [...(await keysOf())].filter((each) => !known.has(each))
    await counters(async (client) => {
      await client.del(key)
      await client.set(key, 'x'.repeat(1000))
    })
    expect((await get('broken')).status).toBe(503)
    await counters(async (client) => {
      await client.del(key)
      await client.hSet(key, 'v', 'many')
    })
    expect((await get('broken')).status).toBe(503)
    await counters((client) => client.del(key))
    expect((await get('broken')).status).toBe(200)
  })
})
