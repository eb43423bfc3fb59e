import { afterEach, describe, expect, test } from '@jest/globals'
import { fromBinary } from '@bufbuild/protobuf'
import type { AccessLog, BackendRef, Tracing } from '#gen/config/types.ts'
import { ExportLogsServiceRequestSchema } from '#gen/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportTraceServiceRequestSchema } from '#gen/proto/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { createPolicyState } from '../../policy/state.ts'
import { testConnection, testExchange } from '../../testing/exchange.ts'
import { beginCall } from './metrics/call.ts'
import { setProtocol } from './outcome.ts'
import { createLogging, type LogFormat } from './log.ts'
import { destinationAt, startCollector, type FakeCollector } from './otlp/testing.ts'
import { ProtoWriter } from './otlp/writer.ts'
import { compileTelemetry, sampleTrace } from './policy.ts'
import { createTelemetry, type Telemetry } from './telemetry.ts'
import { traceOf } from './trace.ts'
import { gatewayTelemetry } from './gateway.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})

const backendRef: BackendRef = { address: 'collector:4317' }
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

interface World {
  readonly lines: string[]
  readonly telemetry: Telemetry
  readonly collector: FakeCollector
  /** A request through listener and telemetry. */
  finish(exchange: Exchange, change?: (exchange: Exchange) => void): Promise<Exchange>
}

