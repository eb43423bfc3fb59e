import { parentPort, workerData } from 'node:worker_threads'
import { lowerCurrentThread } from '../runtime/thread-priority.ts'
import { decodeBatch, type LedgerBatch } from './batch.ts'
import { LedgerStore } from './store.ts'

/** What the thread of the store receives at its start. */
export interface StoreData {
  readonly path: string
  readonly retentionMs: number
}

/** A message to the thread of the store. */
export type ToStore = ({ readonly type: 'batch' } & LedgerBatch) | { readonly type: 'close' }

/** A message from the thread of the store. */
export type FromStore =
  /** The file is open. */
  | { readonly type: 'open' }
  /** The file cannot be opened; the thread ends. */
  | { readonly type: 'unusable'; readonly error: string }
  /** A batch is stored, or has failed. */
  | { readonly type: 'done'; readonly rows: number; readonly error?: string }

const PRUNE_MS = 60_000

lowerCurrentThread()
const { path, retentionMs } = workerData as StoreData
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
const send = (message: FromStore): void => parentPort?.postMessage(message)
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Entry of the only thread that writes the file: SQLite is synchronous and waits for the disk. */
function run(store: LedgerStore): void {
  let isClosed = false
  const prune = (): void => {
    if (isClosed) return
    try {
      // Batches are stored between the steps.
      if (store.prune(Date.now() - retentionMs)) setImmediate(prune)
    } catch {
      // The next batch reports the cause; the retention is tried again.
    }
  }
  setInterval(prune, PRUNE_MS).unref()
  prune()
  parentPort?.on('message', (message: ToStore) => {
    if (message.type === 'close') {
      isClosed = true
      store.close()
      parentPort?.close()
      return
    }
    const { rows } = message
    try {
      store.add(decodeBatch(message))
      send({ type: 'done', rows })
    } catch (error) {
      send({ type: 'done', rows, error: messageOf(error) })
    }
  })
  send({ type: 'open' })
}

try {
  run(new LedgerStore(path))
} catch (error) {
  send({ type: 'unusable', error: messageOf(error) })
}
