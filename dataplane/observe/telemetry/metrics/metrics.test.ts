import { describe, expect, test } from '@jest/globals'
import { ProxyError } from '../../../request/exchange/error.ts'
import { Exchange, type Connection } from '../../../request/exchange/exchange.ts'
import { HeaderList } from '../../../http/headers.ts'
import { parseExposition } from '../../../testing/exposition.ts'
import { setProtocol } from '../outcome.ts'
import { recordAttempt } from '../attempts.ts'
import { callSeconds } from './call.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { BodyHold } from '../../../http/budget.ts'
import { addProcessMetrics } from './process.ts'
import { createRegistry } from './registry.ts'

const connection: Connection = {
  id: 1,
  bind: '80/default/web',
  localAddress: '127.0.0.1',
  localPort: 80,
  remoteAddress: '10.1.2.3',
  remotePort: 5000,
  tls: undefined,
  listener: undefined,
}
const labels = { gateway: 'default/web', listener: 'http', route: 'default/shop', rule: 'all' }

function makeExchange(method = 'GET', change: (exchange: Exchange) => void = () => undefined): Exchange {
  const request = {
    method,
    target: '/',
    scheme: 'http',
    authority: 'a.example',
    version: 'HTTP/1.1',
    headers: new HeaderList(),
    body: undefined,
    upgrade: undefined,
    acceptsTrailers: false,
  } as const
  const exchange = new Exchange(connection, request, 1000)
  exchange.labels = labels
  exchange.backend = 'default/shop'
  exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  exchange.finishedAtMs = 1003
  change(exchange)
  return exchange
}

const read = (metrics: Metrics) => parseExposition([...metrics.registry.expose('text')].join(''), 'text')
const requestLabels = {
  backend: 'default/shop',
  protocol: 'http',
  method: 'GET',
  status: '200',
  reason: 'Upstream',
  bind: '80/default/web',
  gateway: 'default/web',
  listener: 'http',
  route: 'default/shop',
  route_rule: 'all',
}

