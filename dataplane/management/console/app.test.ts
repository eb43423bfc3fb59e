import { beforeAll, describe, expect, test } from '@jest/globals'
import { OpenAPIHono } from '@hono/zod-openapi'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { BudgetUse } from '#api/management/budgets.ts'
import type { ConfigMessage } from '../../config/store.ts'
import { createConfigStore } from '../../config/store.ts'
import type { SpendQuery } from '../../store/ledger/store.ts'
import { createLogging } from '../../observe/telemetry/log.ts'
import { createConsoleApp } from './app.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { LiveStats } from './live.ts'
import { registerSpend } from './spend.ts'
import { VersionHistory } from './versions.ts'

const listeners = ['ns/gw.http']
const messages: ConfigMessage[] = [
  { kind: 'bind', message: { key: '80/ns/gw', port: 80 } },
  {
    kind: 'listener',
    message: { key: 'ns/gw.http', bind: '80/ns/gw', gateway: { namespace: 'ns', name: 'gw' }, name: 'http', protocol: 'HTTP', hostname: '*.example' },
  },
  {
    kind: 'listener',
    message: {
      key: 'ns/gw.https',
      bind: '80/ns/gw',
      gateway: { namespace: 'ns', name: 'gw' },
      name: 'https',
      protocol: 'HTTPS',
      tls: { mode: 'Terminate', certificates: [] },
    },
  },
  {
    kind: 'route',
    message: {
      key: 'ns/web.0',
      listeners,
      route: { kind: 'HTTPRoute', namespace: 'ns', name: 'web', ruleIndex: 0 },
      matches: [{ path: { type: 'RegularExpression', value: '(' } }],
      backends: [{ ref: { service: 'ns/web', port: 80 }, weight: 2 }, { ref: { backend: 'ns/gone' } }],
    },
  },
  { kind: 'backend', message: { key: 'ns/tools', mcp: { targets: [] } } },
  { kind: 'service', message: { key: 'ns/web', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 8080, zone: 'a' }] }] } },
  {
    kind: 'policy',
    message: {
      key: 'traffic/ns/p:0',
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
      target: { kind: 'HTTPRoute', namespace: 'ns', name: 'web' },
      traffic: { timeouts: { request: '3s' }, budgets: [{ name: 'team', key: 'apiKey.team', limits: [{ requests: 10, window: 'Day' }] }] },
    },
  },
]

const spendSums = { requests: 1, errors: 0, inputTokens: 2, outputTokens: 3, cachedTokens: 0, reasoningTokens: 0, cost: 0.5, unpriced: 0, seconds: 4 }

const llmRow = {
  model: 'm',
  provider: 'openai',
  key: 'team-a',
  route: 'ns/web',
  requests: 2,
  inputTokens: 10,
  outputTokens: 5,
  cachedTokens: 1,
  cost: 0.5,
  streams: 1,
  firstTokenSeconds: 0.25,
  generationSeconds: 1,
  generatedTokens: 5,
  rateLimited: 1,
  clientErrors: 0,
  serverErrors: 0,
  timeouts: 0,
  aborted: 0,
}

const mcpSession = {
  id: 'digest',
  backend: 'ns/tools',
  kind: 'session',
  revision: '2025-06-18',
  client: null,
  ageMs: null,
  idleMs: 5,
  open: 1,
  isBound: true,
  targets: [{ name: 'tickets', isMissing: false }],
  pods: [],
}

let app: ConsoleApp
let versions: VersionHistory
const evicted = { address: '10.0.0.1:8080', health: 0.25, evictedForMs: 1500, failedCheck: null, latencyMs: 3, pending: 2, draining: false, zone: null }

beforeAll(() => {
  const store = createConfigStore()
  versions = new VersionHistory(store)
  store.apply('file', { upserts: messages, removals: [] })
  const logging = createLogging({ writer: { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined } })
  const results = {
    endpoints: [{ backend: 'ns/web:80', endpoints: [evicted] }],
    sample: [
      {
        kind: 'gauge',
        name: 'proxy_mcp_tools_held',
        help: '',
        labels: ['backend', 'server'],
        merge: 'max',
        bounds: [],
        series: [
          ['ns/tools', 'tickets'],
          ['ns/tools', 'files'],
          ['ns/gone', 'files'],
        ],
        values: new Float64Array([2, 0, 1]),
      },
    ],
    llm: { timeMs: 9, sinceMs: 4, rows: [llmRow] },
    budgets: [{ name: 'ns/p team requests Day', keys: [{ key: 'blue', used: 9, endMs: Date.parse('2026-11-24T00:00:00Z') }], isCut: false }],
    mcpSessions: { timeMs: 9, sessions: [mcpSession], total: 1 },
    refusedPlugins: [],
    tail: { records: [], seen: 3, skipped: 1 },
  }
  const ledger = {
    spend: (query: SpendQuery) =>
      query.sinceMs === 13
        ? Promise.reject(new Error('/secret/path: disk I/O error'))
        : Promise.resolve({ rows: [{ group: query.by.map((name) => `a ${name}`), ...spendSums }], isCut: false }),
  }
  app = createConsoleApp({
    name: 'pod-1',
    version: '9.9',
    startedAtMs: 5,
    workers: 2,
    logging,
    live: new LiveStats(() => Promise.resolve([])),
    versions,
    // Two threads with the same numbers.
    threads: (method) => Promise.resolve([results[method], results[method]] as never),
    ledger,
    edits: 'not in this test',
    snapshot: () => store.snapshot(),
    async *writeConfig() {
      yield '{"version":'
      yield '1}'
    },
    redact: (value) => value,
    redactMessage: (_, message) => message,
    notes: () => [],
    failures: () => [new Error('port 80 is in use')],
    trace: () => Promise.resolve(undefined),
  })
})

