import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import { captureLimits, capturedBodies, toolCaptureLimits } from '../exchange/captured-bodies.ts'
import { apiKeyNames } from '../exchange/key-names.ts'
import { variables } from '../exchange/variables.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { setLogField } from '../telemetry/access-log/access-log.ts'
import { createRegistry, type Registry } from '../telemetry/metrics/registry.ts'
import { recordGuard, setProtocol, type Protocol } from '../telemetry/outcome.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { testExchange } from '../testing/exchange.ts'
import { batchOf } from './testing.ts'
import { expandRows, type LedgerBatch } from './batch.ts'
import { bodyColumns, columns, labelColumns, valueColumns, type Column, type Dimension } from './columns.ts'
import { ledgerMetrics } from './metrics.ts'
import { MAX_PENDING_BODIES, MAX_PENDING_ROWS, PendingRows, startRecorder } from './recorder.ts'
import { readLedgerSettings, type LedgerSettings } from './settings.ts'
import { readSpend } from './spend.ts'
import { spendGroups, spendStatement } from './sql.ts'
import { LedgerStore, oldRecords, openForReading } from './sqlite-store.ts'
import { RequestLedger } from './writer.ts'

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxy-ledger-'))
  path = join(directory, 'ledger.db')
})
afterEach(() => rmSync(directory, { recursive: true }))

const settingsOf = (change: Partial<LedgerSettings> = {}): LedgerSettings => {
  const settings = readLedgerSettings({ sqlite: { path } }, 'ns/gw')
  if (typeof settings === 'string') throw new Error(settings)
  return { ...settings, ...change }
}

const read = (...by: Dimension[]) => readSpend(path, { by, sinceMs: 0, untilMs: Date.now() + 60_000 }).rows

/** A finished request. */
function finished(protocol: Protocol, status = 200, model = 'm'): Exchange {
  const exchange = testExchange()
  setProtocol(exchange, protocol)
  exchange.labels = { gateway: 'ns/gw', listener: 'http', route: 'ns/chat', rule: '' }
  exchange.response = { status } as NonNullable<typeof exchange.response>
  exchange.finishedAtMs = exchange.startedAtMs + 250
  if (protocol === 'llm') {
    setLogField(exchange, 'gen_ai.request.model', model)
    setLogField(exchange, 'gen_ai.usage.input_tokens', 100)
    setLogField(exchange, 'gen_ai.usage.output_tokens', 20)
  }
  return exchange
}

/** A thread that records; `batches` are those that it has sent. */
function record(
  settings: LedgerSettings,
  { pending = new PendingRows(), registry = createRegistry(), random }: { pending?: PendingRows; registry?: Registry; random?: () => number } = {},
) {
  const telemetry: Pick<Telemetry, 'observe'> & { metrics: { registry: Registry } } = { observe: undefined, metrics: { registry } }
  const batches: LedgerBatch[] = []
  const recorder = startRecorder({ settings, pending: pending.memory, telemetry, send: (batch) => void batches.push(batch), random })
  return { registry, telemetry, batches, recorder, finish: (exchange: Exchange) => telemetry.observe?.(exchange) }
}

async function openLedger(settings = settingsOf()) {
  const registry = createRegistry()
  const lines: [level: string, message: string, fields: object][] = []
  const add =
    (level: string) =>
    (message: string, fields: object = {}): void =>
      void lines.push([level, message, fields])
  const log = { error: add('error'), warn: add('warn'), info: add('info'), debug: add('debug'), trace: add('trace'), isEnabled: () => true }
  return { registry, lines, ledger: await RequestLedger.open({ settings, log, registry }) }
}

/** Value of a counter. */
const metricOf = (registry: Registry, name: 'stored' | 'full' | 'failed'): number => {
  const { stored, dropped } = ledgerMetrics(registry)
  return name === 'stored' ? stored.value : dropped.series(name).value
}

