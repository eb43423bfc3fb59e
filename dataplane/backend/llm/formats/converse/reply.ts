import { readConverseUsage } from '../../usage/raw.ts'
import type { Reply, ReplyBlock } from '../../common/neutral.ts'
import { inside, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { isUnknownStop, readConverseStop, readStopFailure } from '../../common/stops.ts'
import { FormatError, type ClientFormat, type JsonObject, type ResponseContext, type UnknownKind } from '../../common/types.ts'

/** Reads a Converse response, which has neither id nor model (llm.md §7.9). Throws a FormatError without a message. */
export function readConverseReply(body: JsonObject, client: ClientFormat, context: ResponseContext): Reply {
  const message = objectOf(inside(body['output'])['message'])
  if (message === undefined) throw new FormatError('response', 'failed to parse response: output.message is missing')
  const failure = readStopFailure(body['stopReason'])
  if (failure !== undefined) throw new FormatError('response', failure.message)
  const { model } = context.memo
  return {
    id: client === 'completions' ? `bedrock-${context.nowMs()}` : client === 'messages' ? `msg_${context.hex(24)}` : undefined,
    model,
    serviceTier: undefined,
    stopSequence: textOf(inside(body['additionalModelResponseFields'])['stop_sequence']),
    created: undefined,
    blocks: objectsOf(message['content']).flatMap((block) => readBlock(block) ?? []),
    unknown: findUnknown(body, message),
    stop: readConverseStop(body['stopReason']),
    usage: readConverseUsage(inside(body['usage'])),
  }
}

/** Members of a block that are read, or have no equivalent. */
const KNOWN = ['text', 'toolUse', 'reasoningContent', 'citationsContent', 'image', 'toolResult']

function findUnknown(body: JsonObject, message: JsonObject): UnknownKind[] {
  const blocks = objectsOf(message['content']).filter((block) => !KNOWN.some((member) => block[member] !== undefined))
  return [...(isUnknownStop('converse', body['stopReason']) ? (['finish_reason'] as const) : []), ...blocks.map(() => 'fragment' as const)]
}

function readBlock(block: JsonObject): ReplyBlock | undefined {
  if (typeof block['text'] === 'string') return { type: 'text', text: block['text'] }
  const use = objectOf(block['toolUse'])
  if (use) return { type: 'toolUse', id: textOf(use['toolUseId']) ?? '', name: textOf(use['name']) ?? '', input: use['input'] ?? {} }
  const reasoning = objectOf(block['reasoningContent'])
  if (reasoning === undefined) return undefined
  const thought = objectOf(reasoning['reasoningText'])
  if (thought) return { type: 'thinking', text: textOf(thought['text']) ?? '', signature: textOf(thought['signature']) ?? '' }
  return { type: 'redacted', data: textOf(reasoning['redactedContent']) ?? '' }
}
