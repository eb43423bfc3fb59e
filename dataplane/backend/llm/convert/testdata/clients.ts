import { fc } from '#api/property-testing.ts'
import type { ChatFormat, JsonObject } from '../../common/types.ts'
import { toolNames } from './answers.ts'

/** What clients of each format do with a response: they send it back as history, with the results of its tools. */

/** The result of one tool call. */
export interface Result {
  readonly kind: 'plain' | 'parts' | 'image'
  readonly text: string
  readonly isError: boolean
}

export const results: fc.Arbitrary<Result> = fc.record({
  kind: fc.constantFrom('plain' as const, 'plain' as const, 'parts' as const, 'image' as const),
  text: fc.constantFrom('', ' ', 'sunny', '{"ok":true}', '{"a":', 'é'),
  isError: fc.boolean(),
})

const PNG = 'iVBORw0KGgo='
const schemas: readonly JsonObject[] = [
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  {},
  { type: 'object' },
  { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', properties: {}, additionalProperties: false },
  {
    type: 'object',
    properties: {
      when: { type: ['string', 'null'], format: 'date' },
      kind: { const: 'a' },
      n: { enum: [1, 2] },
      list: { type: 'array' },
      any: {},
      either: { oneOf: [{ type: 'string' }, { type: 'integer' }] },
      tree: { $ref: '#/$defs/tree' },
      map: { type: 'object', additionalProperties: { type: 'number' } },
    },
    required: ['when', 'kind', 'absent'],
    $defs: { tree: { type: 'object', properties: { child: { $ref: '#/$defs/tree' }, leaf: { $ref: '#/$defs/leaf' } } }, leaf: { type: 'string', minLength: 1 } },
  },
  { anyOf: [{ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }, { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }] },
]

/** The tools that each request offers. */
function toolsOf(format: ChatFormat): JsonObject[] {
  return toolNames.map((name, at): JsonObject => {
    const schema = schemas[at % schemas.length]
    switch (format) {
      case 'completions':
        return { type: 'function', function: { name, description: 'a tool', parameters: schema } }
      case 'messages':
        return { name, description: 'a tool', input_schema: schema }
      case 'responses':
        return { type: 'function', name, description: 'a tool', parameters: schema, strict: false }
      case 'gemini':
        return { functionDeclarations: [{ name, description: 'a tool', parametersJsonSchema: schema }] }
    }
  })
}

/** The request of the first turn: a system prompt, and a message with an image. */
export function firstRequest(format: ChatFormat): JsonObject {
  const tools = toolsOf(format)
  switch (format) {
    case 'completions': {
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/jpg;base64,${PNG}` } },
      ]
      return { model: 'm', max_tokens: 4000, messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content }], tools }
    }
    case 'messages': {
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: PNG } },
      ]
      return { model: 'm', max_tokens: 4000, system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content }], tools }
    }
    case 'responses': {
      const content = [
        { type: 'input_text', text: 'What is this?' },
        { type: 'input_image', image_url: `data:image/jpg;base64,${PNG}`, detail: 'auto' },
      ]
      return { model: 'm', max_output_tokens: 4000, instructions: 'Be brief.', input: [{ role: 'user', content }], tools }
    }
    case 'gemini': {
      // The SDK of Python writes base64 for URLs.
      const parts = [{ text: 'What is this?' }, { inlineData: { mimeType: 'image/jpg', data: PNG.replaceAll('+', '-') } }]
      return { model: 'm', contents: [{ role: 'user', parts }], systemInstruction: { parts: [{ text: 'Be brief.' }] }, generationConfig: { maxOutputTokens: 4000 }, tools }
    }
  }
}

/** The next request of a conversation: the history, the response as the SDK returns it, the results of its calls, and a message of the user. */
export function nextRequest(format: ChatFormat, request: JsonObject, reply: JsonObject, given: readonly Result[]): JsonObject {
  const resultAt = (at: number): Result => given[at] ?? { kind: 'plain', text: 'ok', isError: false }
  switch (format) {
    case 'completions': {
      const message = (reply['choices'] as { message: JsonObject }[])[0]?.message ?? {}
      const calls = (message['tool_calls'] ?? []) as { id: string }[]
      const tools = calls.map(({ id }, at) => {
        const { kind, text } = resultAt(at)
        return { role: 'tool', tool_call_id: id, content: kind === 'plain' ? text : [{ type: 'text', text }] }
      })
      return { ...request, messages: [...(request['messages'] as unknown[]), message, ...tools, ...(tools.length === 0 ? [{ role: 'user', content: 'Go on.' }] : [])] }
    }
    case 'messages': {
      const content = reply['content'] as { type: string; id: string }[]
      const tools = content.filter(({ type }) => type === 'tool_use').map(({ id }, at) => ({ type: 'tool_result', tool_use_id: id, ...messagesResult(resultAt(at)) }))
      const turn = { role: 'user', content: tools.length === 0 ? 'Go on.' : tools }
      return { ...request, messages: [...(request['messages'] as unknown[]), { role: 'assistant', content }, turn] }
    }
    case 'responses': {
      const output = reply['output'] as { type: string; call_id: string }[]
      const tools = output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id: id }, at) => ({ type: 'function_call_output', call_id: id, output: responsesResult(resultAt(at)) }))
      return { ...request, input: [...(request['input'] as unknown[]), ...output, ...(tools.length === 0 ? [{ role: 'user', content: 'Go on.' }] : tools)] }
    }
    case 'gemini': {
      // Pieces of a stream are contents of their own.
      const contents = (reply['candidates'] as { content: { parts: JsonObject[] } }[]).map(({ content }) => content)
      const calls = contents.flatMap(({ parts }) => parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall as JsonObject])))
      const tools = calls.map(({ id, name }, at) => {
        const { text, isError, kind } = resultAt(at)
        // Some clients send ids, others do not.
        return { functionResponse: { ...(kind === 'plain' && { id }), name, response: isError ? { error: text } : { result: text } } }
      })
      const turn = { role: 'user', parts: tools.length === 0 ? [{ text: 'Go on.' }] : tools }
      return { ...request, contents: [...(request['contents'] as unknown[]), ...contents, turn] }
    }
  }
}

function messagesResult({ kind, text, isError }: Result): JsonObject {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
  return { content: kind === 'plain' ? text : [{ type: 'text', text }, ...(kind === 'image' ? [image] : [])], ...(isError && { is_error: true }) }
}

function responsesResult({ kind, text }: Result): unknown {
  const image = { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' }
  return kind === 'plain' ? text : [{ type: 'input_text', text }, ...(kind === 'image' ? [image] : [])]
}

type Event = Record<string, unknown>

/** The response that a client assembles from a stream. */
export function assemble(format: ChatFormat, stream: string): JsonObject {
  const events = stream
    .split('\n\n')
    .map((event) => event.slice(event.indexOf('data: ') + 6))
    .filter((data) => data !== '' && data !== '[DONE]')
    .map((data) => JSON.parse(data) as Event)
  switch (format) {
    case 'completions':
      return { choices: [{ message: assembleChunks(events) }] }
    case 'messages':
      return { content: assembleBlocks(events) }
    case 'responses':
      return events.findLast(({ type }) => type === 'response.completed' || type === 'response.incomplete')?.['response'] as JsonObject
    case 'gemini':
      return { candidates: events.flatMap(({ candidates }) => candidates as Event[]) }
  }
}

function assembleChunks(events: readonly Event[]): JsonObject {
  const message: Record<string, unknown> = { role: 'assistant', content: null }
  const calls: Record<string, { name: string; arguments: string } | string>[] = []
  for (const { choices } of events) {
    for (const { delta } of (choices ?? []) as { delta: Event }[]) {
      for (const key of ['content', 'reasoning_content', 'reasoning_signature', 'refusal'])
        if (typeof delta[key] === 'string' && delta[key] !== '') message[key] = `${(message[key] as string | null | undefined) ?? ''}${delta[key]}`
      for (const { index, function: called, ...rest } of (delta['tool_calls'] ?? []) as { index: number; function: { name?: string; arguments?: string } }[]) {
        const call = (calls[index] ??= { ...rest, function: { name: '', arguments: '' } })
        const open = call['function'] as { name: string; arguments: string }
        open.name += called.name ?? ''
        open.arguments += called.arguments ?? ''
      }
    }
  }
  return { ...message, ...(calls.length > 0 && { tool_calls: calls }) }
}

/** SDKs read arguments that are no JSON as far as they go. */
function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}

function assembleBlocks(events: readonly Event[]): Event[] {
  const blocks: Event[] = []
  let json = ''
  for (const { type, index, content_block: start, delta } of events as { type: string; index: number; content_block: Event; delta: Event }[]) {
    const open = blocks[index]
    if (type === 'content_block_start') blocks[index] = { ...start }
    else if (type === 'content_block_delta' && open) {
      for (const key of ['text', 'thinking', 'signature']) if (typeof delta[key] === 'string') open[key] = `${String(open[key])}${delta[key]}`
      if (typeof delta['partial_json'] === 'string') json += delta['partial_json']
    } else if (type === 'content_block_stop') {
      if (json !== '' && open) open['input'] = parse(json)
      json = ''
    }
  }
  return blocks
}
