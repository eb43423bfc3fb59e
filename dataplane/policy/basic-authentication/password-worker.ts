import { parentPort } from 'node:worker_threads'
import type { WorkerResponse, WorkerRequest } from '../../request/exchange/background-worker.ts'
import { lowerCurrentThread } from '../../runtime/thread-priority.ts'
import { verifyPassword } from './hashes.ts'

/** Request to check whether a password matches a hash. */
export interface PasswordRequest {
  readonly password: string
  readonly hash: string
}

lowerCurrentThread()

/** Entry of the worker thread that checks passwords. In the main thread, bcrypt would block all traffic during each check. */
parentPort?.on('message', ({ id, password, hash }: WorkerRequest<PasswordRequest>) => {
  const answer: WorkerResponse<boolean> = { id, value: verifyPassword(password, hash) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
  parentPort?.postMessage(answer)
})
