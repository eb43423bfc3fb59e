import type { Reply, ReplyBlock } from '../common/neutral.ts'
import { inside, listOf, objectsOf, textOf } from '../common/read.ts'
import { readGeminiStop, withTools } from '../common/stops.ts'
import { joinThought } from '../common/thoughts.ts'
import { parseArguments } from '../common/tools.ts'
import type { ChatFormat, JsonObject, ResponseContext } from '../common/types.ts'
import { readCompletionsReply, writeCompletionsReply } from '../formats/completions/reply.ts'
import { unwrapSignature } from '../formats/gemini/members.ts'
import { writeGeminiReply } from '../formats/gemini/reply.ts'
import { readMessagesReply, writeMessagesReply } from '../formats/messages/reply.ts'
import { readSignature, writeResponsesReply } from '../formats/responses/reply.ts'
import { readAnyUsage, readResponsesUsage } from '../usage/raw.ts'
import { UnconvertibleError } from './form.ts'

/** Writes a buffered response of one format in another. Throws an UnconvertibleError if a part has no equal there. */
export function translateReply(body: JsonObject, from: ChatFormat, to: ChatFormat, context: ResponseContext): JsonObject {
  return writers[to](readers[from](body), context)
}

const writers: Readonly<Record<ChatFormat, (reply: Reply, context: ResponseContext) => JsonObject>> = {
  completions: writeCompletionsReply,
  messages: writeMessagesReply,
  responses: writeResponsesReply,
  gemini: writeGeminiReply,
}

/** Unlike those of the upstream side, these readers skip nothing. */
const readers: Readonly<Record<ChatFormat, (body: JsonObject) => Reply>> = {
  completions(body) {
    const [choice, ...others] = objectsOf(body['choices'])
    demand(choice !== undefined && others.length === 0, 'the response has several choices')
    const message = inside(choice?.['message'])
    demand(isEmpty(choice?.['logprobs']), 'the response has log probabilities')
    demandOnly(message, ['role', 'content', 'tool_calls', 'reasoning_content', 'reasoning'])
    demand(isEmpty(message['content']) || typeof message['content'] === 'string', 'the content is no text')
    for (const call of objectsOf(message['tool_calls'])) demandOnly(call, ['id', 'type', 'function', 'extra_content'])
    return readCompletionsReply(body)
  },
  messages(body) {
    for (const block of objectsOf(body['content'])) {
      const { type } = block
      demand(type === 'text' || type === 'thinking' || type === 'tool_use', `a block of type ${textOf(type) ?? 'unknown'}`)
      demand(isEmpty(block['citations']), 'a text has citations')
    }
    return readMessagesReply(body)
  },
  gemini(body) {
    const [candidate, ...others] = objectsOf(body['candidates'])
    demand(candidate !== undefined && others.length === 0, 'the response has not one candidate')
    demandOnly(candidate ?? {}, ['content', 'finishReason', 'index'])
    const blocks = objectsOf(inside(candidate?.['content'])['parts']).map(readPart)
    const stop = withTools(
      readGeminiStop(candidate?.['finishReason']),
      blocks.some(({ type }) => type === 'toolUse'),
    )
    return {
      id: textOf(body['responseId']),
      model: textOf(body['modelVersion']),
      serviceTier: undefined,
      stopSequence: undefined,
      created: undefined,
      blocks,
      stop,
      usage: readAnyUsage(inside(body['usageMetadata'])) ?? { isCacheExcluded: false },
    }
  },
  responses(body) {
    demand(body['status'] === 'completed', 'the response is not complete')
    const blocks = objectsOf(body['output']).flatMap(readItem)
    return {
      id: undefined,
      model: textOf(body['model']),
      serviceTier: textOf(body['service_tier']),
      stopSequence: undefined,
      created: undefined,
      blocks,
      stop: withTools(
        'end',
        blocks.some(({ type }) => type === 'toolUse'),
      ),
      usage: readResponsesUsage(inside(body['usage'])),
    }
  },
}

function readItem(item: JsonObject): ReplyBlock[] {
  switch (item['type']) {
    case 'message':
      return objectsOf(item['content']).map((part) => {
        demand(part['type'] === 'output_text' && isEmpty(part['annotations']) && isEmpty(part['logprobs']), 'a message has more than text')
        return { type: 'text', text: textOf(part['text']) ?? '' }
      })
    case 'function_call': {
      const json = textOf(item['arguments']) ?? ''
      return [{ type: 'toolUse', id: textOf(item['call_id']) ?? '', name: textOf(item['name']) ?? '', input: parseArguments(json), json }]
    }
    case 'reasoning': {
      const signature = readSignature(item['encrypted_content'])
      demand(isEmpty(item['summary']) && (signature !== '' || isEmpty(item['encrypted_content'])), 'reasoning of the provider')
      const text = objectsOf(item['content'])
        .map((part) => textOf(part['text']) ?? '')
        .join('')
      return [{ type: 'thinking', text, signature }]
    }
    default:
      throw new UnconvertibleError(`an item of type ${textOf(item['type']) ?? 'unknown'}`)
  }
}

function readPart(part: JsonObject): ReplyBlock {
  const { text, thoughtSignature: given } = part
  const signature = typeof given === 'string' ? unwrapSignature(given) : undefined
  demandOnly(part, ['text', 'thought', 'functionCall', ...(signature === undefined && part['functionCall'] === undefined ? [] : ['thoughtSignature'])])
  if (typeof text === 'string') return part['thought'] === true ? { type: 'thinking', text, signature: signature ?? '' } : { type: 'text', text }
  const call = inside(part['functionCall'])
  demand(typeof call['name'] === 'string' && typeof call['id'] === 'string', 'a call has no id')
  const id = joinThought(textOf(call['id']) ?? '', textOf(given))
  return { type: 'toolUse', id, name: textOf(call['name']) ?? '', input: call['args'] ?? {} }
}

function demandOnly(value: JsonObject, known: readonly string[]): void {
  for (const [key, member] of Object.entries(value)) demand(known.includes(key) || isEmpty(member), `the member ${key}`)
}

const isEmpty = (value: unknown): boolean => value === undefined || value === null || (Array.isArray(value) && listOf(value).length === 0)

function demand(isMet: boolean, problem: string): void {
  if (!isMet) throw new UnconvertibleError(problem)
}
