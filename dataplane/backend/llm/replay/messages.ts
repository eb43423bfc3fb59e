import { parseJson, printJson } from '../common/json.ts'
import { define, inside, listOf, numberOf, objectOf, objectsOf, textOf, without } from '../common/read.ts'
import { FormatError, type JsonObject } from '../common/types.ts'
import { UnconvertibleError, type Forms, type StreamEvent } from './form.ts'

/** Blocks whose input is streamed as pieces of JSON. */
const toolBlocks: ReadonlySet<unknown> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use'])

interface Block {
  readonly content: Record<string, unknown>
  json: string
}

class MessagesCollector {
  #message: JsonObject | undefined
  #delta: JsonObject = {}
  #usage: JsonObject = {}
  readonly #blocks = new Map<number, Block>()

  add(data: JsonObject): void {
    switch (data['type']) {
      case 'message_start':
        this.#message = inside(data['message'])
        this.#usage = inside(this.#message['usage'])
        return
      case 'content_block_start':
        this.#blocks.set(numberOf(data['index']) ?? 0, { content: { ...inside(data['content_block']) }, json: '' })
        return
      case 'content_block_delta':
        return this.#addDelta(inside(data['delta']), this.#blocks.get(numberOf(data['index']) ?? 0))
      case 'message_delta':
        this.#delta = { ...this.#delta, ...inside(data['delta']) }
        this.#usage = { ...this.#usage, ...inside(data['usage']) }
        return
      case 'content_block_stop':
      case 'message_stop':
      case 'ping':
        return
      default:
        throw new UnconvertibleError('the stream has an event of an unknown type')
    }
  }

  #addDelta(delta: JsonObject, block: Block | undefined): void {
    if (block === undefined) throw new UnconvertibleError('a piece belongs to no content block')
    const { content } = block
    switch (delta['type']) {
      case 'text_delta':
        return append(content, 'text', delta['text'])
      case 'thinking_delta':
        return append(content, 'thinking', delta['thinking'])
      case 'signature_delta':
        return append(content, 'signature', delta['signature'])
      case 'input_json_delta':
        block.json += textOf(delta['partial_json']) ?? ''
        return
      case 'citations_delta':
        content['citations'] = [...listOf(content['citations']), delta['citation']]
        return
      default:
        throw new UnconvertibleError('the stream has a piece of an unknown type')
    }
  }

  body(): JsonObject {
    if (this.#message === undefined) throw new UnconvertibleError('the stream has no message')
    const content = [...this.#blocks].toSorted(([a], [b]) => a - b).map(([, block]) => finish(block))
    return { ...this.#message, content, ...this.#delta, usage: this.#usage }
  }
}

function append(content: Record<string, unknown>, key: string, text: unknown): void {
  define(content, key, (textOf(content[key]) ?? '') + (textOf(text) ?? ''))
}

function finish({ content, json }: Block): JsonObject {
  if (json === '') return content
  try {
    return { ...content, input: parseJson(json) }
  } catch (error) {
    throw error instanceof FormatError ? new UnconvertibleError('the input of a tool is no JSON') : error
  }
}

function* expand(body: JsonObject): Iterable<StreamEvent> {
  const usage = inside(body['usage'])
  const message = { ...body, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 0 } }
  yield event('message_start', { message })
  for (const [index, block] of objectsOf(body['content']).entries()) yield* expandBlock(block, index)
  yield event('message_delta', { delta: { stop_reason: body['stop_reason'] ?? 'end_turn', stop_sequence: body['stop_sequence'] ?? null }, usage })
  yield event('message_stop', {})
}

function* expandBlock(block: JsonObject, index: number): Iterable<StreamEvent> {
  const { type } = block
  const start = (members: JsonObject): StreamEvent => event('content_block_start', { index, content_block: { ...block, ...members } })
  const piece = (delta: JsonObject): StreamEvent => event('content_block_delta', { index, delta })
  if (type === 'text') {
    const citations = listOf(block['citations'])
    yield start({ text: '', ...(citations.length > 0 && { citations: [] }) })
    for (const citation of citations) yield piece({ type: 'citations_delta', citation })
    yield piece({ type: 'text_delta', text: textOf(block['text']) ?? '' })
  } else if (type === 'thinking') {
    yield start({ thinking: '', signature: '' })
    yield piece({ type: 'thinking_delta', thinking: textOf(block['thinking']) ?? '' })
    const signature = textOf(block['signature']) ?? ''
    if (signature !== '') yield piece({ type: 'signature_delta', signature })
  } else if (toolBlocks.has(type) && objectOf(block['input']) !== undefined) {
    yield start({ input: {} })
    yield piece({ type: 'input_json_delta', partial_json: printJson(block['input']) })
  } else yield start({})
  yield event('content_block_stop', { index })
}

const event = (type: string, members: JsonObject): StreamEvent => ({ name: type, data: { type, ...without(members, 'type') } })

/** The forms of a message. */
export const messagesForms: Forms = { collector: () => new MessagesCollector(), expand, terminator: '' }
