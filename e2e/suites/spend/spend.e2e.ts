import { setTimeout as wait } from 'node:timers/promises'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { Fleet, type Replica, type RouteBudget } from './fleet.ts'
import { inParallel, randomOf, Tally } from './load.ts'

/** Requests of the books. */
const REQUESTS = Number(process.env['SPEND_REQUESTS'] ?? 10_000)
const TEAM = 'request.headers["x-team"]'
const STREAM_TOKENS = 300

/** Dollars of a team. A request costs 0.0007 USD on average, and the largest team sends 80 % of them: more than its budget. */
const BOOKS_USD = Math.max(0.05, REQUESTS * 0.0004)

const day = (requests: number): object => ({ limits: [{ requests, window: 'Day' }] })
const budgets: readonly RouteBudget[] = [
  { name: 'streams', budget: { limits: [{ tokens: 30_000, window: 'Day' }] } },
  { name: 'minute', budget: { limits: [{ requests: 1000, window: '1m' }] }, isPlain: true },
  { name: 'edge', budget: day(300), isPlain: true },
  { name: 'killed', budget: day(600), isPlain: true },
  { name: 'restarted', budget: day(300), isPlain: true },
  { name: 'cut', budget: { ...day(1000), onDisconnect: 'Reject' }, isPlain: true },
  { name: 'books', budget: { key: TEAM, limits: [{ usd: BOOKS_USD.toFixed(4), window: 'Day' }], exposeRemaining: true } },
]

let fleet: Fleet
beforeAll(async () => {
  fleet = await Fleet.start({ replicas: 3, budgets })
}, 180_000)
afterAll(() => fleet?.stop())

const pick = (index: number): Replica => fleet.replicas[index % fleet.replicas.length] as Replica
/** The replica of a request under a load of which the first has 80 %, the second 15 %. */
const skewed = (random: number): Replica => pick(random < 0.8 ? 0 : random < 0.95 ? 1 : 2)

async function setClocks(epochMs: number, skewsMs: readonly number[] = []): Promise<void> {
  fleet.setClocks(epochMs, skewsMs)
  await fleet.settleClocks()
}

const DAY_MS = 86_400_000
let dayMs = Date.parse('2026-12-01T00:00:00Z')
/** Sets the clocks to a time of the next day, so that all windows are new, also when a test is tried again. Returns the time. */
async function startDay(time: string, skewsMs: readonly number[] = []): Promise<number> {
  dayMs += DAY_MS
  const epochMs = Date.parse(`${new Date(dayMs).toISOString().slice(0, 10)}T${time}Z`)
  await setClocks(epochMs, skewsMs)
  await fleet.startOperator()
  await waitUntil('all replicas are connected', () => fleet.areConnected(true))
  return epochMs
}

/** Sends requests to a plain route at a rate, under skewed load, until the time is over or `isEnough`. */
async function sendPlain(
  path: string,
  { perSecond, ms, seed }: { perSecond: number; ms: number; seed: number },
  isEnough = (): boolean => false,
): Promise<Tally> {
  const random = randomOf(seed)
  const tally = new Tally()
  const pending: Promise<void>[] = []
  const startMs = performance.now()
  for (let sent = 0; ;) {
    const elapsed = performance.now() - startMs
    for (; sent < (Math.min(elapsed, ms) * perSecond) / 1000; sent++)
      pending.push(
        skewed(random())
          .client.send(path)
          .then((answer) => tally.add(answer)),
      )
    if (elapsed >= ms || isEnough()) break
    await wait(10)
  }
  await Promise.all(pending)
  return tally
}

/** Sends until the budget is used up for each replica. Returns the number of requests that were admitted. */
async function exhaust(path: string, random = randomOf(7)): Promise<number> {
  let admitted = 0
  const rejected = new Map<Replica, number>()
  const isLeft = (replica: Replica): boolean => (rejected.get(replica) ?? 0) < 5
  await inParallel(20_000, 16, async () => {
    if (!fleet.replicas.some(isLeft)) return
    const replica = [skewed(random()), ...fleet.replicas].find(isLeft)
    if (replica === undefined) return
    const { status, headers } = await replica.client.send(path)
    if (status === 200) admitted++
    // Others give back in a second what they do not need.
    const isUsedUp = status === 429 && headers['retry-after'] !== '1'
    rejected.set(replica, isUsedUp ? (rejected.get(replica) ?? 0) + 1 : 0)
    if (status !== 200 && !isUsedUp) await wait(100)
  })
  return admitted
}

