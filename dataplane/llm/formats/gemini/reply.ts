import { readGeminiUsage } from '../../usage/raw.ts'
import type { Choice, Reply, ReplyBlock, Stop } from '../neutral.ts'
import { filledText, inside, objectOf, objectsOf, textOf } from '../read.ts'
import { withTools } from '../stops.ts'
import { FormatError, type ClientFormat, type JsonObject, type ResponseContext } from '../types.ts'
import { writeCallId } from './signature.ts'

/** Reads a generateContent answer (llm.md §7.11). */
export function readGeminiReply(body: JsonObject, _client: ClientFormat, context: ResponseContext): Reply {
  const id = filledText(body['responseId']) ?? context.hex(16)
  const candidates = objectsOf(body['candidates'])
  if (candidates.length === 0 && !isBlocked(body)) throw new FormatError('response', 'failed to parse response: candidates must have at least one entry')
  let calls = 0
  const choices = candidates.map((candidate): Choice => {
    const blocks = partsOf(candidate).flatMap((part) => readPart(part, () => writeCallId(id, calls++, filledText(part['thoughtSignature']))) ?? [])
    return {
      blocks: joinThoughts(blocks),
      stop: withTools(
        readGeminiStop(candidate['finishReason']),
        blocks.some(({ type }) => type === 'toolUse'),
      ),
    }
  })
  return {
    id,
    model: filledText(body['modelVersion']),
    serviceTier: undefined,
    stopSequence: undefined,
    created: undefined,
    choices: choices.length > 0 ? choices : [{ blocks: [], stop: 'filtered' }],
    usage: readGeminiUsage(inside(body['usageMetadata'])),
  }
}

export function isBlocked(body: JsonObject): boolean {
  return typeof inside(body['promptFeedback'])['blockReason'] === 'string'
}

export function partsOf(candidate: JsonObject): JsonObject[] {
  return objectsOf(inside(candidate['content'])['parts'])
}

function readPart(part: JsonObject, nextId: () => string): ReplyBlock | undefined {
  const call = objectOf(part['functionCall'])
  if (call) return { type: 'toolUse', id: nextId(), name: textOf(call['name']) ?? '', input: objectOf(call['args']) ?? {} }
  const text = textOf(part['text'])
  if (text === undefined) return undefined
  return part['thought'] === true ? { type: 'thinking', text, signature: '' } : { type: 'text', text }
}

/** CC shows one reasoning text. */
function joinThoughts(blocks: readonly ReplyBlock[]): ReplyBlock[] {
  const text = blocks.flatMap((block) => (block.type === 'thinking' ? [block.text] : [])).join('')
  return text === '' ? [...blocks] : [{ type: 'thinking', text, signature: '' }, ...blocks.filter(({ type }) => type !== 'thinking')]
}

const FILTERED =
  /^(?:SAFETY|RECITATION|LANGUAGE|BLOCKLIST|PROHIBITED_CONTENT|SPII|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|IMAGE_\w*(?:SAFETY|RECITATION|PROHIBITED_CONTENT))$/

export function readGeminiStop(reason: unknown): Stop | undefined {
  if (typeof reason !== 'string' || reason === '' || reason === 'FINISH_REASON_UNSPECIFIED') return undefined
  if (reason === 'MAX_TOKENS') return 'maxTokens'
  return FILTERED.test(reason) ? 'filtered' : 'end'
}
