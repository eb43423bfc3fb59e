import type { Block, Chat } from '../../common/neutral.ts'
import { compact } from '../../common/read.ts'
import { planThinking } from '../../common/thinking.ts'
import { FormatError, type ConvertedRequest, type JsonObject, type RequestContext } from '../../common/types.ts'
import { addCachePoints, CacheMarks, canCache } from './cache.ts'
import { hasToolBlocks, writeContent } from './content.ts'
import { Documents } from './documents.ts'
import { envelope, writeOutputConfig, writeRequestMetadata } from './envelope.ts'
import { ToolNames } from './names.ts'

/**
 * Writes a Converse request for clients of Chat Completions (llm.md §7.6), Messages (llm.md §7.7) and Responses (llm.md §7.8). The model is only
 * in the path. Throws a FormatError.
 */
export function writeConverseRequest(chat: Chat, context: RequestContext): ConvertedRequest {
  if (chat.origin === 'messages' && chat.maxTokens === undefined) throw new FormatError('missing', 'missing field: max_tokens not specified')
  const { model, guardrail } = context
  const names = new ToolNames(chat)
  const marks = new CacheMarks(chat.origin === 'messages' || canCache(model))
  const { maxTokens, thinking } = chat.origin === 'messages' ? chat : planThinking(chat)
  const isThinking = thinking?.['type'] === 'enabled'
  const system = writeSystem(chat, marks)
  const messages = writeMessages(chat, names, marks, model)
  const tools = writeTools(chat, names, marks)
  const body = compact({
    system: system.length > 0 ? system : undefined,
    messages,
    inferenceConfig: compact({
      maxTokens,
      temperature: isThinking ? undefined : chat.temperature,
      topP: isThinking ? undefined : chat.topP,
      stopSequences: chat.stop.length > 0 ? chat.stop : undefined,
    }),
    toolConfig: tools.length > 0 ? compact({ tools, toolChoice: writeToolChoice(chat, names, isThinking) }) : undefined,
    guardrailConfig: guardrail && { guardrailIdentifier: guardrail.identifier, guardrailVersion: guardrail.version, trace: 'enabled' },
    additionalModelRequestFields: envelope(chat, context, thinking),
    outputConfig: chat.format && writeOutputConfig(chat.format),
    requestMetadata: writeRequestMetadata(context.bedrockMetadata),
  })
  return {
    body: chat.origin === 'messages' || marks.isUsed ? body : addCachePoints(body, model, context.promptCaching),
    memo: { model, isStreaming: chat.isStreaming, toolNames: names.restored },
    warnings: chat.warnings,
  }
}

/** The leading system text, then system messages among the turns. */
function writeSystem(chat: Chat, marks: CacheMarks): JsonObject[] {
  const late = chat.turns.filter(({ role }) => role === 'system' || role === 'developer').flatMap(({ blocks }) => blocks)
  return [...chat.system, ...late].flatMap((block) =>
    'text' in block && block.text.trim() !== '' ? [{ text: block.text }, ...marks.after('cache' in block ? block.cache : undefined)] : [],
  )
}

/** Merges consecutive turns of one role, because Converse requires alternating roles. */
function writeMessages(chat: Chat, names: ToolNames, marks: CacheMarks, model: string): JsonObject[] {
  const messages: { role: string; content: JsonObject[] }[] = []
  const documents = new Documents()
  for (const { role, blocks } of chat.turns) {
    if (role === 'system' || role === 'developer') continue
    const content = blocks.flatMap((block: Block) => {
      const written = writeContent(block, names, documents, chat.origin, model)
      return written === undefined ? [] : [written, ...marks.after('cache' in block ? block.cache : undefined)]
    })
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else if (content.length > 0) messages.push({ role, content })
  }
  return messages
}

function writeTools(chat: Chat, names: ToolNames, marks: CacheMarks): JsonObject[] {
  const tools = chat.tools.flatMap(({ name, description, schema, cache }) => [
    {
      toolSpec: compact({
        name: names.safe(name),
        description: description === '' ? undefined : description,
        inputSchema: { json: schema ?? { type: 'object' } },
      }),
    },
    ...marks.after(cache),
  ])
  if (tools.length > 0 || !hasToolBlocks(chat)) return tools
  // Converse rejects tool blocks in the history of a request without tools.
  const description = 'Stands for tools of earlier turns. Do not call it.'
  return [{ toolSpec: { name: 'unavailable_do_not_call', description, inputSchema: { json: { type: 'object', properties: {} } } } }]
}

function writeToolChoice({ toolChoice, tools }: Chat, names: ToolNames, isThinking: boolean): JsonObject | undefined {
  if (tools.length === 0) return undefined
  // Claude rejects thinking together with a forced call.
  if (isThinking && (toolChoice?.type === 'any' || toolChoice?.type === 'tool')) return { auto: {} }
  switch (toolChoice?.type) {
    case 'auto':
      return { auto: {} }
    case 'any':
      return { any: {} }
    case 'tool':
      return { tool: { name: names.safe(toolChoice.name) } }
    default:
      return undefined
  }
}