interface BudgetRow {
  readonly budget: string
  readonly key: string | null
  readonly used: number
}

/** What a replica says of a budget, by key. */
async function usedOf({ dataplane }: Replica, budget: string): Promise<Map<string | null, number>> {
  const { rows } = (await (await dataplane.admin('/api/v1/budgets')).json()) as { rows: BudgetRow[] }
  return new Map(rows.filter((row) => row.budget === budget).map(({ key, used }) => [key, used]))
}

describe('a budget of three replicas with two workers each', () => {
  test('of 1,000 requests a minute admits 1,000 under skewed load', async () => {
    // Early in a minute, so that the load does not reach the next one.
    const startMs = await startDay('10:00:05')
    const tally = await sendPlain('/minute', { perSecond: 300, ms: 8000, seed: 1 })
    expect(tally.statuses).toEqual([200, 429])
    expect(tally.of(200)).toBeGreaterThanOrEqual(990)
    expect(tally.of(200)).toBeLessThanOrEqual(1010)
    // What was admitted in a full minute counts for half in the middle of the next one, and then for a sixtieth less each second.
    await setClocks(startMs + 85_000)
    const sinceMs = performance.now()
    const { statuses, ...half } = await sendPlain('/minute', { perSecond: 300, ms: 4000, seed: 12 }).then((all) => ({
      statuses: all.statuses,
      admitted: all.of(200),
    }))
    expect(statuses).toEqual([200, 429])
    expect(half.admitted).toBeGreaterThanOrEqual(480)
    expect(half.admitted).toBeLessThanOrEqual(510 + ((performance.now() - sinceMs) / 60_000) * 1000)
  })

  test('of tokens is exceeded by at most one request for each replica, with 100 parallel streams', async () => {
    await startDay('10:00:00')
    fleet.provider.sales.clear()
    const tally = new Tally()
    const use = { input: 100, output: STREAM_TOKENS - 100, ms: 30, isStream: true }
    const random = randomOf(2)
    await inParallel(300, 100, async () => tally.add(await skewed(random()).client.chat('/streams', 'all', use)))
    expect(tally.statuses).toEqual([200, 429])
    const { tokens, requests } = fleet.provider.sales.get('all') ?? { tokens: 0, requests: 0 }
    expect(requests).toBe(tally.of(200))
    expect(tokens).toBeGreaterThanOrEqual(30_000 - 3 * STREAM_TOKENS)
    expect(tokens).toBeLessThanOrEqual(30_000 + 3 * STREAM_TOKENS)
  })

  test('opens once at midnight, when the clocks of replicas are apart, and not again when they are set back', async () => {
    const startMs = await startDay('23:59:57', [-300, 0, 300])
    const tally = await sendPlain('/edge', { perSecond: 250, ms: 8000, seed: 3 })
    expect(tally.statuses).toEqual([200, 429])
    expect(tally.of(200)).toBe(600)
    dayMs += DAY_MS
    await setClocks(startMs, [300, 0, -300])
    expect(await exhaust('/edge')).toBe(0)
  })

  test('outlives an operator that is killed', async () => {
    await startDay('10:00:00')
    const before = await sendPlain('/killed', { perSecond: 200, ms: 1000, seed: 4 })
    expect(before.of(200)).toBeGreaterThan(100)
    await fleet.killOperator()
    await waitUntil('no replica is connected', () => fleet.areConnected(false))
    // Requests use the last shares.
    const alone = await sendPlain('/killed', { perSecond: 30, ms: 500, seed: 5 })
    await fleet.startOperator()
    await waitUntil('all replicas are connected', () => fleet.areConnected(true))
    const after = await exhaust('/killed')
    expect([before.of(503), before.of(200) + alone.of(200) + after]).toEqual([0, 600])
  })

  test('counts what a replica used before it restarted', async () => {
    await startDay('11:00:00')
    const before = await sendPlain('/restarted', { perSecond: 100, ms: 1000, seed: 6 })
    await pick(0).restart()
    expect(before.of(200) + (await exhaust('/restarted'))).toBe(300)
  })

  test('rejects when the operator is gone and the last share has expired', async () => {
    const startMs = await startDay('12:00:00')
    expect((await sendPlain('/cut', { perSecond: 50, ms: 500, seed: 8 })).statuses).toEqual([200])
    await fleet.killOperator()
    await waitUntil('no replica is connected', () => fleet.areConnected(false))
    await setClocks(startMs + 40_000)
    const tally = await sendPlain('/cut', { perSecond: 50, ms: 500, seed: 9 })
    expect(tally.statuses).toEqual([503])
    await fleet.startOperator()
    await waitUntil('all replicas are connected', () => fleet.areConnected(true))
    expect((await sendPlain('/cut', { perSecond: 50, ms: 500, seed: 10 })).statuses).toEqual([200])
  })
})

