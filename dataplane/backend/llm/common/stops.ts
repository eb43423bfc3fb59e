import type { Failure } from './failures.ts'
import type { Stop } from './types.ts'

/** Reasons of Gemini that name a filter. */
const geminiFilters: Readonly<Record<string, Stop>> = Object.fromEntries(
  [
    'SAFETY',
    'RECITATION',
    'LANGUAGE',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'IMAGE_SAFETY',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
    'IMAGE_OTHER',
    'NO_IMAGE',
  ].map((reason) => [reason, 'filtered' as const]),
)

/** Stop reasons of each format, mapped to the neutral ones (llm.md §7.3, §7.5, §7.9). */
const completions: Readonly<Record<string, Stop>> = {
  stop: 'end',
  length: 'maxTokens',
  tool_calls: 'toolUse',
  function_call: 'toolUse',
  content_filter: 'filtered',
  // Mistral, GLM, Gemini.
  model_length: 'maxTokens',
  sensitive: 'filtered',
  refusal: 'filtered',
  guardrail_intervened: 'filtered',
  // Reasons of Gemini, which its compatible endpoint may pass on (llm.md §7.11).
  MAX_TOKENS: 'maxTokens',
  CONTINUATION: 'maxTokens',
  ...geminiFilters,
}
const gemini: Readonly<Record<string, Stop>> = { STOP: 'end', MAX_TOKENS: 'maxTokens', CONTINUATION: 'maxTokens', ...geminiFilters }
const messages: Readonly<Record<string, Stop>> = {
  end_turn: 'end',
  stop_sequence: 'stopSequence',
  pause_turn: 'pause',
  max_tokens: 'maxTokens',
  model_context_window_exceeded: 'contextWindow',
  tool_use: 'toolUse',
  refusal: 'filtered',
}
const converse: Readonly<Record<string, Stop>> = {
  end_turn: 'end',
  stop_sequence: 'stopSequence',
  max_tokens: 'maxTokens',
  model_context_window_exceeded: 'contextWindow',
  tool_use: 'toolUse',
  content_filtered: 'filtered',
  guardrail_intervened: 'filtered',
}

/**
 * Reasons that name a failure, such as `insufficient_system_resource` (DeepSeek), `network_error` (GLM), `abort` (vLLM), `malformed_tool_use` (Bedrock),
 * `TOO_MANY_TOOL_CALLS` (Gemini), `TIMEOUT` (Cohere).
 */
const FAILURE = /error|fail|abort|cancel|timeout|malformed|insufficient|unavailable|overload|unexpected|too_many|^(?:OTHER|load)$/i

/** The error that a stop reason of any format names; undefined if it names none. */
export function readStopFailure(word: unknown): Failure | undefined {
  if (typeof word !== 'string' || Object.hasOwn(completions, word) || !FAILURE.test(word)) return undefined
  return { type: 'api_error', message: `the provider ended the response with ${word.slice(0, 100)}` }
}

/** Whether a reason is none of those of its format, and names no failure: it is read as an ordinary end. */
export function isUnknownStop(format: 'completions' | 'messages' | 'converse' | 'gemini', word: unknown): boolean {
  if (typeof word !== 'string' || word === '' || readStopFailure(word) !== undefined) return false
  return !Object.hasOwn({ completions, messages, converse, gemini }[format], format === 'completions' ? (word.split(':', 1)[0] ?? '') : word)
}

/** undefined if the value is missing; unknown reasons are an ordinary end. */
function readStop(words: Readonly<Record<string, Stop>>, word: unknown): Stop | undefined {
  if (typeof word !== 'string' || word === '') return undefined
  return Object.hasOwn(words, word) ? words[word] : 'end'
}

/** Reads `finish_reason` of Chat Completions. Gemini may add a detail: `content_filter: RECITATION`. */
export const readCompletionsStop = (word: unknown): Stop | undefined => readStop(completions, typeof word === 'string' ? word.split(':', 1)[0] : word)
/** Reads `stop_reason` of Messages. */
export const readMessagesStop = (word: unknown): Stop | undefined => readStop(messages, word)
/** Reads `stopReason` of Converse. */
export const readConverseStop = (word: unknown): Stop | undefined => readStop(converse, word)

/** Reads `finishReason` of Gemini. */
export const readGeminiStop = (word: unknown): Stop | undefined => readStop(gemini, word)

/** Stop reasons of Gemini (`finishReason`). */
export const geminiStops: Readonly<Record<Stop, string>> = {
  end: 'STOP',
  stopSequence: 'STOP',
  pause: 'STOP',
  maxTokens: 'MAX_TOKENS',
  contextWindow: 'MAX_TOKENS',
  toolUse: 'STOP',
  filtered: 'SAFETY',
}

/** Stop reasons of Chat Completions (`finish_reason`). */
export const completionsStops: Readonly<Record<Stop, string>> = {
  end: 'stop',
  stopSequence: 'stop',
  pause: 'stop',
  maxTokens: 'length',
  contextWindow: 'length',
  toolUse: 'tool_calls',
  filtered: 'content_filter',
}

/** Stop reasons of Messages (`stop_reason`). */
export const messagesStops: Readonly<Record<Stop, string>> = {
  end: 'end_turn',
  stopSequence: 'stop_sequence',
  pause: 'pause_turn',
  maxTokens: 'max_tokens',
  contextWindow: 'model_context_window_exceeded',
  toolUse: 'tool_use',
  filtered: 'refusal',
}

/** Corrects upstreams that report `stop` although there are tool calls: with a named tool choice, and Gemini's compatible endpoint. */
export function withTools(stop: Stop | undefined, hasTools: boolean): Stop {
  return hasTools && (stop === undefined || stop === 'end') ? 'toolUse' : (stop ?? 'end')
}
