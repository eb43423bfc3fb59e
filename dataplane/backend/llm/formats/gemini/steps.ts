import { readFailure } from '../../common/failures.ts'
import { isObject, printJson } from '../../common/json.ts'
import type { Step } from '../../common/neutral.ts'
import { filledText, inside, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { isUnknownStop, readGeminiStop, readStopFailure } from '../../common/stops.ts'
import type { JsonObject } from '../../common/types.ts'
import type { SseReader } from '../../stream/steps.ts'
import { readAnyUsage } from '../../usage/raw.ts'

/** Distance between the block numbers of candidates. */
const CANDIDATE_BLOCKS = 4096
const KNOWN = ['executableCode', 'codeExecutionResult', 'inlineData', 'fileData', 'toolCall', 'toolResponse', 'thoughtSignature', 'functionResponse']

/** Reads streams of Gemini, for the facts of native ones. They have no terminator. */
export class GeminiReader implements SseReader {
  readonly needsTerminator = false
  #calls = 0

  read(name: string | undefined, data: unknown): Step[] {
    const failure = readFailure(data, name)
    if (failure !== undefined) return [{ type: 'error', errorType: failure.type, message: failure.message, received: data }]
    if (!isObject(data)) return []
    const usage = objectOf(data['usageMetadata'])
    const counted = usage && readAnyUsage(usage)
    const candidates = objectsOf(data['candidates'])
    return [
      { type: 'start', id: filledText(data['responseId']), model: filledText(data['modelVersion']) },
      ...candidates.flatMap((candidate, at) => this.#readCandidate(candidate, (numberOf(candidate['index']) ?? at) * CANDIDATE_BLOCKS)),
      ...(counted === undefined ? [] : [{ type: 'usage' as const, usage: counted }]),
      // The prompt was blocked: there is no candidate.
      ...(filledText(inside(data['promptFeedback'])['blockReason']) === undefined ? [] : [{ type: 'finish' as const, stop: 'filtered' as const }]),
    ]
  }

  #readCandidate(candidate: JsonObject, block: number): Step[] {
    const steps = objectsOf(inside(candidate['content'])['parts']).flatMap((part) => this.#readPart(part, block))
    const reason = candidate['finishReason']
    const failure = readStopFailure(reason)
    if (failure !== undefined) return [...steps, { type: 'error', errorType: failure.type, message: failure.message, received: reason }]
    if (isUnknownStop('gemini', reason)) steps.push({ type: 'unknown', kind: 'finish_reason' })
    const stop = readGeminiStop(reason)
    return stop === undefined ? steps : [...steps, { type: 'finish', stop }]
  }

  #readPart(part: JsonObject, block: number): Step[] {
    const text = textOf(part['text'])
    if (text !== undefined) return text === '' ? [] : [part['thought'] === true ? { type: 'hidden' } : { type: 'text', block, text }]
    const call = objectOf(part['functionCall'])
    if (call === undefined) return KNOWN.some((key) => part[key] !== undefined) ? [{ type: 'hidden' }] : [{ type: 'unknown', kind: 'fragment' }]
    const own = block + 1 + (this.#calls++ % (CANDIDATE_BLOCKS - 1))
    return [
      { type: 'toolStart', block: own, id: textOf(call['id']) ?? '', name: textOf(call['name']) ?? '' },
      { type: 'toolInput', block: own, json: printJson(call['args'] ?? {}) },
      { type: 'blockStop', block: own },
    ]
  }
}
