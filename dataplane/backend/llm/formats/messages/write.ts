import type { Block, Chat, OutputFormat, ToolChoice, ToolResult } from '../../common/neutral.ts'
import { compact, inside } from '../../common/read.ts'
import { objectInput } from '../../common/tools.ts'
import type { ConvertedRequest, JsonObject, RequestContext } from '../../common/types.ts'

/**
 * Writes a Messages request (llm.md §7.2).
 */
export function writeMessagesRequest(chat: Chat, { model }: RequestContext): ConvertedRequest {
  const { thinking, effort, format } = chat
  const isThinking = thinking !== undefined && thinking['type'] !== 'disabled'
  const body = compact({
    model,
    max_tokens: chat.maxTokens,
    system: writeSystem(chat),
    messages: chat.turns.flatMap(({ role, blocks }) => {
      const content = blocks.flatMap((block) => writeBlock(block, isThinking) ?? [])
      return content.length > 0 ? [{ role, content }] : []
    }),
    temperature: chat.temperature,
    top_p: chat.topP,
    stop_sequences: chat.stop.length > 0 ? chat.stop : undefined,
    stream: chat.isStreaming ? true : undefined,
    tools: chat.tools.length > 0 ? chat.tools.map(writeTool) : undefined,
    tool_choice: writeToolChoice(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    thinking,
    output_config: effort === undefined && format === undefined ? undefined : compact({ effort, format: format && writeFormat(format) }),
  })
  return { body, memo: { model, isStreaming: chat.isStreaming, toolNames: new Map() }, omitted: chat.omitted }
}

/** The system prompt: one string, or blocks if there are cache breakpoints. */
function writeSystem({ system }: Chat): unknown {
  if (system.length === 0) return undefined
  if (!system.some(({ cache }) => cache)) return system.map(({ text }) => text).join('\n')
  return system.filter(({ text }) => text.trim() !== '').map(({ text, cache }) => compact({ type: 'text', text, cache_control: cache }))
}

function writeTool({ name, description, schema, isStrict, cache }: Chat['tools'][number]): JsonObject {
  return compact({ name, description, input_schema: schema, strict: isStrict, cache_control: cache })
}

function writeBlock(block: Block, isThinking: boolean): JsonObject | undefined {
  const written = writeContent(block, isThinking)
  return written && 'cache' in block && block.cache ? { ...written, cache_control: block.cache } : written
}

function writeContent(block: Block, isThinking: boolean): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return { type: 'image', source: { type: 'base64', media_type: block.mediaType, data: block.data } }
    case 'imageUrl':
      return { type: 'image', source: { type: 'url', url: block.url } }
    case 'toolUse':
      return { type: 'tool_use', id: block.id, name: block.name, input: objectInput(block) }
    case 'toolResult':
      return compact({ type: 'tool_result', tool_use_id: block.id, content: writeResult(block), is_error: block.isError === true ? true : undefined })
    case 'document':
      return compact({ type: 'document', source: writeSource(block), title: block.filename })
    case 'thinking':
      return isThinking ? { type: 'thinking', thinking: block.text, signature: block.signature } : undefined
    case 'redacted':
      return undefined
  }
}

/** The source of a document: PDF, or text that is not encoded; the rules of the target let no other pass. */
function writeSource({ mediaType, data, text }: Extract<Block, { type: 'document' }>): JsonObject {
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data }
  return { type: 'text', media_type: 'text/plain', data: text ?? Buffer.from(data, 'base64').toString() }
}

function writeResult({ content, isPlain }: ToolResult): unknown {
  if (content.length === 0) return undefined
  const parts = content.flatMap((block) => writeBlock(block, false) ?? [])
  return isPlain ? (inside(parts[0])['text'] ?? '') : parts
}

const writeFormat = ({ schema }: OutputFormat): JsonObject => ({ type: 'json_schema', schema })

function writeToolChoice({ toolChoice, isParallel, tools }: Chat): JsonObject | undefined {
  const choice: ToolChoice | undefined = toolChoice ?? (isParallel !== undefined && tools.length > 0 ? { type: 'auto' } : undefined)
  if (choice === undefined) return undefined
  // The choice `none` does not allow disable_parallel_tool_use.
  return isParallel === undefined || choice.type === 'none' ? choice : { ...choice, disable_parallel_tool_use: !isParallel }
}
