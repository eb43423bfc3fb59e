import type { FlatMessage } from './formats/types.ts'
import { estimateTokens } from './estimate.ts'

/** Framing of a chat: for each message, and once for the answer's beginning (llm.md §11.1). */
const PER_MESSAGE = 4
const PER_CHAT = 3

/** Tokens of a prompt, counted here: for providers that have no endpoint for it. */
export function countTokens(_model: string, messages: readonly FlatMessage[]): Promise<number> {
  let tokens = PER_CHAT
  for (const { role, content } of messages) tokens += PER_MESSAGE + estimateTokens([role]) + estimateTokens([content])
  return Promise.resolve(tokens)
}