describe('request metrics', () => {
  test('a request counts once, with its duration, bytes and processing time', () => {
    const metrics = createMetrics({ version: '1.2.3' })
    for (let i = 0; i < 3; i++)
      metrics.recordExchange(
        makeExchange('GET', (exchange) => {
          exchange.responseBytes = 100
          exchange.upstreamStartedAtMs = 1000.2
          exchange.responseHeadAtMs = 1002.2
          exchange.answeredAtMs = 1002.3
        }),
      )
    const samples = read(metrics)
    expect(samples.value('proxy_build_info', { tag: '1.2.3' })).toBe(1)
    expect(samples.value('proxy_requests_total', requestLabels)).toBe(3)
    expect(samples.value('proxy_response_bytes_total', requestLabels)).toBe(300)
    expect(samples.value('proxy_request_duration_seconds_count', requestLabels)).toBe(3)
    expect(samples.value('proxy_request_duration_seconds_sum', requestLabels)).toBeCloseTo(0.009)
    expect(samples.value('proxy_request_duration_seconds_bucket', { ...requestLabels, le: '0.001' })).toBe(0)
    expect(samples.value('proxy_request_duration_seconds_bucket', { ...requestLabels, le: '0.005' })).toBe(3)
    expect(samples.value('proxy_request_processing_seconds_bucket', { le: '0.00025' })).toBe(3)
    expect(samples.value('proxy_request_processing_seconds_bucket', { le: '0.0001' })).toBe(0)
    expect(samples.value('proxy_upstream_call_duration_seconds_bucket', { kind: 'Primary', subtype: 'Http', le: '0.005' })).toBe(3)
    expect(samples.value('proxy_upstream_call_duration_seconds_bucket', { kind: 'Primary', subtype: 'Http', le: '0.001' })).toBe(0)
    expect(samples.value('proxy_response_processing_seconds_bucket', { backend: 'default/shop', le: '0.00025' })).toBe(3)
    expect(samples.value('proxy_response_processing_seconds_bucket', { backend: 'default/shop', le: '0.00005' })).toBe(0)
    expect(samples.value('proxy_retries_total')).toBeUndefined()
  })

  const rows: Record<string, { method?: string; change?: (exchange: Exchange) => void; want: Record<string, string> }> = {
    'an error has its reason': {
      change: (exchange) => {
        exchange.error = new ProxyError('NO_HEALTHY_BACKENDS')
        if (exchange.response) exchange.response.status = 503
      },
      want: { status: '503', reason: 'NoHealthyBackend' },
    },
    'a direct answer has its reason': { change: (exchange) => void (exchange.isLocalAnswer = true), want: { reason: 'DirectResponse' } },
    'a method that a client invents is other': { method: 'BREW', want: { method: 'other' } },
    'methods are case-sensitive': { method: 'get', want: { method: 'other' } },
    'known methods keep their name': { method: 'DELETE', want: { method: 'DELETE' } },
    'a client that left has no status': { change: (exchange) => void (exchange.response = undefined), want: { status: 'unknown' } },
    'a request that no listener took is unknown but for its bind': {
      change: (exchange) => {
        exchange.labels = undefined
        exchange.backend = undefined
      },
      want: { bind: '80/default/web', gateway: 'unknown', listener: 'unknown', route: 'unknown', route_rule: 'unknown', backend: 'unknown' },
    },
    'the protocol is that of whoever took it over': { change: (exchange) => setProtocol(exchange, 'mcp'), want: { protocol: 'mcp' } },
  }
  test.each(Object.entries(rows))('%s', (_name, { method, change, want }) => {
    const metrics = createMetrics({ version: 'x' })
    metrics.recordExchange(makeExchange(method, change))
    metrics.recordExchange(makeExchange())
    expect(read(metrics).value('proxy_requests_total', { ...requestLabels, ...want })).toBe(1)
  })

  test('retries are counted by number of extra attempts', () => {
    const metrics = createMetrics({ version: 'x' })
    for (const attempt of [0, 2, 1])
      metrics.recordExchange(
        makeExchange('GET', (exchange) => {
          exchange.retryAttempt = attempt
          exchange.upstreamStartedAtMs = 1000.2
        }),
      )
    expect(read(metrics).value('proxy_retries_total', requestLabels)).toBe(3)
    expect(read(metrics).value('proxy_request_processing_seconds_count')).toBe(3)
  })

  test('every attempt of a request is an upstream call', () => {
    const metrics = createMetrics({ version: 'x' })
    metrics.recordExchange(
      makeExchange('GET', (exchange) => {
        exchange.upstreamStartedAtMs = 1000.2
        for (const _ of [1, 2, 3]) recordAttempt(exchange, 1001, new Error('reset'))
        exchange.retryAttempt = 2
        exchange.responseHeadAtMs = 1002
      }),
    )
    expect(read(metrics).value('proxy_upstream_call_duration_seconds_count', { kind: 'Primary', subtype: 'Http' })).toBe(3)
  })

  test('ten thousand invented methods and fresh label objects make no new series', () => {
    const metrics = createMetrics({ version: 'x' })
    for (let i = 0; i < 10_000; i++) metrics.recordExchange(makeExchange(`M${i}`, (exchange) => void (exchange.labels = { ...labels })))
    expect(read(metrics).all('proxy_requests_total')).toHaveLength(1)
    expect(read(metrics).value('proxy_requests_total', { method: 'other' })).toBe(10_000)
  })

  test('beyond the limit of label sets, what is new counts as other, and nothing is lost', () => {
    const metrics = createMetrics({ version: 'x', maxSeries: 10 })
    for (let i = 0; i < 100; i++) metrics.recordExchange(makeExchange('GET', (exchange) => void (exchange.labels = { ...labels, route: `default/r${i}` })))
    const samples = read(metrics)
    expect(samples.all('proxy_requests_total')).toHaveLength(11)
    expect(samples.value('proxy_requests_total', { route: 'other', method: 'other' })).toBe(90)
    expect(samples.all('proxy_requests_total').reduce((sum, sample) => sum + sample.value, 0)).toBe(100)
  })

  test('series of routes that are gone are forgotten, others kept', () => {
    const metrics = createMetrics({ version: 'x' })
    const other = { ...labels, route: 'default/gone' }
    metrics.recordExchange(makeExchange())
    metrics.recordExchange(makeExchange('GET', (exchange) => void (exchange.labels = other)))
    metrics.recordExchange(makeExchange('GET', (exchange) => void (exchange.labels = undefined)))
    metrics.retainRoutes((route) => route === 'default/shop')
    expect(
      read(metrics)
        .all('proxy_requests_total')
        .map((sample) => sample.labels['route']),
    ).toEqual(['default/shop', 'unknown'])
  })

  test('connection series count for their bind, listener and protocol', () => {
    const metrics = createMetrics({ version: 'x' })
    const series = metrics.downstream('443/default/web', 'default/web', 'https', 'https')
    series.connections.value++
    series.open.value++
    series.receivedBytes.value += 10
    series.sentBytes.value += 20
    series.handshake.observe(0.003)
    metrics.upstreamConnect('tls').observe(0.002)
    callSeconds(metrics.registry)('Policy', 'ExtAuthz').observe(0.2)
    const samples = read(metrics)
    const want = { bind: '443/default/web', gateway: 'default/web', listener: 'https', protocol: 'https' }
    expect(samples.value('proxy_downstream_connections_total', want)).toBe(1)
    expect(samples.value('proxy_downstream_connections_open', want)).toBe(1)
    expect(samples.value('proxy_downstream_received_bytes_total', want)).toBe(10)
    expect(samples.value('proxy_downstream_sent_bytes_total', want)).toBe(20)
    expect(samples.value('proxy_tls_handshake_duration_seconds_bucket', { ...want, le: '0.005' })).toBe(1)
    expect(samples.value('proxy_upstream_connect_duration_seconds_count', { transport: 'tls' })).toBe(1)
    expect(samples.value('proxy_upstream_call_duration_seconds_sum', { kind: 'Policy', subtype: 'ExtAuthz' })).toBeCloseTo(0.2)
  })
})

