import { describe, expect, test } from '@jest/globals'
import { statementStores, type Schema, type ScriptOutcome, type StatementStore } from '../../runtime/value-store.ts'
import type { StoreLimit } from './counter-store.ts'
import { PostgresCounters } from './postgres-counters.ts'
import { COUNTERS, RESERVE_ROWS, SETTLE_ROWS } from './statements.ts'

type Rows = ScriptOutcome<readonly Readonly<Record<string, unknown>>[]>

/** Records statements, and responds when it is told to. `e2e/suites/spend/postgres.e2e.ts` runs them in PostgreSQL. */
class FakeDatabase implements StatementStore {
  readonly sent: { readonly text: string; readonly values: readonly unknown[]; readonly respond: (rows: Rows) => void }[] = []
  readonly schemas = new Set<Schema>()

  query(schema: Schema, text: string, values: readonly unknown[] = []): Promise<Rows> {
    this.schemas.add(schema)
    const { promise, resolve } = Promise.withResolvers<Rows>()
    this.sent.push({ text, values, respond: resolve })
    return promise
  }
}

function create() {
  const registry = {}
  const database = new FakeDatabase()
  statementStores.set(registry, database)
  const counters = new PostgresCounters(registry)
  const reservations = () => database.sent.filter(({ text }) => text === RESERVE_ROWS)
  return { counters, database, reservations }
}

const limit: StoreLimit = { counter: 'c', index: 7, amount: 1, limit: 10, part: -1, isForced: false, isSettled: true, stayMs: 5 }
const row = { counter: 'c', period: 7, amount: 1, limit: 10, part: -1, forced: false, settled: true, stay: 5 }
const reserved = { value: { isReserved: true, limits: [{ isNext: false, isAdmitted: true, current: 3, previous: 0, origin: 'g' }] } }

describe('counters in PostgreSQL', () => {
  test('reserve by one statement at a time, which later requests share', async () => {
    const { counters, database, reservations } = create()
    const outcomes = Promise.all(['a', 'b', 'c'].map((id) => counters.reserve(id, [limit])))
    expect(reservations().map(({ values }) => JSON.parse(String(values[0])) as unknown)).toEqual([[{ id: 'a', limits: [row] }]])
    reservations()[0]?.respond({ value: [{ result: [[true, [[false, true, 3, 0, 'g']]]] }] })
    await new Promise(setImmediate)
    expect(JSON.parse(String(reservations()[1]?.values[0]))).toEqual(['b', 'c'].map((id) => ({ id, limits: [row] })))
    reservations()[1]?.respond({
      value: [
        {
          result: [
            [false, [[true, false, 10, 2, '']]],
            [true, [[false, true, 3, 0, 'g']]],
          ],
        },
      ],
    })
    expect(await outcomes).toEqual([
      reserved,
      { value: { isReserved: false, limits: [{ isNext: true, isAdmitted: false, current: 10, previous: 2, origin: '' }] } },
      reserved,
    ])
    expect([...database.schemas]).toEqual([COUNTERS])
  })

  test('fail together with their statement, and those that would wait for too many', async () => {
    const { counters, reservations } = create()
    const outcomes = Array.from({ length: 1002 }, (_, nth) => counters.reserve(String(nth), [limit]))
    expect(await outcomes[1001]).toEqual({ error: 'too many requests wait for PostgreSQL', mayRun: false })
    const lost = { error: 'lost', mayRun: true }
    for (let nth = 0; nth < 11; nth++) {
      reservations()[nth]?.respond(lost)
      await new Promise(setImmediate)
    }
    expect(new Set((await Promise.all(outcomes.slice(0, 1001))).map((outcome) => JSON.stringify(outcome)))).toEqual(new Set([JSON.stringify(lost)]))
    expect(reservations()).toHaveLength(11)
  })

  test('settle and claim alerts by statements of their own', async () => {
    const { counters, database } = create()
    const settled = counters.settle([{ counter: 'c', index: 7, id: 'a', used: 4, origin: 'g', stayMs: 5 }])
    const sent = database.sent.at(-1)
    expect([sent?.text, JSON.parse(String(sent?.values[0]))]).toEqual([SETTLE_ROWS, [{ counter: 'c', period: 7, id: 'a', used: 4, origin: 'g', stay: 5 }]])
    sent?.respond({ value: [{ result: [12] }] })
    expect(await settled).toEqual({ value: [12] })
    for (const [rows, isClaimed] of [
      [[{ alert: 50 }], true],
      [[], false],
    ] as const) {
      const claimed = counters.claimAlert('c', 7, 50)
      expect(database.sent.at(-1)?.values).toEqual(['c', 7, 50])
      database.sent.at(-1)?.respond({ value: rows })
      expect(await claimed).toEqual({ value: isClaimed })
    }
  })

  test.each([[[]], [[{ result: null }]], [[{ result: [] }]]])('take %j for a failure', async (rows) => {
    const { counters, database } = create()
    const settled = counters.settle([{ counter: 'c', index: 7, id: 'a', used: 4, origin: 'g', stayMs: 5 }])
    database.sent.at(-1)?.respond({ value: rows })
    expect(await settled).toEqual({ error: 'the function returned something else', mayRun: true })
  })

  test('fail without config.postgres', async () => {
    expect(await new PostgresCounters({}).reserve('a', [limit])).toEqual({ error: 'config.postgres is not set', mayRun: false })
  })
})
