import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { send } from '../../harness/client.ts'
import { isTrueWithin, waitUntil } from '../../harness/wait.ts'
import type { Received } from './collector.ts'
import { startPrometheus, type Prometheus } from './prometheus.ts'
import { listSelectors, readRules } from './rules.ts'
import { startEnvironment, type Environment } from './environment.ts'

let environment: Environment
beforeAll(async () => (environment = await startEnvironment()), 900_000)
afterAll(() => environment?.stop())

const portOf = (gateway: 'grpc' | 'http'): number => environment.ports[gateway === 'grpc' ? 'GRPC_PORT' : 'HTTP_PORT']

/** Waits for `count` records of a path and returns them. */
async function recordsOf(read: () => Promise<Received[]>, path: string, count: number): Promise<Received[]> {
  let found: Received[] = []
  await isTrueWithin(60_000, async () => (found = (await read()).filter(({ attributes }) => attributes['http.path'] === path)).length >= count)
  return found
}

describe.each(['grpc', 'http'] as const)('an OpenTelemetry collector over %s', (gateway) => {
  const others = gateway === 'grpc' ? { team: 'blue', query: 'x' } : { 'http.host': 'shop.test' }

  test('receives the log record and the spans of a request in one trace', async () => {
    const path = `/shop/${gateway}?q=x`
    const response = await send({ port: portOf(gateway), host: 'shop.test', path })
    expect(response.status).toBe(200)
    const [record] = await recordsOf(() => environment.collector().logs(), path, 1)
    expect(record?.attributes).toMatchObject({ gateway: `default/${gateway}`, route: 'default/shop', 'http.method': 'GET', 'http.status': 200, ...others })
    expect('http.host' in (record?.attributes ?? {})).toBe(gateway === 'http')
    expect([record?.scope, record?.severityText, record?.resource['service.name']]).toEqual(['proxy.access', 'INFO', 'proxy'])

    const spans = (await recordsOf(() => environment.collector().spans(), path, 2)).filter(({ traceId }) => traceId === record?.traceId)
    const server = spans.find(({ kind }) => kind === 2)
    const clients = spans.filter(({ kind }) => kind === 3)
    expect([server?.name, server?.spanId, server?.resource['service.name']]).toEqual([
      'GET /shop/*',
      record?.spanId,
      gateway === 'grpc' ? 'gateway-grpc' : 'proxy',
    ])
    expect(clients.map(({ name, parentSpanId }) => [name, parentSpanId])).toContainEqual(['Http', server?.spanId])
    const echoed = environment.app.requests.find((request) => request.path === path)
    expect(echoed?.headers['traceparent']).toBe(`00-${record?.traceId}-${record?.spanId}-01`)
  })

  test('receives spans in the trace of the client', async () => {
    const path = `/shop/${gateway}/joined?q=1`
    const traceId = 'abcdef0123456789abcdef0123456789'
    await send({ port: portOf(gateway), path, headers: { traceparent: `00-${traceId}-1234567890abcdef-01`, tracestate: 'vendor=1' } })
    const spans = await recordsOf(() => environment.collector().spans(), path, 2)
    expect(spans.find(({ kind }) => kind === 2)).toMatchObject({ traceId, parentSpanId: '1234567890abcdef' })
    expect(environment.app.requests.find((request) => request.path === path)?.headers['tracestate']).toBe('vendor=1')
  })

  test('receives a span for every attempt of a retried request', async () => {
    const path = `/shop/${gateway}/retried?failures=1&id=${gateway}`
    expect((await send({ port: portOf(gateway), path })).status).toBe(200)
    const spans = await recordsOf(() => environment.collector().spans(), path, 3)
    const attempts = spans.filter(({ kind, attributes }) => kind === 3 && attributes['proxy.outbound.kind'] === 'Primary')
    expect(attempts.map(({ attributes }) => attributes['http.status'])).toEqual([503, 200])
  })
})

/** Sends a chat completion request, streamed or not. */
async function sendChat(stream: boolean): Promise<void> {
  const body = JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content: 'what is the secret of six words?' }] })
  await send({ port: portOf('grpc'), path: '/v1/chat/completions', method: 'POST', headers: { 'content-type': 'application/json' }, body })
}

