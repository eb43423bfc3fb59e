import { describe, expect, test } from '@jest/globals'
import { renderEvents } from '../stream/event.ts'
import type { ChatFormat, JsonObject, RequestMemo, Target } from '../common/types.ts'
import { pair, requestContext, responseContext } from '../convert/testing.ts'

/** Requests in the format of their provider are fitted as translated ones are (llm.md §7.15). */

const NAME = 'mcp.server/tool'
/** Names of Gemini's clients stay. */
type Renamed = Exclude<ChatFormat, 'gemini'>

const native: readonly (readonly [Renamed, Target, string, JsonObject])[] = [
  [
    'completions',
    'openai',
    'gpt-4o',
    {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: NAME, arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
      ],
      tools: [{ type: 'function', function: { name: NAME, parameters: { type: 'object', properties: {} } } }],
      tool_choice: { type: 'function', function: { name: NAME } },
    },
  ],
  [
    'messages',
    'anthropic',
    'claude-sonnet-4-5',
    {
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: NAME, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
      ],
      tools: [{ name: NAME, input_schema: { type: 'object' } }],
      tool_choice: { type: 'tool', name: NAME },
    },
  ],
  [
    'responses',
    'responses',
    'gpt-5.5',
    {
      input: [
        { type: 'function_call', id: 'toolu_1', call_id: 'a', name: NAME, arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'r' },
      ],
      tools: [{ type: 'function', name: NAME, parameters: { type: 'object', properties: {} }, strict: false }],
      tool_choice: { type: 'function', name: NAME },
    },
  ],
]

const replies: Readonly<Record<Renamed, (name: string) => JsonObject>> = {
  completions: (name) => ({
    choices: [{ index: 0, message: { role: 'assistant', tool_calls: [{ id: 'a', function: { name, arguments: '{}' } }] }, finish_reason: 'tool_calls' }],
  }),
  messages: (name) => ({ type: 'message', content: [{ type: 'tool_use', id: 'a', name, input: {} }], stop_reason: 'tool_use' }),
  responses: (name) => ({ status: 'completed', output: [{ type: 'function_call', call_id: 'a', name, arguments: '{}' }], tools: [{ type: 'function', name }] }),
}

