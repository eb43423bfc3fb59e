import { setTimeout as wait } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { lowerCurrentThread } from '../../runtime/thread-priority.ts'
import type { BatchSize, LedgerBatch } from './batch.ts'
import { StoreUnreachableError, type Store, type StoreSettings } from './store.ts'

/** What the thread of the store receives at its start. */
export interface StoreData {
  readonly store: StoreSettings
  readonly retentionMs: number
}

/** A message to the thread of the store. */
export type ToStore = ({ readonly type: 'batch' } & LedgerBatch) | { readonly type: 'close' }

/** A message from the thread of the store. */
export type FromStore =
  /** The file is open, or the database may be used. */
  | { readonly type: 'open' }
  /** The file cannot be opened; the thread ends. */
  | { readonly type: 'unusable'; readonly error: string }
  /** The database cannot be reached; rows wait. */
  | { readonly type: 'waiting'; readonly error: string }
  /** A batch is stored, or has failed. */
  | { readonly type: 'done'; readonly size: BatchSize; readonly error?: string }

const PRUNE_MS = 60_000
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 5000

lowerCurrentThread()
const { store: settings, retentionMs } = workerData as StoreData
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
const send = (message: FromStore): void => parentPort?.postMessage(message)
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

// Loaded on demand: a process has one kind of store.
async function openStore(): Promise<Store> {
  switch (settings.kind) {
    case 'sqlite':
      return new (await import('./sqlite-store.ts')).LedgerStore(settings.path)
    case 'postgres':
      return new (await import('./postgres-store.ts')).PostgresStore(settings)
    case 'clickhouse':
      return new (await import('./clickhouse-store.ts')).ClickHouseStore(settings)
  }
}

/** The only thread that writes: SQLite is synchronous and waits for the disk, and a database that is away must not hold up traffic. Batches are stored in order. */
class StoreThread {
  readonly #store: Store
  readonly #waiting: LedgerBatch[] = []
  #batches = 0
  #isRunning = false
  #isClosing = false

  constructor(store: Store) {
    this.#store = store
    setInterval(() => void this.#prune(), PRUNE_MS).unref()
    void this.#prune()
  }

  add(batch: LedgerBatch): void {
    this.#waiting.push(batch)
    void this.#run()
  }

  /** Stores what waits, and ends the thread. The main thread ends it after five seconds in any case. */
  close(): void {
    this.#isClosing = true
    void this.#run()
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) await this.#write(batch)
    this.#isRunning = false
    if (!this.#isClosing) return
    await this.#store.close()
    parentPort?.close()
  }

  async #write(batch: LedgerBatch): Promise<void> {
    const { size } = batch
    const number = this.#batches++
    for (let retryMs = MIN_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      try {
        await this.#store.add({ number, ...batch })
        return send({ type: 'done', size })
      } catch (error) {
        if (!(error instanceof StoreUnreachableError)) return send({ type: 'done', size, error: messageOf(error) })
        send({ type: 'waiting', error: messageOf(error) })
        await wait(retryMs)
      }
    }
  }

  async #prune(): Promise<void> {
    try {
      // Batches are stored between the steps.
      while (!this.#isClosing && (await this.#store.prune(Date.now() - retentionMs))) await wait(1)
    } catch {
      // The next batch reports the cause; the retention is tried again.
    }
  }
}

// Messages wait for the store.
openStore().then(
  (store) => {
    const thread = new StoreThread(store)
    parentPort?.on('message', (message: ToStore) => (message.type === 'close' ? thread.close() : thread.add(message)))
    send({ type: 'open' })
  },
  (error: unknown) => send({ type: 'unusable', error: messageOf(error) }),
)
