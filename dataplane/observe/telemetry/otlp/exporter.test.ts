import packageJson from '../../../../package.json' with { type: 'json' }
import { afterEach, describe, expect, test } from '@jest/globals'
import { fromBinary, toBinary, create } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema, ExportLogsServiceResponseSchema } from '#gen/proto/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportTraceServiceRequestSchema } from '#gen/proto/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { parseExposition } from '../../../testing/exposition.ts'
import { createRegistry } from '../metrics/registry.ts'
import { AttributeSink } from './attributes.ts'
import { exportMetrics, OtlpExporter, type ExporterOptions } from './exporter.ts'
import { exportLog } from './log-record.ts'
import { readRejected } from './partial.ts'
import { destinationAt, startCollector, type Answer, type FakeCollector } from './testing.ts'
import { ProtoWriter } from './writer.ts'
import { until } from '../../../../e2e/harness/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})

interface Started {
  readonly exporter: OtlpExporter
  readonly collector: FakeCollector
  metric(name: string, labels: Record<string, string>): number | undefined
}

async function start(options: Partial<ExporterOptions> = {}, answer?: () => Answer): Promise<Started> {
  const registry = createRegistry()
  const protocol = options.protocol ?? 'GRPC'
  const collector = await startCollector(protocol, answer)
  const destination = destinationAt(collector.port)
  const exporter = new OtlpExporter({ signal: 'logs', protocol, path: '/v1/logs', resources: [], registry, delayMs: 20, backoffMs: 20, ...options })
  exporter.destination = destination
  open.push({ close: () => collector.close() }, { close: () => destination.close() })
  return {
    exporter,
    collector,
    metric: (name, labels) => parseExposition([...registry.expose('text')].join(''), 'text').value(`proxy_otlp_${name}_total`, labels),
  }
}

function addLogs({ exporter }: Started, count: number, text = 'x'): void {
  for (let i = 0; i < count; i++)
    exportLog(exporter, 1_700_000_000_000.125 + i, undefined, (sink) => {
      sink.plain('number', i)
      sink.foreign('text', text)
    })
}

function emptyRecord(): ProtoWriter {
  const record = new ProtoWriter()
  record.stringField(0x1a, '')
  return record
}

describe('export', () => {
  test.each<['HTTP' | 'GRPC', string, Record<string, string>]>([
    [
      'GRPC',
      '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
      { 'content-type': 'application/grpc', te: 'trailers', 'grpc-timeout': '10000m', 'user-agent': `proxy/${packageJson.version}` },
    ],
    ['HTTP', '/v1/logs', { 'content-type': 'application/x-protobuf' }],
  ])('sends records in one batch after the delay, over %s', async (protocol, path, headers) => {
    const started = await start({
      protocol,
      resources: [
        ['service.name', 'shop'],
        ['team', 7],
      ],
    })
    addLogs(started, 3, 'ä"\n')
    await until(() => started.collector.bodies.length === 1)
    expect(started.collector.paths).toEqual([path])
    expect(started.collector.headers).toMatchObject([headers])
    const { resourceLogs } = fromBinary(ExportLogsServiceRequestSchema, started.collector.bodies[0] ?? Buffer.alloc(0))
    expect(resourceLogs).toHaveLength(1)
    const attributes = resourceLogs[0]?.resource?.attributes.map(({ key, value }) => [key, value?.value.value])
    expect(attributes).toContainEqual(['service.name', 'shop'])
    expect(attributes).toContainEqual(['team', 7n])
    const [scope] = resourceLogs[0]?.scopeLogs ?? []
    expect(scope?.scope?.name).toBe('proxy.access')
    expect(scope?.logRecords.map((record) => [record.timeUnixNano, record.severityNumber, record.severityText])).toEqual(
      [0, 1, 2].map((i) => [BigInt(1_700_000_000_000 + i) * 1_000_000n + 125_000n, 9, 'INFO']),
    )
    expect(scope?.logRecords[2]?.attributes.map(({ key, value }) => [key, value?.value.value])).toEqual([
      ['number', 2n],
      ['text', 'ä"\n'],
    ])
    await until(() => started.metric('exported', { signal: 'logs' }) === 3)
  })

  test('sends a large batch before the delay', async () => {
    const started = await start({ delayMs: 60_000 })
    addLogs(started, 300, 'y'.repeat(1000))
    await started.exporter.flush()
    expect(started.collector.bodies.length).toBeGreaterThan(1)
    const count = started.collector.bodies.reduce(
      (sum, body) => sum + (fromBinary(ExportLogsServiceRequestSchema, body).resourceLogs[0]?.scopeLogs[0]?.logRecords.length ?? 0),
      0,
    )
    expect([count, started.metric('exported', { signal: 'logs' })]).toEqual([300, 300])
  })

  test('encodes values of every type and size', async () => {
    const started = await start({ signal: 'traces' })
    const values: (string | number | boolean)[] = ['', 'z'.repeat(70_000), 0, 127, 128, 2 ** 31, 2 ** 52, -1, 0.5, true, false]
    // An Export of traces has the same form around other records; fields 9 of a Span are its attributes.
    const writer = new ProtoWriter(16)
    for (const value of values) new AttributeSink(writer, 0x4a).added('k', value)
    started.exporter.add(writer)
    await started.exporter.flush()
    const { resourceSpans } = fromBinary(ExportTraceServiceRequestSchema, started.collector.bodies[0] ?? Buffer.alloc(0))
    expect(resourceSpans[0]?.scopeSpans[0]?.spans[0]?.attributes.map(({ value }) => value?.value.value)).toEqual(
      values.map((value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? BigInt(value as number) : value)),
    )
  })
})

