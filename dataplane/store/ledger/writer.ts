import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { BackgroundWorker } from '../../request/exchange/background-worker.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { BatchSize, LedgerBatch } from './batch.ts'
import { ledgerMetrics } from './metrics.ts'
import { PendingRows } from './recorder.ts'
import type { LedgerSettings } from './settings.ts'
import type { SpendRequest } from './spend-worker.ts'
import { describeStore, type SpendGroups, type SpendQuery } from './store.ts'
import type { FromStore, StoreData, ToStore } from './store-worker.ts'

/** Time that the shutdown waits for the last rows. */
const CLOSE_MS = 5000
/** Time between two starts of the thread. */
const RESTART_MS = 1000

// Literal names: images/bundle.ts checks that the files are in the bundle.
const STORE_FILE = new URL(import.meta.url.endsWith('.ts') ? './store-worker.ts' : './store-worker.js', import.meta.url)
const SPEND_FILE = new URL(import.meta.url.endsWith('.ts') ? './spend-worker.ts' : './spend-worker.js', import.meta.url)

/** Options of the ledger of a process. */
export interface LedgerOptions {
  readonly settings: LedgerSettings
  readonly log: Logger
  /** Registry of the main thread. */
  readonly registry: Registry
}

/**
 * The ledger of a process, in the main thread: passes the rows of all threads to the one thread that writes the file, and reads reports in another.
 * Failures are logged once until rows are stored again; rows of failed batches are counted.
 */
export class RequestLedger {
  readonly settings: LedgerSettings
  readonly pending = new PendingRows()
  /** Names the store in logs. */
  readonly #path: string
  readonly #log: Logger
  readonly #stored: { value: number }
  readonly #failed: { value: number }
  readonly #spend = new BackgroundWorker<SpendRequest, SpendGroups | { readonly error: string }>(SPEND_FILE, 'reports of the spend')
  #worker: Worker | undefined
  #startedAtMs = 0
  /** Rows that the thread has not confirmed. */
  #sent = { rows: 0, bodies: 0 }
  #isFailing = false
  #isWaiting = false
  #isClosing = false

  private constructor({ settings, log, registry }: LedgerOptions) {
    this.settings = settings
    this.#path = describeStore(settings.store)
    this.#log = log
    const { stored, dropped, waiting } = ledgerMetrics(registry)
    this.#stored = stored
    this.#failed = dropped.series('failed')
    registry.onCollect(() => (waiting.value = this.pending.count))
  }

  /** Opens the store. Rejects with the cause if it cannot be used. */
  static async open(options: LedgerOptions): Promise<RequestLedger> {
    const ledger = new RequestLedger(options)
    await ledger.#start()
    return ledger
  }

  /** Stores rows that a thread has sent. */
  write(batch: LedgerBatch): void {
    if (this.#worker === undefined && !this.#isClosing && performance.now() - this.#startedAtMs >= RESTART_MS) this.#start().catch(() => undefined)
    const { size } = batch
    if (this.#worker === undefined) return this.#fail(size, 'the thread of the ledger has ended')
    this.#sent.rows += size.rows
    this.#sent.bodies += size.bodies
    this.#post(this.#worker, { type: 'batch', ...batch })
  }

  /** Reads a report. Rejects with the cause if the store cannot be read, and with a ProxyError if too many reports wait. */
  async spend(query: SpendQuery): Promise<SpendGroups & { readonly store?: string }> {
    const { store } = this.settings
    const value = await this.#spend.run({ ...query, store })
    if ('error' in value) throw new Error(`the ledger cannot be read: ${value.error}`)
    return store.kind === 'sqlite' ? value : { ...value, store: createHash('sha256').update(`${this.#path} ${store.owner}`).digest('hex').slice(0, 16) }
  }

  /** Stores the rows that wait and closes the file; gives up after five seconds. */
  async close(): Promise<void> {
    this.#isClosing = true
    const worker = this.#worker
    if (worker === undefined) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    this.#post(worker, { type: 'close' })
    const abort = new AbortController()
    await Promise.race([ended, wait(CLOSE_MS, undefined, { signal: abort.signal }).catch(() => undefined)])
    abort.abort()
    await worker.terminate()
  }

  #start(): Promise<void> {
    this.#startedAtMs = performance.now()
    const { store, retentionMs } = this.settings
    const worker = new Worker(STORE_FILE, { workerData: { store, retentionMs } satisfies StoreData, name: 'ledger' })
    this.#worker = worker
    return new Promise((resolve, reject) => {
      worker.on('message', (message: FromStore) => {
        if (message.type === 'open') {
          worker.unref()
          resolve()
        }
        if (message.type === 'unusable') end(new Error(message.error))
        if (message.type === 'waiting') this.#onWaiting(message.error)
        if (message.type === 'done') this.#onDone(message)
      })
      const end = (error: Error): void => {
        reject(error)
        if (this.#worker !== worker) return
        this.#worker = undefined
        if (this.#sent.rows > 0) this.#fail(this.#sent, error.message)
        this.#sent = { rows: 0, bodies: 0 }
      }
      worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
      worker.on('exit', () => end(new Error('the thread of the ledger has ended')))
    })
  }

  #post(worker: Worker, message: ToStore): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage(message)
  }

  #onDone({ size, error }: Extract<FromStore, { type: 'done' }>): void {
    this.#sent.rows -= size.rows
    this.#sent.bodies -= size.bodies
    if (error !== undefined) return this.#fail(size, error)
    this.pending.remove(size)
    this.#stored.value += size.rows
    if (this.#isFailing || this.#isWaiting) this.#log.info('the ledger stores requests again', { path: this.#path })
    this.#isFailing = false
    this.#isWaiting = false
  }

  #onWaiting(error: string): void {
    if (!this.#isWaiting) this.#log.warn('the database of the ledger cannot be used; requests wait', { code: 'PX4023', path: this.#path, error })
    this.#isWaiting = true
  }

  #fail(size: BatchSize, error: string): void {
    this.pending.remove(size)
    this.#failed.value += size.rows
    if (!this.#isFailing) this.#log.error('requests are missing in the ledger', { code: 'PX4022', path: this.#path, error })
    this.#isFailing = true
  }
}
