import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { makeCertificate } from '../../../e2e/harness/certificates.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { ClickHouseStore } from './clickhouse-store.ts'
import { batchOf } from './testing.ts'
import { columns, type LedgerRow } from './columns.ts'
import { readLedgerSettings, type LedgerSettings } from './settings.ts'
import { StoreUnreachableError, type ClickHouseSettings } from './store.ts'
import { RequestLedger } from './writer.ts'

interface Received {
  readonly statement: string
  readonly parameters: Readonly<Record<string, string>>
  readonly user: unknown
  readonly key: unknown
  readonly body: string
}
interface Answer {
  readonly status?: number
  readonly code?: string
  readonly body?: string
}

let directory: string
const closing: (() => void)[] = []
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'clickhouse-'))))
afterEach(() => {
  for (const close of closing.splice(0)) close()
  rmSync(directory, { recursive: true, force: true })
})

/**
 * What the HTTP interface of ClickHouse receives and returns; no ClickHouse. `answer` returns undefined for the default: a table that exists once
 * it was created.
 */
async function serve(answer: (request: Received) => Answer | undefined = () => undefined, certificate?: { readonly key: string; readonly cert: string }) {
  const received: Received[] = []
  let names: readonly string[] = []
  const defaults = ({ statement }: Received): Answer => {
    if (statement.startsWith('CREATE TABLE')) names = ['owner', ...columns]
    return { body: statement.includes('system.columns') ? names.map((name) => `${JSON.stringify({ name })}\n`).join('') : '' }
  }
  const onRequest: Parameters<typeof createServer>[1] = (request, response) => {
    void text(request).then((body) => {
      const { query = '', ...parameters } = Object.fromEntries(new URL(request.url ?? '', 'http://a').searchParams)
      const { 'x-clickhouse-user': user, 'x-clickhouse-key': key } = request.headers
      const one = { statement: query, parameters, user, key, body }
      received.push(one)
      const { status = 200, code, body: content = '' } = answer(one) ?? defaults(one)
      response.writeHead(status, code === undefined ? {} : { 'x-clickhouse-exception-code': code }).end(content)
    })
  }
  const server: Server & { closeAllConnections(): void } = certificate === undefined ? createServer(onRequest) : createTlsServer(certificate, onRequest)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, received }
}

function settingsOf(port: number, more: object = {}): LedgerSettings & { readonly store: ClickHouseSettings } {
  const settings = readLedgerSettings({ clickhouse: { url: `http://gw:p%40ss@127.0.0.1:${port}/spend`, owner: 'shop\\a\tb', ...more } }, 'ns/gw')
  if (typeof settings === 'string' || settings.store.kind !== 'clickhouse') throw new Error(JSON.stringify(settings))
  return { ...settings, store: settings.store }
}
const row = (change: Partial<Record<(typeof columns)[number], string | number>> = {}): LedgerRow =>
  columns.map((name) => ({ time: 1_700_000_000_000, status: 200, duration_ms: 5, weight: 1, model: "m'\n{}", cost: 0.25, ...change })[name as 'time'] ?? null)

