import { parentPort } from 'node:worker_threads'
import type { Answer, Question } from '../../runtime/thread.ts'
import { verifyPassword } from './hashes.ts'

/** Asks whether a password has a hash. */
export interface PasswordQuestion {
  readonly password: string
  readonly hash: string
}

/** Entry of the thread that checks passwords: bcrypt would hold up all traffic for the time of each check. */
parentPort?.on('message', ({ id, password, hash }: Question<PasswordQuestion>) => {
  const answer: Answer<boolean> = { id, value: verifyPassword(password, hash) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
  parentPort?.postMessage(answer)
})
