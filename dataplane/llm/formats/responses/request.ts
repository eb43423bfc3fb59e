import { readImage, readSchemaFormat, readTool, readToolChoice } from '../completions/request.ts'
import type { Block, Chat, OutputFormat, Turn } from '../../common/neutral.ts'
import { anyNumber, booleanOf, filledText, inside, listOf, numberOf, objectsOf, textOf } from '../../common/read.ts'
import { parseArguments } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'

/** Reads a Responses request (llm.md §7.8, §7.10). */
export function readResponsesRequest(body: JsonObject): Chat {
  const warnings: string[] = []
  const instructions = filledText(body['instructions'])
  const tools = objectsOf(body['tools']).filter((tool) => tool['type'] === 'function')
  if (tools.length < listOf(body['tools']).length) warnings.push('tools other than functions were dropped')
  if (body['previous_response_id'] !== undefined) warnings.push('previous_response_id was dropped: the gateway does not store earlier turns')
  return {
    origin: 'responses',
    system: instructions === undefined ? [] : [{ text: instructions }],
    isSystemPlain: true,
    turns: readInput(body['input'], warnings),
    tools: tools.map(readTool),
    toolChoice: readToolChoice(body['tool_choice']),
    isParallel: booleanOf(body['parallel_tool_calls']),
    maxTokens: anyNumber(body['max_output_tokens']),
    temperature: anyNumber(body['temperature']),
    topP: anyNumber(body['top_p']),
    topK: undefined,
    stop: [],
    isStreaming: body['stream'] === true,
    user: textOf(body['user']),
    effort: filledText(inside(body['reasoning'])['effort']),
    thinkingBudget: numberOf(inside(body['vendor_extensions'])['thinking_budget_tokens']),
    thinking: undefined,
    format: readFormat(inside(inside(body['text'])['format'])),
    metadata: undefined,
    warnings,
  }
}

function readInput(input: unknown, warnings: string[]): Turn[] {
  if (typeof input === 'string') return [{ role: 'user', blocks: [{ type: 'text', text: input }] }]
  const turns: Turn[] = []
  for (const item of objectsOf(input)) {
    const turn = readItem(item, warnings)
    if (turn === undefined) continue
    const last = turns.at(-1)
    // Merge consecutive calls into one assistant turn.
    if (isCalls(turn) && last && isCalls(last)) turns[turns.length - 1] = { role: 'assistant', blocks: [...last.blocks, ...turn.blocks] }
    else turns.push(turn)
  }
  return turns
}

function isCalls({ role, blocks }: Turn): boolean {
  return role === 'assistant' && blocks.every(({ type }) => type === 'toolUse')
}

function readItem(item: JsonObject, warnings: string[]): Turn | undefined {
  const id = textOf(item['call_id']) ?? textOf(item['id']) ?? ''
  const name = textOf(item['name']) ?? ''
  switch (item['type'] ?? 'message') {
    case 'message':
      return readMessage(item, warnings)
    case 'function_call': {
      const json = textOf(item['arguments']) ?? ''
      return { role: 'assistant', blocks: [{ type: 'toolUse', id, name, input: parseArguments(json), json }] }
    }
    case 'custom_tool_call':
      return { role: 'assistant', blocks: [{ type: 'toolUse', id, name, input: { input: textOf(item['input']) ?? '' } }] }
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const output = item['output']
      const isPlain = !Array.isArray(output)
      const content = isPlain ? [{ type: 'text' as const, text: textOf(output) ?? '' }] : objectsOf(output).flatMap((part) => readPart(part, warnings) ?? [])
      return { role: 'user', blocks: [{ type: 'toolResult', id, content, isPlain }] }
    }
    default:
      warnings.push(`an input item of type ${textOf(item['type']) ?? 'unknown'} was dropped`)
      return undefined
  }
}

function readMessage(item: JsonObject, warnings: string[]): Turn | undefined {
  const role = item['role']
  const known = role === 'assistant' || role === 'system' || role === 'developer' ? role : 'user'
  const content = item['content']
  const blocks: Block[] = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content).flatMap((part) => readPart(part, warnings) ?? [])
  if (blocks.length === 0) return undefined
  if (known === 'user') return { role: known, blocks }
  const texts = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  return { role: known, blocks: [{ type: 'text', text: texts.join('\n') }], isPlain: true }
}

function readPart(part: JsonObject, warnings: string[]): Block | undefined {
  const text = textOf(part['text']) ?? textOf(part['refusal'])
  if (text !== undefined) return { type: 'text', text }
  const url = textOf(part['image_url'])
  if (url !== undefined) return readImage(url)
  if (part['type'] === 'input_file') return readFile(part)
  warnings.push(`an input part of type ${textOf(part['type']) ?? 'unknown'} was dropped`)
  return undefined
}

/** Reads a file from a data URL or plain base64. Any other URL yields a document without data, which the writers reject. */
function readFile(part: JsonObject): Block {
  const filename = filledText(part['filename'])
  const file = readImage(textOf(part['file_data']) ?? textOf(part['file_url']) ?? '')
  if (file.type === 'image') return { type: 'document', mediaType: file.mediaType, filename, data: file.data }
  return { type: 'document', mediaType: undefined, filename, data: textOf(part['file_data']) ?? '' }
}

function readFormat(format: JsonObject): OutputFormat | undefined {
  return format['type'] === 'json_schema' ? readSchemaFormat(format) : format['type'] === 'json_object' ? { type: 'object' } : undefined
}
