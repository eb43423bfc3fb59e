import type { SseReader } from '../../stream/steps.ts'
import { atStart, readMessagesUsage } from '../../usage/raw.ts'
import { readFailure, UNKNOWN_ERROR, type Failure } from '../../common/failures.ts'
import { isObject, printJson } from '../../common/json.ts'
import type { Step } from '../../common/neutral.ts'
import { filledText, inside, numberOf, objectOf, textOf } from '../../common/read.ts'
import { isUnknownStop, readMessagesStop, readStopFailure } from '../../common/stops.ts'
import type { JsonObject } from '../../common/types.ts'
import { isKnownBlock } from './reply.ts'

const fragment: Step = { type: 'unknown', kind: 'fragment' }
/** Deltas that may be empty, and those that no other format has. */
const DELTAS = new Set(['text_delta', 'thinking_delta', 'input_json_delta', 'signature_delta', 'citations_delta', 'compaction_delta'])

/** Reads Messages stream events (llm.md §8.2). Usage precedes the finish step, so that a writer can put both in one event. */
export class MessagesReader implements SseReader {
  /** Some servers end the stream after the stop reason, without `message_stop`. */
  readonly needsTerminator = false
  /** Input that a server sent with the start of a call, by block: it counts if no deltas follow. */
  readonly #inputs = new Map<number, JsonObject>()

  read(name: string | undefined, data: unknown): Step[] {
    if (!isObject(data)) return [name === 'error' ? toError(readFailure(data, name), data) : fragment]
    const block = numberOf(data['index']) ?? 0
    switch (data['type']) {
      case 'message_start': {
        const message = inside(data['message'])
        const usage = inside(message['usage'])
        return [
          { type: 'start', id: textOf(message['id']), model: textOf(message['model']), tier: textOf(usage['service_tier']) },
          { type: 'usage', usage: atStart(readMessagesUsage(usage)) },
        ]
      }
      case 'content_block_start': {
        const content = inside(data['content_block'])
        const input = objectOf(content['input'])
        if (input !== undefined && Object.keys(input).length > 0) this.#inputs.set(block, input)
        return readStart(content, block)
      }
      case 'content_block_delta': {
        const steps = readDelta(inside(data['delta']), block)
        if (steps[0]?.type === 'toolInput') this.#inputs.delete(block)
        return steps
      }
      case 'content_block_stop': {
        const input = this.#inputs.get(block)
        this.#inputs.delete(block)
        return [...(input === undefined ? [] : [{ type: 'toolInput' as const, block, json: printJson(input) }]), { type: 'blockStop', block }]
      }
      case 'message_delta': {
        const delta = inside(data['delta'])
        const usage = objectOf(data['usage'])
        const failure = readStopFailure(delta['stop_reason'])
        if (failure !== undefined) return [toError(failure, delta['stop_reason'])]
        const stop = readMessagesStop(delta['stop_reason'])
        const steps: Step[] = usage ? [{ type: 'usage', usage: readMessagesUsage(usage) }] : []
        if (isUnknownStop('messages', delta['stop_reason'])) steps.push({ type: 'unknown', kind: 'finish_reason' })
        if (stop !== undefined) steps.push({ type: 'finish', stop, stopSequence: textOf(delta['stop_sequence']) })
        return steps
      }
      case 'message_stop':
        return [{ type: 'done' }]
      default: {
        const failure = readFailure(data, name)
        if (failure !== undefined) return [toError(failure, data)]
        return data['type'] === 'ping' ? [] : [fragment]
      }
    }
  }
}

function toError(failure: Failure | undefined, received: unknown): Step {
  return { type: 'error', errorType: failure?.type ?? 'api_error', message: failure?.message ?? UNKNOWN_ERROR, received }
}

function readStart(content: JsonObject, block: number): Step[] {
  switch (content['type']) {
    case 'tool_use':
    case 'server_tool_use':
      return [{ type: 'toolStart', block, id: textOf(content['id']) ?? '', name: textOf(content['name']) ?? '' }]
    case 'text': {
      const text = filledText(content['text'])
      return text === undefined ? [] : [{ type: 'text', block, text }]
    }
    default:
      return isKnownBlock(content['type']) ? [] : [fragment]
  }
}

function readDelta(delta: JsonObject, block: number): Step[] {
  const text = filledText(delta['text'])
  const thinking = filledText(delta['thinking'])
  const json = filledText(delta['partial_json'])
  const signature = filledText(delta['signature'])
  if (text !== undefined) return [{ type: 'text', block, text }]
  if (thinking !== undefined) return [{ type: 'thinking', block, text: thinking }]
  if (json !== undefined) return [{ type: 'toolInput', block, json }]
  if (signature !== undefined) return [{ type: 'signature', block, text: signature }]
  return DELTAS.has(textOf(delta['type']) ?? '') ? [] : [fragment]
}
