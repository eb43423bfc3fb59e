import { isObject } from '../../common/json.ts'
import type { Block, Chat, OutputFormat, Tool, ToolChoice, ToolUse, Turn } from '../../common/neutral.ts'
import { anyNumber, booleanOf, filledText, inside, listOf, numberOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import { splitThought } from '../../common/thoughts.ts'
import { parseArguments } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'
import { findOmitted, rejectFields, unsupported } from '../../common/unsupported.ts'
import { readFile, readImage } from './media.ts'

type Text = Extract<Block, { type: 'text' }>
type Part = Extract<Block, { type: 'text' | 'image' | 'imageUrl' | 'document' }>

/** Fields that change what the response holds and that no other format has (llm.md §7.1). */
const unsupportedFields = ['audio', 'functions', 'logprobs', 'top_logprobs']
/** Fields that are carried or rejected; others are left out. */
const carried = new Set(
  (
    'model,messages,tools,tool_choice,parallel_tool_calls,max_completion_tokens,max_tokens,temperature,top_p,top_k,stop,stream,stream_options,user,' +
    'reasoning_effort,thinking_budget_tokens,response_format,n,modalities'
  ).split(','),
)

/**
 * Reads a Chat Completions request. Drops text that is only white space, and messages that become empty (llm.md §7.1). Throws a FormatError for
 * what no other format can express.
 */
export function readCompletionsRequest(body: JsonObject): Chat {
  rejectFields(body, unsupportedFields)
  if ((numberOf(body['n']) ?? 1) > 1) throw unsupported('n', 'this provider returns one choice; send the request several times')
  const modality = listOf(body['modalities']).find((name) => name !== 'text')
  if (modality !== undefined) throw unsupported('modalities', 'this provider returns text only')
  const omitted = findOmitted(body, carried)
  const system: Text[] = []
  const turns: Turn[] = []
  for (const [at, message] of objectsOf(body['messages']).entries()) {
    const place = `messages[${at}]`
    const role = message['role']
    if (role === 'system' || role === 'developer') {
      const texts = readSystem(message, place)
      if (!texts.some(({ text }) => text.trim() !== '')) continue
      if (turns.length === 0) system.push(...texts)
      else turns.push({ role, blocks: texts, isPlain: !Array.isArray(message['content']) })
      continue
    }
    const turn = role === 'tool' ? readToolTurn(message, place) : role === 'assistant' ? readAssistantTurn(message, place) : readUserTurn(message, place)
    if (turn.blocks.length > 0) turns.push(turn)
  }
  return {
    origin: 'completions',
    system: system.some(({ cache }) => cache) ? system : system.length > 0 ? [{ text: system.map(({ text }) => text).join('\n') }] : [],
    isSystemPlain: true,
    turns,
    ...readTools(body, omitted),
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
    omitted,
  }
}

function readSystem(message: JsonObject, place: string): Text[] {
  return readContent(message, place, true).map((block, at) => {
    if (block.type !== 'text') throw unsupported(`${place}.content[${at}]`, 'a system message may hold text only')
    return block
  })
}

function readToolTurn(message: JsonObject, place: string): Turn {
  const content = message['content']
  const isPlain = !Array.isArray(content)
  const blocks: Part[] = isPlain ? [{ type: 'text', text: textOf(content) ?? '' }] : readContent(message, place, true)
  const { id } = splitThought(textOf(message['tool_call_id']) ?? '')
  return { role: 'user', blocks: [{ type: 'toolResult', id, content: isPlain ? blocks : blocks.map(withoutCache), isPlain, ...cacheOf(message, blocks) }] }
}

function withoutCache(part: Part): Part {
  const { cache: _, ...rest } = part
  return rest
}

/** The breakpoint of a tool message, which may be at one of its parts. */
function cacheOf(message: JsonObject, blocks: readonly Part[]): { cache?: JsonObject } {
  const cache = objectOf(message['cache_control']) ?? blocks.find((part) => part.cache)?.cache
  return cache ? { cache } : {}
}

function readUserTurn(message: JsonObject, place: string): Turn {
  return { role: 'user', blocks: readContent(message, place), isPlain: !Array.isArray(message['content']) }
}

function readAssistantTurn(message: JsonObject, place: string): Turn {
  if (isObject(message['function_call'])) throw unsupported(`${place}.function_call`, 'use tool_calls')
  const blocks: Block[] = []
  const signature = filledText(message['reasoning_signature'])
  if (signature !== undefined) blocks.push({ type: 'thinking', text: textOf(message['reasoning_content']) ?? '', signature })
  blocks.push(...readContent(message, place), ...readText(textOf(message['refusal']) ?? ''))
  const isSpoken = isObject(message['audio'])
  if (isSpoken && blocks.length === 0) throw unsupported(`${place}.audio`, 'this provider does not have the audio of earlier responses')
  for (const call of objectsOf(message['tool_calls'])) blocks.push(readCall(call))
  return { role: 'assistant', blocks, isPlain: !Array.isArray(message['content']) }
}

function readCall(call: JsonObject): ToolUse {
  const custom = objectOf(call['custom'])
  const called = custom ?? inside(call['function'])
  const thought = filledText(inside(inside(call['extra_content'])['google'])['thought_signature'])
  const use = {
    type: 'toolUse' as const,
    ...splitThought(textOf(call['id']) ?? ''),
    ...(thought !== undefined && { thought }),
    name: textOf(called['name']) ?? '',
  }
  if (custom) return { ...use, input: { input: textOf(custom['input']) ?? '' } }
  return { ...use, input: parseArguments(textOf(called['arguments']) ?? ''), json: textOf(called['arguments']) ?? '' }
}

/** Reads a string content or a list of parts. `keepsBlank`: keep text that is only white space. A breakpoint of the message is put at its last part. */
function readContent(message: JsonObject, place: string, keepsBlank = false): Part[] {
  const { content } = message
  const blocks: Part[] =
    typeof content === 'string'
      ? readText(content, keepsBlank)
      : listOf(content).flatMap((part, at) =>
          typeof part === 'string' ? readText(part, keepsBlank) : readPart(inside(part), `${place}.content[${at}]`, keepsBlank),
        )
  const cache = objectOf(message['cache_control'])
  return cache ? blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, cache } : block)) : blocks
}