async function start(
  sections: { accessLog?: AccessLog; tracing?: Tracing },
  options: { format?: LogFormat; level?: string; random?: number } = {},
): Promise<World> {
  const lines: string[] = []
  const writer = { dropped: 0, write: (line: string) => lines.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined }
  const telemetry = createTelemetry(createLogging({ writer, format: options.format, level: options.level }), { version: '1' })
  const collector = await startCollector('GRPC')
  const destination = destinationAt(collector.port)
  open.push(telemetry, collector, destination)
  const state = createPolicyState({ registry: telemetry.metrics.registry, destinations: { forPolicy: () => destination } })
  const compiled = compileTelemetry(sections, state, () => options.random ?? 0.5)
  return {
    lines,
    telemetry,
    collector,
    async finish(exchange, change) {
      gatewayTelemetry.set(exchange, compiled)
      if (compiled?.tracing !== undefined) sampleTrace(exchange, compiled.tracing)
      exchange.response ??= { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
      change?.(exchange)
      exchange.finishedAtMs = 12
      telemetry.onFinished(exchange)
      await telemetry.flushExports()
      return exchange
    },
  }
}

const answered =
  (status: number): ((exchange: Exchange) => void) =>
  (exchange) => {
    if (exchange.response !== undefined) exchange.response.status = status
  }

describe('access log policies', () => {
  test.each<[string, AccessLog, (exchange: Exchange) => void, string | undefined]>([
    ['a filter that is true', { filter: 'response.code >= 500' }, answered(503), 'http.status=503'],
    ['a filter that is false (row 68)', { filter: 'response.code >= 500' }, answered(200), undefined],
    ['a filter that fails', { filter: 'jwt.sub == "x"' }, answered(200), undefined],
    ['a filter that gives no bool', { filter: '1' }, answered(200), undefined],
    ['an attribute', { attributes: { add: [{ name: 'user', expression: '"a b"' }] } }, answered(200), ' duration=12ms user="a b"\n'],
    ['an attribute that fails is left out (row 68)', { attributes: { add: [{ name: 'user', expression: 'jwt.sub' }] } }, answered(200), 'duration=12ms\n'],
    ['an attribute that is null', { attributes: { add: [{ name: 'user', expression: 'null' }] } }, answered(200), 'duration=12ms\n'],
    [
      'one with a default name takes its place, at the end',
      { attributes: { add: [{ name: 'http.path', expression: '"/x"' }] } },
      answered(200),
      'duration=12ms http.path=/x\n',
    ],
    ['a list is JSON', { attributes: { add: [{ name: 'l', expression: '[1, "a"]' }] } }, answered(200), ' l="[1,\\"a\\"]"\n'],
    ['a map is JSON unless it is flattened', { attributes: { add: [{ name: 'm', expression: '{"a": 1}' }] } }, answered(200), ' m="{\\"a\\":1}"\n'],
    ['a flattened map', { attributes: { add: [{ name: 'm', expression: 'flatten({"a": 1, "b c": true})' }] } }, answered(200), ' m.a=1 "m.b c"=true\n'],
    ['the end of the request', { attributes: { add: [{ name: 'ok', expression: 'request.endTime >= request.startTime' }] } }, answered(200), ' ok=true\n'],
  ])('%s', async (_, accessLog, change, expected) => {
    const { finish, lines } = await start({ accessLog })
    await finish(testExchange(), change)
    if (expected === undefined) expect(lines).toEqual([])
    else expect(lines[0]).toContain(expected)
  })

  test('removed fields are gone from the line, whatever their kind', async () => {
    const { finish, lines } = await start({ accessLog: { attributes: { remove: ['http.path', 'src.addr', 'error', 'duration'] } } })
    await finish(testExchange(), (exchange) => (exchange.error = new ProxyError('INTERNAL')))
    expect(lines[0]?.slice(lines[0].indexOf('\trequest'))).toBe(
      '\trequest http.method=GET http.host=example.com http.version=HTTP/1.1 http.status=200 protocol=http reason=Internal\n',
    )
  })

  test('JSON lines stay JSON, and a field cannot pass for one of the line', async () => {
    const add = [
      { name: 'level', expression: '"error"' },
      { name: 'n', expression: '1.5' },
      { name: 'nan', expression: '0.0 / 0.0' },
      { name: 'q"\n', expression: '"\\n\\""' },
    ]
    const { finish, lines } = await start({ accessLog: { attributes: { add } } }, { format: 'json' })
    await finish(testExchange())
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', 'field.level': 'error', n: 1.5, nan: 'NaN', 'q"\n': '\n"', 'http.status': 200 })
  })

  test('a TCP session knows source only', async () => {
    const { telemetry, lines } = await start({})
    const state = createPolicyState()
    const attributes = {
      add: [
        { name: 'ip', expression: 'string(source.address)' },
        { name: 'path', expression: 'request.path' },
      ],
    }
    const session = { connection: testConnection, labels: undefined, endpoint: undefined, error: undefined, startedAtMs: 0, finishedAtMs: 3 }
    telemetry.onTcpFinished({ ...session, telemetry: compileTelemetry({ accessLog: { attributes } }, state) })
    telemetry.onTcpFinished({ ...session, telemetry: compileTelemetry({ accessLog: { filter: 'source.port == 1' } }, state) })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/protocol=tcp duration=3ms ip=127\.0\.0\.1\n$/)
  })

  test('records go to the collector with the fields of the line and the trace, also when lines are off', async () => {
    const otlp = { backendRef }
    const accessLog = { otlp, attributes: { remove: ['http.host'], add: [{ name: 'user', expression: '"bob"' }] } }
    const { finish, collector, lines } = await start(
      { accessLog, tracing: { backendRef: { ...backendRef }, randomSampling: 'true' } },
      { level: 'request=off' },
    )
    const exchange = await finish(testExchange())
    expect(lines).toEqual([])
    const body = collector.bodies[collector.paths.findIndex((path) => path.includes('logs'))]
    const [record] = fromBinary(ExportLogsServiceRequestSchema, body ?? Buffer.alloc(0)).resourceLogs[0]?.scopeLogs[0]?.logRecords ?? []
    const names = record?.attributes.map(({ key }) => key)
    expect(names).toEqual(['src.addr', 'http.method', 'http.path', 'http.version', 'http.status', 'trace.id', 'span.id', 'protocol', 'duration', 'user'])
    expect(Buffer.from(record?.traceId ?? []).toString('hex')).toBe(traceOf(exchange)?.traceId)
    expect([record?.flags, record?.spanId.length]).toEqual([1, 8])
  })
})

