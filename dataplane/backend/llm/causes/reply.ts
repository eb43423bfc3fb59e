import { readCompletionsStop, readConverseStop, readGeminiStop, readMessagesStop } from '../common/stops.ts'
import { inside, objectsOf } from '../common/read.ts'
import type { JsonObject, Stop, UpstreamFormat } from '../common/types.ts'
import type { Verdict } from './types.ts'

/** `incomplete_details.reason` of Responses. */
const incomplete: ReadonlyMap<unknown, Stop> = new Map([
  ['content_filter', 'filtered'],
  ['max_output_tokens', 'maxTokens'],
])

/** Why the model stopped, in a buffered response of an upstream; undefined if that is no chat. */
export function stopOf(format: UpstreamFormat, body: JsonObject): Stop | undefined {
  switch (format) {
    case 'completions':
      return readCompletionsStop(objectsOf(body['choices'])[0]?.['finish_reason'])
    case 'messages':
      return readMessagesStop(body['stop_reason'])
    case 'converse':
      return readConverseStop(body['stopReason'])
    case 'responses':
      return incomplete.get(inside(body['incomplete_details'])['reason'])
    case 'gemini': {
      const blocked = inside(body['promptFeedback'])['blockReason']
      return typeof blocked === 'string' ? 'filtered' : readGeminiStop(objectsOf(body['candidates'])[0]?.['finishReason'])
    }
    default:
      return undefined
  }
}

/** The cause of a response that is complete and has no use: a content filter ended it, or nothing fits the window after the prompt (llm.md §15.4). */
export function causeOfStop(stop: Stop | undefined, hasText: boolean): Verdict | undefined {
  if (stop === 'filtered') return { cause: 'ContentFilter', scope: 'request' }
  return stop === 'contextWindow' && !hasText ? { cause: 'ContextLength', scope: 'request' } : undefined
}

/** As `causeOfStop`, for a buffered response. */
export function causeOfReply(format: UpstreamFormat, body: JsonObject, hasText: boolean): Verdict | undefined {
  return causeOfStop(stopOf(format, body), hasText)
}
