import { captureLimits, capturedBodies, toolCaptureLimits } from '../../request/exchange/captured-bodies.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import { observe, unobserve } from '../../observe/telemetry/observers.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { encodeBatch, lengthOf, type BatchSize, type LedgerBatch, type LedgerBodies, type LedgerEntry } from './batch.ts'
import { valueColumns } from './columns.ts'
import { BatchLabels } from './labels.ts'
import { ledgerMetrics } from './metrics.ts'
import { createDescribe } from './record.ts'
import type { LedgerSettings } from './settings.ts'

/** Rows that a thread collects before it sends them. Each batch wakes the thread that writes, which costs more than its rows. */
const BATCH_ROWS = 2048
/** Milliseconds that a row waits for others. */
const BATCH_MS = 500
/** Rows of all threads that are not in the store yet: about 10 MiB. Further ones are dropped and counted. */
export const MAX_PENDING_ROWS = 20_000

/** Characters of bodies of all threads that are not in the store yet. Further rows are stored without bodies. */
export const MAX_PENDING_BODIES = 16 * 1024 * 1024
/** Characters of bodies after which a thread sends its rows. */
const BATCH_BODIES = 256 * 1024

/** Counts the rows, and the characters of their bodies, that threads have sent and that are not in the store yet, in memory that all threads share. */
export class PendingRows {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  get count(): number {
    return Atomics.load(this.#count, 0)
  }

  /** Characters. */
  get bodies(): number {
    return Atomics.load(this.#count, 1)
  }

  add({ rows, bodies }: BatchSize): void {
    Atomics.add(this.#count, 0, rows)
    Atomics.add(this.#count, 1, bodies)
  }

  remove({ rows, bodies }: BatchSize): void {
    Atomics.sub(this.#count, 0, rows)
    Atomics.sub(this.#count, 1, bodies)
  }
}

/** What a thread needs to record its requests. */
export interface RecorderOptions {
  readonly settings: LedgerSettings
  /** Memory of PendingRows. */
  readonly pending: SharedArrayBuffer
  readonly telemetry: Pick<Telemetry, 'observe'> & { readonly metrics: { readonly registry: Registry } }
  send(batch: LedgerBatch): void
  /** Default: Math.random. */
  readonly random?: (() => number) | undefined
}

/** Starts to record the requests of a thread. */
export const startRecorder = (options: RecorderOptions): LedgerRecorder => new LedgerRecorder(options)

/** Records the requests of a thread in batches. A request costs the writing of its entry; encoding and sending happen later. */
class LedgerRecorder {
  readonly #options: RecorderOptions
  readonly #observer: (exchange: Exchange) => void
  readonly #dropped: { value: number }
  readonly #droppedBodies: { value: number }
  readonly #pending: PendingRows
  /** Those of the batch come first. The others are used again, because new ones for each batch cost collections of old objects. */
  readonly #entries: LedgerEntry[] = []
  #count = 0
  #labels = new BatchLabels()
  #bodies: LedgerBodies[] = []
  /** Characters of the bodies. */
  #bodiesLength = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#pending = new PendingRows(options.pending)
    const { settings, telemetry } = options
    const describe = createDescribe(settings, options.random)
    const { dropped, bodiesDropped } = ledgerMetrics(telemetry.metrics.registry)
    this.#dropped = dropped.series('full')
    this.#droppedBodies = bodiesDropped
    if (settings.bodyBytes !== undefined) captureLimits.set(telemetry.metrics.registry, settings.bodyBytes)
    if (settings.bodyBytes !== undefined && settings.storesToolBodies) toolCaptureLimits.set(telemetry.metrics.registry, settings.bodyBytes)
    this.#observer = (exchange) => {
      const entry = (this.#entries[this.#count] ??= [0, 0, ...valueColumns.slice(1).map(() => null)])
      if (describe(exchange, this.#labels, entry)) this.#add(exchange)
    }
    observe(telemetry, this.#observer)
  }

  /** Keeps the next entry, and the bodies of its request. */
  #add(exchange: Exchange): void {
    if (this.#pending.count + this.#count >= MAX_PENDING_ROWS) {
      this.#dropped.value++
      // Nothing is sent, so that labels of dropped rows would collect.
      if (this.#count === 0) this.#labels = new BatchLabels()
      return
    }
    this.#addBodies(exchange)
    this.#count++
    // Never in the turn of the request.
    if (this.#count === BATCH_ROWS || this.#bodiesLength >= BATCH_BODIES) setImmediate(() => this.flush()).unref()
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS).unref()
  }

  #addBodies(exchange: Exchange): void {
    const captured = capturedBodies.get(exchange)
    if (captured === undefined) return
    const bodies: LedgerBodies = { entry: this.#count, request: captured.request ?? null, response: captured.response ?? null }
    const length = lengthOf(bodies)
    if (length > 0 && this.#pending.bodies + this.#bodiesLength + length > MAX_PENDING_BODIES) {
      this.#droppedBodies.value++
      return
    }
    this.#bodies.push(bodies)
    this.#bodiesLength += length
  }

  /** Sends the rows that wait. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#count === 0) return
    const batch = encodeBatch(this.#labels.list, this.#entries.slice(0, this.#count), this.#bodies)
    this.#count = 0
    this.#labels = new BatchLabels()
    this.#bodies = []
    this.#bodiesLength = 0
    this.#pending.add(batch.size)
    this.#options.send(batch)
  }

  /** Ends the recording and sends the rows that wait. */
  close(): void {
    const { telemetry } = this.#options
    unobserve(telemetry, this.#observer)
    captureLimits.delete(telemetry.metrics.registry)
    toolCaptureLimits.delete(telemetry.metrics.registry)
    this.flush()
  }
}
