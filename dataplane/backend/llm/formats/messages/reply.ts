import { readMessagesUsage } from '../../usage/raw.ts'
import type { RawUsage, Reply, ReplyBlock } from '../../common/neutral.ts'
import { compact, filledText, inside, objectsOf, textOf } from '../../common/read.ts'
import { isUnknownStop, messagesStops, readMessagesStop, readStopFailure } from '../../common/stops.ts'
import { FormatError, type JsonObject, type ResponseContext, type UnknownKind } from '../../common/types.ts'

/** Reads a Messages response (llm.md §7.3). Throws a FormatError without content. */
export function readMessagesReply(body: JsonObject): Reply {
  if (!Array.isArray(body['content'])) throw new FormatError('response', 'failed to parse response: content must be a list of blocks')
  const failure = readStopFailure(body['stop_reason'])
  if (failure !== undefined) throw new FormatError('response', failure.message)
  const usage = inside(body['usage'])
  return {
    id: textOf(body['id']),
    model: textOf(body['model']),
    serviceTier: textOf(usage['service_tier']) ?? textOf(body['service_tier']),
    stopSequence: textOf(body['stop_sequence']),
    created: undefined,
    blocks: objectsOf(body['content']).flatMap((block) => readBlock(block) ?? []),
    unknown: findUnknown(body),
    stop: readMessagesStop(body['stop_reason']),
    usage: readMessagesUsage(usage),
  }
}

/** Blocks of tools that Anthropic has run, and others without an equivalent, are known. */
const KNOWN = /^(?:text|thinking|redacted_thinking|tool_use|server_tool_use|mcp_tool_use|mcp_tool_result|\w+_tool_result|container_upload|compaction|fallback)$/

/** Whether a type of block is one of the Messages API. */
export const isKnownBlock = (type: unknown): boolean => typeof type === 'string' && KNOWN.test(type)

function findUnknown(body: JsonObject): UnknownKind[] {
  const blocks = objectsOf(body['content']).filter(({ type }) => !isKnownBlock(type))
  return [...(isUnknownStop('messages', body['stop_reason']) ? (['finish_reason'] as const) : []), ...blocks.map(() => 'fragment' as const)]
}

function readBlock(block: JsonObject): ReplyBlock | undefined {
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: textOf(block['text']) ?? '' }
    case 'thinking':
      return { type: 'thinking', text: textOf(block['thinking']) ?? '', signature: textOf(block['signature']) ?? '' }
    case 'tool_use':
    case 'server_tool_use':
      return { type: 'toolUse', id: textOf(block['id']) ?? '', name: textOf(block['name']) ?? '', input: block['input'] ?? {} }
    default:
      return undefined
  }
}

/** Writes a Messages response (llm.md §7.5, §7.9). */
export function writeMessagesReply(reply: Reply, context: ResponseContext): JsonObject {
  const { blocks, stop } = reply
  return {
    id: filledText(reply.id) ?? `msg_${context.hex(24)}`,
    type: 'message',
    role: 'assistant',
    model: reply.model ?? context.memo.model,
    content: blocks.filter(isFilled).map(writeBlock),
    stop_reason: messagesStops[stop ?? 'end'],
    stop_sequence: reply.stopSequence ?? null,
    usage: writeMessagesUsage(reply.usage),
  }
}

/** Claude rejects empty blocks in the history. */
function isFilled(block: ReplyBlock): boolean {
  if (block.type === 'text') return block.text !== ''
  return block.type !== 'thinking' || block.text !== '' || block.signature !== ''
}

function writeBlock(block: ReplyBlock): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'thinking':
      return { type: 'thinking', thinking: block.text, signature: block.signature }
    case 'redacted':
      return { type: 'redacted_thinking', data: block.data }
    case 'toolUse':
      return { type: 'tool_use', id: block.id, name: block.name, input: block.input }
  }
}

/** Writes the `usage` of a Messages response. Its input excludes cached tokens, which are subtracted if the source includes them. */
export function writeMessagesUsage({ input = 0, output = 0, cacheRead, cacheWrite, isCacheExcluded }: RawUsage): JsonObject {
  return compact({
    input_tokens: isCacheExcluded ? input : Math.max(0, input - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output_tokens: output,
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
  })
}
