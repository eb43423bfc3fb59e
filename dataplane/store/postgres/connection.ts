import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { Schema, ScriptOutcome, StatementStore } from '../../runtime/value-store.ts'
import { messageOf } from '../../runtime/server-client.ts'
import { connectionOptions } from './client.ts'
import type { PostgresSettings } from './settings.ts'

/** Connections of a thread: one for charges, one for the rest. */
const MAX_CONNECTIONS = 2
const CONNECT_MS = 2000
/** Time of a statement of a request. */
const QUERY_MS = 250
/** The server ends a statement after this, so that none holds locks after its process has given it up. */
const STATEMENT_MS = 500
/** Time for the creation of tables. */
const CREATE_MS = 10_000
/** Pause after a failed connection, and after a statement that took too long: other requests do not wait for a server that hangs. */
const PAUSE_MS = 1000
/** Time that a start waits for the first connection. */
const OPEN_MS = 1000
const CLOSE_MS = 1000
/** Key of the lock that processes take to create tables: one of them does. */
const LOCK = 7_273_140_862
/** Codes of a table, a column and a function that do not exist. */
const MISSING: ReadonlySet<string> = new Set(['42P01', '42703', '42883'])

type Rows = readonly Readonly<Record<string, unknown>>[]

/**
 * Connects in the background, and again after a connection was lost. Throws if the certificates cannot be read.
 * @param schema its tables are created at once, so that the first statement does not wait for them
 */
export const connectPostgres = (settings: PostgresSettings, schema: Schema): PostgresConnection => new PostgresConnection(settings, schema)

/** The connections of one thread to a PostgreSQL database. Failures are never thrown. */
export class PostgresConnection implements StatementStore {
  /** Resolves when the tables are there or the first connection has failed, or after a second. */
  readonly opened: Promise<void>
  readonly #pool: pg.Pool
  /** Schemas whose tables are there, or are being created. */
  readonly #schemas = new Map<Schema, Promise<void>>()
  /** Schemas of which something is missing, though their version is there. */
  readonly #incomplete = new Set<Schema>()
  #pausedUntilMs = 0
  #pauseCause = ''

  constructor(settings: PostgresSettings, schema: Schema) {
    const ca = settings.caFile === undefined ? undefined : readFileSync(settings.caFile, 'utf8')
    const pool = new pg.Pool({
      ...connectionOptions(settings, ca),
      max: MAX_CONNECTIONS,
      connectionTimeoutMillis: CONNECT_MS,
      idleTimeoutMillis: 0,
      statement_timeout: STATEMENT_MS,
      application_name: 'proxy-budgets',
    })
    // The next statement connects again. A connection that is in use has the listener too.
    pool.on('error', () => undefined)
    pool.on('connect', (client) => void client.on('error', () => undefined))
    this.#pool = pool
    this.opened = within(
      this.#prepared(schema).catch(() => undefined),
      OPEN_MS,
    )
  }

  async query(schema: Schema, text: string, values: readonly unknown[] = [], timeoutMs = QUERY_MS): Promise<ScriptOutcome<Rows>> {
    if (performance.now() < this.#pausedUntilMs) return { error: this.#pauseCause, mayRun: false }
    const deadline = new Deadline(timeoutMs)
    let client: pg.PoolClient | undefined
    try {
      await deadline.race(this.#prepared(schema))
      client = await this.#connect(deadline)
    } catch (error) {
      deadline.end()
      return this.#pause(error, false)
    }
    try {
      const { rows } = await deadline.race(client.query<Record<string, unknown>>(text, [...values]))
      client.release()
      return { value: rows }
    } catch (error) {
      // An error of the server: the transaction was rolled back.
      const code = error instanceof pg.DatabaseError ? error.code : undefined
      const isUsable = code !== undefined && !/^(08|57P)/.test(code)
      client.release(!isUsable)
      if (code === undefined) return this.#pause(error, true)
      if (MISSING.has(code)) {
        this.#incomplete.add(schema)
        this.#schemas.delete(schema)
      }
      return { error: messageOf(error), mayRun: false }
    } finally {
      deadline.end()
    }
  }

  /** Ends the connections when their statements have ended, after a second at most. */
  async close(): Promise<void> {
    await within(
      this.#pool.end().catch(() => undefined),
      CLOSE_MS,
    )
  }

  async #connect(deadline: Deadline): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect()
    try {
      return await deadline.race(connecting)
    } catch (error) {
      // It may be there later, for another statement.
      void connecting.then(
        (client) => client.release(),
        () => undefined,
      )
      throw error
    }
  }

  #pause(error: unknown, mayRun: boolean): ScriptOutcome<Rows> {
    this.#pausedUntilMs = performance.now() + PAUSE_MS
    this.#pauseCause = messageOf(error)
    return { error: this.#pauseCause, mayRun }
  }

  #prepared(schema: Schema): Promise<void> {
    const known = this.#schemas.get(schema)
    if (known !== undefined) return known
    const preparing = this.#create(schema)
    this.#schemas.set(schema, preparing)
    preparing.catch(() => {
      if (this.#schemas.get(schema) === preparing) this.#schemas.delete(schema)
    })
    return preparing
  }

  /** Creates what does not exist. Rejects if it is that of a newer version. */
  async #create(schema: Schema): Promise<void> {
    const { name, version, source } = schema
    const client = await this.#pool.connect()
    let isUsable = false
    try {
      const { rows: there } = await client.query<{ id: string | null }>(`SELECT to_regclass('${name}')::text AS id`)
      if ((there[0]?.id ?? null) === null || this.#incomplete.delete(schema))
        await client.query(
          `BEGIN; SET LOCAL statement_timeout = ${CREATE_MS}; SET LOCAL client_min_messages = warning; SELECT pg_advisory_xact_lock(${LOCK}); ${source} COMMIT`,
        )
      const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${name}`)
      const found = rows[0]?.version ?? 0
      if (found > version) throw new Error(`${name} has version ${found}; this program knows ${version}`)
      isUsable = true
    } finally {
      client.release(!isUsable)
    }
  }
}

/** The time in which several steps must end. */
class Deadline {
  readonly #late: Promise<never>
  readonly #timer: NodeJS.Timeout

  constructor(ms: number) {
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => undefined)
    this.#late = promise
    this.#timer = setTimeout(() => reject(new Error('PostgreSQL did not respond in time')), ms)
  }

  /** Rejects when the time is over, and the step continues. */
  race<T>(step: Promise<T>): Promise<T> {
    step.catch(() => undefined)
    return Promise.race([step, this.#late])
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

async function within(step: Promise<void>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms).unref()
  await Promise.race([step, promise])
  clearTimeout(timer)
}
