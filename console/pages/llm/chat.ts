/** Format of the request, by the API of clients. */
export type Format = 'completions' | 'messages' | 'responses'

/** Formats with the path that clients use. */
export const formats: Readonly<Record<Format, { readonly title: string; readonly path: string }>> = {
  completions: { title: 'Chat Completions', path: '/chat/completions' },
  messages: { title: 'Messages', path: '/messages' },
  responses: { title: 'Responses', path: '/responses' },
}

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: string
  /** URL of an image, `https:` or `data:`; empty for none. */
  readonly image: string
}

/** A conversation to send. */
export interface Chat {
  readonly format: Format
  readonly model: string
  readonly system: string
  readonly turns: readonly Turn[]
  readonly isStreaming: boolean
  /** JSON of functions as Chat Completions has them: `[{name, description, parameters}]`; empty for none. */
  readonly tools: string
}

interface Tool {
  readonly name: string
  readonly description?: string
  readonly parameters?: object
}

/** Output tokens that Messages requires a limit for. */
const MAX_TOKENS = 1024

/** The body of the request. Throws an Error if `tools` is not a list of functions. */
export function buildBody({ format, model, system, turns, isStreaming, tools }: Chat): object {
  const functions = readTools(tools)
  const stream = isStreaming ? { stream: true } : {}
  if (format === 'messages') {
    return {
      model,
      max_tokens: MAX_TOKENS,
      ...(system !== '' && { system }),
      messages: turns.map(({ role, text, image }) => ({ role, content: image === '' ? text : [anthropicImage(image), { type: 'text', text }] })),
      ...(functions.length > 0 && {
        tools: functions.map(({ name, description, parameters = { type: 'object' } }) => ({
          name,
          ...(description !== undefined && { description }),
          input_schema: parameters,
        })),
      }),
      ...stream,
    }
  }
  if (format === 'responses') {
    return {
      model,
      ...(system !== '' && { instructions: system }),
      input: turns.map(({ role, text, image }) => ({
        role,
        content: [
          { type: role === 'user' ? 'input_text' : 'output_text', text },
          ...(image === '' ? [] : [{ type: 'input_image', image_url: image, detail: 'auto' }]),
        ],
      })),
      ...(functions.length > 0 && { tools: functions.map((tool) => ({ type: 'function', strict: false, ...tool })) }),
      ...stream,
    }
  }
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      ...turns.map(({ role, text, image }) => ({
        role,
        content:
          image === ''
            ? text
            : [
                { type: 'text', text },
                { type: 'image_url', image_url: { url: image } },
              ],
      })),
    ],
    ...(functions.length > 0 && { tools: functions.map((tool) => ({ type: 'function', function: tool })) }),
    ...(isStreaming && { stream_options: { include_usage: true } }),
    ...stream,
  }
}

function readTools(text: string): Tool[] {
  if (text.trim() === '') return []
  const value = parse(text)
  const isTool = (tool: unknown): tool is Tool => isObject(tool) && typeof tool['name'] === 'string'
  if (!Array.isArray(value) || !value.every(isTool))
    throw new Error('tools: must be a JSON list such as [{"name": "weather", "parameters": {"type": "object"}}]')
  return value
}

