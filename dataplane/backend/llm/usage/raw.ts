import type { RawUsage } from '../common/neutral.ts'
import { compact, inside, numberOf } from '../common/read.ts'
import type { JsonObject, Usage } from '../common/types.ts'

/** The most tokens of a response that are credible, ten times the largest context of a model. */
const MAX_COUNT = 100_000_000

/** Readers for the usage objects of each upstream format. Missing or invalid counts are undefined: budgets are charged by them. */
export function countOf(value: unknown): number | undefined {
  const count = numberOf(value)
  return count === undefined || count < 0 || count > MAX_COUNT ? undefined : Math.ceil(count)
}

/** `usage` of Chat Completions and Embeddings. */
export function readCompletionsUsage(usage: JsonObject): RawUsage {
  const input = inside(usage['prompt_tokens_details'])
  const output = inside(usage['completion_tokens_details'])
  const total = countOf(usage['total_tokens'])
  return {
    ...splitTotal(countOf(usage['prompt_tokens']), countOf(usage['completion_tokens']), total),
    total,
    cacheRead: firstCount(input['cached_tokens'], ...CACHED.map((field) => usage[field])),
    cacheWrite: firstCount(input['cache_write_tokens'], usage['cache_creation_input_tokens']),
    // SGLang has it beside the totals.
    reasoning: firstCount(output['reasoning_tokens'], usage['reasoning_tokens']),
    isCacheExcluded: false,
    modal: modalOf(input, output),
  }
}

/** Where servers other than OpenAI have cached tokens, which their prompt includes: DeepSeek, Moonshot, Mistral. */
const CACHED = ['prompt_cache_hit_tokens', 'cached_tokens', 'num_cached_tokens']

function firstCount(...values: readonly unknown[]): number | undefined {
  for (const value of values) {
    const count = countOf(value)
    if (count !== undefined) return count
  }
  return undefined
}

/**
 * Adds tokens that only the total has: thinking tokens of Gemini's compatible endpoint and of xAI to the output, and the input of embeddings and rankings
 * whose usage is a total (llm.md §11.4).
 */
function splitTotal(input: number | undefined, output: number | undefined, total = 0): Pick<RawUsage, 'input' | 'output'> {
  if (total <= (input ?? 0) + (output ?? 0)) return { input, output }
  return input === undefined ? { input: total - (output ?? 0), output } : { input, output: total - input }
}

/** `usage` of Messages, whose input excludes cached tokens. */
export function readMessagesUsage(usage: JsonObject): RawUsage {
  return {
    input: countOf(usage['input_tokens']),
    output: countOf(usage['output_tokens']),
    cacheRead: countOf(usage['cache_read_input_tokens']),
    cacheWrite: countOf(usage['cache_creation_input_tokens']),
    isCacheExcluded: true,
  }
}

/** What the usage in `message_start` says of a Messages response: its output tokens are those before the first text (llm.md §11.4). */
export function atStart(usage: RawUsage): RawUsage {
  return { ...usage, output: undefined }
}

/** `usage` of Responses. */
export function readResponsesUsage(usage: JsonObject): RawUsage {
  const input = inside(usage['input_tokens_details'])
  const output = inside(usage['output_tokens_details'])
  const total = countOf(usage['total_tokens'])
  return {
    ...splitTotal(countOf(usage['input_tokens']), countOf(usage['output_tokens']), total),
    total,
    cacheRead: countOf(input['cached_tokens']),
    cacheWrite: countOf(input['cache_write_tokens']),
    reasoning: countOf(output['reasoning_tokens']),
    isCacheExcluded: false,
    modal: modalOf(input, output),
  }
}

/** `usage` of Converse, whose input excludes cached tokens. */
export function readConverseUsage(usage: JsonObject): RawUsage {
  return {
    input: countOf(usage['inputTokens']),
    output: countOf(usage['outputTokens']),
    total: countOf(usage['totalTokens']),
    cacheRead: countOf(usage['cacheReadInputTokens']),
    cacheWrite: countOf(usage['cacheWriteInputTokens']),
    isCacheExcluded: true,
  }
}

function readGeminiUsage(usage: JsonObject): RawUsage {
  const candidates = countOf(usage['candidatesTokenCount'])
  const thoughts = countOf(usage['thoughtsTokenCount'])
  const prompt = countOf(usage['promptTokenCount'])
  // Results of tools that Gemini ran itself.
  const results = countOf(usage['toolUsePromptTokenCount'])
  return {
    input: prompt === undefined && results === undefined ? undefined : (prompt ?? 0) + (results ?? 0),
    output: candidates === undefined && thoughts === undefined ? undefined : (candidates ?? 0) + (thoughts ?? 0),
    total: countOf(usage['totalTokenCount']),
    cacheRead: countOf(usage['cachedContentTokenCount']),
    reasoning: thoughts,
    isCacheExcluded: false,
  }
}

function modalOf(input: JsonObject, output: JsonObject): Usage {
  return compact({
    inputImageTokens: countOf(input['image_tokens']),
    inputTextTokens: countOf(input['text_tokens']),
    inputAudioTokens: countOf(input['audio_tokens']),
    outputImageTokens: countOf(output['image_tokens']),
    outputTextTokens: countOf(output['text_tokens']),
    outputAudioTokens: countOf(output['audio_tokens']),
  })
}

/** Merges two usage reports; later counts win. A Messages stream reports input tokens at its start and output tokens at its end. */
export function mergeUsage(earlier: RawUsage | undefined, later: RawUsage): RawUsage {
  if (earlier === undefined) return later
  return { ...earlier, ...compact({ ...later }), isCacheExcluded: later.isCacheExcluded }
}

/** Normalizes usage for limits and CEL: input tokens include cache reads and writes, whatever the upstream's convention (llm.md §11.4). */
export function toUsage(raw: RawUsage): Usage {
  const input = inputWithCache(raw)
  const { output } = raw
  const hasAny = input !== undefined || output !== undefined
  return compact({
    inputTokens: input,
    outputTokens: output,
    totalTokens: hasAny ? (input ?? 0) + (output ?? 0) : raw.total,
    providerInputTokens: raw.input,
    providerTotalTokens: raw.total ?? (hasAny ? (raw.input ?? 0) + (output ?? 0) : undefined),
    cachedInputTokens: raw.cacheRead,
    cacheCreationInputTokens: raw.cacheWrite,
    reasoningTokens: raw.reasoning,
    ...raw.modal,
  })
}

/** Input tokens with cache reads and writes, as OpenAI's APIs count them; undefined if the upstream reported none. */
export function inputWithCache({ input, cacheRead = 0, cacheWrite = 0, isCacheExcluded }: RawUsage): number | undefined {
  const cached = isCacheExcluded ? cacheRead + cacheWrite : 0
  return input === undefined && cached === 0 ? undefined : (input ?? 0) + cached
}

/** Reads a usage object of any format, which is detected by its field names; undefined if there are no counts. */
export function readAnyUsage(usage: JsonObject): RawUsage | undefined {
  const has = (...names: string[]): boolean => names.some((name) => countOf(usage[name]) !== undefined)
  if (has('promptTokenCount', 'candidatesTokenCount', 'totalTokenCount')) return readGeminiUsage(usage)
  if (has('prompt_tokens', 'completion_tokens')) return readCompletionsUsage(usage)
  if (has('inputTokens', 'outputTokens')) return readConverseUsage(usage)
  if (has('total_tokens') || usage['input_tokens_details'] !== undefined) return readResponsesUsage(usage)
  return has('input_tokens', 'output_tokens') ? readMessagesUsage(usage) : undefined
}
