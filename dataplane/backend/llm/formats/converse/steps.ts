import type { Frame } from '../../stream/frames.ts'
import { readConverseUsage } from '../../usage/raw.ts'
import { UNKNOWN_ERROR } from '../../common/failures.ts'
import { isObject, parseJson } from '../../common/json.ts'
import type { Step } from '../../common/neutral.ts'
import { filledText, inside, numberOf, objectOf, textOf } from '../../common/read.ts'
import { isUnknownStop, readConverseStop, readStopFailure } from '../../common/stops.ts'
import type { JsonObject } from '../../common/types.ts'

/** Reads the frames of a ConverseStream response (llm.md §8.4). `metadata` is the last frame. */
export class ConverseReader {
  read({ headers, payload }: Frame): Step[] {
    const data = inside(parseLeniently(payload))
    if (headers.get(':message-type') !== 'event' && headers.get(':message-type') !== undefined) return [readException(headers, data)]
    const block = numberOf(data['contentBlockIndex']) ?? 0
    switch (headers.get(':event-type')) {
      case 'messageStart':
        return [{ type: 'start' }]
      case 'contentBlockStart': {
        const use = objectOf(inside(data['start'])['toolUse'])
        return use ? [{ type: 'toolStart', block, id: textOf(use['toolUseId']) ?? '', name: textOf(use['name']) ?? '' }] : []
      }
      case 'contentBlockDelta':
        return readDelta(inside(data['delta']), block)
      case 'contentBlockStop':
        return [{ type: 'blockStop', block }]
      case 'messageStop': {
        const failure = readStopFailure(data['stopReason'])
        if (failure !== undefined) return [{ type: 'error', errorType: failure.type, message: failure.message, received: data['stopReason'] }]
        return [
          ...(isUnknownStop('converse', data['stopReason']) ? [{ type: 'unknown', kind: 'finish_reason' } as const] : []),
          {
            type: 'finish',
            stop: readConverseStop(data['stopReason']) ?? 'end',
            stopSequence: textOf(inside(data['additionalModelResponseFields'])['stop_sequence']),
          },
        ]
      }
      case 'metadata':
        return [{ type: 'usage', usage: readConverseUsage(inside(data['usage'])) }, { type: 'done' }]
      default:
        return [fragment]
    }
  }
}

const fragment: Step = { type: 'unknown', kind: 'fragment' }

function parseLeniently(payload: Buffer): unknown {
  try {
    return parseJson(payload.toString())
  } catch {
    return undefined
  }
}

/** Members of a delta that are read, may be empty, or have no equivalent. */
const KNOWN = ['text', 'toolUse', 'citation', 'toolResult', 'image']

function readDelta(delta: JsonObject, block: number): Step[] {
  const text = filledText(delta['text'])
  if (text !== undefined) return [{ type: 'text', block, text }]
  const json = filledText(inside(delta['toolUse'])['input'])
  if (json !== undefined) return [{ type: 'toolInput', block, json }]
  const reasoning = objectOf(delta['reasoningContent'])
  if (reasoning === undefined) return KNOWN.some((member) => delta[member] !== undefined) ? [] : [fragment]
  const thinking = filledText(reasoning['text'])
  if (thinking !== undefined) return [{ type: 'thinking', block, text: thinking }]
  const signature = filledText(reasoning['signature'])
  if (signature !== undefined) return [{ type: 'signature', block, text: signature }]
  return reasoning['redactedContent'] === undefined ? [] : [{ type: 'thinking', block, text: '[REDACTED]' }]
}

/** Reads an error frame: `exception` frames have their type in a header, `error` frames code and message. */
function readException(headers: ReadonlyMap<string, string>, data: unknown): Step {
  const message = isObject(data) ? (textOf(data['message']) ?? textOf(data['Message'])) : undefined
  return {
    type: 'error',
    errorType: headers.get(':exception-type') ?? headers.get(':error-code') ?? 'api_error',
    message: message ?? headers.get(':error-message') ?? UNKNOWN_ERROR,
  }
}