async function get<T>(path: string): Promise<T> {
  return (await app.request(path)).json() as Promise<T>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly summary?: string; readonly responses: Readonly<Record<string, object>> }>>>>
}

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const result = await new Validator().validate(await get<Record<string, unknown>>('/openapi.json'))
    expect(result).toEqual({ valid: true })
  })

  test('contains every route of the API, with a summary', async () => {
    const { paths } = await get<Document>('/openapi.json')
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { summary }]) => {
        expect(summary).toBeTruthy()
        return `${method.toUpperCase()} ${path}`
      }),
    )
    const served = app.routes
      .filter(({ method, path }) => method !== 'ALL' && path !== '/openapi.json')
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
    expect(described.toSorted()).toEqual([...new Set(served)].sort())
    expect(described).toContain('GET /api/v1/overview')
  })

  test('has all query parameters: any other is rejected by name, on every route', async () => {
    const { paths } = await get<Document>('/openapi.json')
    for (const [path, methods] of Object.entries(paths))
      for (const method of Object.keys(methods)) {
        const response = await app.request(`${path.replaceAll(/\{\w+\}/g, '1')}?limitt=1&Tail=a`, { method: method.toUpperCase() })
        const { error } = (await response.json()) as { readonly error: string }
        expect([method, path, response.status, error]).toEqual([method, path, 400, expect.stringContaining('query: "limitt", "Tail" is not known; ')])
      }
    expect(await get('/api/v1/spend?model=a')).toEqual({ error: 'query: "model" is not known; use by, since, until' })
    expect(await get('/api/v1/overview?x')).toEqual({ error: 'query: "x" is not known; this resource has no query parameters' })
    expect((await app.request('/api/v1/nothing?x')).status).toBe(404)
  })
})

