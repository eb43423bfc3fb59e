import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { startProgram, type Program } from '../../harness/program/program.ts'

/** The value of an attribute in OTLP's JSON encoding. */
interface AnyValue {
  readonly stringValue?: string
  readonly intValue?: string
  readonly doubleValue?: number
  readonly boolValue?: boolean
}
type KeyValues = readonly { readonly key: string; readonly value: AnyValue }[]

/** A log record or span as written by the collector. */
export interface Received {
  readonly resource: Readonly<Record<string, unknown>>
  readonly scope: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly traceId: string
  readonly spanId: string
  /** Set for spans only. */
  readonly parentSpanId: string | undefined
  readonly name: string | undefined
  readonly kind: number | undefined
  readonly severityText: string | undefined
}

/** A running collector. */
export interface Collector {
  readonly program: Program
  logs(): Promise<Received[]>
  spans(): Promise<Received[]>
  stop(): Promise<void>
}

const build = fileURLToPath(new URL('collector/build', import.meta.url))

/** Builds the collector if necessary, which takes some minutes. Returns the path of the program. */
export async function buildCollector(): Promise<string> {
  const { stdout } = await promisify(execFile)(build, [], { maxBuffer: 1 << 26 })
  return stdout.trim()
}

/** Starts a collector that receives over gRPC and HTTP and writes to files in the directory, or discards everything if `isKeeping` is false. */
export async function startCollector(binary: string, directory: string, ports: { grpc: number; http: number }, isKeeping = true): Promise<Collector> {
  const config = join(directory, 'collector.yaml')
  const [logs, traces] = [join(directory, 'logs.json'), join(directory, 'traces.json')]
  const pipeline = (signal: string) => ({ receivers: ['otlp'], exporters: [isKeeping ? `file/${signal}` : 'debug'] })
  const file = (path: string) => ({ path, append: true, flush_interval: '100ms' })
  await writeFile(
    config,
    stringify({
      receivers: { otlp: { protocols: { grpc: { endpoint: `127.0.0.1:${ports.grpc}` }, http: { endpoint: `127.0.0.1:${ports.http}` } } } },
      exporters: isKeeping ? { 'file/logs': file(logs), 'file/traces': file(traces) } : { debug: { verbosity: 'basic' } },
      service: { telemetry: { metrics: { level: 'none' } }, pipelines: { logs: pipeline('logs'), traces: pipeline('traces') } },
    }),
  )
  const program = startProgram({ name: 'collector', command: binary, args: ['--config', config] })
  await program.waitForLine(/Everything is ready/, 120_000)
  return {
    program,
    logs: () => read(logs, 'resourceLogs', 'scopeLogs', 'logRecords'),
    spans: () => read(traces, 'resourceSpans', 'scopeSpans', 'spans'),
    stop: async () => void (await program.stop()),
  }
}

async function read(path: string, resourceKey: string, scopeKey: string, records: string): Promise<Received[]> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const found: Received[] = []
  // The last line may be incomplete.
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (line === '') continue
    for (const group of JSON.parse(line)[resourceKey] ?? []) {
      for (const scoped of group[scopeKey] ?? []) {
        for (const record of scoped[records] ?? [])
          found.push({ ...record, resource: valuesOf(group.resource?.attributes), scope: scoped.scope?.name, attributes: valuesOf(record.attributes) })
      }
    }
  }
  return found
}

function valuesOf(attributes: KeyValues = []): Record<string, unknown> {
  const plain = ({ stringValue, intValue, doubleValue, boolValue }: AnyValue): unknown =>
    intValue === undefined ? (stringValue ?? doubleValue ?? boolValue) : Number(intValue)
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
}
