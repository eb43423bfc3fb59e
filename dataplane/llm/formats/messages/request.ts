import type { Block, Chat, OutputFormat, ToolChoice, Turn } from '../../common/neutral.ts'
import { anyNumber, filledText, inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** Reads a Messages request (llm.md §7.4, §7.7). */
export function readMessagesRequest(body: JsonObject): Chat {
  const warnings: string[] = []
  const system = body['system']
  const tools = objectsOf(body['tools']).filter((tool) => tool['type'] === undefined || tool['type'] === 'custom')
  if (tools.length < listOf(body['tools']).length) warnings.push('server tools were dropped')
  const config = inside(body['output_config'])
  const choice = inside(body['tool_choice'])
  const isSerial = choice['disable_parallel_tool_use']
  return {
    origin: 'messages',
    system:
      typeof system === 'string'
        ? system === ''
          ? []
          : [{ text: system }]
        : objectsOf(system).flatMap((block) => (typeof block['text'] === 'string' ? [{ text: block['text'], ...cached(block) }] : [])),
    isSystemPlain: typeof system === 'string',
    turns: objectsOf(body['messages']).map((message) => readTurn(message, warnings)),
    tools: tools.map((tool) => ({
      name: textOf(tool['name']) ?? '',
      description: textOf(tool['description']),
      schema: objectOf(tool['input_schema']),
      ...cached(tool),
    })),
    toolChoice: readToolChoice(choice),
    isParallel: typeof isSerial === 'boolean' ? !isSerial : undefined,
    maxTokens: anyNumber(body['max_tokens']),
    temperature: anyNumber(body['temperature']),
    topP: anyNumber(body['top_p']),
    topK: anyNumber(body['top_k']),
    stop: listOf(body['stop_sequences']).filter((word) => typeof word === 'string'),
    isStreaming: body['stream'] === true,
    user: undefined,
    effort: filledText(config['effort']),
    thinkingBudget: undefined,
    thinking: objectOf(body['thinking']),
    format: readFormat(inside(config['format'] ?? body['output_format'])),
    metadata: objectOf(body['metadata']),
    warnings,
  }
}

function readTurn(message: JsonObject, warnings: string[]): Turn {
  const role = message['role'] === 'assistant' || message['role'] === 'system' ? message['role'] : 'user'
  const content = message['content']
  if (typeof content === 'string') return { role, blocks: content === '' ? [] : [{ type: 'text', text: content }] }
  return { role, blocks: objectsOf(content).flatMap((block) => readBlock(block, warnings) ?? []) }
}

function readBlock(block: JsonObject, warnings: string[]): Block | undefined {
  const type = block['type']
  switch (type) {
    case 'text':
      return { type, text: textOf(block['text']) ?? '', ...cached(block) }
    case 'image': {
      const source = inside(block['source'])
      const url = textOf(source['url'])
      if (url !== undefined) return { type: 'imageUrl', url, ...cached(block) }
      return { type, mediaType: textOf(source['media_type']) ?? 'image/png', data: textOf(source['data']) ?? '', ...cached(block) }
    }
    case 'tool_use':
      return { type: 'toolUse', id: textOf(block['id']) ?? '', name: textOf(block['name']) ?? '', input: block['input'] ?? {}, ...cached(block) }
    case 'tool_result': {
      const content = block['content']
      const isPlain = !Array.isArray(content)
      return {
        type: 'toolResult',
        id: textOf(block['tool_use_id']) ?? '',
        content: isPlain ? [{ type: 'text', text: textOf(content) ?? '' }] : objectsOf(content).flatMap((inner) => readBlock(inner, warnings) ?? []),
        isPlain,
        ...(typeof block['is_error'] === 'boolean' && { isError: block['is_error'] }),
        ...cached(block),
      }
    }
    case 'thinking':
      return { type, text: textOf(block['thinking']) ?? '', signature: textOf(block['signature']) ?? '' }
    default:
      warnings.push(`a content block of type ${textOf(type) ?? 'unknown'} was dropped`)
      return undefined
  }
}

function cached(block: JsonObject): { isCached?: true } {
  return objectOf(block['cache_control']) === undefined ? {} : { isCached: true }
}

function readToolChoice(choice: JsonObject): ToolChoice | undefined {
  const type = choice['type']
  if (type === 'auto' || type === 'any' || type === 'none') return { type }
  const name = filledText(choice['name'])
  return type === 'tool' && name !== undefined ? { type, name } : undefined
}

function readFormat(format: JsonObject): OutputFormat | undefined {
  return format['type'] === 'json_schema' ? { type: 'schema', schema: format['schema'] ?? {} } : undefined
}
