import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { replaceFile } from '../../harness/files.ts'
import { send } from '../../harness/client.ts'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { waitUntil } from '../../harness/wait.ts'

const WORKERS = 3
const SABOTAGE = fileURLToPath(new URL('fixture/sabotage.mjs', import.meta.url))

let directory: string
let file: string
let port = 0
let dataplane: Dataplane
let echo: EchoServer
let provider: MockProvider

const route = (path: string, upstream: number, more: object = {}) => ({
  matches: [{ path: { type: 'PathPrefix', value: path } }],
  backends: [{ host: `127.0.0.1:${upstream}` }],
  ...more,
})
/** With one endpoint, which is used nevertheless, evictions show in metrics only. */
const health = { eviction: { duration: '60s', consecutiveFailures: 3 } }
/** Responds with the number of its requests, of all workers. */
const counter = {
  name: 'counter',
  source: { configMapRef: { code: `export default { setup: ({ kv }) => ({ request: async (c) => c.text(String(await kv.increment('requests'))) }) }` } },
  isolation: 'InProcess',
}
/** Passes a response of the upstream on. */
const fetching = () => ({
  name: 'fetching',
  source: { configMapRef: { code: `export default { setup: ({ fetch, config }) => ({ request: () => fetch(config.url) }) }` } },
  config: { url: `http://127.0.0.1:${echo.port}/fetched?status=418` },
  fetch: { hosts: [`127.0.0.1:${echo.port}`] },
  limits: { timeout: '50s' },
})
const cached = () => ({
  backends: [
    {
      ai: { provider: { providerA: {}, host: '127.0.0.1', port: provider.port } },
      policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Completions' }, cache: { tenant: '"all"' } } },
    },
  ],
})
const configOf = (...more: object[]) =>
  JSON.stringify({
    config: { plugins: { inProcess: true } },
    binds: [
      {
        port,
        listeners: [
          {
            name: 'only',
            routes: [
              route('/limited', echo.port, { policies: { rateLimit: { local: [{ requests: 20, unit: 'Hours' }] } } }),
              route('/keyed', echo.port, { policies: { rateLimit: { local: [{ requests: 5, unit: 'Hours', key: 'request.headers["x-user"]' }] } } }),
              route('/evicting', echo.port, { backends: [{ host: `127.0.0.1:${echo.port}`, policies: { health } }] }),
              route('/plugin', echo.port, { policies: { plugins: [counter] } }),
              route('/fetching', echo.port, { policies: { plugins: [fetching()] } }),
              route('/cached', echo.port, cached()),
              route('/', echo.port),
              ...more,
            ],
          },
        ],
      },
    ],
  })
const request = (path: string) => send({ port, path })
/** Sends requests on as many connections, so that all workers have some. */
const sendMany = (path: string, count: number) => Promise.all(Array.from({ length: count }, () => request(path)))
const sample = async (name: RegExp): Promise<number> =>
  (await dataplane.metrics())
    .split('\n')
    .filter((line) => name.test(line))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'workers-'))
  file = join(directory, 'config.json')
  echo = await startEcho({ name: 'echo' })
  provider = await startMockProvider()
  port = await findFreePort()
  await writeFile(file, configOf())
  dataplane = await startDataplane({ config: { file }, nodeArgs: ['--import', SABOTAGE], env: { WORKERS: String(WORKERS), SABOTAGE: directory } })
})
afterAll(async () => {
  await dataplane?.stop()
  await echo?.close()
  await provider?.close()
  await rm(directory, { recursive: true })
})

