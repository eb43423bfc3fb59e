import { createServer, request as requestHttp, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Hono } from 'hono'
import { createConsoleServer } from './server.ts'
import { Targets, type Target } from './targets.ts'

type Answer = (request: IncomingMessage) => { readonly status?: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }

const servers: Server[] = []
afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)))))

/** A data plane that answers with JSON. */
async function startTarget(name: string, answer: Answer): Promise<Target> {
  const server = createServer((request, response) => {
    const { status = 200, body, headers = {} } = answer(request)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    name,
    request: ({ method, path, headers, body }) =>
      new Promise((resolve, reject) => {
        requestHttp({ host: '127.0.0.1', port, method, path, headers, agent: false }, resolve).on('error', reject).end(body)
      }),
  }
}

const broken: Target = { name: 'gone', request: () => Promise.reject(new Error('connect ECONNREFUSED')) }
const listening = { host: '127.0.0.1', port: 8901 }

function serve(targets: readonly Target[]): Hono {
  return createConsoleServer({ targets: new Targets(() => Promise.resolve(targets)), listening: () => listening })
}

const ask = async (
  app: Hono,
  path: string,
  init: { readonly method?: string; readonly body?: string; readonly headers?: Readonly<Record<string, string>> } = {},
) => app.request(`http://127.0.0.1:8901${path}`, { ...init, headers: { host: '127.0.0.1:8901', ...init.headers } })
const json = async (app: Hono, path: string): Promise<unknown> => (await ask(app, path)).json()

const row = (requests: number) => ({
  key: 'total',
  requests,
  clientErrors: 0,
  serverErrors: 0,
  requestsPerSecond: requests / 10,
  counts: [requests, 0],
  p50Ms: 1,
  p95Ms: 1,
})
const stats = (requests: number) => ({ timeMs: 1, windowSeconds: 10, bounds: [0.001], rows: [row(requests)] })

describe('the console of several pods', () => {
  test('adds up the LLM numbers of all pods', async () => {
    const usage = (model: string, sinceMs: number) => () => ({
      body: { timeMs: 9, sinceMs, rows: [{ model, provider: 'p', key: 'k', route: 'r', requests: 2 }] },
    })
    const app = serve([await startTarget('a', usage('m', 5)), await startTarget('b', usage('m', 4)), await startTarget('c', usage('n', 6))])
    expect(await json(app, '/api/v1/llm')).toMatchObject({
      sinceMs: 4,
      rows: [
        { model: 'm', requests: 4 },
        { model: 'n', requests: 2 },
      ],
    })
  })

  test('lists the budgets of each pod, the highest used part first', async () => {
    const use = (used: number) => () => ({ body: { timeMs: 1, rows: [{ policy: 'ns/p', budget: 'b', key: 'k', limit: 10, used }], isCut: used === 9 } })
    const app = serve([await startTarget('a', use(3)), await startTarget('b', use(9))])
    expect(await json(app, '/api/v1/budgets')).toMatchObject({
      isCut: true,
      rows: [
        { pod: 'b', used: 9 },
        { pod: 'a', used: 3 },
      ],
    })
  })

  test('adds up the spend of all pods with a ledger', async () => {
    const sums = { requests: 1, errors: 1, inputTokens: 2, outputTokens: 3, cachedTokens: 4, reasoningTokens: 5, cost: 0.5, unpriced: 6, seconds: 7 }
    const paths: (string | undefined)[] = []
    const spend = (model: string) => (request: IncomingMessage) => {
      paths.push(request.url)
      return { body: { by: ['model'], sinceMs: 1, untilMs: 2, rows: [{ group: [model], ...sums }], isCut: model === 'n' } }
    }
    const none = await startTarget('d', () => ({ status: 404, body: { error: 'this data plane keeps no ledger' } }))
    const app = serve([await startTarget('a', spend('n')), await startTarget('b', spend('m')), await startTarget('c', spend('m')), none])
    expect(await json(app, '/api/v1/spend?by=model&since=1')).toEqual({
      by: ['model'],
      sinceMs: 1,
      untilMs: 2,
      rows: [
        { group: ['m'], requests: 2, errors: 2, inputTokens: 4, outputTokens: 6, cachedTokens: 8, reasoningTokens: 10, cost: 1, unpriced: 12, seconds: 14 },
        { group: ['n'], ...sums },
      ],
      isCut: true,
    })
    expect(new Set(paths)).toEqual(new Set(['/api/v1/spend?by=model&since=1']))
    expect((await ask(serve([none]), '/api/v1/spend')).status).toBe(404)
  })

  test('shows the sums of their numbers', async () => {
    const app = serve([await startTarget('a', () => ({ body: stats(10) })), await startTarget('b', () => ({ body: stats(30) }))])
    expect(await json(app, '/api/v1/stats')).toMatchObject({ windowSeconds: 10, rows: [{ key: 'total', requests: 40, requestsPerSecond: 4, counts: [40, 0] }] })
  })

  test('leaves out a pod that cannot be reached', async () => {
    const app = serve([broken, await startTarget('b', () => ({ body: stats(30) }))])
    expect(await json(app, '/api/v1/stats')).toMatchObject({ rows: [{ requests: 30 }] })
    expect((await ask(app, '/api/v1/routes')).status).toBe(200)
  })

  test('follows pods that are deleted and created', async () => {
    const [a, b] = [await startTarget('a', () => ({ body: stats(1) })), await startTarget('b', () => ({ body: stats(2) }))]
    let pods: readonly Target[] = [a]
    let now = 0
    const targets = new Targets(
      () => Promise.resolve(pods),
      () => now,
    )
    const app = createConsoleServer({ targets, listening: () => listening })
    expect(await json(app, '/api/v1/stats')).toMatchObject({ rows: [{ requests: 1 }] })
    pods = [b]
    expect(await json(app, '/api/v1/stats')).toMatchObject({ rows: [{ requests: 1 }] })
    now += 2000
    expect(await json(app, '/api/v1/stats')).toMatchObject({ rows: [{ requests: 2 }] })
    pods = []
    now += 2000
    expect((await ask(app, '/api/v1/stats')).status).toBe(503)
    pods = [a, b]
    expect(await json(app, '/api/v1/stats')).toMatchObject({ rows: [{ requests: 3 }] })
  })

  test('keeps a stream open while no pod responds', async () => {
    const response = await ask(serve([broken]), '/api/v1/stats/stream')
    const reader = response.body?.getReader()
    const { value } = (await reader?.read()) ?? {}
    expect(new TextDecoder().decode(value)).toMatch(/^event: stats\ndata: \{.*"rows":\[\]\}/)
    await reader?.cancel()
  })

  test('names the pod of each request', async () => {
    const batch = (timeMs: number) => () => ({ body: { records: [{ id: '1', timeMs, pod: null }], seen: 1, skipped: 0 } })
    const app = serve([await startTarget('a', batch(2)), await startTarget('b', batch(1))])
    expect(await json(app, '/api/v1/requests?tail=t')).toEqual({
      records: [
        { id: '1', timeMs: 1, pod: 'b' },
        { id: '1', timeMs: 2, pod: 'a' },
      ],
      seen: 2,
      skipped: 0,
    })
  })

  test('rejects an invalid filter with the error of the data plane', async () => {
    const app = serve([await startTarget('a', () => ({ status: 400, body: { error: 'filter: expected an expression' } }))])
    for (const path of ['/api/v1/requests?tail=t&filter=1%20%2B', '/api/v1/requests/stream?filter=1%20%2B']) {
      const response = await ask(app, path)
      expect([response.status, await response.json()]).toEqual([400, { error: 'filter: expected an expression' }])
    }
  })

  test('passes other requests on to one pod, with body and status', async () => {
    const seen: string[] = []
    const answer =
      (name: string): Answer =>
      ({ method, url, headers }) => {
        seen.push(`${name} ${method ?? ''} ${url ?? ''} ${headers['content-length'] ?? ''} ${headers.origin ?? ''}`)
        return { status: 418, body: { name }, headers: { 'set-cookie': 'a=b' } }
      }
    const app = serve([await startTarget('a', answer('a')), await startTarget('b', answer('b'))])
    const response = await ask(app, '/api/v1/try?x=1', { method: 'POST', body: '{}', headers: { origin: 'http://127.0.0.1:8901' } })
    expect([response.status, await response.json(), response.headers.get('set-cookie')]).toEqual([418, { name: 'a' }, null])
    expect(await (await ask(app, '/config_dump?pod=b')).json()).toEqual({ name: 'b' })
    expect((await ask(app, '/config_dump?pod=c')).status).toBe(404)
    expect(seen).toEqual(['a POST /api/v1/try?x=1 2 ', 'b GET /config_dump?pod=b  '])
  })

  test('sets the log level of all pods, and stops none', async () => {
    const seen: string[] = []
    const answer =
      (name: string): Answer =>
      ({ method, url }) => {
        seen.push(`${name} ${method ?? ''} ${url ?? ''}`)
        return { body: { level: 'debug' } }
      }
    const app = serve([await startTarget('a', answer('a')), await startTarget('b', answer('b'))])
    expect(await (await ask(app, '/api/v1/log-level', { method: 'PUT', body: '{"level":"debug"}' })).json()).toEqual({ level: 'debug' })
    expect((await ask(app, '/quitquitquit', { method: 'POST' })).status).toBe(404)
    expect(seen.toSorted()).toEqual(['a PUT /api/v1/log-level', 'b PUT /api/v1/log-level'])
  })

  test.each<[string, Record<string, string>]>([
    ['a rebound host name', { host: 'evil.example' }],
    ['another origin', { origin: 'http://evil.example' }],
    ['a frame', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
  ])('rejects requests of %s before a pod sees them', async (_, headers) => {
    const response = await ask(serve([broken]), '/api/v1/stats', { headers })
    expect(response.status).toBe(403)
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })
})