describe('the ledger', () => {
  test('stores who used which model, with tokens, cost, latency, status and guard', async () => {
    const { ledger, registry } = await openLedger()
    const { finish, recorder, batches } = record(ledger.settings, { pending: ledger.pending, registry })
    const exchange = finished('llm')
    const metadata = { team: 'red' }
    apiKeyNames.set(metadata, 'alice-key')
    variables.apiKey.set(exchange, { key: new Secret('s3cr3t'), metadata })
    variables.jwt.set(exchange, { sub: 'alice' })
    setLogField(exchange, 'gen_ai.provider.name', 'openai')
    setLogField(exchange, 'gen_ai.operation.name', 'chat')
    setLogField(exchange, 'gen_ai.response.model', 'm-2024')
    setLogField(exchange, 'gen_ai.usage.cache_read.input_tokens', 40)
    setLogField(exchange, 'proxy.ai.usage.cost.total', 0.25)
    setLogField(exchange, 'proxy.ai.time_to_first_token', 0.125)
    setLogField(exchange, 'trace.id', '0af7651916cd43dd8448eb211c80319c')
    recordGuard(exchange, 'Mask')
    recordGuard(exchange, 'Allow')
    finish(exchange)
    recorder.close()
    expect(JSON.stringify(batches)).not.toContain('s3cr3t')
    for (const batch of batches) ledger.write(batch)
    await ledger.close()

    const by = ['gateway', 'route', 'key', 'user', 'team', 'provider', 'operation', 'requestedModel', 'model', 'status', 'reason', 'guard'] as const
    expect(read(...by)).toEqual([
      {
        group: ['ns/gw', 'ns/chat', 'alice-key', 'alice', 'red', 'openai', 'chat', 'm', 'm-2024', '200', 'Upstream', 'Mask'],
        requests: 1,
        errors: 0,
        inputTokens: 100,
        outputTokens: 20,
        cachedTokens: 40,
        reasoningTokens: 0,
        cost: 0.25,
        unpriced: 0,
        seconds: 0.25,
      },
    ])
    expect(new DatabaseSync(path).prepare('SELECT first_token_ms, trace_id FROM requests').get()).toMatchObject({
      first_token_ms: 125,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
    })
    expect(metricOf(registry, 'stored')).toBe(1)
    expect(ledger.pending.count).toBe(0)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('stores bodies only if it is told to, and releases their memory', async () => {
    for (const bodyBytes of [undefined, 100]) {
      const { ledger, registry } = await openLedger(settingsOf({ bodyBytes }))
      const { finish, recorder, batches } = record(ledger.settings, { pending: ledger.pending, registry })
      expect([captureLimits.get(registry), toolCaptureLimits.has(registry)]).toEqual([bodyBytes, false])
      const exchange = finished('llm')
      if (bodyBytes !== undefined) capturedBodies.set(exchange, { request: "'; DROP TABLE requests; --\0", response: '{"a":1}' })
      finish(exchange)
      recorder.close()
      expect(captureLimits.has(registry)).toBe(false)
      for (const batch of batches) ledger.write(batch)
      await ledger.close()
      expect([ledger.pending.count, ledger.pending.bodies]).toEqual([0, 0])
    }
    expect(new DatabaseSync(path).prepare('SELECT request_body, response_body FROM requests').all()).toEqual([
      expect.objectContaining({ request_body: null, response_body: null }),
      expect.objectContaining({ request_body: "'; DROP TABLE requests; --\0", response_body: '{"a":1}' }),
    ])
  })

  test('stores arguments and results of tools only if it is told to', () => {
    const settings = readLedgerSettings({ sqlite: { path }, bodies: { tools: true, maxBytes: 7 } }, 'ns/gw')
    if (typeof settings === 'string') throw new Error(settings)
    const registry = createRegistry()
    const { recorder } = record(settings, { registry })
    expect(toolCaptureLimits.get(registry)).toBe(7)
    recorder.close()
    expect(toolCaptureLimits.has(registry)).toBe(false)
  })

  test('stores requests without bodies while too many bodies wait, and counts them', () => {
    const pending = new PendingRows()
    const { finish, recorder, batches, registry } = record(settingsOf({ bodyBytes: 1 }), { pending })
    pending.add({ rows: 0, bodies: MAX_PENDING_BODIES - 10 })
    for (const response of ['12345', '1234567', '12345']) {
      const exchange = finished('llm')
      capturedBodies.set(exchange, { response })
      finish(exchange)
    }
    recorder.close()
    const rows = batches.flatMap(expandRows)
    expect(rows.map((row) => row.at(-1))).toEqual(['12345', null, '12345'])
    expect(ledgerMetrics(registry).bodiesDropped.value).toBe(1)
    expect(pending.bodies).toBe(MAX_PENDING_BODIES)
  })

  test('records LLM and MCP requests always, and others as often as httpSampling says', async () => {
    const numbers = [0.1, 0.3, 0.9, 0.2]
    const { finish, recorder, batches } = record(settingsOf({ httpSampling: 0.25 }), { random: () => numbers.shift() ?? 1 })
    for (const protocol of ['llm', 'mcp', 'http', 'http', 'http', 'http'] as const) finish(finished(protocol, protocol === 'mcp' ? 404 : 200))
    recorder.close()
    const { ledger } = await openLedger()
    for (const batch of batches) ledger.write(batch)
    await ledger.close()
    expect(read('protocol').map(({ group, requests, errors }) => [...group, requests, errors])).toEqual([
      ['http', 8, 0],
      ['llm', 1, 0],
      ['mcp', 1, 1],
    ])
  })

  test('records no plain HTTP request and calls nothing after its end by default', () => {
    const { finish, recorder, batches, telemetry } = record(settingsOf())
    finish(finished('http'))
    recorder.close()
    expect(batches).toEqual([])
    expect(telemetry.observe).toBeUndefined()
  })

  test('drops and counts requests while too many wait for the store', () => {
    const pending = new PendingRows()
    const { finish, recorder, batches, registry } = record(settingsOf(), { pending })
    pending.add({ rows: MAX_PENDING_ROWS - 2, bodies: 0 })
    for (let i = 0; i < 5; i++) finish(finished('llm'))
    recorder.flush()
    expect(batches.map(({ size }) => size.rows)).toEqual([2])
    expect(metricOf(registry, 'full')).toBe(3)
    pending.remove({ rows: MAX_PENDING_ROWS, bodies: 0 })
    finish(finished('llm'))
    recorder.close()
    expect(batches.map(({ size }) => size.rows)).toEqual([2, 1])
  })

  test('keeps no values of requests that it drops', () => {
    const pending = new PendingRows()
    const { finish, recorder, batches } = record(settingsOf(), { pending })
    pending.add({ rows: MAX_PENDING_ROWS, bodies: 0 })
    for (let i = 0; i < 5; i++) finish(finished('llm', 200, `dropped-${i}`))
    pending.remove({ rows: MAX_PENDING_ROWS, bodies: 0 })
    finish(finished('llm'))
    recorder.close()
    expect(batches).toMatchObject([{ labels: [expect.stringContaining('"m"')], size: { rows: 1 } }])
  })

  test('counts the requests of failed batches, logs the failure once, and stores again after it', async () => {
    const { ledger, registry, lines } = await openLedger()
    const batch = (): LedgerBatch => {
      const { finish, recorder, batches } = record(ledger.settings, { pending: ledger.pending })
      finish(finished('llm'))
      recorder.close()
      return batches[0] as LedgerBatch
    }
    const settled = async (): Promise<void> => {
      while (ledger.pending.count > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const other = new DatabaseSync(path)
    other.exec(`CREATE TRIGGER fail BEFORE INSERT ON batches BEGIN SELECT RAISE(ABORT, 'no space'); END`)
    ledger.write(batch())
    ledger.write(batch())
    await settled()
    expect(lines).toMatchObject([['error', 'requests are missing in the ledger', { code: 'PX4022', error: 'no space' }]])
    expect(metricOf(registry, 'failed')).toBe(2)
    other.exec('DROP TRIGGER fail')
    other.close()
    ledger.write(batch())
    await settled()
    await ledger.close()
    expect(lines.slice(1)).toMatchObject([['info', 'the ledger stores requests again', {}]])
    expect(read('model')).toMatchObject([{ requests: 1 }])
  })

  test('reads reports while the file is open for writing, and stores texts of clients as they are', async () => {
    const { ledger } = await openLedger()
    const { finish, recorder, batches } = record(ledger.settings, { pending: ledger.pending })
    const hostile = `'); DROP TABLE requests; --\u0000\ud800${'x'.repeat(1000)}`
    finish(finished('llm', 200, hostile))
    recorder.close()
    for (const batch of batches) ledger.write(batch)
    while (ledger.pending.count > 0) await new Promise((resolve) => setImmediate(resolve))
    const { rows, isCut } = await ledger.spend({ by: ['model'], sinceMs: 0, untilMs: Date.now() + 1000 })
    expect(isCut).toBe(false)
    expect(rows).toMatchObject([{ requests: 1, unpriced: 1 }])
    expect(rows[0]?.group[0]).toMatch(/^'\); DROP TABLE requests; --/)
    expect(rows[0]?.group[0]?.length).toBeLessThanOrEqual(256)
    await expect(ledger.spend({ by: [], sinceMs: Date.now() + 1000, untilMs: Date.now() + 2000 })).resolves.toMatchObject({ rows: [] })
    await ledger.close()
  })
})

describe('the file of a ledger', () => {
  const values: Partial<Record<Column, string | number>> = { protocol: 'llm', status: 200, cost: 0.5, duration_ms: 10, weight: 1 }
  const row = (time: number) => columns.map((name) => (name === 'time' ? time : (values[name] ?? null)))

  test('loses records beyond the retention in steps, with their bodies', () => {
    const store = new LedgerStore(path)
    for (let time = 0; time < 51; time++) store.add(batchOf(row(time).with(columns.indexOf('request_body'), `body ${time}`), row(time)))
    store.add(batchOf(row(10_000).with(columns.indexOf('request_body'), 'last body'), row(8000)))
    expect([store.prune(9000), store.prune(9000), store.prune(9000)]).toEqual([true, true, false])
    store.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 20_000 }).rows).toMatchObject([{ group: [], requests: 2, cost: 1 }])
    const database = new DatabaseSync(path)
    expect(database.prepare('SELECT time, request_body FROM requests').all()).toEqual([
      expect.objectContaining({ time: 10_000, request_body: 'last body' }),
      expect.objectContaining({ time: 8000, request_body: null }),
    ])
    expect(database.prepare('SELECT count(*) AS count FROM bodies').get()).toMatchObject({ count: 1 })
  })

  test('stores all rows of a batch or none', () => {
    const store = new LedgerStore(path)
    const withBody = (time: number) => batchOf(row(time).with(columns.indexOf('request_body'), 'text'), row(time))
    const other = new DatabaseSync(path)
    other.exec(`CREATE TRIGGER fail BEFORE INSERT ON bodies BEGIN SELECT RAISE(ABORT, 'no space'); END`)
    expect(() => store.add(withBody(1))).toThrow('no space')
    other.exec('DROP TRIGGER fail')
    other.close()
    store.add(withBody(3))
    store.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 10 }).rows).toMatchObject([{ requests: 2 }])
    expect(new DatabaseSync(path).prepare('SELECT count(*) AS labels FROM labels').get()).toMatchObject({ labels: 1 })
  })

  test('is opened again with its records', () => {
    for (const time of [1, 2]) {
      const store = new LedgerStore(path)
      store.add(batchOf(row(time)))
      store.close()
    }
    expect(readSpend(path, { by: ['hour'], sinceMs: 1, untilMs: 3 }).rows).toMatchObject([{ group: ['1970-01-01T00:00Z'], requests: 2 }])
    expect(readSpend(path, { by: [], sinceMs: 1, untilMs: 2 }).rows).toMatchObject([{ requests: 1 }])
  })

  const writeVersion1 = (): void => {
    const names = columns.filter((name) => !name.endsWith('_body'))
    const integers = new Set<string>(['time', 'status', 'duration_ms', 'weight'])
    const old = new DatabaseSync(path)
    old.exec(
      `CREATE TABLE requests (${names.map((name) => `"${name}" ${integers.has(name) ? 'INTEGER' : 'TEXT'}`).join(', ')}) STRICT;
       CREATE INDEX requests_time ON requests (time);
       INSERT INTO requests (time, protocol, model, status, duration_ms, weight) VALUES (1, 'llm', 'a', 200, 5, 1), (2, 'llm', 'b', 200, 5, 1);
       PRAGMA user_version = 1`,
    )
    old.close()
  }

  const writeVersion2 = (): void => {
    const old = new DatabaseSync(path)
    old.exec(
      `CREATE TABLE labels (id INTEGER PRIMARY KEY, day INTEGER NOT NULL, ${labelColumns.map((name) => `"${name}" ${name === 'status' ? 'INTEGER' : 'TEXT'}`).join(', ')}) STRICT;
       CREATE TABLE records (id INTEGER PRIMARY KEY, labels INTEGER NOT NULL, ${[...valueColumns, ...bodyColumns].map((name) => `"${name}" ANY`).join(', ')}) STRICT;
       CREATE VIEW requests AS SELECT ${columns.map((name) => `"${name}"`).join(', ')} FROM records CROSS JOIN labels ON labels.id = records.labels;
       INSERT INTO labels (id, day, protocol, model, status) VALUES (1, 0, 'llm', 'a', 200), (2, 0, 'llm', 'b', 200);
       INSERT INTO records (id, labels, time, duration_ms, weight) VALUES (1001, 1, 1, 5, 1), (2001, 2, 2, 5, 1);
       PRAGMA user_version = 2`,
    )
    old.close()
  }

  test.each([
    [1, writeVersion1],
    [2, writeVersion2],
  ])('of version %d is used on, with its records until the retention has deleted them', (_, write) => {
    write()
    const byModel = (sinceMs = 0) => readSpend(path, { by: ['model'], sinceMs, untilMs: 10 }).rows.map(({ group, requests }) => [group[0], requests])
    const before = byModel()
    let store = new LedgerStore(path)
    store.add(batchOf(row(3)))
    store.close()
    store = new LedgerStore(path)
    expect([before, byModel(), byModel(2)]).toEqual([
      [
        ['a', 1],
        ['b', 1],
      ],
      [
        [null, 1],
        ['a', 1],
        ['b', 1],
      ],
      [
        [null, 1],
        ['b', 1],
      ],
    ])
    expect([store.prune(3), store.prune(3)]).toEqual([true, false])
    store.close()
    const database = new DatabaseSync(path)
    expect(database.prepare('SELECT time, request_body FROM requests').all()).toEqual([expect.objectContaining({ time: 3, request_body: null })])
    expect(database.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'requests%' OR name = 'records'").all()).toEqual([
      expect.objectContaining({ name: 'requests' }),
    ])
  })

  test('is read as it was when it was opened, also if the records of version 1 are deleted meanwhile', () => {
    writeVersion1()
    const store = new LedgerStore(path)
    const { database } = openForReading(path)
    const [records] = oldRecords(database, ['time'])
    store.prune(3)
    store.close()
    expect(database.prepare(String(records)).all()).toHaveLength(2)
    database.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 10 }).rows).toEqual([])
  })

  test('has the same sums in reports as in its records', () => {
    const store = new LedgerStore(path)
    const minute = 60_000
    const varied = (index: number) => {
      const numbers: Partial<Record<Column, string | number | null>> = {
        time: index * 11 * minute,
        model: `m${index % 3}`,
        status: index % 4 === 0 ? 500 : 200,
        duration_ms: index,
        input_tokens: index % 2 === 0 ? null : index,
        output_tokens: index % 5 === 0 ? 7 : null,
        cached_tokens: index % 7,
        reasoning_tokens: index % 6 === 0 ? 3 : null,
        cost: index % 3 === 0 ? null : index / 8,
        weight: index % 9 === 0 ? 100 : 1,
      }
      return columns.map((name) => numbers[name] ?? values[name] ?? null).with(columns.indexOf('cost'), numbers.cost ?? null)
    }
    for (let index = 0; index < 400; index += 8) store.add(batchOf(...Array.from({ length: 8 }, (_, offset) => varied(index + offset))))
    store.close()
    const database = new DatabaseSync(path)
    const periods = { hour: "strftime('%Y-%m-%dT%H:00Z', time / 1000, 'unixepoch')", day: "strftime('%Y-%m-%d', time / 1000, 'unixepoch')", month: "'1970-01'" }
    for (const by of [['hour', 'model'], ['day'], ['month', 'status'], []] as const) {
      const query = { by, sinceMs: 100 * minute, untilMs: 4000 * minute }
      const statement = spendStatement(query, 'requests WHERE time >= ? AND time < ?', { total: (column) => `total(${column})`, periods })
      const expected = spendGroups(query, database.prepare(statement).all(query.sinceMs, query.untilMs))
      expect(expected.rows.length).toBeGreaterThan(0)
      expect(readSpend(path, query)).toEqual(expected)
    }
    database.close()
  })

  test('has each set of labels once a day, and loses those of days beyond the retention', () => {
    const day = 86_400_000
    const store = new LedgerStore(path)
    for (const time of [1, 2, day, day + 1]) store.add(batchOf(row(time), row(time)))
    const count = () => new DatabaseSync(path).prepare('SELECT count(*) AS labels, min(day) AS day FROM labels').get()
    expect(count()).toMatchObject({ labels: 2, day: 0 })
    store.prune(day)
    expect(count()).toMatchObject({ labels: 1, day: 1 })
    store.close()
    expect(readSpend(path, { by: ['protocol'], sinceMs: 0, untilMs: 3 * day }).rows).toMatchObject([{ group: ['llm'], requests: 4 }])
  })

  test('has requests in reports that ended after later ones, and those of a clock that was set back', () => {
    const store = new LedgerStore(path)
    for (const time of [5000, 9000, 1000, 2000]) store.add(batchOf(row(time)))
    expect(store.prune(1500)).toBe(true)
    store.close()
    const count = (sinceMs: number, untilMs: number) => readSpend(path, { by: [], sinceMs, untilMs }).rows[0]?.requests
    expect([count(0, 10_000), count(5000, 9000), count(2000, 5000), count(9000, 10_000)]).toEqual([3, 1, 1, 1])
  })

  test('has the labels of a record that is older than those that the retention has deleted', () => {
    const store = new LedgerStore(path)
    store.add(batchOf(row(1)))
    expect(store.prune(86_400_000)).toBe(true)
    store.add(batchOf(row(2)))
    store.close()
    expect(readSpend(path, { by: ['protocol'], sinceMs: 0, untilMs: 10 }).rows).toMatchObject([{ group: ['llm'], requests: 1 }])
  })

  test('loses old records also after a clock was ahead by years', () => {
    const day = 86_400_000
    const store = new LedgerStore(path)
    const ahead = Array.from({ length: 5000 }, (_, index) => row(5000 * day + index))
    store.add(batchOf(...ahead))
    for (const time of [1, day, 2 * day]) store.add(batchOf(row(time)))
    expect([store.prune(2 * day), store.prune(2 * day)]).toEqual([true, false])
    // The clock reaches the time of the other records.
    for (const time of [4999 * day + 5000, 5000 * day]) store.add(batchOf(row(time), row(time)))
    store.close()
    const count = (sinceMs: number) => readSpend(path, { by: [], sinceMs, untilMs: 6000 * day }).rows[0]?.requests
    expect([count(0), count(4000 * day), count(5000 * day)]).toEqual([5005, 5004, 5002])
  })

  test('is rejected if it is no database, of a newer version, or in a missing directory', async () => {
    writeFileSync(path, 'text of another program, which must not be overwritten')
    await expect(openLedger()).rejects.toThrow('file is not a database')
    rmSync(path)
    const database = new DatabaseSync(path)
    database.exec('PRAGMA user_version = 4')
    database.close()
    await expect(openLedger()).rejects.toThrow('the ledger has version 4; this program knows 3')
    expect(() => readSpend(path, { by: [], sinceMs: 0, untilMs: 1 })).toThrow('the ledger has version 4')
    await expect(openLedger(settingsOf({ store: { kind: 'sqlite', path: join(directory, 'none', 'ledger.db') } }))).rejects.toThrow('ENOENT')
  })
})