describe('a data plane with three workers', () => {
  test('counts the requests of all workers, and writes one line of log for each', async () => {
    const responses = await sendMany('/counted', 60)
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await sample(/^proxy_requests_total\{.*status="200"/)).toBe(60)
    expect(await sample(/^proxy_workers /)).toBe(WORKERS)
    expect(await sample(/^proxy_downstream_connections_total\{.*listener="only",protocol="http"/)).toBeGreaterThan(0)
    const lines = () => dataplane.program.lines.filter(({ text }) => text.includes('http.path=/counted'))
    await waitUntil('the lines of the access log', () => lines().length === 60)
    for (const { text } of lines()) expect(text).toMatch(/^\d{4}-\S+Z\tinfo\trequest .* http\.path=\/counted .*duration=\d+ms$/)
  })

  test('admits exactly the limit of a local rate limit', async () => {
    const statuses = (await sendMany('/limited', 50)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(20)
    expect(statuses.filter((status) => status === 429)).toHaveLength(30)
  })

  test('admits exactly the limit of each key', async () => {
    for (const user of ['ann', 'bob']) {
      const responses = await Promise.all(Array.from({ length: 20 }, () => send({ port, path: '/keyed', headers: { 'x-user': user } })))
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(5)
    }
  })

  test('shares the values of plugins', async () => {
    const numbers = (await sendMany('/plugin', 30)).map(({ body }) => Number(body))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
  })

  test('shares the stored responses of an LLM provider', async () => {
    const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }] })
    const ask = () => send({ port, path: '/cached', method: 'POST', body, headers: { 'content-type': 'application/json' } })
    const first = await ask()
    const others = await Promise.all(Array.from({ length: 30 }, ask))
    expect(new Set(others.map((response) => response.body))).toEqual(new Set([first.body]))
    expect([provider.requests.length, await sample(/^proxy_llm_cache_requests_total\{result="hit"/)]).toEqual([1, 30])
  })

  test('sends requests of plugins', async () => {
    const { status, body } = await request('/fetching')
    expect([status, body]).toEqual([418, expect.stringContaining('/fetched?status=418')])
    expect(await sample(/^proxy_plugin_fetches_total\{.*result="4xx"/)).toBe(1)
  })

  test('keeps the budget of an unchanged rate limit over an edit, which all workers apply', async () => {
    await replaceFile(file, configOf(route('/edited', echo.port, { filters: { responseHeaders: [{ set: [{ name: 'x-edited', value: 'yes' }] }] } })))
    await dataplane.program.waitForLine(/config file reloaded/)
    const edited = await sendMany('/edited', 30)
    expect(new Set(edited.map(({ headers }) => headers['x-edited']))).toEqual(new Set(['yes']))
    expect(new Set((await sendMany('/limited', 10)).map(({ status }) => status))).toEqual(new Set([429]))
  })

  test('evicts an endpoint by failures in a row that different workers saw, once', async () => {
    const evictions = () => sample(/^proxy_upstream_evictions_total\{/)
    for (let count = 0; count < 2; count++) await request('/evicting?status=503')
    expect(await evictions()).toBe(0)
    await request('/evicting?status=503')
    expect(await evictions()).toBe(1)
    expect(await sample(/^proxy_upstream_evicted_endpoints\{/)).toBe(1)
    await sendMany('/evicting?status=503', 20)
    expect(await evictions()).toBe(1)
  })

  test('traces the next request of any worker', async () => {
    const traced = dataplane.admin('/debug/trace?path=/traced&timeout=30s')
    let report: Response | undefined
    void traced.then((response) => (report = response))
    await waitUntil('the report of the trace', async () => {
      await request('/traced')
      return report !== undefined
    })
    expect(await (await traced).json()).toMatchObject({ path: '/traced', status: 200 })
  })

  test('changes the log level of all workers', async () => {
    const setLevel = (query: string) => fetch(`http://127.0.0.1:${dataplane.ports.admin}/logging?${query}`, { method: 'POST' })
    expect(await (await setLevel('level=request=off')).text()).toContain('request=off')
    await sendMany('/silent', 30)
    await setLevel('reset')
    await sendMany('/loud', 30)
    const of = (path: string) => dataplane.program.lines.filter(({ text }) => text.includes(`http.path=${path} `)).length
    await waitUntil('the log after the reset', () => of('/loud') === 30)
    expect(of('/silent')).toBe(0)
  })

  test('reports the memory of each worker', async () => {
    const { workers } = (await (await dataplane.admin('/memory')).json()) as { workers: { heapUsed: number }[] }
    expect(workers.map(({ heapUsed }) => heapUsed > 1e6)).toEqual([true, true, true])
  })

  test('replaces a worker that throws, and its counts stay', async () => {
    const before = await sample(/^proxy_requests_total\{/)
    await writeFile(join(directory, 'throw'), '')
    const line = await dataplane.program.waitForLine(/worker ended; it is replaced/)
    expect(line).toMatch(/\terror\tworkers\t.*cause=crash .*sabotaged.* delayMs=0\b/)
    await waitUntil('all workers are back', async () => (await sample(/^proxy_workers /)) === WORKERS)
    expect(await sample(/^proxy_worker_restarts_total\{cause="crash"\}/)).toBe(1)
    const responses = await sendMany('/after', 40)
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await sample(/^proxy_requests_total\{/)).toBe(before + 40)
    // The budget belongs to the data plane, not to the worker.
    expect(new Set((await sendMany('/limited', 10)).map(({ status }) => status))).toEqual(new Set([429]))
  })

  test('names a blocked worker with its stack, stays ready, and replaces it', async () => {
    await writeFile(join(directory, 'block'), '')
    const line = await dataplane.program.waitForLine(/worker does not answer/)
    expect(line).toMatch(/stack=.*block .*sabotage\.mjs:\d+/)
    expect((await fetch(`http://127.0.0.1:${dataplane.ports.readiness}/healthz/ready`)).status).toBe(200)
    await dataplane.program.waitForLine(/worker ended; it is replaced.*cause=blocked/)
    await waitUntil('all workers are back', async () => (await sample(/^proxy_workers /)) === WORKERS)
    expect(new Set((await sendMany('/after', 40)).map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('logs the error of a worker that ends during the shutdown, and the others go on', async () => {
    const own = await mkdtemp(join(tmpdir(), 'workers-shutdown-'))
    const [at, config] = [await findFreePort(), join(own, 'config.json')]
    await writeFile(config, JSON.stringify({ binds: [{ port: at, listeners: [{ routes: [route('/', echo.port)] }] }] }))
    const env = { WORKERS: String(WORKERS), SABOTAGE: own, CONNECTION_MIN_TERMINATION_DEADLINE: '50s' }
    const second = await startDataplane({ config: { file: config }, nodeArgs: ['--import', SABOTAGE], env })
    second.program.signal('SIGTERM')
    await second.program.waitForLine(/\tdraining /)
    await writeFile(join(own, 'throw'), '')
    expect(await second.program.waitForLine(/\tworker ended/)).toMatch(/cause=crash .*sabotaged/)
    expect((await send({ port: at, path: '/' })).status).toBe(200)
    await second.stop(0)
    await rm(own, { recursive: true })
  })

  test('does not start on a port that another program has, even one with reusePort', async () => {
    const other: Server = createServer()
    const taken = await findFreePort()
    await new Promise<void>((resolve) => other.listen({ port: taken, reusePort: true }, resolve))
    const second = join(directory, 'second.json')
    await writeFile(second, JSON.stringify({ binds: [{ port: taken, listeners: [{ routes: [route('/', echo.port)] }] }] }))
    await expect(startDataplane({ config: { file: second }, env: { WORKERS: String(WORKERS) } })).rejects.toThrow(`port ${taken} of 127.0.0.1 is in use`)
    other.close()
  })

  test('finishes the requests of all workers on SIGTERM', async () => {
    const slow = Array.from({ length: 12 }, () => request('/slow?delay=2000'))
    await waitUntil('requests in flight', () => echo.requests.filter(({ path }) => path.startsWith('/slow')).length === 12)
    dataplane.program.signal('SIGTERM')
    expect(new Set((await Promise.all(slow)).map(({ status }) => status))).toEqual(new Set([200]))
    expect(await dataplane.program.exited).toEqual({ code: 0, signal: null })
    expect(dataplane.program.lines.filter(({ text }) => text.includes('http.path=/slow'))).toHaveLength(12)
  })
})
