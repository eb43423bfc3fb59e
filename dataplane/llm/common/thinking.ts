import type { Chat, Turn } from './neutral.ts'
import { numberOf } from './read.ts'
import { budgetOfEffort } from './tools.ts'
import type { JsonObject } from './types.ts'

const DEFAULT_MAX_TOKENS = 4096
/** Claude rejects smaller thinking budgets. */
const MIN_BUDGET = 1024

/** The token limit and the thinking object of a request to Claude. */
interface Plan {
  readonly maxTokens: unknown
  /** undefined if thinking is off. */
  readonly thinking: JsonObject | undefined
}

/**
 * Plans the thinking of a request of Chat Completions or Responses (llm.md §7.1): the budget is below the token limit, and thinking is off if the
 * limit leaves less than the minimum, or if the current tool loop has a call without the thinking block that Claude requires before it.
 */
export function planThinking({ thinkingBudget, effort, maxTokens: given, turns }: Chat): Plan {
  const requested = thinkingBudget ?? budgetOfEffort(effort)
  if (requested === undefined || requested < MIN_BUDGET || hasBareCall(turns)) return { maxTokens: given ?? DEFAULT_MAX_TOKENS, thinking: undefined }
  const maxTokens = given ?? (requested < DEFAULT_MAX_TOKENS ? DEFAULT_MAX_TOKENS : requested + DEFAULT_MAX_TOKENS)
  const limit = numberOf(maxTokens) ?? DEFAULT_MAX_TOKENS
  return { maxTokens, thinking: limit > MIN_BUDGET ? { type: 'enabled', budget_tokens: Math.min(requested, limit - 1) } : undefined }
}

/** Whether a tool call after the last message of the user has no signed thinking block in its turn. */
function hasBareCall(turns: readonly Turn[]): boolean {
  // Turns of one role are merged by the upstream, so the block may be in an earlier one.
  let hasCall = false
  for (const { role, blocks } of turns.toReversed()) {
    if (role === 'assistant') {
      if (blocks.some(({ type }) => type === 'toolUse')) hasCall = true
      if (blocks.some((block) => block.type === 'thinking' && block.signature !== '')) hasCall = false
    } else {
      if (hasCall) return true
      if (blocks.some(({ type }) => type !== 'toolResult')) return false
    }
  }
  return hasCall
}
