import type { Block, Chat, Turn } from '../common/neutral.ts'
import { numberOf, textOf } from '../common/read.ts'
import { budgetOfEffort } from '../common/tools.ts'
import type { JsonObject } from '../common/types.ts'
import type { ReasoningRule } from './types.ts'

const DEFAULT_MAX_TOKENS = 4096
/** Claude rejects smaller thinking budgets. */
const MIN_BUDGET = 1024
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The parts of a request to Claude that make it think. */
interface Plan {
  readonly maxTokens: unknown
  /** undefined if the field is left out. */
  readonly thinking: JsonObject | undefined
  readonly effort: string | undefined
}

/** Plans the thinking of a request to Claude (llm.md §7.1), by the family of the model. */
export function planThinking(chat: Chat, rules: ReasoningRule): Plan {
  return chat.origin === 'messages' ? { ...fitThinking(chat, rules), maxTokens: chat.maxTokens } : planEffort(chat, rules)
}

/**
 * The thinking of Chat Completions and Responses clients. A budget is below the token limit; there is none if the limit leaves less than the minimum, or
 * if the current tool loop lost the thinking block at its start, which Claude requires of models with budgets.
 */
function planEffort({ thinkingBudget, effort, maxTokens: given, turns }: Chat, rules: ReasoningRule): Plan {
  const requested = thinkingBudget ?? budgetOfEffort(effort)
  if (effort === 'none' && requested === undefined)
    return { maxTokens: given ?? DEFAULT_MAX_TOKENS, thinking: rules.off === 'disabled' ? { type: 'disabled' } : undefined, effort: undefined }
  const plain = { maxTokens: given ?? DEFAULT_MAX_TOKENS, thinking: undefined, effort: undefined }
  if (requested === undefined || requested < MIN_BUDGET) return plain
  const maxTokens = given ?? (requested < DEFAULT_MAX_TOKENS ? DEFAULT_MAX_TOKENS : requested + DEFAULT_MAX_TOKENS)
  if (rules.isAdaptive && (effort !== undefined || !rules.hasBudget))
    return { maxTokens, thinking: { type: 'adaptive' }, effort: nearestEffort(effort ?? effortOfBudget(requested), rules.efforts) }
  if (!rules.hasBudget || hasBareCall(turns)) return plain
  const limit = numberOf(maxTokens) ?? DEFAULT_MAX_TOKENS
  return { maxTokens, thinking: limit > MIN_BUDGET ? { type: 'enabled', budget_tokens: Math.min(requested, limit - 1) } : undefined, effort: undefined }
}

/** The thinking of a Messages client, in the form that the model accepts. `effort` is `output_config.effort`. */
export function fitThinking(
  { thinking, effort, maxTokens }: Pick<Chat, 'thinking' | 'effort' | 'maxTokens'>,
  rules: ReasoningRule,
): { readonly thinking: JsonObject | undefined; readonly effort: string | undefined } {
  const type = thinking?.['type']
  const fitted = nearestEffort(effort, rules.efforts)
  if (type === 'disabled') return { thinking: rules.off === 'disabled' ? thinking : undefined, effort: fitted }
  if (type === 'enabled' && !rules.hasBudget) {
    if (!rules.isAdaptive) return { thinking: undefined, effort: fitted }
    const { budget_tokens: budget, ...rest } = thinking ?? {}
    return { thinking: { ...rest, type: 'adaptive' }, effort: fitted ?? nearestEffort(effortOfBudget(numberOf(budget)), rules.efforts) }
  }
  // What a model of an unknown family accepts is not known.
  if (type === 'adaptive' && !rules.isAdaptive && rules.efforts !== undefined) {
    const budget = Math.min(budgetOfEffort(effort ?? 'high') ?? MIN_BUDGET, (numberOf(maxTokens) ?? Infinity) - 1)
    return { thinking: rules.hasBudget && budget >= MIN_BUDGET ? { type: 'enabled', budget_tokens: budget } : undefined, effort: fitted }
  }
  return { thinking, effort: fitted }
}

/** The effort of a Chat Completions request, by what the model accepts beside tools (llm.md §7.4). */
export function planReasoningEffort(chat: Chat, { efforts: accepted, withTools }: ReasoningRule): string | undefined {
  const wanted = chat.origin === 'messages' ? (textOf(chat.thinking?.['type']) === 'adaptive' ? (chat.effort ?? 'high') : undefined) : chat.effort
  if (chat.tools.length > 0 && withTools !== 'any') return withTools === 'none' ? 'none' : undefined
  return wanted === 'none' && accepted?.includes('none') !== true ? undefined : nearestEffort(wanted, accepted)
}

/** The accepted effort that is nearest to the given one, rather lower than higher; undefined if the model has none. An unknown effort stays. */
export function nearestEffort(effort: string | undefined, accepted: readonly string[] | undefined): string | undefined {
  if (effort === undefined || accepted === undefined || accepted.includes(effort)) return effort
  const rank = efforts.indexOf(effort)
  if (rank === -1 && accepted.length > 0) return effort
  // Of the others only the smallest effort is close to none.
  const isNear = (one: string): boolean => one !== 'none' || rank <= efforts.indexOf('minimal')
  return accepted.findLast((one) => efforts.indexOf(one) <= rank && isNear(one)) ?? accepted.find(isNear) ?? accepted[0]
}

/** The effort with about a thinking budget. */
function effortOfBudget(budget: number | undefined): string {
  if (budget === undefined) return 'high'
  return budget <= 1024 ? 'low' : budget <= 2048 ? 'medium' : budget <= 8192 ? 'high' : 'xhigh'
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
