import type { Exchange } from '../exchange/exchange.ts'
import type { Registry } from '../telemetry/metrics/registry.ts'
import { observe, unobserve } from '../telemetry/observers.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { LedgerBatch } from './batch.ts'
import type { LedgerRow } from './columns.ts'
import { ledgerMetrics } from './metrics.ts'
import { createDescribe } from './record.ts'
import type { LedgerSettings } from './settings.ts'

/** Rows that a thread collects before it sends them. */
const BATCH_ROWS = 256
/** Milliseconds that a row waits for others. */
const BATCH_MS = 500
/** Rows of all threads that are not in the store yet: about 10 MiB. Further ones are dropped and counted. */
export const MAX_PENDING_ROWS = 20_000

/** Counts the rows that threads have sent and that are not in the store yet, in memory that all threads share. */
export class PendingRows {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  get count(): number {
    return Atomics.load(this.#count, 0)
  }

  add(rows: number): void {
    Atomics.add(this.#count, 0, rows)
  }

  remove(rows: number): void {
    Atomics.sub(this.#count, 0, rows)
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
  readonly #pending: PendingRows
  #rows: LedgerRow[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#pending = new PendingRows(options.pending)
    const describe = createDescribe(options.settings, options.random)
    this.#dropped = ledgerMetrics(options.telemetry.metrics.registry).dropped.series('full')
    this.#observer = (exchange) => {
      const row = describe(exchange)
      if (row !== undefined) this.#add(row)
    }
    observe(options.telemetry, this.#observer)
  }

  #add(row: LedgerRow): void {
    if (this.#pending.count + this.#rows.length >= MAX_PENDING_ROWS) {
      this.#dropped.value++
      return
    }
    this.#rows.push(row)
    // Never in the turn of the request.
    if (this.#rows.length === BATCH_ROWS) setImmediate(() => this.flush()).unref()
    else this.#timer ??= setTimeout(() => this.flush(), BATCH_MS).unref()
  }

  /** Sends the rows that wait. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const rows = this.#rows
    if (rows.length === 0) return
    this.#rows = []
    this.#pending.add(rows.length)
    this.#options.send({ json: JSON.stringify(rows), rows: rows.length })
  }

  /** Ends the recording and sends the rows that wait. */
  close(): void {
    unobserve(this.#options.telemetry, this.#observer)
    this.flush()
  }
}
