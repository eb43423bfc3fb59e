import { parentPort } from 'node:worker_threads'
import { verifyPassword } from './hashes.ts'

/** Asks whether a password has a hash. */
export interface PasswordQuestion {
  readonly id: number
  readonly password: string
  readonly hash: string
}

export interface PasswordAnswer {
  readonly id: number
  readonly isRight: boolean
}

/** Entry of the thread that checks passwords: bcrypt would hold up all traffic for the time of each check. */
parentPort?.on('message', ({ id, password, hash }: PasswordQuestion) => {
  const answer: PasswordAnswer = { id, isRight: verifyPassword(password, hash) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
  parentPort?.postMessage(answer)
})
