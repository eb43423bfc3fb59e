import type { Block, Chat, OutputFormat, Tool, ToolChoice, Turn } from '../../common/neutral.ts'
import { anyNumber, booleanOf, filledText, inside, listOf, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { parseArguments } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'

/** Reads a Chat Completions request. Drops text that is only white space, and messages that become empty (llm.md §7.1). */
export function readCompletionsRequest(body: JsonObject): Chat {
  const system: string[] = []
  const turns: Turn[] = []
  const warnings: string[] = []
  for (const message of objectsOf(body['messages'])) {
    const role = message['role']
    if (role === 'system' || role === 'developer') {
      const text = readText(message['content'], '\n')
      if (text.trim() !== '') system.push(text)
      continue
    }
    const turn = role === 'tool' ? readToolTurn(message) : role === 'assistant' ? readAssistantTurn(message) : readUserTurn(message, warnings)
    if (turn.blocks.length > 0) turns.push(turn)
  }
  const functions = objectsOf(body['tools']).filter((tool) => tool['type'] === 'function' || tool['type'] === undefined)
  if (functions.length < listOf(body['tools']).length) warnings.push('tools other than functions were dropped')
  return {
    origin: 'completions',
    system: system.length > 0 ? [{ text: system.join('\n') }] : [],
    isSystemPlain: true,
    turns,
    tools: functions.map((tool) => readTool(inside(tool['function']))),
    toolChoice: readToolChoice(body['tool_choice']),
    isParallel: booleanOf(body['parallel_tool_calls']),
    maxTokens: anyNumber(body['max_completion_tokens']) ?? anyNumber(body['max_tokens']),
    temperature: anyNumber(body['temperature']),
    topP: anyNumber(body['top_p']),
    topK: anyNumber(body['top_k']),
    stop: readStop(body['stop']),
    isStreaming: body['stream'] === true,
    user: textOf(body['user']),
    effort: filledText(body['reasoning_effort']),
    thinkingBudget: numberOf(body['thinking_budget_tokens']),
    thinking: undefined,
    format: readFormat(inside(body['response_format'])),
    metadata: undefined,
    warnings,
  }
}

/** A string content, or the joined texts of its parts. */
function readText(content: unknown, joiner: string): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .map((part) => textOf(part['text']) ?? textOf(part['refusal']))
    .filter((text) => text !== undefined)
    .join(joiner)
}

function readToolTurn(message: JsonObject): Turn {
  const content = message['content']
  const isPlain = !Array.isArray(content)
  const blocks: Block[] = isPlain
    ? [{ type: 'text', text: textOf(content) ?? '' }]
    : objectsOf(content).flatMap((part) => (typeof part['text'] === 'string' ? [{ type: 'text' as const, text: part['text'] }] : []))
  return { role: 'user', blocks: [{ type: 'toolResult', id: textOf(message['tool_call_id']) ?? '', content: blocks, isPlain }] }
}

function readUserTurn(message: JsonObject, warnings: string[]): Turn {
  const content = message['content']
  if (!Array.isArray(content)) return { role: 'user', blocks: readTexts([textOf(content)]), isPlain: true }
  const blocks: Block[] = []
  for (const part of objectsOf(content)) {
    const url = textOf(inside(part['image_url'])['url']) ?? textOf(part['image_url'])
    if (typeof part['text'] === 'string') blocks.push(...readTexts([part['text']]))
    else if (url !== undefined) blocks.push(readImage(url))
    else warnings.push(`a message part of type ${textOf(part['type']) ?? 'unknown'} was dropped`)
  }
  return { role: 'user', blocks }
}

function readAssistantTurn(message: JsonObject): Turn {
  const blocks: Block[] = []
  const signature = filledText(message['reasoning_signature'])
  if (signature !== undefined) blocks.push({ type: 'thinking', text: textOf(message['reasoning_content']) ?? '', signature })
  const content = message['content']
  if (Array.isArray(content)) blocks.push(...readTexts(objectsOf(content).map((part) => textOf(part['text']) ?? textOf(part['refusal']))))
  else blocks.push(...readTexts([textOf(content)]))
  blocks.push(...readTexts([textOf(message['refusal'])]))
  for (const call of objectsOf(message['tool_calls'])) {
    const custom = objectOf(call['custom'])
    const called = custom ?? inside(call['function'])
    const use = { type: 'toolUse' as const, id: textOf(call['id']) ?? '', name: textOf(called['name']) ?? '' }
    if (custom) blocks.push({ ...use, input: { input: textOf(custom['input']) ?? '' } })
    else blocks.push({ ...use, input: parseArguments(textOf(called['arguments']) ?? ''), json: textOf(called['arguments']) ?? '' })
  }
  return { role: 'assistant', blocks, isPlain: !Array.isArray(content) }
}

function readTexts(texts: readonly (string | undefined)[]): Block[] {
  return texts.flatMap((text) => (text === undefined || text.trim() === '' ? [] : [{ type: 'text' as const, text }]))
}

const BASE64_URL = /^data:([^;,]+)(?:;[^;,]*)*;base64,/i

/** Reads an image URL: a data URL becomes an image, any other a reference. */
export function readImage(url: string): Block {
  // Match only the beginning, because images are large.
  const match = BASE64_URL.exec(url.slice(0, 256))
  if (match?.[1] !== undefined) return { type: 'image', mediaType: match[1].toLowerCase(), data: url.slice(match[0].length) }
  return { type: 'imageUrl', url }
}

/** Reads a function definition: `function` of a Chat Completions tool, or a Responses tool. */
export function readTool(called: JsonObject): Tool {
  const strict = booleanOf(called['strict'])
  return {
    name: textOf(called['name']) ?? '',
    description: textOf(called['description']),
    schema: objectOf(called['parameters']),
    ...(strict !== undefined && { isStrict: strict }),
  }
}

/** Reads a tool choice. Chat Completions has the name in `function`, Responses next to `type`. A choice of a hosted tool is undefined. */
export function readToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  const object = inside(choice)
  if (object['type'] === 'allowed_tools') return readToolChoice(inside(object['allowed_tools'])['mode'] ?? object['mode'])
  const name = filledText(inside(object['function'])['name']) ?? (object['type'] === 'function' ? filledText(object['name']) : undefined)
  return name === undefined ? undefined : { type: 'tool', name }
}

function readStop(stop: unknown): string[] {
  return (Array.isArray(stop) ? listOf(stop) : [stop]).filter((word) => typeof word === 'string')
}

function readFormat(format: JsonObject): OutputFormat | undefined {
  return format['type'] === 'json_schema' ? readSchemaFormat(inside(format['json_schema'])) : format['type'] === 'json_object' ? { type: 'object' } : undefined
}

/** Reads a JSON schema format: `{name, description, schema, strict}`. */
export function readSchemaFormat(format: JsonObject): OutputFormat {
  const name = textOf(format['name'])
  const description = textOf(format['description'])
  const strict = booleanOf(format['strict'])
  return {
    type: 'schema',
    schema: format['schema'] ?? {},
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(strict !== undefined && { isStrict: strict }),
  }
}
