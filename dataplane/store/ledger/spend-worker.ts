import { parentPort } from 'node:worker_threads'
import type { WorkerRequest, WorkerResponse } from '../../request/exchange/background-worker.ts'
import { lowerCurrentThread } from '../../runtime/thread-priority.ts'
import type { SpendGroups, SpendQuery, StoreSettings } from './store.ts'

/** A report to read. */
export interface SpendRequest extends SpendQuery {
  readonly store: StoreSettings
}

lowerCurrentThread()

/** Entry of the thread that reads reports: a report of a large file takes seconds, in which neither traffic nor the writer may stop. */
parentPort?.on('message', (message: WorkerRequest<SpendRequest>) => void respond(message))

async function respond({ id, store, ...query }: WorkerRequest<SpendRequest>): Promise<void> {
  let value: SpendGroups | { readonly error: string }
  try {
    value = await read(store, query)
  } catch (error) {
    value = { error: error instanceof Error ? error.message : String(error) }
  }
  const response: WorkerResponse<typeof value> = { id, value }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
  parentPort?.postMessage(response)
}

async function read(settings: StoreSettings, query: SpendQuery): Promise<SpendGroups> {
  if (settings.kind === 'sqlite') return (await import('./spend.ts')).readSpend(settings.path, query)
  const store =
    settings.kind === 'postgres'
      ? new (await import('./postgres-store.ts')).PostgresStore(settings)
      : new (await import('./clickhouse-store.ts')).ClickHouseStore(settings)
  try {
    return await store.spend(query)
  } finally {
    await store.close()
  }
}
