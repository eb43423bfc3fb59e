import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { connectionOptions, isUnreachable } from '../postgres/client.ts'
import { messageOf } from '../../runtime/server-client.ts'
import { expandRows } from './batch.ts'
import { bodyColumns, columns, type Column } from './columns.ts'
import { spendGroups, spendStatement, type Dialect } from './sql.ts'
import { StoreUnreachableError, type PostgresStoreSettings, type SpendGroups, type SpendQuery, type Store, type StoredBatch } from './store.ts'

/** Version of the tables, in `proxy_ledger`. */
const VERSION = 1
/** Rows that one step of the retention deletes. */
const PRUNE_ROWS = 5000
const CONNECT_MS = 5000
const STATEMENT_MS = 30_000
/** Key of the lock that replicas take to create the tables: one of them does. */
const LOCK = 7_273_140_861

const types: Readonly<Partial<Record<Column, string>>> = {
  time: 'bigint',
  status: 'bigint',
  input_tokens: 'bigint',
  output_tokens: 'bigint',
  cached_tokens: 'bigint',
  reasoning_tokens: 'bigint',
  cost: 'double precision',
  duration_ms: 'bigint',
  first_token_ms: 'bigint',
  weight: 'double precision',
}
const typeOf = (name: Column): string => types[name] ?? 'text'
const required: ReadonlySet<Column> = new Set(['time', 'status', 'duration_ms', 'weight'])
const quoted = columns.map((name) => `"${name}"`)

const TABLES = `
  CREATE TABLE IF NOT EXISTS proxy_requests (
    "owner" text NOT NULL, "source" uuid NOT NULL, "number" bigint NOT NULL,
    ${columns.map((name) => `"${name}" ${typeOf(name)}${required.has(name) ? ' NOT NULL' : ''}`).join(', ')},
    PRIMARY KEY ("source", "number"));
  CREATE INDEX IF NOT EXISTS proxy_requests_time ON proxy_requests ("owner", "time");
  CREATE TABLE IF NOT EXISTS proxy_ledger (version integer NOT NULL);
  INSERT INTO proxy_ledger SELECT ${VERSION} WHERE NOT EXISTS (SELECT FROM proxy_ledger);`
const INSERT = `INSERT INTO proxy_requests ("owner", "source", "number", ${quoted.join(', ')})
  SELECT $1::text, $2::uuid, * FROM unnest($3::bigint[], ${columns.map((name, index) => `$${index + 4}::${typeOf(name)}[]`).join(', ')})
  ON CONFLICT DO NOTHING`
const PRUNE = `DELETE FROM proxy_requests WHERE ("source", "number") IN
  (SELECT "source", "number" FROM proxy_requests WHERE "owner" = $1 AND "time" < $2 ORDER BY "time" LIMIT ${PRUNE_ROWS} FOR UPDATE SKIP LOCKED)`

/** Greater than the number of rows of a batch. Rows of a process have the numbers `batch * MAX_BATCH_ROWS + index`. */
const MAX_BATCH_ROWS = 65_536

/** Records in a PostgreSQL database that several processes share. Connects when it is used, and again after a connection was lost. */
export class PostgresStore implements Store {
  readonly #settings: PostgresStoreSettings
  /** Rows that arrive a second time, because the response to the first was lost, have the same source and number. */
  readonly #source = randomUUID()
  #client: Promise<pg.Client> | undefined

  constructor(settings: PostgresStoreSettings) {
    this.#settings = settings
  }

  async add({ number, ...batch }: StoredBatch): Promise<void> {
    const { owner } = this.#settings
    const rows = expandRows(batch)
    const numbers = rows.map((_, index) => number * MAX_BATCH_ROWS + index)
    const values = columns.map((_, column) => rows.map((row) => clean(row[column] ?? null)))
    await this.#query(INSERT, [owner, this.#source, numbers, ...values])
  }

  async prune(beforeMs: number): Promise<boolean> {
    const { rowCount } = await this.#query(PRUNE, [this.#settings.owner, Math.floor(beforeMs)])
    return rowCount === PRUNE_ROWS
  }

  /** Reads a report of the records of the owner. Rejects with the cause. */
  async spend(query: SpendQuery): Promise<SpendGroups> {
    const from = 'proxy_requests WHERE "owner" = $1 AND "time" >= $2 AND "time" < $3'
    const { rows } = await this.#query(spendStatement(query, from, dialect), [this.#settings.owner, Math.floor(query.sinceMs), Math.floor(query.untilMs)])
    return spendGroups(query, rows)
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.then((connected) => connected.end()).catch(() => undefined)
  }

  async #query(text: string, values: readonly unknown[]): Promise<pg.QueryResult<Record<string, unknown>>> {
    const client = await (this.#client ??= this.#connect())
    try {
      return await client.query<Record<string, unknown>>(text, [...values])
    } catch (error) {
      if (!isUnreachable(error)) throw error
      this.#client = undefined
      client.end().catch(() => undefined)
      throw new StoreUnreachableError(messageOf(error), { cause: error })
    }
  }

  /** Rejects with a StoreUnreachableError; the next statement connects again. */
  async #connect(): Promise<pg.Client> {
    const { caFile } = this.#settings
    let client: pg.Client | undefined
    try {
      client = new pg.Client({
        ...connectionOptions(this.#settings, caFile === undefined ? undefined : await readFile(caFile, 'utf8')),
        connectionTimeoutMillis: CONNECT_MS,
        statement_timeout: STATEMENT_MS,
        query_timeout: STATEMENT_MS + CONNECT_MS,
        application_name: 'proxy-ledger',
      })
      // The next statement fails and reports the cause.
      client.on('error', () => undefined)
      await client.connect()
      await prepareTables(client)
      return client
    } catch (error) {
      this.#client = undefined
      client?.end().catch(() => undefined)
      throw new StoreUnreachableError(messageOf(error), { cause: error })
    }
  }
}

/** Creates the tables if they do not exist. Rejects if they are those of a newer version. */
async function prepareTables(client: pg.Client): Promise<void> {
  const { rows: there } = await client.query<{ ledger: string | null }>(`SELECT to_regclass('proxy_ledger')::text AS ledger`)
  if ((there[0]?.ledger ?? null) === null) await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${LOCK}); ${TABLES} COMMIT`)
  const { rows } = await client.query<{ version: number }>('SELECT version FROM proxy_ledger')
  const version = rows[0]?.version ?? 0
  if (version > VERSION) throw new Error(`the ledger has version ${version}; this program knows ${VERSION}`)
  await addColumns(client)
}

/** Programs of the earlier version still work with the table: they do not name the columns. Only the owner of a table may change it, so nothing is tried needlessly. */
async function addColumns(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass('proxy_requests') AND NOT attisdropped",
  )
  const there = new Set(rows.map(({ name }) => name))
  for (const name of bodyColumns) if (!there.has(name)) await client.query(`ALTER TABLE proxy_requests ADD COLUMN IF NOT EXISTS "${name}" ${typeOf(name)}`)
}

const period = (format: string): string => `to_char(to_timestamp("time" / 1000) AT TIME ZONE 'UTC', '${format}')`
const dialect: Dialect = {
  total: (column) => `coalesce(sum(${column}), 0)`,
  periods: { hour: period('YYYY-MM-DD"T"HH24:00"Z"'), day: period('YYYY-MM-DD'), month: period('YYYY-MM') },
}

/** PostgreSQL has no texts with U+0000. */
const clean = (value: string | number | null): string | number | null => (typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value)
