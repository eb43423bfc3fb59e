import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import pg from 'pg'
import { waitUntil } from '../../harness/wait.ts'
import { Postgres } from '../callouts/postgres.ts'
import { testBudgetsIn, type CounterServer, type StoredCounter } from './stores.ts'

/** Debian's PostgreSQL server. */
class PostgresCounters implements CounterServer {
  readonly #postgres: Postgres

  private constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  static async start(): Promise<PostgresCounters> {
    return new PostgresCounters(await Postgres.start())
  }

  get settings(): object {
    const { port, files } = this.#postgres
    return { postgres: { url: `postgres://ledger@localhost:${port}/postgres`, passwordFile: files.password, caFile: files.authority } }
  }

  stop = (): Promise<void> => this.#postgres.stop()
  resume = (): Promise<void> => this.#postgres.resume()
  erase = (): void => this.#postgres.erase()
  freeze = (isFrozen: boolean): void => this.#postgres.freeze(isFrozen)
  delete = (): Promise<void> => this.#postgres.delete()

  async query(text: string): Promise<Record<string, unknown>[]> {
    const { port, files } = this.#postgres
    const ca = await readFile(files.authority, 'utf8')
    const client = new pg.Client({ host: 'localhost', port, user: 'ledger', database: 'postgres', password: 'p@ss:word/1', ssl: { ca } })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }

  async counters(): Promise<StoredCounter[]> {
    const [there] = await this.query(`SELECT to_regclass('proxy_budget_reservations') IS NOT NULL AS found`)
    if (there?.['found'] !== true) return []
    const rows = await this.query(`SELECT c.counter || ' ' || c.period AS id, c.amount,
      (SELECT count(*) FROM proxy_budget_reservations AS r WHERE r.counter = c.counter AND r.period = c.period AND r.amount > 0) AS reservations
      FROM proxy_budget_counters AS c`)
    return rows.map(({ id, amount, reservations }) => ({ id: String(id), amount: Number(amount), reservations: Number(reservations) }))
  }
}

testBudgetsIn('Postgres', PostgresCounters.start, (fleetOf) => {
  test('tables that were deleted are created again', async () => {
    const fleet = fleetOf()
    await waitUntil('the budget is charged', async () => (await fleet.get('broken')).status === 200)
    await fleet.server.query('DROP TABLE proxy_budget_counters, proxy_budget_reservations, proxy_budgets')
    expect((await fleet.get('broken')).status).toBe(503)
    await waitUntil('the budget is charged again', async () => (await fleet.get('broken')).status === 200)
  })

  // The first failure of a data plane is logged: each of these tests has one of its own.
  test.each([
    [
      'transactions with another isolation would not be exact, and reject',
      `ALTER ROLE ledger SET default_transaction_isolation = 'repeatable read'`,
      `ALTER ROLE ledger RESET default_transaction_isolation;
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'proxy-budgets'`,
      /budgets need .*read committed/,
    ],
    [
      'tables of a newer version are not used',
      'UPDATE proxy_budgets SET version = 99',
      'UPDATE proxy_budgets SET version = 1',
      /proxy_budgets has version 99; this program knows 1/,
    ],
  ])('%s', async (_, damage, repair, cause) => {
    const fleet = fleetOf()
    await fleet.server.query(damage)
    const other = await fleet.startReplica('other')
    try {
      expect((await other.client.send('/broken')).status).toBe(503)
      await waitUntil('the log has the cause', () => other.dataplane.program.lines.some(({ text }) => text.includes('PX4039') && cause.test(text)))
    } finally {
      await fleet.server.query(repair)
    }
    try {
      await waitUntil('the budget is charged', async () => (await other.client.send('/broken')).status === 200)
    } finally {
      other.client.close()
      await other.dataplane.stop()
    }
  })

  test('rows of windows that are over are deleted', async () => {
    const fleet = fleetOf()
    await fleet.server.query(`INSERT INTO proxy_budget_counters VALUES ('old', 1, 1, 'x', 0, now() - interval '1 second');
      INSERT INTO proxy_budget_reservations VALUES ('x', 'old', 1, 1, now() - interval '1 second')`)
    const other = await fleet.startReplica('late')
    try {
      await waitUntil('the budget is charged', async () => (await other.client.send('/broken')).status === 200)
      const countOld = async (): Promise<number> => {
        const tables = ['proxy_budget_counters', 'proxy_budget_reservations']
        return (await fleet.server.query(tables.map((table) => `SELECT counter FROM ${table} WHERE counter = 'old'`).join(' UNION ALL '))).length
      }
      await waitUntil('the rows are deleted', async () => (await countOld()) === 0)
      // Those of windows that are not over stay.
      expect((await fleet.counters()).length).toBeGreaterThan(0)
    } finally {
      other.client.close()
      await other.dataplane.stop()
    }
  })
})
