import type { Block, Chat, Turn } from './neutral.ts'
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
 * limit leaves less than the minimum, or if the current tool loop lost the thinking block at its start, which Claude requires.
 */
export function planThinking({ thinkingBudget, effort, maxTokens: given, turns }: Chat): Plan {
  const requested = thinkingBudget ?? budgetOfEffort(effort)
  if (requested === undefined || requested < MIN_BUDGET || hasBareCall(turns)) return { maxTokens: given ?? DEFAULT_MAX_TOKENS, thinking: undefined }
  const maxTokens = given ?? (requested < DEFAULT_MAX_TOKENS ? DEFAULT_MAX_TOKENS : requested + DEFAULT_MAX_TOKENS)
  const limit = numberOf(maxTokens) ?? DEFAULT_MAX_TOKENS
  return { maxTokens, thinking: limit > MIN_BUDGET ? { type: 'enabled', budget_tokens: Math.min(requested, limit - 1) } : undefined }
}

/**
 * Whether the current tool loop began without a signed thinking block. The loop starts after the last message of the user without tool results.
 * Claude thinks at its start only, so later calls of the loop need no block.
 */
function hasBareCall(turns: readonly Turn[]): boolean {
  // The upstream merges consecutive turns of one side.
  const runs: { readonly isAssistant: boolean; readonly blocks: Block[] }[] = []
  for (const { role, blocks } of turns) {
    const isAssistant = role === 'assistant'
    const last = runs.at(-1)
    if (last?.isAssistant === isAssistant) last.blocks.push(...blocks)
    else runs.push({ isAssistant, blocks: [...blocks] })
  }
  const asked = runs.findLastIndex(({ isAssistant, blocks }) => !isAssistant && blocks.every(({ type }) => type !== 'toolResult'))
  const first = runs[asked + 1]?.blocks ?? []
  return first.some(({ type }) => type === 'toolUse') && !first.some((block) => block.type === 'thinking' && block.signature !== '')
}
