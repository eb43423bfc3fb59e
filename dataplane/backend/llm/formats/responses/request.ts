import { readFile, readImage } from '../completions/media.ts'
import { allowedTools, omit, readOutputFormat, readTool, readToolChoice } from '../completions/request.ts'
import { joinNamespace } from '../../common/namespaces.ts'
import type { Block, Chat, Tool, Turn } from '../../common/neutral.ts'
import { anyNumber, booleanOf, filledText, inside, listOf, numberOf, objectsOf, textOf } from '../../common/read.ts'
import { splitThought } from '../../common/thoughts.ts'
import { parseArguments } from '../../common/tools.ts'
import type { JsonObject } from '../../common/types.ts'
import { findOmitted, rejectFields, unsupported } from '../../common/unsupported.ts'
import { readSignature } from './reply.ts'

/** Fields that are carried or rejected; others are left out. */
const carried = new Set(
  (
    'model,input,instructions,tools,tool_choice,parallel_tool_calls,max_output_tokens,temperature,top_p,stream,stream_options,user,reasoning,' +
    'vendor_extensions,text'
  ).split(','),
)
/** Items of tools that OpenAI has run. */
const HOSTED =
  /^(?:web_search_call|file_search_call|code_interpreter_call|image_generation_call|mcp_(?:call|list_tools|approval_\w+)|tool_search_(?:call|output))$/
/** Fields that need the state or the tools of OpenAI, or change what the response holds (llm.md §7.10). */
const unsupportedFields = ['background', 'conversation', 'previous_response_id', 'prompt', 'top_logprobs']

/** Reads a Responses request (llm.md §7.8, §7.10). Throws a FormatError for what no other format can express. */
export function readResponsesRequest(body: JsonObject): Chat {
  rejectFields(body, unsupportedFields)
  const instructions = filledText(body['instructions'])
  const omitted = findOmitted(body, carried)
  const tools = objectsOf(body['tools']).flatMap((tool, at) => readTools(tool, `tools[${at}]`, omitted))
  const text = inside(inside(body['text'])['format'])
  return {
    origin: 'responses',
    system: instructions === undefined ? [] : [{ text: instructions }],
    isSystemPlain: true,
    turns: readInput(body['input'], omitted),
    tools: allowedTools(tools, body['tool_choice']),
    toolChoice: readToolChoice(body['tool_choice'], omitted),
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
    format: readOutputFormat(text, text, 'text.format'),
    metadata: undefined,
    omitted,
  }
}

/** A function, or those of a namespace. */
function readTools(tool: JsonObject, place: string, omitted: string[], namespace?: string): Tool[] {
  const { type } = tool
  if (type === 'namespace' && namespace === undefined)
    return objectsOf(tool['tools']).flatMap((one, at) => readTools(one, `${place}.tools[${at}]`, omitted, textOf(tool['name']) ?? ''))
  if (type !== 'function') return omit(omitted, place)
  const read = readTool(tool)
  return [{ ...read, name: joinNamespace(namespace, read.name) }]
}

function readInput(input: unknown, omitted: string[]): Turn[] {
  if (typeof input === 'string') return [{ role: 'user', blocks: [{ type: 'text', text: input }], isPlain: true }]
  const turns: Turn[] = []
  for (const [at, item] of listOf(input).entries()) {
    const turn = readItem(inside(item), `input[${at}]`, omitted)
    if (turn === undefined) continue
    const last = turns.at(-1)
    // Merge consecutive reasoning and calls into one assistant turn.
    if (isCalls(turn) && last && isCalls(last)) turns[turns.length - 1] = { role: 'assistant', blocks: [...last.blocks, ...turn.blocks] }
    else turns.push(turn)
  }
  return turns
}

function isCalls({ role, blocks }: Turn): boolean {
  return role === 'assistant' && blocks.every(({ type }) => type === 'toolUse' || type === 'thinking')
}

function readItem(item: JsonObject, place: string, omitted: string[]): Turn | undefined {
  const use = {
    ...splitThought(textOf(item['call_id']) ?? textOf(item['id']) ?? ''),
    name: joinNamespace(filledText(item['namespace']), textOf(item['name']) ?? ''),
  }
  switch (item['type'] ?? 'message') {
    case 'message':
      return readMessage(item, place)
    case 'reasoning':
      return readReasoning(item)
    case 'function_call': {
      const json = textOf(item['arguments']) ?? ''
      return { role: 'assistant', blocks: [{ type: 'toolUse', ...use, input: parseArguments(json), json }] }
    }
    case 'custom_tool_call':
      return { role: 'assistant', blocks: [{ type: 'toolUse', ...use, input: { input: textOf(item['input']) ?? '' } }] }
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const output = item['output']
      const isPlain = !Array.isArray(output)
      const content = isPlain ? [{ type: 'text' as const, text: textOf(output) ?? '' }] : readParts(output, `${place}.output`)
      return { role: 'user', blocks: [{ type: 'toolResult', id: use.id, content, isPlain }] }
    }
    default:
      if (HOSTED.test(textOf(item['type']) ?? '')) return void omitted.push(place)
      throw unsupported(place, `an item of type ${textOf(item['type']) ?? 'unknown'} cannot be sent to this provider`)
  }
}

/** Reads a reasoning item; its signature is only there if the gateway wrote the item. */
function readReasoning(item: JsonObject): Turn | undefined {
  const texts = [...objectsOf(item['content']), ...objectsOf(item['summary'])].flatMap(({ text }) => textOf(text) ?? [])
  const signature = readSignature(item['encrypted_content'])
  if (texts.length === 0 && signature === '') return undefined
  return { role: 'assistant', blocks: [{ type: 'thinking', text: texts.join('\n'), signature }] }
}

function readMessage(item: JsonObject, place: string): Turn | undefined {
  const role = item['role']
  const known = role === 'assistant' || role === 'system' || role === 'developer' ? role : 'user'
  const content = item['content']
  const blocks: Block[] = typeof content === 'string' ? [{ type: 'text', text: content }] : readParts(content, `${place}.content`)
  if (blocks.length === 0) return undefined
  if (known === 'user') return { role: known, blocks, isPlain: typeof content === 'string' }
  const texts = blocks.map((block, at) => {
    if (block.type !== 'text') throw unsupported(`${place}.content[${at}]`, `a message of role ${known} may hold text only`)
    return block.text
  })
  return { role: known, blocks: [{ type: 'text', text: texts.join('\n') }], isPlain: true }
}

function readParts(parts: unknown, place: string): Block[] {
  return listOf(parts).map((part, at) => (typeof part === 'string' ? { type: 'text', text: part } : readPart(inside(part), `${place}[${at}]`)))
}

function readPart(part: JsonObject, place: string): Block {
  const text = textOf(part['text']) ?? textOf(part['refusal'])
  if (text !== undefined) return { type: 'text', text }
  const url = textOf(part['image_url'])
  if (url !== undefined) return readImage(url, place)
  if (part['type'] === 'input_file') return readFile(textOf(part['file_data']) ?? textOf(part['file_url']), filledText(part['filename']), place)
  throw unsupported(place, `a part of type ${textOf(part['type']) ?? 'unknown'} cannot be sent to this provider`)
}