describe('config.ledger', () => {
  test.each([
    [{}, 'config.ledger needs exactly one of sqlite, postgres and clickhouse'],
    [{ sqlite: { path: '/l' }, postgres: { url: 'postgres://u@h/d' } }, 'config.ledger needs exactly one of sqlite, postgres and clickhouse'],
    [{ postgres: { url: 'mysql://u:secret@h/d' } }, /^config\.ledger\.postgres\.url is not the URL of a database: give postgres:/],
    [{ postgres: { url: 'postgres://h/d' } }, /^config\.ledger\.postgres\.url names no user: give/],
    [{ postgres: { url: 'postgres://u@h' } }, /^config\.ledger\.postgres\.url names no database: give/],
    [{ postgres: { url: 'postgres://u%@h/d' } }, /^config\.ledger\.postgres\.url has a malformed escape: give/],
    [{ postgres: { url: 'postgres://u@h/d?sslmode=prefer' } }, 'config.ledger.postgres.url has sslmode="prefer": use disable or verify-full'],
    [{ postgres: { url: 'postgres://u@h/d?options=-c' } }, 'config.ledger.postgres.url has the parameter "options": only sslmode is supported'],
    [{ postgres: { url: 'postgres://u@h/d', passwordFile: 'p' } }, 'config.ledger.postgres.passwordFile is "p": give an absolute path'],
    [{ clickhouse: { url: 'postgres://u:secret@h/d' } }, /^config\.ledger\.clickhouse\.url is not the URL of a database: give https:/],
    [{ clickhouse: { url: 'https://u@h/d?x=secret' } }, /^config\.ledger\.clickhouse\.url is not the URL of a database/],
    [{ clickhouse: { url: 'https://h/d' } }, /^config\.ledger\.clickhouse\.url names no user: give/],
    [{ clickhouse: { url: 'https://u@h/' } }, /^config\.ledger\.clickhouse\.url names no database: give/],
    [{ clickhouse: { url: 'https://u@h/d', caFile: 'c' } }, 'config.ledger.clickhouse.caFile is "c": give an absolute path'],
    [{ sqlite: { path: 'ledger.db' } }, 'config.ledger.sqlite.path is "ledger.db": give an absolute path'],
    [{ sqlite: { path: '/l' }, retention: '59s' }, 'config.ledger.retention is "59s": give a duration of at least 1m, such as 720h'],
    [{ sqlite: { path: '/l' }, httpSampling: 2 }, 'config.ledger.httpSampling is 2: give a number from 0 to 1'],
    [{ sqlite: { path: '/l' }, user: 'jwt.' }, /^config\.ledger\.user is "jwt\.": ./],
    [{ sqlite: { path: '/l' }, team: 'string(request.body)' }, /^config\.ledger\.team is .*: bodies are not available/],
  ])('rejects %j', (section, message) =>
    expect(readLedgerSettings(section, 'ns/gw')).toEqual(typeof message === 'string' ? message : expect.stringMatching(message)),
  )

  test('has defaults for all but the path', () => {
    expect(readLedgerSettings({ sqlite: { path: '/l' } }, 'ns/gw')).toEqual({
      store: { kind: 'sqlite', path: '/l' },
      retentionMs: 90 * 86_400_000,
      storesToolBodies: false,
      httpSampling: 0,
      user: 'coalesce(jwt.sub, basicAuth.username)',
      team: 'coalesce(apiKey.metadata.team, jwt.team)',
    })
  })

  test.each([
    ['postgres://u@db.example:6432/d', { host: 'db.example', port: 6432, isTls: true, password: undefined }],
    ['postgresql://u:p%40ss@[::1]/d?sslmode=disable', { host: '::1', port: 5432, isTls: false, password: 'p@ss' }],
  ])('reads the database of %s', (url, expected) => {
    const store = { kind: 'postgres', user: 'u', database: 'd', passwordFile: undefined, caFile: undefined, owner: 'ns/gw', ...expected }
    expect(readLedgerSettings({ postgres: { url } }, 'ns/gw')).toMatchObject({ store })
  })

  test.each([
    ['https://u@ch.example/d', { host: 'ch.example', port: 8443, isTls: true, password: undefined }],
    ['https://u:p%40ss@[::1]:443/d', { host: '::1', port: 443, isTls: true, password: 'p@ss' }],
    ['http://u@ch.example/d', { host: 'ch.example', port: 8123, isTls: false, password: undefined }],
  ])('reads the ClickHouse database of %s', (url, expected) => {
    const store = { kind: 'clickhouse', user: 'u', database: 'd', passwordFile: undefined, caFile: undefined, owner: 'o', ...expected }
    expect(readLedgerSettings({ clickhouse: { url, owner: 'o' } }, 'ns/gw')).toMatchObject({ store })
  })
})
