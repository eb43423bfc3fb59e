import { Worker } from 'node:worker_threads'
import { ProxyError } from '../../error.ts'
import type { PasswordAnswer, PasswordQuestion } from './password-worker.ts'

/** Whether a password has a hash. */
export type CheckPassword = (password: string, hash: string) => Promise<boolean>

const WORKER = new URL(import.meta.url.endsWith('.ts') ? './password-worker.ts' : './password-worker.js', import.meta.url)
/** Some ten seconds of bcrypt. Whoever comes later is told so rather than made to wait. */
const MAX_WAITING = 256

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, { settle(isRight: boolean): void; reject(error: Error): void }>
}

let thread: Thread | undefined
let lastId = 0

/** Checks in a thread of its own, which starts with the first check and starts anew when it broke. One after the other. */
export const checkInThread: CheckPassword = async (password, hash) => {
  const { worker, waiting } = (thread ??= startThread())
  if (waiting.size >= MAX_WAITING) throw new ProxyError('PROCESSING_FAILED', { detail: 'too many passwords to check' })
  const question: PasswordQuestion = { id: ++lastId, password, hash }
  return new Promise((settle, reject) => {
    waiting.set(question.id, { settle, reject })
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage(question)
  })
}

function startThread(): Thread {
  const started: Thread = { worker: new Worker(WORKER), waiting: new Map() }
  const { worker, waiting } = started
  worker.on('message', ({ id, isRight }: PasswordAnswer) => {
    waiting.get(id)?.settle(isRight)
    waiting.delete(id)
  })
  const end = (error: Error): void => {
    if (thread === started) thread = undefined
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', () => end(new Error('the thread that checks passwords ended')))
  // Neither the thread nor checks on their way keep a process alive that is to end.
  worker.unref()
  return started
}
