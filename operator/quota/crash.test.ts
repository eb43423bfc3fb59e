import { expect, test } from '@jest/globals'
import { compileWindows } from '#api/budget-window.ts'
import { fc } from '#api/property-testing.ts'
import { ShareKeeper } from '../../dataplane/program/quota/keeper.ts'
import { COUNTER_WORDS } from '../../dataplane/policy/budgets/counter.ts'
import { SHARE_WORDS, ShareCounter } from '../../dataplane/policy/budgets/share.ts'
import { QuotaPool, SHARE_MS, type Connection } from './pool.ts'

const DAY = compileWindows('Day')
const START = Date.parse('2026-11-24T10:00:00Z')
const LIMIT = 300
const NAMES = { limit: 'ns/p team requests Day', key: 'all', counter: 'c' }
const newPool = (): QuotaPool => new QuotaPool(() => ({ amount: LIMIT, windows: DAY }))

/** The counter and the keeper of a data plane, on a stream without a network. */
class Replica {
  readonly #counter: ShareCounter
  readonly #keeper: ShareKeeper
  readonly #id: string
  readonly #clock: { nowMs: number }
  #stream: { readonly pool: QuotaPool; readonly connection: Connection } | undefined
  /** Requests that were admitted. */
  admitted = 0

  constructor(id: string, clock: { nowMs: number }) {
    const [counter, share] = [{ words: new BigInt64Array(COUNTER_WORDS) }, { words: new BigInt64Array(SHARE_WORDS) }]
    this.#counter = new ShareCounter(() => counter, () => share, DAY) // prettier-ignore
    this.#keeper = new ShareKeeper({ onUrgent: () => undefined, epochMs: () => clock.nowMs })
    this.#id = id
    this.#clock = clock
  }

  connect(pool: QuotaPool): void {
    this.#stream = { pool, connection: pool.connect(this.#id) }
    this.#keeper.connected()
  }

  disconnect(): void {
    this.#stream = undefined
    this.#keeper.disconnected()
  }

  /** One request, which a share that is too small rejects. */
  send(): void {
    const { nowMs } = this.#clock
    const { isAdmitted, isShort, index } = this.#counter.reserve(nowMs, LIMIT, 1, 1)
    if (isShort === true) void this.#keeper.want(this.#counter.bucketAt(nowMs, NAMES), () => this.#counter.memory)
    if (!isAdmitted) return
    this.admitted++
    this.#counter.spend(index, 1)
  }

  /** A report, and its response. */
  report(): void {
    if (this.#stream === undefined) return
    const { pool, connection } = this.#stream
    const usages = this.#keeper.takeReport().map(({ bucket: { limit, key, index }, ...use }) => ({ limit, key, index, ...use }))
    const shares = pool.report(connection, usages, this.#clock.nowMs)
    this.#keeper.apply(shares.map((share) => ({ ...share, ttlMs: SHARE_MS })))
    this.#keeper.endWaits()
  }
}

const sum = (replicas: readonly Replica[]): number => replicas.reduce((total, { admitted }) => total + admitted, 0)

function start(count: number) {
  const clock = { nowMs: START }
  const replicas = Array.from({ length: count }, (_, nth) => new Replica(`r${nth}`, clock))
  const connect = (pool: QuotaPool): void => replicas.forEach((each) => each.connect(pool))
  connect(newPool())
  /** Requests at all replicas, and their reports, for some time. */
  const run = (ms: number, among: readonly Replica[] = replicas): void => {
    for (const untilMs = clock.nowMs + ms; clock.nowMs < untilMs; clock.nowMs += 100)
      for (const each of among) {
        for (let nth = 0; nth < 5; nth++) each.send()
        each.report()
      }
  }
  return { replicas, clock, connect, run }
}

test.each([1, 2, 3, 5])('an operator that lost the counters of a budget that %i replicas have used up admits nothing more', (count) => {
  const { replicas, connect, run } = start(count)
  run(20_000)
  expect(sum(replicas)).toBe(LIMIT)
  for (const reconnected of [replicas, replicas.toReversed()]) {
    const pool = newPool()
    replicas.forEach((each) => each.disconnect())
    run(1000)
    for (const each of reconnected) {
      each.connect(pool)
      run(400)
    }
    // Beyond the time for which the use of replicas that are gone is known.
    run(SHARE_MS + 10_000)
    expect(sum(replicas)).toBe(LIMIT)
  }
  connect(newPool())
  run(1000)
  expect(sum(replicas)).toBe(LIMIT)
})

test('while some replicas have not reported to a new operator, what they had used is not free', () => {
  const { replicas, connect, run } = start(3)
  run(1500)
  const used = sum(replicas)
  expect(used).toBeGreaterThan(100)
  expect(used).toBeLessThan(LIMIT)
  connect(newPool())
  const [first] = replicas as [Replica]
  run(10_000, [first])
  // The first one has no response after the last five requests of each of the others.
  expect(sum(replicas)).toBeLessThanOrEqual(LIMIT + 10)
  run(30_000)
  expect(sum(replicas)).toBeGreaterThanOrEqual(LIMIT)
  expect(sum(replicas)).toBeLessThanOrEqual(LIMIT + 10)
})

/** Requests that a replica has sent since its last response are all that nobody knows of. */
test('whenever operators lose their counters, a budget is exceeded by at most what replicas used between two reports', () => {
  const BETWEEN = 5
  const whose = fc.nat({ max: 2 })
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ type: fc.constant('turn' as const), which: whose, sent: fc.nat({ max: BETWEEN }), ms: fc.constantFrom(10, 50, 200) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('crash' as const), which: whose, sent: fc.constant(0), ms: fc.constantFrom(0, 500) }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 250 }), (steps) => {
      const { replicas, clock } = start(3)
      let crashes = 0
      let pool = newPool()
      replicas.forEach((each) => each.connect(pool))
      for (const { type, which, sent, ms } of steps) {
        clock.nowMs += ms
        if (type === 'crash') {
          crashes++
          pool = newPool()
          // The streams of all end at once; each replica opens another one when its turn comes.
          for (const offset of [0, 1, 2]) {
            const replica = replicas[(which + offset) % 3]
            replica?.connect(pool)
            replica?.report()
          }
          continue
        }
        for (let nth = 0; nth < sent; nth++) replicas[which]?.send()
        replicas[which]?.report()
      }
      expect(sum(replicas)).toBeLessThanOrEqual(LIMIT + crashes * BETWEEN * 2)
    }),
    { numRuns: 300 },
  )
})
