import type { Block, Chat, OutputFormat, Tool, ToolChoice, Turn } from '../../common/neutral.ts'
import { isStrictSchema } from '../../common/tools.ts'
import { anyNumber, booleanOf, filledText, inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { splitThought } from '../../common/thoughts.ts'
import type { JsonObject } from '../../common/types.ts'
import { findOmitted, unsupported } from '../../common/unsupported.ts'

/** Fields that are carried; others are left out. */
const carried = new Set(
  'model,messages,system,tools,tool_choice,max_tokens,temperature,top_p,top_k,stop_sequences,stream,thinking,output_config,output_format,metadata'.split(','),
)
/** Blocks of tools that Anthropic has run. */
const HOSTED = /^(?:server_tool_use|mcp_tool_use|mcp_tool_result|\w+_tool_result)$/

/** Reads a Messages request (llm.md §7.4, §7.7). Throws a FormatError for what no other format can express. */
export function readMessagesRequest(body: JsonObject): Chat {
  const omitted = findOmitted(body, carried)
  const config = inside(body['output_config'])
  const choice = inside(body['tool_choice'])
  const isSerial = choice['disable_parallel_tool_use']
  return {
    origin: 'messages',
    system: readSystem(body['system']),
    isSystemPlain: typeof body['system'] === 'string',
    turns: objectsOf(body['messages']).map((message, at) => readTurn(message, `messages[${at}]`, omitted)),
    tools: objectsOf(body['tools']).flatMap((tool, at) => readTool(tool, `tools[${at}]`, omitted)),
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
    format: readFormat(config['format'] === undefined ? 'output_format' : 'output_config.format', inside(config['format'] ?? body['output_format'])),
    metadata: objectOf(body['metadata']),
    omitted,
  }
}

/** A tool of the client. One that Anthropic runs is left out. */
function readTool(tool: JsonObject, place: string, omitted: string[]): Tool[] {
  const type = tool['type']
  if (type !== undefined && type !== null && type !== 'custom') {
    omitted.push(place)
    return []
  }
  const strict = booleanOf(tool['strict'])
  const schema = objectOf(tool['input_schema'])
  const name = textOf(tool['name']) ?? ''
  return [{ name, description: textOf(tool['description']), schema, ...(strict !== undefined && { isStrict: strict }), ...cached(tool) }]
}

function readSystem(system: unknown): Chat['system'] {
  if (typeof system === 'string') return system === '' ? [] : [{ text: system }]
  return objectsOf(system).map((block, at) => {
    const text = textOf(block['text'])
    if (text === undefined) throw unsupported(`system[${at}]`, 'the system prompt may hold text only')
    return { text, ...cached(block) }
  })
}

function readTurn(message: JsonObject, place: string, omitted: string[]): Turn {
  const role = message['role'] === 'assistant' || message['role'] === 'system' ? message['role'] : 'user'
  const content = message['content']
  if (typeof content === 'string') return { role, blocks: content === '' ? [] : [{ type: 'text', text: content }], isPlain: true }
  return { role, blocks: readBlocks(content, `${place}.content`, omitted) }
}

function readBlocks(content: unknown, place: string, omitted: string[]): Block[] {
  return objectsOf(content).flatMap((block, at) => readBlock(block, `${place}[${at}]`, omitted))
}

function readBlock(block: JsonObject, place: string, omitted: string[]): Block[] {
  const type = block['type']
  switch (type) {
    case 'text':
      return [{ type, text: textOf(block['text']) ?? '', ...cached(block) }]
    case 'image':
      return [{ ...readImage(inside(block['source']), place), ...cached(block) }]
    case 'document':
      return readDocument(block, place, omitted)
    case 'search_result': {
      const texts = [textOf(block['title']), textOf(block['source']), ...objectsOf(block['content']).map(({ text }) => textOf(text))]
      return [{ type: 'text', text: texts.filter((text) => text !== undefined).join('\n'), ...cached(block) }]
    }
    case 'tool_use':
      return [
        {
          type: 'toolUse',
          ...splitThought(textOf(block['id']) ?? ''),
          name: textOf(block['name']) ?? '',
          input: block['input'] ?? {},
          ...cached(block),
        },
      ]
    case 'tool_result': {
      const content = block['content']
      const isPlain = !Array.isArray(content)
      return [
        {
          type: 'toolResult',
          id: splitThought(textOf(block['tool_use_id']) ?? '').id,
          content: isPlain ? [{ type: 'text', text: textOf(content) ?? '' }] : readBlocks(content, `${place}.content`, omitted),
          isPlain,
          ...(typeof block['is_error'] === 'boolean' && { isError: block['is_error'] }),
          ...cached(block),
        },
      ]
    }
    case 'thinking':
      return [{ type, text: textOf(block['thinking']) ?? '', signature: textOf(block['signature']) ?? '' }]
    case 'redacted_thinking':
      return [{ type: 'redacted', data: textOf(block['data']) ?? '' }]
    default:
      if (HOSTED.test(textOf(type) ?? '')) {
        omitted.push(place)
        return []
      }
      throw unsupported(place, `a content block of type ${textOf(type) ?? 'unknown'} cannot be sent to this provider`)
  }
}

function readImage(source: JsonObject, at: string): Extract<Block, { type: 'image' | 'imageUrl' }> {
  const url = textOf(source['url'])
  if (url !== undefined) return { type: 'imageUrl', url, at }
  const data = textOf(source['data'])
  if (data === undefined) throw unsupported(at, 'an image must be sent as base64 or URL; this provider cannot read file ids')
  return { type: 'image', mediaType: textOf(source['media_type']) ?? 'image/png', data, at }
}

/** Reads a document; one of content blocks becomes those blocks. */
function readDocument(block: JsonObject, at: string, omitted: string[]): Block[] {
  const source = inside(block['source'])
  const filename = filledText(block['title'])
  const data = textOf(source['data']) ?? ''
  switch (source['type']) {
    case 'base64':
      return [{ type: 'document', mediaType: textOf(source['media_type']) ?? 'application/pdf', filename, data, at, ...cached(block) }]
    case 'text':
      return [{ type: 'document', mediaType: 'text/plain', filename, data: '', text: data, at, ...cached(block) }]
    case 'content':
      return typeof source['content'] === 'string'
        ? [{ type: 'document', mediaType: 'text/plain', filename, data: '', text: source['content'], at, ...cached(block) }]
        : readBlocks(source['content'], `${at}.source.content`, omitted)
    default:
      throw unsupported(at, 'a document must be sent inline; this provider reads neither file ids nor URLs')
  }
}

function cached(block: JsonObject): { cache?: JsonObject } {
  const cache = objectOf(block['cache_control'])
  return cache === undefined ? {} : { cache }
}

function readToolChoice(choice: JsonObject): ToolChoice | undefined {
  const type = choice['type']
  if (type === 'auto' || type === 'any' || type === 'none') return { type }
  const name = filledText(choice['name'])
  return type === 'tool' && name !== undefined ? { type, name } : undefined
}

function readFormat(place: string, format: JsonObject): OutputFormat | undefined {
  if (format['type'] === undefined) return undefined
  if (format['type'] !== 'json_schema') throw unsupported(place, 'only the type json_schema can be sent to this provider')
  const strict = booleanOf(format['strict'])
  const schema = format['schema'] ?? {}
  // Claude always enforces the schema, OpenAI only a strict one.
  return { type: 'schema', schema, ...((strict ?? isStrictSchema(schema)) && { isStrict: strict ?? true }) }
}
