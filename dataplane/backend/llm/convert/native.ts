import { writeCompletionsError } from '../formats/completions/events.ts'
import { findCompletionsTexts } from '../formats/completions/deltas.ts'
import { CompletionsReader } from '../formats/completions/steps.ts'
import { printJson } from '../common/json.ts'
import { writeGoogleFailure } from '../common/google-status.ts'
import { findMessagesTexts } from '../formats/messages/deltas.ts'
import { writeMessagesError } from '../formats/messages/events.ts'
import { MessagesReader } from '../formats/messages/steps.ts'
import { objectOf } from '../common/read.ts'
import { findGeminiTexts } from '../formats/gemini/deltas.ts'
import { GeminiReader } from '../formats/gemini/steps.ts'
import { findResponsesTexts } from '../formats/responses/deltas.ts'
import { ResponsesReader } from '../formats/responses/steps.ts'
import { restoreNames } from './names.ts'
import { FormatError, type ChatFormat, type Conversion, type JsonObject } from '../common/types.ts'
import { rulesOf, targetOfFormat } from '../rules/index.ts'
import { fitNative } from '../rules/native.ts'
import { NativeStream, type NativeFormat } from '../stream/native.ts'
import { printEvent } from '../stream/sse.ts'
import { readCompletionsUsage } from '../usage/raw.ts'
import { translateError } from './errors.ts'
import { readFacts } from './facts.ts'

const formats: Readonly<Record<ChatFormat, () => NativeFormat>> = {
  completions: () => ({
    reader: new CompletionsReader(true),
    findTexts: findCompletionsTexts,
    significant: /"usage":\s*\{|"error"|"finish_reason":\s*"|\[DONE\]/,
    texts: /"(?:content|refusal|arguments)":\s*(["[{])/g,
    amend: amendUsage,
    rename: (data, names) => restoreNames('completions', data, names),
    printError: (type, message) => printEvent(undefined, printJson(writeCompletionsError(type, message))),
  }),
  messages: () => ({
    reader: new MessagesReader(),
    findTexts: findMessagesTexts,
    significant: /message_delta|message_stop|"error"/,
    texts: /"(?:text|partial_json)":\s*(["[{])/g,
    rename: (data, names) => restoreNames('messages', data, names),
    printError: (type, message) => printEvent('error', printJson(writeMessagesError(type, message))),
  }),
  responses: () => ({
    reader: new ResponsesReader(),
    findTexts: findResponsesTexts,
    significant: /response\.(?:completed|incomplete|failed)|"error"/,
    mayEndWithDone: true,
    rename: (data, names) => restoreNames('responses', data, names),
    printError: (type, message) => printEvent('error', printJson({ type: 'error', code: type, message, param: null })),
  }),
  gemini: () => ({
    reader: new GeminiReader(),
    findTexts: findGeminiTexts,
    // Each piece has the usage up to it.
    significant: /"(?:usageMetadata|finishReason|promptFeedback|error)"/,
    texts: /"(?:text|args)":\s*(["[{])/g,
    rename: (data) => data,
    printError: (type, message) => printEvent(undefined, printJson(writeGoogleFailure(type, message))),
  }),
}

/** The conversion for a client and an upstream of one format: bodies pass, except for changes that the upstream requires (llm.md §7.1, §8.1). */
export function passChat(format: ChatFormat): Conversion {
  return {
    from: format,
    to: format,
    isNative: true,
    request(body, { model, target = targetOfFormat[format], capabilities, server }) {
      const { body: fitted, toolNames, omitted } = fitNative(body, format, rulesOf(target, model, capabilities, server))
      return { body: fitted, memo: { model, isStreaming: body['stream'] === true, toolNames }, omitted }
    },
    response(body, { memo }) {
      const received = objectOf(body)
      if (received === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      const object = memo.toolNames.size > 0 ? restoreNames(format, received, memo.toolNames) : received
      return { body: (format === 'completions' ? amendUsage(object) : undefined) ?? object, facts: readFacts(format, object) }
    },
    error: (status, body) => translateError(format, true, status, body),
    stream: ({ memo }, options) => new NativeStream(formats[format](), { ...options, ...(memo.toolNames.size > 0 && { toolNames: memo.toolNames }) }),
  }
}

/** Corrects `completion_tokens` of Gemini, which may count thinking tokens only in the total (llm.md §7.10); undefined if they are right. */
function amendUsage(body: JsonObject): JsonObject | undefined {
  const usage = objectOf(body['usage'])
  if (usage?.['completion_tokens'] !== 0) return undefined
  const { output = 0 } = readCompletionsUsage(usage)
  return output === 0 ? undefined : { ...body, usage: { ...usage, completion_tokens: output } }
}
