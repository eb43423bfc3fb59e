import type { SseReader } from '../../stream/steps.ts'
import { readGeminiUsage } from '../../usage/raw.ts'
import { isObject, printJson } from '../json.ts'
import type { Step } from '../neutral.ts'
import { filledText, inside, numberOf, objectOf, objectsOf, textOf } from '../read.ts'
import { withTools } from '../stops.ts'
import type { JsonObject } from '../types.ts'
import { isBlocked, partsOf, readGeminiStop } from './reply.ts'
import { writeCallId } from './signature.ts'

/** Reads streamGenerateContent events (llm.md §8.5). Only candidate 0; the stream has no terminator of its own. */
export class GeminiReader implements SseReader {
  readonly needsTerminator = false
  #id: string
  #isStarted = false
  #calls = 0

  /** `id`: for tool calls where the upstream names no response. */
  constructor(id: string) {
    this.#id = id
  }

  read(_name: string | undefined, data: unknown): Step[] {
    if (!isObject(data)) return []
    const error = objectOf(data['error'])
    if (error)
      return [{ type: 'error', errorType: textOf(error['status']) ?? 'api_error', message: textOf(error['message']) ?? 'the upstream reported an error' }]
    const steps: Step[] = this.#start(data)
    const candidate = objectsOf(data['candidates']).find((one) => (numberOf(one['index']) ?? 0) === 0)
    for (const part of candidate ? partsOf(candidate) : []) steps.push(...this.#readPart(part))
    const usage = objectOf(data['usageMetadata'])
    if (usage) steps.push({ type: 'usage', usage: readGeminiUsage(usage) })
    const stop = candidate ? readGeminiStop(candidate['finishReason']) : isBlocked(data) ? 'filtered' : undefined
    if (stop !== undefined) steps.push({ type: 'finish', stop: withTools(stop, this.#calls > 0) })
    return steps
  }

  #start(data: JsonObject): Step[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    this.#id = filledText(data['responseId']) ?? this.#id
    return [{ type: 'start', id: filledText(data['responseId']), model: filledText(data['modelVersion']) }]
  }

  #readPart(part: JsonObject): Step[] {
    const call = objectOf(part['functionCall'])
    if (call) {
      const id = writeCallId(this.#id, this.#calls, filledText(part['thoughtSignature']))
      const block = ++this.#calls
      return [
        { type: 'toolStart', block, id, name: textOf(call['name']) ?? '' },
        { type: 'toolInput', block, json: printJson(inside(call['args'])) },
        { type: 'blockStop', block },
      ]
    }
    const text = filledText(part['text'])
    return text === undefined ? [] : [{ type: part['thought'] === true ? 'thinking' : 'text', block: 0, text }]
  }
}
