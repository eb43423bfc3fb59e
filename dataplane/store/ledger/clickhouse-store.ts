import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { messageOf, readPasswordFile, tlsNameOf } from '../../runtime/server-client.ts'
import { expandRows } from './batch.ts'
import { bodyColumns, columns, type Column } from './columns.ts'
import { spendGroups, spendStatement, type Dialect } from './sql.ts'
import { StoreUnreachableError, type ClickHouseSettings, type SpendGroups, type SpendQuery, type Store, type StoredBatch } from './store.ts'

/** Time of a request, from the start to the end of its response. */
const REQUEST_MS = 35_000
/** A report has at most 10,000 groups of six texts. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024
const MAX_ERROR_CHARS = 500
/** A deletion rewrites parts of the table, so that old rows stay for so long after their time. */
const PRUNE_MS = 3_600_000
/** Batches whose tokens the server remembers for each table. */
const REMEMBERED_BATCHES = 10_000

const types: Readonly<Partial<Record<Column, string>>> = {
  time: 'Int64',
  status: 'Int64',
  input_tokens: 'Nullable(Int64)',
  output_tokens: 'Nullable(Int64)',
  cached_tokens: 'Nullable(Int64)',
  reasoning_tokens: 'Nullable(Int64)',
  cost: 'Nullable(Float64)',
  duration_ms: 'Int64',
  first_token_ms: 'Nullable(Int64)',
  weight: 'Float64',
}
const definitionOf = (name: Column): string => `"${name}" ${types[name] ?? 'Nullable(String)'}`

const TABLE = `CREATE TABLE IF NOT EXISTS proxy_requests ("owner" String, ${columns.map(definitionOf).join(', ')})
  ENGINE = MergeTree PARTITION BY toYYYYMM(fromUnixTimestamp64Milli("time")) ORDER BY ("owner", "time")
  SETTINGS non_replicated_deduplication_window = ${REMEMBERED_BATCHES}`
const INSERT = `INSERT INTO proxy_requests ("owner", ${columns.map((name) => `"${name}"`).join(', ')}) FORMAT JSONEachRow`
const COLUMNS = `SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'proxy_requests' FORMAT JSONEachRow`
const OLD = '"owner" = {owner:String} AND "time" < {before:Int64}'

/** Codes of errors after which the same statement may succeed later: timeouts, network, too many queries or parts, memory, read-only, Keeper. */
const LATER: ReadonlySet<string> = new Set(['159', '202', '203', '209', '210', '225', '241', '242', '243', '252', '319', '425', '999'])

/** An error that the server has reported. */
class ClickHouseError extends Error {
  readonly isTemporary: boolean
  constructor(message: string, isTemporary: boolean) {
    super(message)
    this.isTemporary = isTemporary
  }
}

/** Records in a ClickHouse database that several processes share, over its HTTP interface. */
export class ClickHouseStore implements Store {
  readonly #settings: ClickHouseSettings
  /** A batch that arrives a second time, because the response to the first was lost, has the same token. */
  readonly #source = randomUUID()
  #prepared: Promise<void> | undefined
  #prunedMs = -Infinity

  constructor(settings: ClickHouseSettings) {
    this.#settings = settings
  }

  async add({ number, ...batch }: StoredBatch): Promise<void> {
    await this.#prepare()
    const { owner } = this.#settings
    const body = expandRows(batch)
      .map((row) => JSON.stringify(Object.fromEntries([['owner', owner], ...columns.map((name, index) => [name, row[index] ?? null])])))
      .join('\n')
    await this.#run(INSERT, { insert_deduplication_token: `${this.#source}-${number}`, async_insert: '0' }, body)
  }

