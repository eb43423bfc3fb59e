import { parentPort } from 'node:worker_threads'
import type { FlatMessage } from '../formats/types.ts'
import { countMessages } from './tokenizer.ts'

/** Asks how many tokens messages are. */
export interface TokenQuestion {
  readonly id: number
  readonly model: string
  readonly messages: readonly FlatMessage[]
}

export interface TokenAnswer {
  readonly id: number
  readonly tokens: number
}

/** Entry of the thread that counts tokens: tables of some megabytes, and long prompts, would hold up all traffic. */
parentPort?.on('message', ({ id, model, messages }: TokenQuestion) => {
  void countMessages(model, messages).then((tokens) => {
    const answer: TokenAnswer = { id, tokens }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
    parentPort?.postMessage(answer)
  })
})
