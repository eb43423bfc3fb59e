import type { Block, Chat } from '../../common/neutral.ts'
import { compact, inside } from '../../common/read.ts'
import { FormatError, type ConvertedRequest, type JsonObject, type RequestContext } from '../../common/types.ts'
import { addCachePoints, CacheMarks, canCache } from './cache.ts'
import { hasToolBlocks, writeContent } from './content.ts'
import { Documents } from './documents.ts'
import { envelope, writeOutputConfig, writeRequestMetadata } from './envelope.ts'
import type { TargetRules } from '../../rules/types.ts'

/**
 * Writes a Converse request for clients of Chat Completions (llm.md §7.6), Messages (llm.md §7.7) and Responses (llm.md §7.8). The model is only
 * in the path. Throws a FormatError.
 */
export function writeConverseRequest(chat: Chat, context: RequestContext, rules: TargetRules): ConvertedRequest {
  if (chat.origin === 'messages' && chat.maxTokens === undefined) throw new FormatError('missing', 'missing field: max_tokens not specified')
  const { guardrail } = context
  const model = context.capabilities?.family ?? context.model
  const marks = new CacheMarks(rules.cache, chat.origin === 'messages' || canCache(model))
  const system = writeSystem(chat, marks)
  const messages = writeMessages(chat, marks, model)
  const tools = writeTools(chat, marks)
  const body = compact({
    system: system.length > 0 ? system : undefined,
    messages,
    inferenceConfig: compact({
      maxTokens: chat.maxTokens,
      temperature: chat.temperature,
      topP: chat.topP,
      stopSequences: chat.stop.length > 0 ? chat.stop : undefined,
    }),
    toolConfig: tools.length > 0 ? compact({ tools, toolChoice: writeToolChoice(chat) }) : undefined,
    guardrailConfig: guardrail && { guardrailIdentifier: guardrail.identifier, guardrailVersion: guardrail.version, trace: 'enabled' },
    additionalModelRequestFields: envelope(chat, context, rules),
    outputConfig: chat.format && writeOutputConfig(chat.format),
    requestMetadata: writeRequestMetadata(context.bedrockMetadata),
  })
  return {
    body: chat.origin === 'messages' || marks.isUsed ? body : addCachePoints(body, model, context.promptCaching),
    memo: { model: context.model, isStreaming: chat.isStreaming, toolNames: new Map() },
    omitted: chat.omitted,
  }
}

function writeSystem(chat: Chat, marks: CacheMarks): JsonObject[] {
  return chat.system.flatMap(({ text, cache }) => (text.trim() === '' ? [] : [{ text }, ...marks.after(cache)]))
}

function writeMessages(chat: Chat, marks: CacheMarks, model: string): JsonObject[] {
  const documents = new Documents()
  return chat.turns.flatMap(({ role, blocks }) => {
    // A point right behind a document of another type than PDF is rejected (strands-agents/harness-sdk#1966): it moves behind the next block.
    let moved: JsonObject | undefined
    const content = blocks.flatMap((block: Block) => {
      const written = writeContent(block, documents, model)
      if (written === undefined) return []
      const mark = ('cache' in block ? block.cache : undefined) ?? moved
      moved = inside(written['document'])['format'] === 'pdf' || written['document'] === undefined ? undefined : mark
      return moved === undefined ? [written, ...marks.after(mark)] : [written]
    })
    return content.length > 0 ? [{ role, content }] : []
  })
}

function writeTools(chat: Chat, marks: CacheMarks): JsonObject[] {
  const tools = chat.tools.flatMap(({ name, description, schema, isStrict, cache }) => [
    {
      toolSpec: compact({
        name,
        description: description === '' ? undefined : description,
        inputSchema: { json: schema },
        strict: isStrict,
      }),
    },
    ...marks.after(cache),
  ])
  if (tools.length > 0 || !hasToolBlocks(chat)) return tools
  // Converse rejects tool blocks in the history of a request without tools.
  const description = 'Stands for tools of earlier turns. Do not call it.'
  return [{ toolSpec: { name: 'unavailable_do_not_call', description, inputSchema: { json: { type: 'object', properties: {} } } } }]
}

function writeToolChoice({ toolChoice, tools }: Chat): JsonObject | undefined {
  if (tools.length === 0) return undefined
  switch (toolChoice?.type) {
    case 'auto':
      return { auto: {} }
    case 'any':
      return { any: {} }
    case 'tool':
      return { tool: { name: toolChoice.name } }
    default:
      return undefined
  }
}
