import type { SseReader } from '../../stream/steps.ts'
import { readResponsesUsage } from '../../usage/raw.ts'
import { UNKNOWN_ERROR } from '../../common/failures.ts'
import { isObject } from '../../common/json.ts'
import type { Step } from '../../common/neutral.ts'
import { filledText, inside, numberOf, objectOf, textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** Distance between the block numbers of consecutive output items. */
const ITEM_BLOCKS = 4096

/** Reads Responses stream events, for the facts of native streams. */
export class ResponsesReader implements SseReader {
  readonly needsTerminator = true

  read(_name: string | undefined, data: unknown): Step[] {
    if (!isObject(data)) return []
    const item = (numberOf(data['output_index']) ?? 0) * ITEM_BLOCKS
    const delta = filledText(data['delta'])
    switch (data['type']) {
      case 'response.created': {
        const response = inside(data['response'])
        return [{ type: 'start', id: textOf(response['id']), model: textOf(response['model']), tier: textOf(response['service_tier']) }]
      }
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return delta === undefined ? [] : [{ type: 'text', block: item + (numberOf(data['content_index']) ?? 0), text: delta }]
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return delta === undefined ? [] : [{ type: 'hidden' }]
      case 'response.output_item.added': {
        const added = inside(data['item'])
        if (added['type'] !== 'function_call' && added['type'] !== 'custom_tool_call') return []
        return [{ type: 'toolStart', block: item, id: textOf(added['call_id']) ?? '', name: textOf(added['name']) ?? '' }]
      }
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return delta === undefined ? [] : [{ type: 'toolInput', block: item, json: delta }]
      case 'response.completed':
      case 'response.incomplete':
        return readEnd(inside(data['response']))
      case 'response.failed': {
        const response = inside(data['response'])
        return [...readEnd(response), readError(inside(response['error']), data)]
      }
      case 'error':
        return [readError(objectOf(data['error']) ?? data, data)]
      default:
        return []
    }
  }
}

function readEnd(response: JsonObject): Step[] {
  const usage = objectOf(response['usage'])
  const tier = textOf(response['service_tier'])
  return [
    ...(usage ? [{ type: 'usage' as const, usage: readResponsesUsage(usage) }] : []),
    { type: 'start', model: textOf(response['model']), tier },
    ...(isFiltered(response) ? [{ type: 'finish' as const, stop: 'filtered' as const }] : []),
    { type: 'done' },
  ]
}

/** A response that a content filter of the provider ended. */
const isFiltered = (response: JsonObject): boolean => inside(response['incomplete_details'])['reason'] === 'content_filter'

function readError(error: JsonObject, received: JsonObject): Step {
  return { type: 'error', errorType: textOf(error['code']) ?? 'api_error', message: textOf(error['message']) ?? UNKNOWN_ERROR, received }
}