/** Messages has the bytes of an image apart from their type. */
function anthropicImage(url: string): object {
  const [, type, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return { type: 'image', source: type === undefined ? { type: 'url', url } : { type: 'base64', media_type: type, data } }
}

/** What a response contains, as far as it was received. */
export interface Reply {
  readonly text: string
  readonly tools: readonly { readonly name: string; readonly arguments: string }[]
  readonly inputTokens: number | undefined
  readonly outputTokens: number | undefined
  /** The error that the body describes. */
  readonly error: string | undefined
}

type Json = Readonly<Record<string, unknown>>

/** Reads the response of a format while it arrives: a stream of events, or one JSON document. */
export class ReplyReader {
  readonly #isStream: boolean
  #received = ''
  #rest = ''
  #text = ''
  readonly #tools: { name: string; arguments: string }[] = []
  #inputTokens: number | undefined
  #outputTokens: number | undefined
  #error: string | undefined

  /** @param contentType of the response */
  constructor(contentType: string) {
    this.#isStream = contentType.startsWith('text/event-stream')
  }

  push(text: string): void {
    if (!this.#isStream) {
      this.#received += text
      return
    }
    const parts = (this.#rest + text).split(/\r?\n\r?\n/)
    this.#rest = parts.pop() ?? ''
    for (const part of parts) {
      const data = part
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n')
      const event = parse(data)
      if (isObject(event)) this.#read(event)
    }
  }

  /** Reads a body that is one document. */
  end(): void {
    if (this.#isStream) return
    const body = parse(this.#received)
    if (isObject(body)) this.#read(body)
    else this.#text = this.#received
  }

  get reply(): Reply {
    return { text: this.#text, tools: this.#tools, inputTokens: this.#inputTokens, outputTokens: this.#outputTokens, error: this.#error }
  }

  /** One event of a stream, or the whole body. Members of all formats have names of their own. */
  #read(value: Json): void {
    const { error } = value
    if (error !== undefined && error !== null) this.#error = describeError(error)
    this.#readCompletions(value)
    this.#readMessages(value)
    this.#readResponses(value)
    for (const part of [value, value['message'], value['response']]) if (isObject(part)) this.#readUsage(part['usage'])
  }

  #readCompletions({ choices }: Json): void {
    const [choice] = listOf(choices)
    for (const part of [choice?.['delta'], choice?.['message']]) {
      if (!isObject(part)) continue
      if (typeof part['content'] === 'string') this.#text += part['content']
      for (const call of listOf(part['tool_calls'])) {
        const { name, arguments: text } = isObject(call['function']) ? call['function'] : {}
        if (typeof name === 'string' && name !== '') this.#tools.push({ name, arguments: '' })
        const last = this.#tools.at(-1)
        if (last !== undefined && typeof text === 'string') last.arguments += text
      }
    }
  }

  #readMessages({ type, content, delta, content_block: block }: Json): void {
    if (type === 'message') {
      for (const part of listOf(content)) {
        if (typeof part['text'] === 'string') this.#text += part['text']
        if (part['type'] === 'tool_use') this.#tools.push({ name: String(part['name']), arguments: JSON.stringify(part['input']) })
      }
    }
    if (type === 'content_block_start' && isObject(block) && block['type'] === 'tool_use') this.#tools.push({ name: String(block['name']), arguments: '' })
    if (type !== 'content_block_delta' || !isObject(delta)) return
    if (typeof delta['text'] === 'string') this.#text += delta['text']
    const last = this.#tools.at(-1)
    if (last !== undefined && typeof delta['partial_json'] === 'string') last.arguments += delta['partial_json']
  }

  #readResponses({ object, type, output, delta, item }: Json): void {
    if (object === 'response') {
      for (const part of listOf(output)) {
        for (const each of listOf(part['content'])) if (typeof each['text'] === 'string') this.#text += each['text']
        if (part['type'] === 'function_call') this.#tools.push({ name: String(part['name']), arguments: String(part['arguments']) })
      }
    }
    if (type === 'response.output_text.delta' && typeof delta === 'string') this.#text += delta
    if (type === 'response.output_item.added' && isObject(item) && item['type'] === 'function_call')
      this.#tools.push({ name: String(item['name']), arguments: '' })
    const last = this.#tools.at(-1)
    if (type === 'response.function_call_arguments.delta' && last !== undefined && typeof delta === 'string') last.arguments += delta
  }

  #readUsage(usage: unknown): void {
    if (!isObject(usage)) return
    this.#inputTokens = numberOf(usage['prompt_tokens']) ?? numberOf(usage['input_tokens']) ?? this.#inputTokens
    this.#outputTokens = numberOf(usage['completion_tokens']) ?? numberOf(usage['output_tokens']) ?? this.#outputTokens
  }
}

function describeError(error: unknown): string {
  if (typeof error === 'string') return error
  return isObject(error) && typeof error['message'] === 'string' ? error['message'] : JSON.stringify(error)
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