  async prune(beforeMs: number): Promise<boolean> {
    if (performance.now() - this.#prunedMs < PRUNE_MS) return false
    await this.#prepare()
    const parameters = { param_owner: escaped(this.#settings.owner), param_before: String(Math.floor(beforeMs)) }
    const found = await this.#run(`SELECT 1 AS found FROM proxy_requests WHERE ${OLD} LIMIT 1 FORMAT JSONEachRow`, parameters)
    if (found.trim() !== '') await this.#run(`DELETE FROM proxy_requests WHERE ${OLD}`, parameters)
    this.#prunedMs = performance.now()
    return false
  }

  /** Reads a report of the records of the owner. Rejects with the cause. */
  async spend(query: SpendQuery): Promise<SpendGroups> {
    await this.#prepare()
    const from = 'proxy_requests WHERE "owner" = {owner:String} AND "time" >= {since:Int64} AND "time" < {until:Int64}'
    const text = await this.#run(`${spendStatement(query, from, dialect)} FORMAT JSONEachRow`, {
      param_owner: escaped(this.#settings.owner),
      param_since: String(Math.floor(query.sinceMs)),
      param_until: String(Math.floor(query.untilMs)),
      // Errors come with a status of their own.
      wait_end_of_query: '1',
    })
    return spendGroups(query, readRows(text))
  }

  close(): void {}

  /** Creates the table if it does not exist, and columns that it lacks. Rejects with a StoreUnreachableError; the next statement tries again. */
  #prepare(): Promise<void> {
    return (this.#prepared ??= this.#prepareTable().catch((error: unknown) => {
      this.#prepared = undefined
      throw error instanceof StoreUnreachableError ? error : new StoreUnreachableError(messageOf(error), { cause: error })
    }))
  }

  async #prepareTable(): Promise<void> {
    const find = async (): Promise<Set<unknown>> => new Set(readRows(await this.#run(COLUMNS, {})).map(({ name }) => name))
    let there = await find()
    // A user without the right to create tables may use one that exists.
    if (there.size === 0) {
      await this.#run(TABLE, {})
      there = await find()
    }
    for (const name of bodyColumns) if (!there.has(name)) await this.#run(`ALTER TABLE proxy_requests ADD COLUMN IF NOT EXISTS ${definitionOf(name)}`, {})
  }

  async #run(statement: string, parameters: Readonly<Record<string, string>>, body = ''): Promise<string> {
    try {
      return await this.#send(statement, parameters, body)
    } catch (error) {
      if (error instanceof ClickHouseError && !error.isTemporary) throw error
      throw new StoreUnreachableError(messageOf(error), { cause: error })
    }
  }

  async #send(statement: string, parameters: Readonly<Record<string, string>>, body: string): Promise<string> {
    const { host, port, database, user, password = '', passwordFile, isTls, caFile } = this.#settings
    const secret = passwordFile === undefined ? password : await readPasswordFile(passwordFile)
    const ca = caFile === undefined ? undefined : await readFile(caFile, 'utf8')
    const query = new URLSearchParams({ database, query: statement, ...parameters })
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const options = {
      host,
      port,
      method: 'POST',
      path: `/?${query.toString()}`,
      headers: {
        'x-clickhouse-user': user,
        'x-clickhouse-key': secret,
        'content-type': 'text/plain; charset=utf-8',
        'content-length': Buffer.byteLength(body),
      },
      signal: AbortSignal.timeout(REQUEST_MS),
    }
    const request = isTls ? requestHttps({ ...options, ...tlsNameOf(host), ca }, resolve) : requestHttp(options, resolve)
    request.on('error', reject)
    request.end(body)
    const response = await promise
    const text = await readText(response)
    const code = response.headers['x-clickhouse-exception-code']
    const status = response.statusCode ?? 0
    if (status === 200 && code === undefined) return text
    throw new ClickHouseError(
      `${status}: ${text.trim().slice(0, MAX_ERROR_CHARS)}`,
      typeof code === 'string' ? LATER.has(code) : status >= 500 || status === 429,
    )
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_RESPONSE_BYTES) throw new Error(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

const readRows = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** A text parameter has the escapes of tab-separated values. */
const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')

const period = (format: string): string => `formatDateTime(fromUnixTimestamp64Milli("time"), '${format}', 'UTC')`
const dialect: Dialect = {
  total: (column) => `coalesce(sum(${column}), 0)`,
  periods: { hour: period('%Y-%m-%dT%H:00Z'), day: period('%Y-%m-%d'), month: period('%Y-%m') },
}
