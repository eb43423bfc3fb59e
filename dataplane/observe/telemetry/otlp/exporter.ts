import { METRIC_PREFIX } from '#api/names.ts'
import packageJson from '../../../../package.json' with { type: 'json' }
import { callDestination } from '../../../net/callout/http.ts'
import { readBody } from '../../../http/body.ts'
import { backoffDelay } from '../../../runtime/backoff.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { Destination } from '../../../net/upstream/destination.ts'
import { defineMetrics } from '../metrics/area.ts'
import type { Registry, Series } from '../metrics/registry.ts'
import { AttributeSink } from './attributes.ts'
import { readRejected } from './partial.ts'
import { ProtoWriter } from './writer.ts'

export type Signal = 'logs' | 'traces'
/** Why records are lost: the queue was full, the collector refused the batch, or it rejected some records of an accepted batch. */
type LossCause = 'queue_full' | 'refused' | 'rejected'

export interface ExporterOptions {
  readonly signal: Signal
  readonly protocol: 'HTTP' | 'GRPC'
  /** Request path; for protocol HTTP. */
  readonly path: string
  /** Attributes of the resource; added to the default ones or overriding them. */
  readonly resources: readonly [string, unknown][]
  readonly registry: Registry
  /** Milliseconds that a record waits at most before it is sent; default 1000. */
  readonly delayMs?: number
  /** Maximum bytes of queued records; further records are dropped and counted. Default 8 MiB. */
  readonly maxQueueBytes?: number
  /** Milliseconds before the first retry of a failed export; doubles with each retry up to 30 s. Default 1000. */
  readonly backoffMs?: number
}

const BATCH_BYTES = 256 * 1024
const MAX_BACKOFF_MS = 30_000
const EXPORT_MS = 10_000
const LIMIT_BYTES = 64 * 1024

const methods: Readonly<Record<Signal, string>> = {
  logs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  traces: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
}
const scopes: Readonly<Record<Signal, string>> = { logs: 'proxy.access', traces: 'proxy' }

/** Counts exported and lost records. `pending` holds the exporters with queued records, for the flush at shutdown. */
export const exportMetrics = defineMetrics((registry) => {
  const sent = registry.counter(`${METRIC_PREFIX}otlp_exported_total`, 'Records that a collector took.', ['signal'])
  const lost = registry.counter(`${METRIC_PREFIX}otlp_dropped_total`, 'Records that were not exported.', ['signal', 'cause'])
  return {
    sent: (signal: Signal) => sent.series(signal),
    lost: (signal: Signal, cause: LossCause) => lost.series(signal, cause),
    pending: new Set<OtlpExporter>(),
  }
})

interface Batch {
  readonly bytes: Buffer
  readonly count: number
}

/**
 * Sends records to a collector in batches (OTLP 1.x over gRPC or HTTP). `add` copies the record and returns at once. Unsent batches
 * wait in a bounded queue; records that do not fit are dropped and counted. Never fails a request.
 */
export class OtlpExporter {
  /** The collector; set on every config change. */
  destination: Destination | undefined
  readonly #options: ExporterOptions
  readonly #head: Buffer
  readonly #scope: Buffer
  readonly #sent: Series
  readonly #pending: Set<OtlpExporter>
  readonly #current = new ProtoWriter(16 * 1024)
  #count = 0
  readonly #queue: Batch[] = []
  #queuedBytes = 0
  #timer: NodeJS.Timeout | undefined
  #isSending = false
  #failures = 0
  #waiters: (() => void)[] = []

  constructor(options: ExporterOptions) {
    this.#options = options
    this.#head = encodeResource(options.resources)
    this.#scope = encodeScope(scopes[options.signal])
    const metrics = exportMetrics(options.registry)
    this.#sent = metrics.sent(options.signal)
    this.#pending = metrics.pending
    // Start at zero, so that rates are correct from the first loss on.
    for (const cause of ['queue_full', 'refused', 'rejected'] as const) metrics.lost(options.signal, cause)
  }

