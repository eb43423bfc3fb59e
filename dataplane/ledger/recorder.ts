import { captureLimits, toolCaptureLimits } from '../exchange/captured-bodies.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Registry } from '../telemetry/metrics/registry.ts'
import { observe, unobserve } from '../telemetry/observers.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { LedgerBatch, LedgerEntry, LedgerRows } from './batch.ts'
import { valueColumns, type LedgerValue } from './columns.ts'
import { BatchLabels } from './labels.ts'
import { ledgerMetrics } from './metrics.ts'
import { createDescribe } from './record.ts'
import type { LedgerSettings } from './settings.ts'

/** Rows that a thread collects before it sends them. */
const BATCH_ROWS = 256
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

  add({ rows, bodies }: Omit<LedgerBatch, 'json'>): void {
    Atomics.add(this.#count, 0, rows)
    Atomics.add(this.#count, 1, bodies)
  }

  remove({ rows, bodies }: Omit<LedgerBatch, 'json'>): void {
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

/** Records the requests of a thread in batches. A request costs the creation of its row; encoding and sending happen later. */
class LedgerRecorder {
  readonly #options: RecorderOptions
  readonly #observer: (exchange: Exchange) => void
  readonly #dropped: { value: number }
  readonly #droppedBodies: { value: number }
  readonly #pending: PendingRows
  /** Those of the batch come first. The others are used again, because new rows for each batch cost collections of old objects. */
  readonly #rows: LedgerEntry[] = []
  #count = 0
  #labels = new BatchLabels()
  /** Characters of the bodies in the rows. */
  #bodies = 0
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
      const row = (this.#rows[this.#count] ??= [0, ...valueColumns.map(() => null)])
      if (describe(exchange, this.#labels, row)) this.#add(row)
    }
    observe(telemetry, this.#observer)
  }

  #add(row: LedgerEntry): void {
    if (this.#pending.count + this.#count >= MAX_PENDING_ROWS) {
      this.#dropped.value++
      clearBodies(row)
      // Nothing is sent, so that labels of dropped rows would collect.
      if (this.#count === 0) this.#labels = new BatchLabels()
      return
    }
    const length = bodiesOf(row)
    if (length > 0 && this.#pending.bodies + this.#bodies + length > MAX_PENDING_BODIES) {
      this.#droppedBodies.value++
      clearBodies(row)
    } else this.#bodies += length
    this.#count++
    // Never in the turn of the request.
    if (this.#count === BATCH_ROWS || (length > 0 && this.#bodies >= BATCH_BODIES)) setImmediate(() => this.flush()).unref()
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS).unref()
  }

  /** Sends the rows that wait. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#count === 0) return
    const rows = this.#rows.slice(0, this.#count)
    const json = JSON.stringify({ labels: this.#labels.list, rows } satisfies LedgerRows)
    const size = { rows: rows.length, bodies: this.#bodies }
    if (this.#bodies > 0) rows.forEach(clearBodies)
    this.#count = 0
    this.#labels = new BatchLabels()
    this.#bodies = 0
    this.#pending.add(size)
    this.#options.send({ json, ...size })
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

/** Positions in a row, in which the index of its labels is the first. */
const REQUEST_BODY = 1 + valueColumns.indexOf('request_body')
const RESPONSE_BODY = 1 + valueColumns.indexOf('response_body')

const lengthOf = (value: LedgerValue | undefined): number => (typeof value === 'string' ? value.length : 0)
const bodiesOf = (row: LedgerEntry): number => lengthOf(row[REQUEST_BODY]) + lengthOf(row[RESPONSE_BODY])
function clearBodies(row: LedgerEntry): void {
  row[REQUEST_BODY] = null
  row[RESPONSE_BODY] = null
}
