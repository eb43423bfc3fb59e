import type { Block, Chat, OutputFormat, ToolChoice, ToolResult, Turn } from '../../common/neutral.ts'
import { compact, textOf } from '../../common/read.ts'
import { printArguments } from '../../common/tools.ts'
import { FormatError, type ConvertedRequest, type JsonObject, type RequestContext } from '../../common/types.ts'

/** Writes a Chat Completions request for Messages clients (llm.md §7.4) and Responses clients (llm.md §7.10). Throws a FormatError. */
export function writeCompletionsRequest(chat: Chat, { model }: RequestContext): ConvertedRequest {
  const warnings = [...chat.warnings]
  if (chat.origin === 'messages' && chat.maxTokens === undefined) throw new FormatError('missing', 'missing field: max_tokens not specified')
  const messages: JsonObject[] = []
  if (chat.system.length > 0) {
    const role = chat.origin === 'responses' ? 'developer' : 'system'
    const parts = chat.system.map(({ text }) => ({ type: 'text', text }))
    messages.push({ role, content: chat.isSystemPlain ? (parts[0]?.text ?? '') : parts })
  }
  for (const turn of chat.turns) messages.push(...writeTurn(turn, chat.origin, warnings))
  const body = compact({
    model,
    messages,
    max_completion_tokens: chat.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    stop: chat.stop.length > 0 ? chat.stop : undefined,
    tools: chat.tools.length > 0 ? chat.tools.map(writeTool) : undefined,
    tool_choice: chat.toolChoice && writeToolChoice(chat.toolChoice),
    parallel_tool_calls: chat.isParallel,
    reasoning_effort: effortOf(chat, model),
    response_format: chat.format && writeFormat(chat.format),
    user: chat.user ?? textOf(chat.metadata?.['user_id']),
    stream: chat.isStreaming ? true : undefined,
    stream_options: chat.isStreaming ? { include_usage: true } : undefined,
  })
  return { body, memo: { model, isStreaming: chat.isStreaming, toolNames: new Map() }, warnings }
}

/** Writes a turn as several messages: tool results come before the text of the user (llm.md §7.4). */
function writeTurn({ role, blocks, isPlain }: Turn, origin: Chat['origin'], warnings: string[]): JsonObject[] {
  const messages: JsonObject[] = []
  const parts: JsonObject[] = []
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.type === 'toolResult') messages.push(writeToolResult(block, warnings))
    else if (block.type === 'toolUse') calls.push({ id: block.id, type: 'function', function: { name: block.name, arguments: printArguments(block) } })
    else {
      const part = writePart(block, origin)
      if (part) parts.push(part)
      else if (block.type !== 'thinking') warnings.push(`a ${block.type} was dropped`)
    }
  }
  if (parts.length === 0 && calls.length === 0) return messages
  const only = parts.length === 1 ? parts[0] : undefined
  const content = isPlain === true && typeof only?.['text'] === 'string' ? only['text'] : parts
  messages.push(compact({ role, content: parts.length > 0 ? content : undefined, tool_calls: calls.length > 0 ? calls : undefined }))
  return messages
}

/** A content part; undefined if it cannot be converted. Only text of Responses requests is converted (llm.md §7.10). */
function writePart(block: Block, origin: Chat['origin']): JsonObject | undefined {
  if (origin === 'responses' && block.type !== 'text') return undefined
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return { type: 'image_url', image_url: { url: `data:${block.mediaType};base64,${block.data}` } }
    case 'imageUrl':
      return { type: 'image_url', image_url: { url: block.url } }
    default:
      return undefined
  }
}

/** A tool message. Chat Completions has no equivalent of `is_error`. */
function writeToolResult({ id, content, isPlain }: ToolResult, warnings: string[]): JsonObject {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  if (texts.length < content.length) warnings.push('a tool result that is not text was dropped')
  return { role: 'tool', tool_call_id: id, content: isPlain || texts.length === 0 ? texts.join('\n') : texts.map((text) => ({ type: 'text', text })) }
}

function writeTool({ name, description, schema, isStrict }: Chat['tools'][number]): JsonObject {
  return { type: 'function', function: compact({ name, description, parameters: schema, strict: isStrict }) }
}

function writeToolChoice(choice: ToolChoice): unknown {
  if (choice.type === 'tool') return { type: 'function', function: { name: choice.name } }
  return choice.type === 'any' ? 'required' : choice.type
}

function writeFormat({ type, name, description, schema, isStrict }: OutputFormat): JsonObject {
  if (type === 'object') return { type: 'json_object' }
  return { type: 'json_schema', json_schema: compact({ name: name ?? 'structured_output', description, schema, strict: isStrict }) }
}

// Other gpt models reject tools on this API unless reasoning is off (llm.md §7.4).
const REASONS_WITH_TOOLS = /^gpt-5(?:$|-|\.[12])/

function effortOf(chat: Chat, model: string): string | undefined {
  if (chat.origin === 'responses') return chat.effort === 'none' ? undefined : chat.effort
  if (chat.tools.length > 0 && model.startsWith('gpt-') && !REASONS_WITH_TOOLS.test(model)) return 'none'
  return chat.thinking?.['type'] === 'adaptive' ? (chat.effort ?? 'high') : undefined
}