  /** Queues one encoded LogRecord or Span. */
  add(record: ProtoWriter): void {
    if (this.#queuedBytes + this.#current.length + record.length > (this.#options.maxQueueBytes ?? 8 * 1024 * 1024)) {
      this.#lose('queue_full', 1)
      return
    }
    this.#current.messageField(0x12, record)
    this.#count++
    if (this.#current.length >= BATCH_BYTES) this.#seal()
    if (this.#timer !== undefined || this.#isSending) return
    this.#pending.add(this)
    if (this.#queue.length > 0) void this.#pump()
    else this.#arm(this.#options.delayMs ?? 1000)
  }

  /** Resolves after one more attempt to send all queued records. */
  flush(): Promise<void> {
    if (this.#count === 0 && this.#queue.length === 0 && !this.#isSending) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
      clearTimeout(this.#timer)
      this.#timer = undefined
      if (!this.#isSending) void this.#pump()
    })
  }

  #arm(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#pump()
    }, delayMs)
    // `flush` is called at shutdown.
    this.#timer.unref()
  }

  #seal(): void {
    if (this.#count === 0) return
    const bytes = Buffer.from(this.#current.bytes)
    this.#queue.push({ bytes, count: this.#count })
    this.#queuedBytes += bytes.length
    this.#current.clear()
    this.#count = 0
  }

  async #pump(): Promise<void> {
    this.#isSending = true
    this.#seal()
    for (let batch = this.#queue[0]; batch !== undefined; batch = this.#queue[0]) {
      const outcome = await this.#send(batch).catch(() => 'retry' as const)
      if (outcome === 'retry') {
        this.#failures++
        break
      }
      this.#failures = 0
      this.#queue.shift()
      this.#queuedBytes -= batch.bytes.length
      if (outcome === 'refused') this.#lose('refused', batch.count)
      else {
        this.#sent.value += batch.count - outcome
        if (outcome > 0) this.#lose('rejected', outcome)
      }
    }
    this.#isSending = false
    for (const resolve of this.#waiters.splice(0)) resolve()
    if (this.#failures > 0) this.#arm(backoffDelay(this.#failures - 1, { initialMs: this.#options.backoffMs ?? 1000, maxMs: MAX_BACKOFF_MS }))
    else if (this.#count > 0) this.#arm(this.#options.delayMs ?? 1000)
    else this.#pending.delete(this)
  }

  /** Returns the number of rejected records, or why the batch was not accepted. Rejects if the collector cannot be reached. */
  async #send(batch: Batch): Promise<number | 'refused' | 'retry'> {
    const { destination } = this
    if (destination === undefined) return 'retry'
    const body = encodeRequest(this.#head, this.#scope, batch.bytes)
    return this.#options.protocol === 'GRPC' ? sendGrpc(destination, methods[this.#options.signal], body) : sendHttp(destination, this.#options.path, body)
  }

  #lose(cause: LossCause, count: number): void {
    exportMetrics(this.#options.registry).lost(this.#options.signal, cause).value += count
  }
}

/** OTLP/HTTP: 429 and some 5xx are retryable; other statuses than 2xx are final. */
async function sendHttp(destination: Destination, target: string, body: Buffer): Promise<number | 'refused' | 'retry'> {
  const headers = new HeaderList(['content-type', 'application/x-protobuf'])
  const response = await callDestination(destination, { method: 'POST', target, headers, body }, { timeoutMs: EXPORT_MS, covers: 'body' })
  const { bytes } = await readBody(response.body, LIMIT_BYTES)
  if (response.status >= 200 && response.status < 300) return readRejected(bytes)
  return [429, 502, 503, 504].includes(response.status) ? 'retry' : 'refused'
}

/** Codes that OTLP calls retryable: CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS. */
const retryable: ReadonlySet<string> = new Set(['1', '4', '8', '10', '11', '14', '15'])

async function sendGrpc(destination: Destination, target: string, message: Buffer): Promise<number | 'refused' | 'retry'> {
  const frame = Buffer.allocUnsafe(5)
  frame.writeUInt8(0)
  frame.writeUInt32BE(message.length, 1)
  const response = await callDestination(
    destination,
    { method: 'POST', target, body: Buffer.concat([frame, message]), isGrpc: true },
    { timeoutMs: EXPORT_MS, covers: 'body' },
  )
  const { bytes, trailers } = await readBody(response.body, LIMIT_BYTES)
  const status = trailers?.get('grpc-status') ?? response.headers.get('grpc-status')
  if (response.status !== 200) return [429, 502, 503, 504].includes(response.status) ? 'retry' : 'refused'
  if (status !== '0') return status === undefined || retryable.has(status) ? 'retry' : 'refused'
  return readRejected(bytes.subarray(5))
}

/** Export…ServiceRequest of one resource and one scope, around encoded records. */
function encodeRequest(resource: Buffer, scope: Buffer, records: Buffer): Buffer {
  const inner = new ProtoWriter(records.length + scope.length + 32)
  inner.raw(scope)
  inner.raw(records)
  const middle = new ProtoWriter(inner.length + resource.length + 32)
  middle.raw(resource)
  middle.bytesField(0x12, inner.bytes)
  const request = new ProtoWriter(middle.length + 16)
  request.bytesField(0x0a, middle.bytes)
  return request.bytes
}

/** Field 1 of ResourceSpans and ResourceLogs. */
function encodeResource(added: readonly [string, unknown][]): Buffer {
  const { POD_NAME, NAMESPACE } = process.env
  const attributes = new Map<string, unknown>([
    ['service.name', 'proxy'],
    ['service.version', packageJson.version],
    ...(POD_NAME ? [['k8s.pod.name', POD_NAME] as const] : []),
    ...(NAMESPACE ? [['k8s.namespace.name', NAMESPACE] as const] : []),
    ...added,
  ])
  const inner = new ProtoWriter()
  const sink = new AttributeSink(inner, 0x0a)
  for (const [name, value] of attributes)
    sink.added(name, typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : JSON.stringify(value))
  const writer = new ProtoWriter()
  writer.bytesField(0x0a, inner.bytes)
  return Buffer.from(writer.bytes)
}

/** Field 1 of ScopeSpans and ScopeLogs. */
function encodeScope(name: string): Buffer {
  const inner = new ProtoWriter()
  inner.stringField(0x0a, name)
  const writer = new ProtoWriter()
  writer.bytesField(0x0a, inner.bytes)
  return Buffer.from(writer.bytes)
}
