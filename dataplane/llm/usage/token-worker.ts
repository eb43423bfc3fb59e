import { parentPort } from 'node:worker_threads'
import type { Answer, Question } from '../../runtime/thread.ts'
import type { FlatMessage } from '../common/types.ts'
import { countMessages } from './tokenizer.ts'

/** Asks how many tokens messages are. */
export interface TokenCountRequest {
  readonly model: string
  readonly messages: readonly FlatMessage[]
}

/** Entry of the thread that counts tokens: tables of some megabytes, and long prompts, would hold up all traffic. */
parentPort?.on('message', ({ id, model, messages }: Question<TokenCountRequest>) => {
  void countMessages(model, messages).then((value) => {
    const answer: Answer<number> = { id, value }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
    parentPort?.postMessage(answer)
  })
})