test('a plaintext connection knows its Gateway by the bind, and no handshakes', () => {
  const metrics = createMetrics({ version: 'x' })
  metrics.downstream('80/default/web', '', '', 'http').connections.value++
  metrics.dropped('80/default/web', 'authorization').value++
  metrics.refused('80/default/web', 431).value++
  const samples = read(metrics)
  const want = { bind: '80/default/web', gateway: 'default/web', listener: 'unknown', protocol: 'http' }
  expect(samples.value('proxy_downstream_connections_total', want)).toBe(1)
  expect(samples.all('proxy_tls_handshake_duration_seconds_count')).toEqual([])
  const denied = { bind: '80/default/web', gateway: 'default/web', cause: 'authorization' }
  expect(samples.value('proxy_downstream_connections_dropped_total', denied)).toBe(1)
  expect(samples.value('proxy_downstream_requests_refused_total', { bind: '80/default/web', gateway: 'default/web', status: '431' })).toBe(1)
})

describe('exposition', () => {
  function fill() {
    const registry = createRegistry()
    registry.info('app_build_info', 'The "build".', { tag: 'v1' })
    registry.counter('app_hits_total', 'Hits.\nSecond line.', ['path']).series('a"b\\c\nd').value = 5
    registry.gauge('app_level', 'Level.').series().value = -1.5
    registry.counter('app_unused_total', 'Never used.', ['x'])
    const histogram = registry.histogram('app_seconds', 'Seconds.', [0.5, 1, 10], ['kind']).series('k')
    for (const value of [0.5, 0.75, 1, 11]) histogram.observe(value)
    return registry
  }

  test('text format 0.0.4, to the letter', () => {
    expect([...fill().expose('text')].join('')).toBe(
      `# HELP app_build_info The "build".
# TYPE app_build_info gauge
app_build_info{tag="v1"} 1
# HELP app_hits_total Hits.\\nSecond line.
# TYPE app_hits_total counter
app_hits_total{path="a\\"b\\\\c\\nd"} 5
# HELP app_level Level.
# TYPE app_level gauge
app_level -1.5
# HELP app_seconds Seconds.
# TYPE app_seconds histogram
app_seconds_bucket{kind="k",le="0.5"} 1
app_seconds_bucket{kind="k",le="1"} 3
app_seconds_bucket{kind="k",le="10"} 3
app_seconds_bucket{kind="k",le="+Inf"} 4
app_seconds_sum{kind="k"} 13.25
app_seconds_count{kind="k"} 4
`,
    )
  })

  test('merges the metrics of several threads, and keeps the counts of those that ended', () => {
    const worker = (hits: number, lag: number, evicted: number) => {
      const registry = createRegistry()
      registry.info('app_build_info', 'Build.', { tag: 'v1' })
      registry.counter('app_hits_total', 'Hits.', ['path']).series('/').value = hits
      registry.gauge('app_open', 'Open.').series().value = hits
      registry.gauge('app_lag', 'Lag.', [], 'max').series().value = lag
      registry.gauge('app_evicted', 'Evicted.', [], 'carried').series().value = evicted
      const histogram = registry.histogram('app_seconds', 'Seconds.', [1, 2]).series()
      for (const value of [0.5, 1.5, 3]) histogram.observe(value * hits)
      return registry.dump()
    }
    const past = createRegistry()
    past.add(worker(1, 9, 1), true)
    const merged = createRegistry()
    for (const dump of [past.dump(), worker(2, 3, -1), worker(4, 5, 0)]) merged.add(dump)
    const samples = parseExposition([...merged.expose('text')].join(''), 'text')
    const values = ['app_build_info', 'app_hits_total', 'app_open', 'app_lag', 'app_evicted', 'app_seconds_count', 'app_seconds_sum'].map(
      (name) => samples.all(name)[0]?.value,
    )
    expect(values).toEqual([1, 7, 6, 5, 0, 9, 35])
    expect(samples.value('app_seconds_bucket', { le: '1' })).toBe(2)
    expect(samples.value('app_seconds_bucket', { le: '2' })).toBe(4)
  })

  test('OpenMetrics names families without suffix, has canonical bounds and ends with EOF', () => {
    const text = [...fill().expose('openmetrics')].join('')
    expect(text).toContain('# TYPE app_build info\napp_build_info{tag="v1"} 1\n')
    expect(text).toContain('# HELP app_build The \\"build\\".\n')
    expect(text).toContain('# TYPE app_hits counter\napp_hits_total{')
    expect(text).toContain('app_seconds_bucket{kind="k",le="1.0"} 3\n')
    expect(text.endsWith('\n# EOF\n')).toBe(true)
    expect(parseExposition(text, 'openmetrics').value('app_hits_total', { path: 'a"b\\c\nd' })).toBe(5)
  })

  test.each(['text', 'openmetrics'] as const)('a full set of metrics parses as %s', (format) => {
    const metrics = createMetrics({ version: 'x' })
    const stop = addProcessMetrics(metrics.registry)
    const hold = new BodyHold(() => new Error('rejected'))
    hold.reserve(100)
    for (let i = 0; i < 500; i++) metrics.recordExchange(makeExchange('GET', (exchange) => void (exchange.labels = { ...labels, route: `default/r${i}` })))
    const pieces = [...metrics.registry.expose(format)]
    stop()
    hold.release()
    const samples = parseExposition(pieces.join(''), format)
    expect(samples.all('proxy_requests_total')).toHaveLength(500)
    expect(samples.value('process_resident_memory_bytes')).toBeGreaterThan(1e7)
    expect(samples.value('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(samples.value('proxy_held_bytes')).toBe(100)
    expect(samples.value('proxy_held_bytes_rejected_total')).toBeGreaterThanOrEqual(0)
    expect(samples.value('process_open_fds')).toBeGreaterThan(2)
    expect(Math.max(...pieces.map((piece) => piece.split('\n').length))).toBeLessThan(2500)
  })

  test.each([
    ['a counter without _total', () => createRegistry().counter('hits', 'x')],
    ['a bad name', () => createRegistry().gauge('a-b', 'x')],
    ['too few values', () => createRegistry().gauge('a', 'x', ['l']).series()],
  ])('%s is refused', (_name, make) => {
    expect(make).toThrow()
  })
})