/** The metric of all replicas, in dollars. */
async function spentOnBooks(): Promise<number> {
  const metrics = await Promise.all(fleet.replicas.map(({ dataplane }) => dataplane.metrics()))
  const samples = metrics.flatMap((text) => [...text.matchAll(/^proxy_budget_spent_total\{[^}]*budget="books"[^}]*\} (\S+)$/gm)])
  return samples.reduce((sum, [, value]) => sum + Number(value), 0)
}

test(`the books of ${REQUESTS} requests balance to the cent: provider, budgets, ledger and metrics`, async () => {
  const startMs = await startDay('10:00:00')
  fleet.provider.sales.clear()
  const before = await spentOnBooks()
  const random = randomOf(11)
  const teams = ['red', 'blue', 'green']
  const tally = new Tally()
  const succeeded = new Map<string, number>()
  await inParallel(REQUESTS, 24, async (index) => {
    const team = teams[random() < 0.8 ? 0 : random() < 0.7 ? 1 : 2] as string
    const use = { input: 1 + Math.floor(random() * 100), output: 1 + Math.floor(random() * 70), isStream: random() < 0.3, isFailing: index % 50 === 49 }
    const answer = await skewed(random()).client.chat('/books', team, use)
    tally.add(answer)
    if (answer.status === 200) succeeded.set(team, (succeeded.get(team) ?? 0) + 1)
  })
  // The budget of the largest team is used up.
  expect(tally.statuses).toEqual([200, 429, 500])
  const { sales } = fleet.provider
  const limit = Math.round(BOOKS_USD * 1e6)
  const red = sales.get('red')
  expect(red?.micros).toBeGreaterThanOrEqual(limit)
  expect(red?.micros).toBeLessThanOrEqual(limit + 3 * (red?.maxMicros ?? 0))

  const micros = (usd: number | undefined): number => Math.round((usd ?? 0) * 1e6)
  const sold = Object.fromEntries(teams.map((team) => [team, sales.get(team)?.micros]))
  expect(Object.fromEntries(teams.map((team) => [team, sales.get(team)?.requests]))).toEqual(Object.fromEntries(succeeded))
  // Each replica knows the sum of all as of the last report.
  await waitUntil('the budgets of a replica have the sums of the provider', async () => {
    const used = await usedOf(pick(0), 'books')
    return teams.every((team) => micros(used.get(team)) === sold[team])
  })
  expect(micros((await spentOnBooks()) - before)).toBe(Object.values(sold).reduce<number>((sum, value = 0) => sum + value, 0))

  const ledger = new Map<string, { cost: number; requests: number; errors: number }>()
  const read = async (): Promise<void> => {
    ledger.clear()
    for (const replica of fleet.replicas) {
      const main = fileURLToPath(new URL('../../../operator/proxyctl/main.ts', import.meta.url))
      const args = [
        main,
        'spend',
        '--file',
        replica.ledger,
        '--by',
        'team',
        '--since',
        new Date(startMs).toISOString(),
        '--until',
        new Date(startMs + DAY_MS / 2).toISOString(),
        '-o',
        'json',
      ]
      const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' } })
      for (const row of (JSON.parse(stdout) as { rows: { group: string[]; cost: number; requests: number; errors: number }[] }).rows) {
        const [team = ''] = row.group
        const sum = ledger.get(team) ?? { cost: 0, requests: 0, errors: 0 }
        ledger.set(team, { cost: sum.cost + row.cost, requests: sum.requests + row.requests, errors: sum.errors + row.errors })
      }
    }
  }
  await waitUntil('the ledgers have all requests', async () => {
    await read()
    return ledger.values().reduce((sum, { requests, errors }) => sum + requests - errors, 0) === tally.of(200)
  })
  expect(Object.fromEntries(teams.map((team) => [team, micros(ledger.get(team)?.cost)]))).toEqual(sold)
})