describe('the management API', () => {
  test('adds up the LLM numbers of all threads', async () => {
    expect(await get('/api/v1/llm')).toMatchObject({
      sinceMs: 4,
      rows: [{ model: 'm', key: 'team-a', requests: 4, inputTokens: 20, outputTokens: 10, cachedTokens: 2, cost: 1, firstTokenSeconds: 0.5, rateLimited: 2 }],
    })
  })

  test('reports the spend of the ledger by dimensions and time', async () => {
    expect(await get('/api/v1/spend?by=team,model&since=5&until=9')).toEqual({
      by: ['team', 'model'],
      sinceMs: 5,
      untilMs: 9,
      rows: [{ group: ['a team', 'a model'], ...spendSums }],
      isCut: false,
    })
    const unknown = await app.request('/api/v1/spend?by=team,colour')
    expect([unknown.status, await unknown.json()]).toEqual([400, { error: expect.stringMatching(/^by: "colour" is not one of gateway, route/) }])
    expect((await app.request('/api/v1/spend?since=yesterday')).status).toBe(400)
    const failed = await app.request('/api/v1/spend?since=13&until=14')
    expect([failed.status, await failed.text()]).toEqual([503, expect.not.stringContaining('/secret')])
  })

  test('shows what is left of budgets once for all threads', async () => {
    const { rows } = await get<BudgetUse>('/api/v1/budgets?history=true')
    expect(rows[0]?.history).toEqual([{ timeMs: expect.any(Number), used: 9 }])
    expect((await get<BudgetUse>('/api/v1/budgets')).rows[0]).not.toHaveProperty('history')
    expect(await get('/api/v1/budgets')).toMatchObject({ rows: [{ policy: 'ns/p', budget: 'team', key: 'blue', used: 9, left: 1 }], isCut: false })
  })

  test('reports no spend without a ledger', async () => {
    const bare: ConsoleApp = new OpenAPIHono()
    registerSpend(bare, { ledger: undefined } as ConsoleContext)
    const response = await bare.request('/api/v1/spend')
    expect([response.status, await response.json()]).toEqual([404, { error: expect.stringMatching(/^this data plane keeps no ledger/) }])
  })

  test('shows the graph with the endpoints of all threads', async () => {
    expect(await get('/api/v1/overview')).toMatchObject({
      replicas: [{ name: 'pod-1', configVersion: 1, version: '9.9', startedAtMs: 5, workers: 2 }],
      gateways: [{ key: 'ns/gw' }],
      listeners: [{ key: 'ns/gw.http', gateway: 'ns/gw', port: 80, protocol: 'HTTP', hostname: '*.example' }, { key: 'ns/gw.https' }],
      routes: [{ key: 'HTTPRoute ns/web', listeners, rules: 1, backends: ['ns/web:80', 'ns/gone'] }],
      backends: [
        { key: 'ns/web:80', kind: 'service', endpoints: [{ ...evicted, pending: 4, zone: 'a' }] },
        { key: 'ns/gone', kind: 'invalid', endpoints: [] },
      ],
    })
  })

  test('lists problems with their codes, errors first', async () => {
    versions.reject({ source: 'stream', code: 'PX4006', key: 'ns/x', message: 'is not valid' })
    const { problems } = await get<{ problems: { severity: string; code: string; object: string | null; message: string }[] }>('/api/v1/overview')
    expect(problems.map(({ severity, code, object }) => [severity, code, object])).toEqual([
      ['error', 'PX4006', 'config'],
      ['error', 'PX4007', null],
      ['error', 'PX4008', 'listener ns/gw.https'],
      ['error', 'PX4009', 'route HTTPRoute ns/web'],
      ['error', 'PX4017', 'route HTTPRoute ns/web'],
      ['warning', 'PX4010', 'backend ns/web:80'],
      ['warning', 'PX4029', 'backend ns/tools'],
      ['warning', 'PX4021', 'budget ns/p team'],
    ])
    expect(problems.at(-1)?.message).toBe('budget "team" of ns/p, 10 requests per Day, is 90 % used for key "blue"; the window ends 2026-11-24T00:00:00Z')
    expect(problems.at(-2)?.message).toBe('2 tools of MCP server tickets of ns/tools are held until approved: proxyctl mcp diff shows the differences')
  })

  test('shows a route with precedence and effective policy', async () => {
    const detail = await get('/api/v1/routes/HTTPRoute/ns/web')
    expect(detail).toMatchObject({
      key: 'HTTPRoute ns/web',
      rules: [
        {
          index: 0,
          matches: [{ text: 'RegularExpression (' }],
          backends: [
            { key: 'ns/web:80', weight: 2 },
            { key: 'ns/gone', weight: 1 },
          ],
          shadows: [],
          precedence: [{ listener: 'ns/gw.http', hostname: '*.example', position: 1, of: 1, rivals: [] }],
          effective: [{ postRouting: { timeouts: { value: { request: '3s' }, sources: [{ from: 'ProxyPolicy ns/p' }] } } }],
        },
      ],
    })
    expect(await get('/api/v1/routes')).toMatchObject({ routes: [{ key: 'HTTPRoute ns/web' }] })
    expect((await app.request('/api/v1/routes/HTTPRoute/ns/none')).status).toBe(404)
  })

  test('adds up the requests of all threads', async () => {
    expect(await get('/api/v1/requests?tail=a')).toEqual({ records: [], seen: 6, skipped: 2 })
  })

  test('lists a session that two threads know once', async () => {
    expect(await get('/api/v1/mcp/sessions')).toMatchObject({ sessions: [{ ...mcpSession, open: 2 }], total: 1 })
  })

  test('streams values as events', async () => {
    const response = await app.request('/api/v1/stats/stream')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body?.getReader()
    const { value } = (await reader?.read()) ?? {}
    expect(new TextDecoder().decode(value)).toMatch(/^event: stats\ndata: \{"timeMs":/)
    await reader?.cancel()
  })

  test('sends the config dump, versions and their differences', async () => {
    expect(await get('/api/v1/config')).toEqual({ version: 1 })
    expect(await get('/api/v1/config/versions')).toMatchObject({ current: 1, versions: [{ version: 1, counts: { added: 7 } }] })
    expect(await get('/api/v1/config/versions/1')).toMatchObject({ version: 1 })
    expect((await app.request('/api/v1/config/versions/7')).status).toBe(404)
  })

  test('shows and sets the log level', async () => {
    const put = (level: unknown) =>
      app.request('/api/v1/log-level', { method: 'PUT', body: JSON.stringify({ level }), headers: { 'content-type': 'application/json' } })
    expect(await (await put('debug')).json()).toEqual({ level: 'debug' })
    expect(await get('/api/v1/log-level')).toEqual({ level: 'debug' })
    expect(await (await put('loud')).json()).toEqual({ error: expect.stringContaining('bad log level "loud"') })
    expect((await put(7)).status).toBe(400)
  })

  test.each<[string, string, number, string]>([
    ['an invalid filter', '/api/v1/requests?tail=a&filter=1%20%2B', 400, 'filter: '],
    ['an invalid filter of a stream', '/api/v1/requests/stream?filter=1%20%2B', 400, 'filter: '],
    ['a tail without a name', '/api/v1/requests', 400, 'tail: '],
    ['an unknown kind', '/api/v1/routes/Pod/ns/web', 400, 'kind: '],
    ['an unknown resource', '/api/v1/nothing', 404, 'there is no such resource'],
  ])('rejects %s', async (_, path, status, text) => {
    const response = await app.request(path)
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({ error: expect.stringContaining(text) })
  })

  test('rejects a request to try out on a listener that does not exist', async () => {
    const body = JSON.stringify({ listener: 'ns/gw.none', host: 'a.example' })
    const response = await app.request('/api/v1/try', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    expect(response.status).toBe(404)
  })
})
