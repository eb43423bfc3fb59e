import { Worker } from 'node:worker_threads'
import { ProxyError } from '../../error.ts'
import type { FlatMessage } from '../formats/types.ts'
import type { TokenAnswer, TokenQuestion } from './token-worker.ts'

const WORKER = new URL(import.meta.url.endsWith('.ts') ? './token-worker.ts' : './token-worker.js', import.meta.url)
/** Whoever comes later is told so rather than made to wait. */
const MAX_WAITING = 256

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, { settle(tokens: number): void; reject(error: Error): void }>
}

let thread: Thread | undefined
let lastId = 0

/** Tokens of a prompt, counted here: for providers that have no endpoint for it. In a thread that starts with the first count. */
export async function countTokens(model: string, messages: readonly FlatMessage[]): Promise<number> {
  const { worker, waiting } = (thread ??= startThread())
  if (waiting.size >= MAX_WAITING) throw new ProxyError('PROCESSING_FAILED', { detail: 'too many prompts to count' })
  const question: TokenQuestion = { id: ++lastId, model, messages }
  return new Promise((settle, reject) => {
    waiting.set(question.id, { settle, reject })
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage(question)
  })
}

function startThread(): Thread {
  const started: Thread = { worker: new Worker(WORKER), waiting: new Map() }
  const { worker, waiting } = started
  worker.on('message', ({ id, tokens }: TokenAnswer) => {
    waiting.get(id)?.settle(tokens)
    waiting.delete(id)
  })
  const end = (error: Error): void => {
    if (thread === started) thread = undefined
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
  worker.on('exit', () => end(new Error('the thread that counts tokens ended')))
  // Neither the thread nor counts on their way keep a process alive that is to end.
  worker.unref()
  return started
}
