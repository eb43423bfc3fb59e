import type { RawUsage } from '../common/neutral.ts'
import { compact, inside, numberOf } from '../common/read.ts'
import type { JsonObject, Usage } from '../common/types.ts'

/** Readers for the usage objects of each upstream format. Missing or invalid counts are undefined. */

/** `usage` of Chat Completions and Embeddings. */
export function readCompletionsUsage(usage: JsonObject): RawUsage {
  const input = inside(usage['prompt_tokens_details'])
  const output = inside(usage['completion_tokens_details'])
  const prompt = numberOf(usage['prompt_tokens'])
  const total = numberOf(usage['total_tokens'])
  return {
    input: prompt,
    output: completionTokens(numberOf(usage['completion_tokens']), prompt, total),
    total,
    cacheRead: numberOf(input['cached_tokens']),
    cacheWrite: numberOf(input['cache_write_tokens']) ?? numberOf(usage['cache_creation_input_tokens']),
    reasoning: numberOf(output['reasoning_tokens']),
    isCacheExcluded: false,
    modal: modalOf(input, output),
  }
}

/** The completion tokens. Gemini's compatible endpoint may count thinking tokens only in the total (llm.md §7.10). */
function completionTokens(completion: number | undefined, prompt = 0, total = 0): number | undefined {
  return completion === 0 && total > prompt ? total - prompt : completion
}

/** `usage` of Messages, whose input excludes cached tokens. */
export function readMessagesUsage(usage: JsonObject): RawUsage {
  return {
    input: numberOf(usage['input_tokens']),
    output: numberOf(usage['output_tokens']),
    cacheRead: numberOf(usage['cache_read_input_tokens']),
    cacheWrite: numberOf(usage['cache_creation_input_tokens']),
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
  return {
    input: numberOf(usage['input_tokens']),
    output: numberOf(usage['output_tokens']),
    total: numberOf(usage['total_tokens']),
    cacheRead: numberOf(input['cached_tokens']),
    cacheWrite: numberOf(input['cache_write_tokens']),
    reasoning: numberOf(output['reasoning_tokens']),
    isCacheExcluded: false,
    modal: modalOf(input, output),
  }
}

/** `usage` of Converse, whose input excludes cached tokens. */
export function readConverseUsage(usage: JsonObject): RawUsage {
  return {
    input: numberOf(usage['inputTokens']),
    output: numberOf(usage['outputTokens']),
    total: numberOf(usage['totalTokens']),
    cacheRead: numberOf(usage['cacheReadInputTokens']),
    cacheWrite: numberOf(usage['cacheWriteInputTokens']),
    isCacheExcluded: true,
  }
}

function readGeminiUsage(usage: JsonObject): RawUsage {
  const candidates = numberOf(usage['candidatesTokenCount'])
  const thoughts = numberOf(usage['thoughtsTokenCount'])
  return {
    input: numberOf(usage['promptTokenCount']),
    output: candidates === undefined && thoughts === undefined ? undefined : (candidates ?? 0) + (thoughts ?? 0),
    total: numberOf(usage['totalTokenCount']),
    cacheRead: numberOf(usage['cachedContentTokenCount']),
    reasoning: thoughts,
    isCacheExcluded: false,
  }
}

function modalOf(input: JsonObject, output: JsonObject): Usage {
  return compact({
    inputImageTokens: numberOf(input['image_tokens']),
    inputTextTokens: numberOf(input['text_tokens']),
    inputAudioTokens: numberOf(input['audio_tokens']),
    outputImageTokens: numberOf(output['image_tokens']),
    outputTextTokens: numberOf(output['text_tokens']),
    outputAudioTokens: numberOf(output['audio_tokens']),
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
  const has = (...names: string[]): boolean => names.some((name) => numberOf(usage[name]) !== undefined)
  if (has('promptTokenCount', 'candidatesTokenCount', 'totalTokenCount')) return readGeminiUsage(usage)
  if (has('prompt_tokens', 'completion_tokens')) return readCompletionsUsage(usage)
  if (has('inputTokens', 'outputTokens')) return readConverseUsage(usage)
  if (has('total_tokens') || usage['input_tokens_details'] !== undefined) return readResponsesUsage(usage)
  return has('input_tokens', 'output_tokens') ? readMessagesUsage(usage) : undefined
}