async function useTool(): Promise<void> {
  const client = new Client({ name: 'telemetry', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${portOf('grpc')}/mcp`)))
  await client.callTool({ name: 'search', arguments: { text: 'x' } })
  await client.close()
}

test('the access log filter of a Gateway applies to exported records', async () => {
  await send({ port: portOf('grpc'), path: '/shop/quiet' })
  await send({ port: portOf('grpc'), path: '/shop/loud' })
  await recordsOf(() => environment.collector().logs(), '/shop/loud', 1)
  expect((await environment.collector().logs()).filter(({ attributes }) => attributes['http.path'] === '/shop/quiet')).toEqual([])
})

describe('Prometheus', () => {
  const dashboard = JSON.parse(readFileSync(fileURLToPath(new URL('../../../charts/proxy/dashboards/proxy.json', import.meta.url)), 'utf8')) as {
    panels: { title: string; targets?: { expr: string }[] }[]
    templating: { list: { name: string; type: string; definition?: string }[] }
  }
  const variables: Readonly<Record<string, string>> = { gateway: '.*', route: '.*', job: '.*', __rate_interval: '20s' }
  const fill = (text: string): string => text.replaceAll(/\$(\w+)/g, (_, name: string) => variables[name] ?? `unknown variable ${name}`)
  const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, fill(expr)] as const))
  let prometheus: Prometheus
  let isLoading = true
  let load: Promise<unknown>

  beforeAll(async () => {
    const targets = Object.values(environment.dataplanes).map(({ ports }) => `127.0.0.1:${ports.stats}`)
    prometheus = await startPrometheus(environment.directory, environment.ports.PROMETHEUS, targets)
    const tls = { ca: environment.authority, sni: 'localhost' }
    load = (async () => {
      for (let round = 0; isLoading; round++) {
        for (const gateway of ['grpc', 'http'] as const) {
          await send({ port: portOf(gateway), path: '/shop/load?header=connection:close' })
          await send({ port: portOf(gateway), path: '/down' })
          await send({ port: portOf(gateway), path: `/shop/load?failures=1&id=load-${gateway}-${round}` })
        }
        await send({ port: environment.ports.TLS_PORT, path: '/shop/tls', host: 'localhost', tls })
        // Plaintext on a TLS port is dropped.
        await send({ port: environment.ports.TLS_PORT, path: '/shop/plain' }).catch(() => undefined)
        await sendChat(round % 2 === 0)
        await useTool()
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })()
  })
  afterAll(async () => {
    isLoading = false
    await load
    await prometheus?.stop()
  })

  test('scrapes every data plane in its preferred format', async () => {
    // Single scrapes may exceed their timeout of 900 ms on a loaded machine.
    expect(await isTrueWithin(60_000, async () => (await prometheus.targets()).join() === 'up,up')).toBe(true)
  })

  test('reads the same values from protobuf', async () => {
    const stats = `127.0.0.1:${environment.dataplanes.grpc.ports.stats}`
    const other = await startPrometheus(environment.directory, environment.ports.PROMETHEUS_PROTOBUF, [stats], 'protobuf')
    try {
      const query = `sum(proxy_request_duration_seconds_bucket{instance="${stats}",le="+Inf"}) == sum(proxy_requests_total{instance="${stats}"})`
      await waitUntil('the same numbers', async () => (await other.query(query)).some(({ value }) => value > 0))
      await waitUntil('it is up', async () => (await other.targets()).join() === 'up')
      let tags: unknown[] = []
      await waitUntil('what was built', async () => (tags = (await other.query('proxy_build_info')).map(({ metric }) => metric['tag'])).length > 0)
      expect(tags).toEqual([expect.stringMatching(/^\d/)])
    } finally {
      await other.stop()
    }
  })

  test('returns values for each variable of the dashboard', async () => {
    expect(queries.length).toBeGreaterThan(20)
    for (const { type, definition = '' } of dashboard.templating.list) {
      if (type !== 'query') continue
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(fill(definition)) ?? []
      await waitUntil(definition, async () => (await prometheus.query(selector)).some(({ metric }) => metric[label] !== undefined))
    }
  })

  // The operator exports proxy_translations_total, which its dashboard shows (e2e/suites/install/monitoring.e2e.ts).
  const selectors = readRules('proxy-dataplane').flatMap(({ alert, expr }) => listSelectors(expr).map((selector) => [selector, alert] as const))
  test.each(selectors.filter(([selector]) => selector !== 'proxy_translations_total{}'))('returns data for %s, which alert %s selects', async (selector) => {
    expect(await isTrueWithin(60_000, async () => (await prometheus.query(selector)).length > 0)).toBe(true)
  })

  test.each(queries)('returns data for panel %s: %s', async (_, query) => {
    expect(await isTrueWithin(60_000, async () => (await prometheus.query(query)).some(({ value }) => Number.isFinite(value)))).toBe(true)
  })
})
