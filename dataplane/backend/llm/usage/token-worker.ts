import { parentPort } from 'node:worker_threads'
import type { WorkerResponse, WorkerRequest } from '../../../request/exchange/background-worker.ts'
import { lowerCurrentThread } from '../../../runtime/thread-priority.ts'
import type { FlatMessage } from '../common/types.ts'
import { countMessages } from './tokenizer.ts'

/** A request to count the tokens of messages. */
export interface TokenCountRequest {
  readonly model: string
  readonly messages: readonly FlatMessage[]
}

lowerCurrentThread()

/** Entry point of the worker thread that counts tokens. Loading the tables, and long prompts, would block all traffic of the main thread. */
parentPort?.on('message', ({ id, model, messages }: WorkerRequest<TokenCountRequest>) => {
  void countMessages(model, messages).then((value) => {
    const response: WorkerResponse<number> = { id, value }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
    parentPort?.postMessage(response)
  })
})