const streams: Readonly<Record<Renamed, (name: string) => readonly JsonObject[]>> = {
  completions: (name) => [
    { choices: [{ index: 0, delta: { role: 'assistant', tool_calls: [{ index: 0, id: 'a', function: { name, arguments: '' } }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
  ],
  messages: (name) => [
    { type: 'message_start', message: { content: [] } },
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'a', name, input: {} } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_stop' },
  ],
  responses: (name) => [
    { type: 'response.output_item.added', output_index: 0, item: { type: 'function_call', call_id: 'a', name } },
    { type: 'response.function_call_arguments.done', output_index: 0, name, arguments: '{}' },
    { type: 'response.completed', response: replies.responses(name) },
  ],
}

describe('names of tools in native requests', () => {
  test.each(native)('%s to %s are replaced everywhere, and restored in responses', (format, target, model, request) => {
    const { body, memo } = pair(format, format).request(request, requestContext({ target, model }))
    expect(JSON.stringify(body)).not.toContain(NAME)
    expect(JSON.stringify(body).split('mcp_server_tool')).toHaveLength(4)
    const answer = replies[format]('mcp_server_tool')
    const { body: restored, facts } = pair(format, format).response(answer, responseContext(memo))
    expect(restored).toEqual(replies[format](NAME))
    expect(facts.toolCalls.map(({ name }) => name)).toEqual([NAME])
  })

  test.each(native)('%s to %s are restored in streams', (format, target, model, request) => {
    const { memo } = pair(format, format).request(request, requestContext({ target, model }))
    expect(streamed(format, memo, 'mcp_server_tool')).toEqual(streams[format](NAME))
  })

  test.each(native)('%s to %s that are accepted leave the request as it is', (format, target, model, request) => {
    const plain = JSON.parse(JSON.stringify(request).replaceAll(NAME, 'ok').replace('toolu_1', 'fc_1')) as JsonObject
    const { body, memo } = pair(format, format).request(plain, requestContext({ target, model }))
    expect(body).toBe(plain)
    expect(memo.toolNames.size).toBe(0)
  })
})

function streamed(format: Renamed, memo: RequestMemo, name: string): JsonObject[] {
  const stream = pair(format, format).stream(responseContext(memo))
  const bytes = streams[format](name).map((event) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  const events = bytes.flatMap((chunk) => (stream.relay(chunk) ? [] : stream.push(chunk)))
  return renderEvents([...events, ...stream.end()])
    .toString()
    .split('\n\n')
    .filter((event) => event.includes('data: '))
    .map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)) as JsonObject)
}

describe('a last message of the assistant', () => {
  const prefilled = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'I' },
  ]

  test.each([
    ['messages', 'messages', 'claude-opus-4-8'],
    ['completions', 'messages', 'claude-opus-4-6'],
    ['messages', 'converse', 'anthropic.claude-fable-5-v1:0'],
    ['completions', 'converse', 'meta.llama3-1-70b-instruct-v1:0'],
  ] as const)('%s over %s is followed by one of the user for %s, which rejects it, and the response header says so', (from, to, model) => {
    const { body, omitted } = pair(from, to).request({ max_tokens: 9, messages: prefilled }, requestContext({ model }))
    const roles = (body['messages'] as JsonObject[]).map(({ role }) => role)
    expect(roles).toEqual(['user', 'assistant', 'user'])
    expect(omitted).toContain('prefill')
  })

  test.each([
    ['messages', 'messages', 'claude-sonnet-4-5'],
    ['completions', 'converse', 'amazon.nova-pro-v1:0'],
    ['completions', 'completions', 'gpt-4o'],
  ] as const)('%s over %s stays the last one for %s', (from, to, model) => {
    const { body, omitted } = pair(from, to).request({ max_tokens: 9, messages: prefilled }, requestContext({ model }))
    expect((body['messages'] as JsonObject[]).map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(omitted).toEqual([])
  })

  test.each(['messages', 'completions'] as const)('of a %s client is marked for Mistral', (from) => {
    const { body } = pair(from, 'completions').request({ max_tokens: 9, messages: prefilled }, requestContext({ model: 'mistral-large-latest' }))
    expect((body['messages'] as JsonObject[]).at(-1)).toEqual({ role: 'assistant', content: 'I', prefix: true })
  })
})

describe('members of a native message', () => {
  const message = (more: JsonObject): JsonObject => ({ messages: [{ role: 'assistant', content: 'x', ...more }] })
  const fitted = (model: string, target: Target, more: JsonObject): JsonObject =>
    (pair('completions', 'completions').request(message(more), requestContext({ target, model })).body['messages'] as JsonObject[])[0] ?? {}

  test.each([
    ['reasoning_content', 'a', ['openai', 'azure', 'gemini', 'vertex']],
    ['reasoning_signature', 'a', ['openai', 'azure', 'gemini', 'vertex', 'compatible']],
    ['cache_control', { type: 'ephemeral' }, ['openai', 'azure', 'gemini', 'vertex']],
    ['annotations', [], ['gemini', 'vertex', 'compatible']],
    ['refusal', null, ['gemini', 'vertex', 'compatible']],
  ] as const)('%s is sent only to servers that may know it', (member, value, without) => {
    for (const target of ['openai', 'azure', 'gemini', 'vertex', 'compatible'] as const)
      expect([target, Object.hasOwn(fitted('m', target, { [member]: value }), member)]).toEqual([target, !(without as readonly string[]).includes(target)])
  })

  test('reasoning goes back to DeepSeek, not to Mistral', () => {
    expect(fitted('deepseek-reasoner', 'compatible', { reasoning_content: 'a' })).toHaveProperty('reasoning_content')
    expect(fitted('mistral-large-latest', 'compatible', { reasoning_content: 'a' })).not.toHaveProperty('reasoning_content')
  })

  test('a refusal is the content for servers without that member', () => {
    expect(fitted('m', 'compatible', { content: null, refusal: 'no' })).toEqual({ role: 'assistant', content: 'no' })
  })
})

describe('cache breakpoints', () => {
  const marked = (text: string): JsonObject => ({ type: 'text', text, cache_control: { type: 'ephemeral' } })
  const request = { max_tokens: 9, system: [marked('s')], messages: ['a', 'b', 'c', 'd', 'e'].map((text) => ({ role: 'user', content: [marked(text)] })) }

  test('beyond four are left out, those of the system prompt and the last ones stay', () => {
    const { body } = pair('messages', 'messages').request(request, requestContext({ model: 'claude-sonnet-4-5' }))
    const marks = (body['messages'] as { content: JsonObject[] }[]).map(({ content }) => content[0]?.['cache_control'] !== undefined)
    expect([body['system'], marks]).toEqual([request.system, [false, false, true, true, true]])
  })

  test('of Chat Completions clients are counted too', () => {
    const messages = ['a', 'b', 'c', 'd', 'e', 'f'].map((text) => ({ role: 'user', content: [marked(text)] }))
    const { body } = pair('completions', 'messages').request({ messages }, requestContext({ model: 'claude-sonnet-4-5' }))
    expect(JSON.stringify(body).split('cache_control')).toHaveLength(5)
    expect(JSON.stringify(body)).toContain('{"type":"text","text":"f","cache_control":{"type":"ephemeral"}}')
  })
})

describe('media', () => {
  const image = (url: string): JsonObject => ({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })

  test.each([
    [
      'messages',
      'anthropic',
      'claude-sonnet-4-5',
      'data:image/bmp;base64,AA==',
      /^unsupported conversion: messages\[0\]\.content\[0\]: an image must be png, jpeg, webp, gif, not image\/bmp/,
    ],
    ['messages', 'vertexClaude', 'claude-sonnet-4-5', 'https://example.com/a.png', /an image must be a base64 data URL/],
    ['converse', 'converse', 'amazon.nova-pro-v1:0', 'data:image/heic;base64,AA==', /not image\/heic/],
  ] as const)('over %s that %s does not read are rejected with their place', (to, target, model, url, message) => {
    expect(() => pair('completions', to).request(image(url), requestContext({ target, model }))).toThrow(message)
  })

  test('of unregistered types get the registered ones, native requests too', () => {
    const { body } = pair('completions', 'completions').request(
      image('data:image/JPG;base64,AA=='),
      requestContext({ target: 'gemini', model: 'gemini-3-pro' }),
    )
    expect(JSON.stringify(body)).toContain('data:image/jpeg;base64,AA==')
  })
})

describe('sampling parameters of native requests', () => {
  const given = { temperature: 0.5, top_p: 0.9, top_k: 5, presence_penalty: 1, frequency_penalty: 0 }
  const sampled = (format: 'completions' | 'responses', target: Target, model: string, more: JsonObject = {}): readonly [string[], readonly string[]] => {
    const { body, omitted } = pair(format, format).request({ ...given, ...more }, requestContext({ target, model }))
    return [Object.keys(given).filter((field) => body[field] !== undefined), omitted]
  }
  const all = ['temperature', 'top_p', 'top_k', 'presence_penalty', 'frequency_penalty']
  const withoutTopK = all.filter((field) => field !== 'top_k')

  test.each<['completions' | 'responses', Target, string, JsonObject, string[]]>([
    ['completions', 'openai', 'gpt-5', {}, []],
    ['completions', 'azure', 'o3-mini', {}, []],
    ['completions', 'openai', 'gpt-5-chat-latest', {}, withoutTopK],
    ['completions', 'openai', 'gpt-4o', {}, withoutTopK],
    ['completions', 'openai', 'gpt-5.1', {}, withoutTopK],
    ['completions', 'openai', 'gpt-5.1', { reasoning_effort: 'none' }, withoutTopK],
    ['completions', 'openai', 'gpt-5.1', { reasoning_effort: 'low' }, []],
    ['completions', 'compatible', 'openai/gpt-5.5', {}, []],
    ['completions', 'compatible', 'qwen3', {}, all],
    ['completions', 'gemini', 'gemini-3-pro', {}, withoutTopK],
    ['responses', 'responses', 'gpt-5', {}, []],
    ['responses', 'responses', 'o4-mini', {}, []],
    ['responses', 'responses', 'gpt-4.1', {}, withoutTopK],
    ['responses', 'responses', 'gpt-5.2', { reasoning: { effort: 'none' } }, withoutTopK],
    ['responses', 'responses', 'gpt-5.2', { reasoning: { effort: 'high' } }, []],
  ])('%s to %s, model %s with %j, keep what the model accepts', (format, target, model, more, kept) => {
    const [left, omitted] = sampled(format, target, model, more)
    expect(left).toEqual(kept)
    // A default changes nothing, so that its omission is not reported.
    expect(omitted).toEqual(all.filter((field) => !kept.includes(field) && field !== 'frequency_penalty'))
  })

  test('that are defaults are left out without notice', () => {
    const { body, omitted } = pair('responses', 'responses').request({ temperature: 1, top_p: 1 }, requestContext({ target: 'responses', model: 'gpt-5' }))
    expect([body, omitted]).toEqual([{}, []])
  })

  test('over the range become its end', () => {
    const { body } = pair('completions', 'completions').request({ temperature: 3 }, requestContext({ target: 'openai', model: 'gpt-4o' }))
    expect(body['temperature']).toBe(2)
  })
})

test.each([
  ['compatible', 'mistral-large-latest', { max_completion_tokens: 9 }, { max_tokens: 9 }],
  ['compatible', 'llama3.2', { max_completion_tokens: 9, max_tokens: 8 }, { max_tokens: 9 }],
  ['gemini', 'gemini-3-pro', { max_completion_tokens: 9 }, { max_tokens: 9 }],
  ['compatible', 'openai/gpt-5.5', { max_tokens: 9 }, { max_completion_tokens: 9 }],
  ['openai', 'gpt-4o', { max_tokens: 9 }, { max_completion_tokens: 9 }],
] as const)('the token limit of a native request is in the field that %s reads for %s', (target, model, request, expected) => {
  expect(pair('completions', 'completions').request(request, requestContext({ target, model })).body).toEqual(expected)
})
