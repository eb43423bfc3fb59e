import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import { captureLimits, capturedBodies, toolCaptureLimits } from '../../request/exchange/captured-bodies.ts'
import { apiKeyNames } from '../../request/exchange/key-names.ts'
import { variables } from '../../request/exchange/variables.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import { createRegistry, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import { recordGuard, setProtocol, type Protocol } from '../../observe/telemetry/outcome.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { expandRows, type LedgerBatch } from './batch.ts'
import type { Dimension } from './columns.ts'
import { ledgerMetrics } from './metrics.ts'
import { MAX_PENDING_BODIES, MAX_PENDING_ROWS, PendingRows, startRecorder } from './recorder.ts'
import { readLedgerSettings, type LedgerSettings } from './settings.ts'
import { readSpend } from './spend.ts'
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