describe('loss', () => {
  test.each<['HTTP' | 'GRPC', number]>([
    ['HTTP', 400],
    ['GRPC', 3],
  ])('a refused batch is counted and not sent again (%s)', async (protocol, status) => {
    const started = await start({ protocol }, () => ({ status }))
    addLogs(started, 4)
    await until(() => started.metric('dropped', { signal: 'logs', cause: 'refused' }) === 4)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(started.collector.bodies).toHaveLength(1)
  })

  test.each<['HTTP' | 'GRPC', number, number]>([
    ['HTTP', 503, 200],
    ['GRPC', 14, 0],
  ])('a batch with a retryable error is sent again (%s)', async (protocol, failing, fine) => {
    let failures = 2
    const started = await start({ protocol }, () => ({ status: failures-- > 0 ? failing : fine }))
    addLogs(started, 4)
    await until(() => started.metric('exported', { signal: 'logs' }) === 4)
    expect(started.collector.bodies).toHaveLength(3)
  })

  test('records rejected from an accepted batch are counted', async () => {
    const body = toBinary(
      ExportLogsServiceResponseSchema,
      create(ExportLogsServiceResponseSchema, { partialSuccess: { rejectedLogRecords: 300n, errorMessage: 'no' } }),
    )
    expect(readRejected(body)).toBe(300)
    const started = await start({}, () => ({ status: 0, body }))
    addLogs(started, 301)
    await until(() => started.metric('dropped', { signal: 'logs', cause: 'rejected' }) === 300)
    expect(started.metric('exported', { signal: 'logs' })).toBe(1)
  })

  test.each([Buffer.alloc(0), Buffer.from([0xff]), Buffer.from([0x0a, 0xff, 0xff]), Buffer.from('nonsense'), Buffer.from([0x0d, 1, 2, 3, 4])])(
    'an answer that is none (%#) rejects nothing',
    (body) => expect(readRejected(body)).toBe(0),
  )

  test('without a collector the queue stays bounded, dropped records are counted, and the rest is sent later', async () => {
    let isUp = false
    const started = await start({ maxQueueBytes: 600_000 }, () => ({ status: isUp ? 0 : 14 }))
    addLogs(started, 5000, 'w'.repeat(1000))
    const lost = started.metric('dropped', { signal: 'logs', cause: 'queue_full' }) ?? 0
    expect(lost).toBeGreaterThan(4000)
    isUp = true
    await until(() => started.metric('exported', { signal: 'logs' }) === 5000 - lost)
    addLogs(started, 1)
    await until(() => started.metric('exported', { signal: 'logs' }) === 5001 - lost)
  })

  test('a collector that never existed causes no error and does not delay shutdown', async () => {
    const registry = createRegistry()
    const exporter = new OtlpExporter({ signal: 'logs', protocol: 'GRPC', path: '', resources: [], registry, delayMs: 10 })
    exporter.destination = destinationAt(1)
    exporter.add(emptyRecord())
    expect(exportMetrics(registry).pending.size).toBe(1)
    const startMs = performance.now()
    await exporter.flush()
    expect(performance.now() - startMs).toBeLessThan(10_000)
    exporter.destination.close()
  })
})