function readText(text: string, keepsBlank = false): Text[] {
  return !keepsBlank && text.trim() === '' ? [] : [{ type: 'text', text }]
}

function readPart(part: JsonObject, place: string, keepsBlank: boolean): Part[] {
  const mark = objectOf(part['cache_control'])
  const cached = mark && { cache: mark }
  const text = textOf(part['text']) ?? textOf(part['refusal'])
  if (text !== undefined) return readText(text, keepsBlank).map((block) => ({ ...block, ...cached }))
  const url = textOf(inside(part['image_url'])['url']) ?? textOf(part['image_url'])
  if (url !== undefined) return [{ ...readImage(url, place), ...cached }]
  const file = objectOf(part['file'])
  if (file) return [{ ...readFile(textOf(file['file_data']), filledText(file['filename']), place), ...cached }]
  throw unsupported(place, `a part of type ${textOf(part['type']) ?? 'unknown'} cannot be sent to this provider`)
}

function readTools(body: JsonObject, omitted: string[]): { tools: Tool[]; toolChoice: ToolChoice | undefined } {
  const tools = objectsOf(body['tools']).flatMap((tool, at): Tool[] => {
    if (tool['type'] !== 'function' && tool['type'] !== undefined) return omit(omitted, `tools[${at}]`)
    const cache = objectOf(tool['cache_control']) ?? objectOf(inside(tool['function'])['cache_control'])
    return [{ ...readTool(inside(tool['function'])), ...(cache && { cache }) }]
  })
  return { tools: allowedTools(tools, body['tool_choice']), toolChoice: readToolChoice(body['tool_choice'], omitted) }
}

/** Leaves out a part: tools that the provider itself would run, or without JSON input. */
export function omit(omitted: string[], place: string): [] {
  omitted.push(place)
  return []
}

/** The tools of a choice of type `allowed_tools`; otherwise all of them. */
export function allowedTools(tools: Tool[], choice: unknown): Tool[] {
  const object = inside(choice)
  if (object['type'] !== 'allowed_tools') return tools
  const allowed = objectsOf(object['tools'] ?? inside(object['allowed_tools'])['tools']).map((tool) => textOf(inside(tool['function'])['name']) ?? tool['name'])
  return tools.filter(({ name }) => allowed.includes(name))
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

/** Reads a tool choice. Chat Completions has the name in `function`, Responses next to `type`. A tool that is not a function is left out. */
export function readToolChoice(choice: unknown, omitted: string[]): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'none') return { type: choice }
  if (choice === 'required') return { type: 'any' }
  const object = inside(choice)
  if (object['type'] === 'allowed_tools') return readToolChoice(inside(object['allowed_tools'])['mode'] ?? object['mode'], omitted)
  const name = filledText(inside(object['function'])['name']) ?? (object['type'] === 'function' ? filledText(object['name']) : undefined)
  if (name === undefined && typeof object['type'] === 'string') omitted.push('tool_choice')
  return name === undefined ? undefined : { type: 'tool', name }
}

function readStop(stop: unknown): string[] {
  return (Array.isArray(stop) ? listOf(stop) : [stop]).filter((word) => typeof word === 'string')
}

function readFormat(format: JsonObject): OutputFormat | undefined {
  return readOutputFormat(format, inside(format['json_schema']), 'response_format')
}

/** Reads an output format: text is undefined. `schema` is `{name, description, schema, strict}`. Throws a FormatError for other types. */
export function readOutputFormat(format: JsonObject, schema: JsonObject, place: string): OutputFormat | undefined {
  switch (format['type']) {
    case undefined:
    case 'text':
      return undefined
    case 'json_object':
      return { type: 'object' }
    case 'json_schema':
      return readSchemaFormat(schema)
    default:
      throw unsupported(
        place,
        `a format of type ${textOf(format['type']) ?? 'unknown'} cannot be sent to this provider, only text, json_object and json_schema`,
      )
  }
}

function readSchemaFormat(format: JsonObject): OutputFormat {
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
