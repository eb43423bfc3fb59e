import { parentPort } from 'node:worker_threads'
import type { WorkerRequest, WorkerResponse } from '../runtime/background-worker.ts'
import { lowerCurrentThread } from '../runtime/thread-priority.ts'
import { readSpend, type SpendGroups, type SpendQuery } from './spend.ts'

/** A report to read from a file. */
export interface SpendRequest extends SpendQuery {
  readonly path: string
}

lowerCurrentThread()

/** Entry of the thread that reads reports: a report of a large file takes seconds, in which neither traffic nor the writer may stop. */
parentPort?.on('message', ({ id, path, ...query }: WorkerRequest<SpendRequest>) => {
  let value: SpendGroups | { readonly error: string }
  try {
    value = readSpend(path, query)
  } catch (error) {
    value = { error: error instanceof Error ? error.message : String(error) }
  }
  const response: WorkerResponse<typeof value> = { id, value }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
  parentPort?.postMessage(response)
})
