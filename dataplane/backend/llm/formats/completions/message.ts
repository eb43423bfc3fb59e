import { isObject, printJson } from '../../common/json.ts'
import { filledText, listOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'
import { joinText } from './entry.ts'

/** Members of a message or a delta of Chat Completions that servers write in several ways. */

/** The reasoning: text or parts in `reasoning_content` or `reasoning`, parts of type `thinking` in the content (Mistral), or `reasoning_details` (OpenRouter). */
export function readReasoning(message: JsonObject): string | undefined {
  const { reasoning_content: content, reasoning, content: parts, reasoning_details: details } = message
  return (
    (content === undefined ? undefined : filledText(joinText(content, ''))) ??
    (reasoning === undefined ? undefined : filledText(joinText(reasoning, ''))) ??
    (Array.isArray(parts) ? filledText(objectsOf(parts).map(readThinking).join('')) : undefined) ??
    (details === undefined
      ? undefined
      : filledText(
          objectsOf(details)
            .map((detail) => textOf(detail['text']) ?? textOf(detail['summary']) ?? '')
            .join(''),
        ))
  )
}

function readThinking({ type, thinking }: JsonObject): string {
  return type === 'thinking' ? joinText(thinking, '') : ''
}

/** Whether a list of content has a part that is read as nothing. */
export function hasUnknownPart(content: unknown): boolean {
  return objectsOf(content).some(
    ({ type, text, refusal, thinking }) => text === undefined && refusal === undefined && thinking === undefined && type !== undefined,
  )
}

/** The tool calls, and the `function_call` of older servers. */
export function callsOf(message: JsonObject): readonly JsonObject[] {
  const { tool_calls: calls, function_call: called } = message
  if (!isObject(called)) return objectsOf(calls)
  return listOf(calls).length > 0 ? objectsOf(calls) : [{ function: called }]
}

/** The arguments of a call as JSON text; some servers send an object (llama.cpp, Mistral). */
export function readArguments(called: JsonObject): string {
  const { arguments: given, input } = called
  if (typeof given === 'string') return given
  if (given !== undefined && given !== null) return printJson(given)
  return input === undefined ? '' : printJson({ input })
}