describe('the ledger in ClickHouse', () => {
  test('creates its table, and inserts rows as JSON with a token of the batch', async () => {
    const { port, received } = await serve()
    const store = new ClickHouseStore(settingsOf(port).store)
    await store.add({ number: 7, ...batchOf(row(), row({ time: 1_700_000_000_001, trace_id: 't' })) })
    await store.add({ number: 8, ...batchOf(row()) })
    expect(received.map(({ statement }) => statement.split(' ').slice(0, 3).join(' '))).toEqual([
      'SELECT name FROM',
      'CREATE TABLE IF',
      'SELECT name FROM',
      'INSERT INTO proxy_requests',
      'INSERT INTO proxy_requests',
    ])
    const [first, second] = received.slice(-2)
    expect([first?.user, first?.key, first?.parameters['database']]).toEqual(['gw', 'p@ss', 'spend'])
    expect(first?.parameters['insert_deduplication_token']).toMatch(/^[0-9a-f-]{36}-7$/)
    expect(second?.parameters['insert_deduplication_token']).toBe(first?.parameters['insert_deduplication_token']?.replace(/7$/, '8'))
    const rows = first?.body.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(rows).toHaveLength(2)
    expect(rows?.[0]).toMatchObject({ owner: 'shop\\a\tb', time: 1_700_000_000_000, model: "m'\n{}", cost: 0.25, trace_id: null })
    for (const name of columns) expect(received[1]?.statement).toContain(`"${name}" `)
  })

  test('adds columns that the table of an earlier version lacks', async () => {
    const { port, received } = await serve(({ statement }) =>
      statement.includes('system.columns') ? { body: '{"name":"owner"}\n{"name":"request_body"}\n' } : undefined,
    )
    await new ClickHouseStore(settingsOf(port).store).add({ number: 0, ...batchOf(row()) })
    expect(received.map(({ statement }) => statement)).toContain('ALTER TABLE proxy_requests ADD COLUMN IF NOT EXISTS "response_body" Nullable(String)')
    expect(received.some(({ statement }) => statement.startsWith('CREATE'))).toBe(false)
  })

  test.each([
    ['a full server', { status: 500, code: '252', body: 'Code: 252. DB::Exception: Too many parts' }, true],
    ['a proxy without a server', { status: 502, body: 'bad gateway' }, true],
    ['a row that does not fit', { status: 400, code: '27', body: 'Code: 27. DB::Exception: Cannot parse input' }, false],
    ['an error after the head', { status: 200, code: '27', body: 'Code: 27.' }, false],
  ])('says whether %s may be tried again', async (_, answer, isTemporary) => {
    const { port } = await serve(({ statement }) => (statement.startsWith('INSERT') ? answer : undefined))
    const failure: unknown = await new ClickHouseStore(settingsOf(port).store).add({ number: 0, ...batchOf(row()) }).catch((error: unknown) => error)
    expect(failure instanceof StoreUnreachableError).toBe(isTemporary)
    expect((failure as Error).message).toContain(answer.body)
  })

  test('waits for a server that is away or rejects the user, without its password in the message', async () => {
    const { port } = await serve(() => ({ status: 403, code: '516', body: 'Code: 516. gw: Authentication failed' }))
    await expect(new ClickHouseStore(settingsOf(port).store).add({ number: 0, ...batchOf(row()) })).rejects.toThrow(StoreUnreachableError)
    await expect(new ClickHouseStore(settingsOf(1).store).add({ number: 0, ...batchOf(row()) })).rejects.toThrow(/ECONNREFUSED/)
  })

  test('deletes old rows once an hour, if there are any', async () => {
    let isOld = false
    const { port, received } = await serve(({ statement }) => (statement.startsWith('SELECT 1') ? { body: isOld ? '{"found":1}\n' : '' } : undefined))
    const deletions = () => received.filter(({ statement }) => statement.startsWith('DELETE'))
    await new ClickHouseStore(settingsOf(port).store).prune(5)
    expect(deletions()).toEqual([])
    isOld = true
    const store = new ClickHouseStore(settingsOf(port).store)
    expect([await store.prune(1234.5), await store.prune(1234.5)]).toEqual([false, false])
    expect(deletions().map(({ parameters }) => parameters)).toEqual([{ database: 'spend', param_owner: 'shop\\\\a\\tb', param_before: '1234' }])
  })

  test('reads reports of the owner, numbers as texts too', async () => {
    const group = { g0: 'm', g1: 200, total_requests: 2, total_errors: 0, total_inputTokens: '9007199254740991', total_cost: 0.5, total_seconds: 1 }
    const { port, received } = await serve(({ statement }) => (statement.includes('total_requests') ? { body: `${JSON.stringify(group)}\n` } : undefined))
    const { rows, isCut } = await new ClickHouseStore(settingsOf(port).store).spend({ by: ['model', 'status', 'day'], sinceMs: 1, untilMs: 2 })
    expect([isCut, rows]).toEqual([false, [expect.objectContaining({ group: ['m', '200', null], requests: 2, inputTokens: 9_007_199_254_740_991, cost: 0.5 })]])
    const { statement, parameters } = received.at(-1) ?? { statement: '', parameters: {} }
    expect(parameters).toMatchObject({ param_owner: 'shop\\\\a\\tb', param_since: '1', param_until: '2' })
    expect(statement).toContain(`formatDateTime(fromUnixTimestamp64Milli("time"), '%Y-%m-%d', 'UTC') AS g2`)
    // An alias with the name of a column would replace it inside of the sums.
    for (const [, alias = ''] of statement.matchAll(/ AS "?(\w+)/g)) expect(columns).not.toContain(alias)
  })

  test('verifies the certificate, and reads the password for each request', async () => {
    const authority = makeCertificate({ name: 'authority', isAuthority: true })
    const { certificate, privateKey } = makeCertificate({ name: 'localhost', issuer: authority })
    const { port, received } = await serve(undefined, { cert: certificate, key: privateKey })
    const files = { caFile: join(directory, 'ca.crt'), passwordFile: join(directory, 'password') }
    writeFileSync(files.caFile, authority.certificate)
    writeFileSync(files.passwordFile, 'first\n')
    const url = `https://gw@localhost:${port}/spend`
    const store = new ClickHouseStore(settingsOf(port, { url, ...files }).store)
    await store.add({ number: 0, ...batchOf(row()) })
    writeFileSync(files.passwordFile, 'second')
    await store.add({ number: 1, ...batchOf(row()) })
    expect([received.at(0)?.key, received.at(-1)?.key]).toEqual(['first', 'second'])
    await expect(new ClickHouseStore(settingsOf(port, { url }).store).add({ number: 0, ...batchOf(row()) })).rejects.toThrow(/certificate/)
  })

  test('is written by the thread of the ledger, which tries again with the same token', async () => {
    let failures = 2
    const { port, received } = await serve(({ statement }) => (statement.startsWith('INSERT') && failures-- > 0 ? { status: 503, body: 'later' } : undefined))
    const lines: string[] = []
    const add = (message: string): void => void lines.push(message)
    const log = { error: add, warn: add, info: add, debug: add, trace: add, isEnabled: () => true }
    const ledger = await RequestLedger.open({ settings: settingsOf(port), log, registry: createRegistry() })
    ledger.write(batchOf(row()))
    await ledger.close()
    const inserts = received.filter(({ statement }) => statement.startsWith('INSERT'))
    expect([inserts.length, new Set(inserts.map(({ parameters }) => parameters['insert_deduplication_token'])).size]).toEqual([3, 1])
    expect(lines).toEqual(['the database of the ledger cannot be used; requests wait', 'the ledger stores requests again'])
  })
})
