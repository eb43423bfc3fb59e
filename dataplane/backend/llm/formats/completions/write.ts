import type { Block, Chat, OutputFormat, ToolChoice, ToolResult, ToolUse, Turn } from '../../common/neutral.ts'
import { compact, textOf } from '../../common/read.ts'
import { printArguments } from '../../common/tools.ts'
import { FormatError, type ConvertedRequest, type JsonObject, type RequestContext } from '../../common/types.ts'
import { fitFields } from '../../rules/native-completions.ts'
import { fitOrder } from '../../rules/order.ts'
import type { TargetRules } from '../../rules/types.ts'
import { unsupported } from '../../common/unsupported.ts'

/** Writes a Chat Completions request for Messages clients (llm.md §7.4) and Responses clients (llm.md §7.10). Throws a FormatError. */
export function writeCompletionsRequest(chat: Chat, { model }: RequestContext, rules: TargetRules): ConvertedRequest {
  if (chat.origin === 'messages' && chat.maxTokens === undefined) throw new FormatError('missing', 'missing field: max_tokens not specified')
  const messages: JsonObject[] = []
  if (chat.system.length > 0) {
    const role = chat.origin === 'responses' && rules.roles.hasDeveloper ? 'developer' : 'system'
    const parts = chat.system.map(({ text }) => ({ type: 'text', text }))
    messages.push({ role, content: plainest(parts) })
  }
  for (const turn of joinResults(chat.turns)) messages.push(...writeTurn(turn))
  const body = compact({
    model,
    messages: fitOrder(messages, rules.roles),
    [rules.tokenLimit]: chat.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    stop: chat.stop.length > 0 ? chat.stop : undefined,
    tools: chat.tools.length > 0 ? chat.tools.map(writeTool) : undefined,
    tool_choice: chat.toolChoice && writeToolChoice(chat.toolChoice),
    parallel_tool_calls: chat.isParallel,
    reasoning_effort: chat.effort,
    response_format: chat.format && writeFormat(chat.format),
    user: chat.user ?? textOf(chat.metadata?.['user_id']),
    stream: chat.isStreaming ? true : undefined,
    stream_options: chat.isStreaming && rules.asksStreamUsage ? { include_usage: true } : undefined,
  })
  const fitted = fitFields(body, rules)
  return { body: fitted.body, memo: { model, isStreaming: chat.isStreaming, toolNames: new Map() }, omitted: [...chat.omitted, ...fitted.omitted] }
}

/** The turns with all results of a turn in one: no message may be between calls and their results, such as that with the images of a result. */
function joinResults(turns: readonly Turn[]): readonly Turn[] {
  const hasResults = ({ blocks }: Turn): boolean => blocks.some(({ type }) => type === 'toolResult')
  const joined: Turn[] = []
  for (const turn of turns) {
    const last = joined.at(-1)
    if (turn.role === 'user' && last?.role === 'user' && hasResults(turn) && hasResults(last))
      joined[joined.length - 1] = { role: 'user', blocks: [...last.blocks, ...turn.blocks] }
    else joined.push(turn)
  }
  return joined
}

/** Writes a turn as several messages: tool results come before the text of the user, and their images and files are part of that text (llm.md §7.4). */
function writeTurn({ role, blocks }: Turn): JsonObject[] {
  const messages: JsonObject[] = []
  const parts: JsonObject[] = []
  const calls: JsonObject[] = []
  const thoughts: string[] = []
  for (const block of blocks) {
    if (block.type === 'toolResult') messages.push(writeToolResult(block, parts))
    else if (block.type === 'toolUse') calls.push(writeCall(block))
    else if (block.type === 'thinking') thoughts.push(block.text)
    else if (block.type !== 'redacted') parts.push(writePart(block))
  }
  if (parts.length === 0 && calls.length === 0) return messages
  const hasReasoning = calls.length > 0 && thoughts.length > 0
  messages.push(
    compact({
      role,
      content: parts.length > 0 ? plainest(parts) : undefined,
      reasoning_content: hasReasoning ? thoughts.join('\n') : undefined,
      tool_calls: calls.length > 0 ? calls : undefined,
    }),
  )
  return messages
}

/** The content of a message: one text is a string, because some servers read no lists of parts (llm.md §7.4). */
function plainest(parts: readonly JsonObject[]): unknown {
  const [first] = parts
  return parts.length === 1 && typeof first?.['text'] === 'string' ? first['text'] : parts
}

function writeCall(use: ToolUse): JsonObject {
  return compact({
    id: use.id,
    type: 'function',
    function: { name: use.name, arguments: printArguments(use) },
    extra_content: use.thought === undefined ? undefined : { google: { thought_signature: use.thought } },
  })
}

function writePart(block: Extract<Block, { type: 'text' | 'image' | 'imageUrl' | 'document' }>): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return { type: 'image_url', image_url: { url: `data:${block.mediaType};base64,${block.data}` } }
    case 'imageUrl':
      return { type: 'image_url', image_url: { url: block.url } }
    case 'document':
      return writeDocument(block)
  }
}

/** Writes a document as a file, and one of plain text as text, which every model reads. */
function writeDocument({ mediaType, filename, data, text, at }: Extract<Block, { type: 'document' }>): JsonObject {
  if (text !== undefined) return { type: 'text', text: filename === undefined ? text : `${filename}\n${text}` }
  if (mediaType === undefined) throw unsupported(at, 'a file needs a type: send it as a data URL, or with an extension in its name')
  const name = filename ?? (mediaType === 'application/pdf' ? 'document.pdf' : 'document')
  return { type: 'file', file: { filename: name, file_data: `data:${mediaType};base64,${data}` } }
}

/** Writes a tool message, which may hold text only. Images and files are added to `parts`, for the message of the user that follows. */
function writeToolResult({ id, content }: ToolResult, parts: JsonObject[]): JsonObject {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const files = content.flatMap((block) => (block.type === 'image' || block.type === 'imageUrl' || block.type === 'document' ? [writePart(block)] : []))
  if (files.length > 0) parts.push({ type: 'text', text: `Files in the result of tool call ${id}:` }, ...files)
  return { role: 'tool', tool_call_id: id, content: texts.length === 0 ? '' : plainest(texts.map((text) => ({ type: 'text', text }))) }
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