describe('sampling', () => {
  test.each<[string, Pick<Tracing, 'randomSampling' | 'clientSampling'>, string | undefined, number, string]>([
    ['nothing set, no trace', {}, undefined, 0, 'none'],
    ['nothing set, a trace of the client', {}, TRACEPARENT, 0, 'joined'],
    ['random true (row 69)', { randomSampling: 'true' }, undefined, 0.99, 'new'],
    ['random 1', { randomSampling: '1' }, undefined, 0.99, 'new'],
    ['random 0.5, below', { randomSampling: '0.5' }, undefined, 0.49, 'new'],
    ['random 0.5, above', { randomSampling: '0.5' }, undefined, 0.5, 'none'],
    ['random 0', { randomSampling: '0.0' }, undefined, 0, 'none'],
    ['random above 1 is always', { randomSampling: '7' }, undefined, 0.99, 'new'],
    ['random by header', { randomSampling: 'request.headers["x-debug"] == "1"' }, undefined, 0, 'none'],
    ['random fails', { randomSampling: 'request.headers["none"]' }, undefined, 0, 'none'],
    ['random text', { randomSampling: '"yes"' }, undefined, 0, 'none'],
    ['random needs who authenticates later', { randomSampling: 'jwt.sub == "x"' }, undefined, 0, 'none'],
    ['client false', { clientSampling: 'false' }, TRACEPARENT, 0, 'untouched'],
    ['client 0.5, above', { clientSampling: '0.5' }, TRACEPARENT, 0.6, 'untouched'],
    ['random does not matter where the client has a trace', { randomSampling: 'false' }, TRACEPARENT, 0, 'joined'],
    ['a malformed trace is none', { randomSampling: 'true' }, '00-zz', 0, 'new'],
  ])('%s', async (_, sampling, header, random, expected) => {
    const { finish } = await start({ tracing: { backendRef, ...sampling } }, { random })
    const exchange = await finish(testExchange({}, header === undefined ? {} : { traceparent: header }))
    const sent = exchange.request.headers.get('traceparent')
    const trace = traceOf(exchange)
    const outcome = trace === undefined ? (sent === undefined ? 'none' : 'untouched') : trace.parentId === undefined ? 'new' : 'joined'
    expect([outcome, sent === header]).toEqual([expected, expected === 'none' || expected === 'untouched'])
  })
})

