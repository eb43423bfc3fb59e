import { BackgroundWorker } from '../../../request/exchange/background-worker.ts'
import type { FlatMessage } from '../common/types.ts'
import type { TokenCountRequest } from './token-worker.ts'

const thread = new BackgroundWorker<TokenCountRequest, number>(
  new URL(import.meta.url.endsWith('.ts') ? './token-worker.ts' : './token-worker.js', import.meta.url),
  'prompts to count',
)

/** Counts the tokens of a prompt in a worker thread, for providers without a counting endpoint. Rejects with a ProxyError if too many requests wait. */
export function countTokens(model: string, messages: readonly FlatMessage[]): Promise<number> {
  return thread.run({ model, messages })
}