describe('spans', () => {
  const tracing: Tracing = { backendRef, randomSampling: 'true' }
  const spansOf = ({ collector }: World) =>
    fromBinary(ExportTraceServiceRequestSchema, collector.bodies[0] ?? Buffer.alloc(0)).resourceSpans[0]?.scopeSpans[0]?.spans ?? []
  type Spans = ReturnType<typeof spansOf>
  const attributesOf = (span: Spans[number] | undefined) => Object.fromEntries(span?.attributes.map(({ key, value }) => [key, value?.value.value]) ?? [])

  test('a request has a server span, and its calls are client spans below it', async () => {
    const world = await start({ tracing })
    const exchange = await world.finish(testExchange({}, { traceparent: TRACEPARENT }), (own) => {
      own.pathMatch = { type: 'PathPrefix', value: '/shop' }
      own.endpoint = '10.0.0.9:80'
      own.upstreamStartedAtMs = 2
      own.responseHeadAtMs = 8
      beginCall(world.telemetry.metrics.registry, own, 'Policy', 'ExtAuthz', { host: 'auth' }).end({ error: new Error('gone') })
    })
    const [server, primary, policy] = spansOf(world)
    const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('hex')
    expect([hex(server?.traceId), hex(server?.parentSpanId), hex(server?.spanId), server?.kind, server?.name, server?.flags]).toEqual([
      '4bf92f3577b34da6a3ce929d0e0e4736',
      '00f067aa0ba902b7',
      traceOf(exchange)?.spanId,
      2,
      'GET /shop/*',
      1,
    ])
    expect([primary, policy].map((span) => [span?.name, span?.kind, hex(span?.parentSpanId), span?.status?.code])).toEqual([
      ['Http', 3, hex(server?.spanId), undefined],
      ['ExtAuthz', 3, hex(server?.spanId), 2],
    ])
    expect(Number((primary?.endTimeUnixNano ?? 0n) - (primary?.startTimeUnixNano ?? 0n))).toBe(6_000_000)
    expect(attributesOf(primary)).toMatchObject({ endpoint: '10.0.0.9:80', 'http.status': 200n, 'proxy.outbound.kind': 'Primary' })
    expect(attributesOf(server)).toMatchObject({ 'url.scheme': 'http', 'network.protocol.version': '1.1', 'http.path': '/', duration: '12ms' })
  })

  test('calls that MCP noted are the only ones, under names and with attributes of their own (mcp.md §10)', async () => {
    const world = await start({ tracing })
    await world.finish(testExchange(), (own) => {
      setProtocol(own, 'mcp')
      own.upstreamStartedAtMs = 2
      const details = { name: 'tools/call a_echo', fields: { 'mcp.target': 'a', 'gen_ai.tool.name': undefined } }
      beginCall(world.telemetry.metrics.registry, own, 'Primary', 'Mcp', details).end({ status: 200 })
    })
    const [, ...calls] = spansOf(world)
    expect(calls.map(({ name }) => name)).toEqual(['tools/call a_echo'])
    expect(attributesOf(calls[0])).toEqual({ 'proxy.outbound.kind': 'Primary', 'proxy.outbound.subtype': 'Mcp', 'http.status': 200n, 'mcp.target': 'a' })
  })

  test('an unsampled trace of the client goes on, but is not exported (row 70)', async () => {
    const world = await start({ tracing })
    const exchange = await world.finish(testExchange({}, { traceparent: TRACEPARENT.replace(/01$/, '00') }))
    expect(exchange.request.headers.get('traceparent')).toMatch(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/)
    expect(world.collector.bodies).toEqual([])
  })

  test.each<[string, (exchange: Exchange) => void, string]>([
    ['root', (exchange) => (exchange.pathMatch = { type: 'PathPrefix', value: '/' }), 'GET /*'],
    ['exact', (exchange) => (exchange.pathMatch = { type: 'Exact', value: '/a' }), 'GET /a'],
    ['no route', () => undefined, 'unknown'],
    ['gRPC, whatever the route and without a status', (exchange) => exchange.request.headers.set('content-type', 'application/grpc'), 'pkg.Service/Method'],
  ])('the name of a span: %s', async (_, change, expected) => {
    const world = await start({ tracing })
    await world.finish(testExchange({ target: '/pkg.Service/Method?x' }), change)
    expect(spansOf(world)[0]?.name).toBe(expected)
  })

  test('a method that a client invented names no span', async () => {
    const world = await start({ tracing })
    await world.finish(testExchange({ method: 'BREW' }), (exchange) => (exchange.pathMatch = { type: 'Exact', value: '/a' }))
    expect(spansOf(world)[0]?.name).toBe('HTTP /a')
  })

  test('attributes of the policy, its name among them; an error is the status and no attribute', async () => {
    const attributes = {
      add: [
        { name: 'span.name', expression: '"mine"' },
        { name: 'tier', expression: '3' },
      ],
      remove: ['http.host'],
    }
    const world = await start({ tracing: { ...tracing, attributes } })
    await world.finish(testExchange(), (exchange) => (exchange.error = new ProxyError('INTERNAL', { cause: new Error('why') })))
    const [span] = spansOf(world)
    expect([span?.name, span?.status?.code, span?.status?.message]).toEqual(['mine', 2, expect.stringContaining('why')])
    const values = attributesOf(span)
    expect([values['tier'], values['http.host'], values['error'], values['reason']]).toEqual([3n, undefined, undefined, 'Internal'])
  })

  test('resource attributes are evaluated once and see the environment only', async () => {
    const resources = [
      { name: 'service.name', expression: '"shop"' },
      { name: 'gateway', expression: 'env.gateway' },
      { name: 'none', expression: 'request.path' },
    ]
    const world = await start({ tracing: { ...tracing, resources } })
    await world.finish(testExchange())
    const resource = fromBinary(ExportTraceServiceRequestSchema, world.collector.bodies[0] ?? Buffer.alloc(0)).resourceSpans[0]?.resource
    const names = Object.fromEntries(resource?.attributes.map(({ key, value }) => [key, value?.value.value]) ?? [])
    expect(names).toMatchObject({ 'service.name': 'shop', gateway: 'proxy' })
    expect(names).not.toHaveProperty('none')
  })
})

test('records that wait survive a change of the config, and go where the new one says', async () => {
  const [first, second] = [await startCollector('GRPC'), await startCollector('GRPC')]
  let destination = destinationAt(first.port)
  open.push(first, second, destination)
  const state = createPolicyState({ destinations: { forPolicy: () => destination } })
  const accessLog: AccessLog = { otlp: { backendRef } }
  const before = compileTelemetry({ accessLog }, state)?.accessLog?.exporter
  const record = new ProtoWriter()
  record.stringField(0x1a, '')
  before?.add(record)
  destination = destinationAt(second.port)
  open.push(destination)
  const after = compileTelemetry({ accessLog }, state)?.accessLog?.exporter
  expect(after).toBe(before)
  await after?.flush()
  expect([first.bodies.length, second.bodies.length]).toEqual([0, 1])
})
