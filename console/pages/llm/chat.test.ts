import { describe, expect, test } from '@jest/globals'
import { buildBody, ReplyReader, type Chat } from './chat.ts'
import { clientsOf, writeCode } from './code.ts'

const chat = (fields: Partial<Chat> = {}): Chat => ({
  format: 'completions',
  model: 'gpt-4o',
  system: '',
  turns: [{ role: 'user', text: 'hello', image: '' }],
  isStreaming: false,
  tools: '',
  ...fields,
})
const read = (contentType: string, ...texts: string[]) => {
  const reader = new ReplyReader(contentType)
  for (const text of texts) reader.push(text)
  reader.end()
  return reader.reply
}
const stream = (...events: object[]): string => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')

describe('buildBody', () => {
  test('writes messages with an image, a system prompt and tools in each format', () => {
    const full = chat({
      system: 'be brief',
      turns: [{ role: 'user', text: 'what is this?', image: 'data:image/png;base64,AAAA' }],
      tools: '[{"name": "weather", "parameters": {"type": "object"}}]',
      isStreaming: true,
    })
    expect(buildBody(full)).toEqual({
      model: 'gpt-4o',
      messages: [
        { role: 'system', content: 'be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
      stream_options: { include_usage: true },
      stream: true,
    })
    expect(buildBody({ ...full, format: 'messages' })).toMatchObject({
      max_tokens: 1024,
      system: 'be brief',
      messages: [{ content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }, { type: 'text' }] }],
      tools: [{ name: 'weather', input_schema: { type: 'object' } }],
    })
    expect(buildBody({ ...full, format: 'responses' })).toMatchObject({
      instructions: 'be brief',
      input: [{ role: 'user', content: [{ type: 'input_text' }, { type: 'input_image', image_url: 'data:image/png;base64,AAAA' }] }],
      tools: [{ type: 'function', name: 'weather' }],
    })
  })

  test.each(['{', '{}', '[1]', '[{"name": 1}]'])('rejects the tools %s', (tools) =>
    expect(() => buildBody(chat({ tools }))).toThrow('tools: must be a JSON list'),
  )
})

describe('ReplyReader', () => {
  const expected = { text: 'Hello', tools: [{ name: 'f', arguments: '{"a":1}' }], inputTokens: 3, outputTokens: 4, error: undefined }

  test.each([
    [
      'Chat Completions',
      {
        choices: [{ message: { content: 'Hello', tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] } }],
        usage: { prompt_tokens: 3, completion_tokens: 4 },
      },
    ],
    [
      'Messages',
      {
        type: 'message',
        content: [
          { type: 'text', text: 'Hello' },
          { type: 'tool_use', name: 'f', input: { a: 1 } },
        ],
        usage: { input_tokens: 3, output_tokens: 4 },
      },
    ],
    [
      'Responses',
      {
        object: 'response',
        output: [{ content: [{ type: 'output_text', text: 'Hello' }] }, { type: 'function_call', name: 'f', arguments: '{"a":1}' }],
        usage: { input_tokens: 3, output_tokens: 4 },
      },
    ],
  ])('reads a buffered response of %s', (_, body) => {
    const text = JSON.stringify(body)
    expect(read('application/json', text.slice(0, 9), text.slice(9))).toEqual(expected)
  })

  test.each([
    [
      'Chat Completions',
      stream(
        { choices: [{ delta: { content: 'Hel' } }] },
        { choices: [{ delta: { content: 'lo', tool_calls: [{ function: { name: 'f', arguments: '{"a"' } }] } }] },
        { choices: [{ delta: { tool_calls: [{ function: { arguments: ':1}' } }] } }] },
        { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
      ),
    ],
    [
      'Messages',
      stream(
        { type: 'message_start', message: { type: 'message', content: [], usage: { input_tokens: 3, output_tokens: 1 } } },
        { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hello' } },
        { type: 'content_block_start', content_block: { type: 'tool_use', name: 'f' } },
        { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
        { type: 'message_delta', usage: { output_tokens: 4 } },
      ),
    ],
    [
      'Responses',
      stream(
        { type: 'response.output_text.delta', delta: 'Hello' },
        { type: 'response.output_item.added', item: { type: 'function_call', name: 'f' } },
        { type: 'response.function_call_arguments.delta', delta: '{"a":1}' },
        { type: 'response.completed', response: { usage: { input_tokens: 3, output_tokens: 4 } } },
      ),
    ],
  ])('reads a stream of %s that arrives byte by byte', (_, text) => expect(read('text/event-stream; charset=utf-8', ...text)).toEqual(expected))

  test.each([
    ['{"error": {"message": "no such model"}}', { text: '', error: 'no such model' }],
    ['not JSON', { text: 'not JSON', error: undefined }],
    ['[1]', { text: '[1]', error: undefined }],
    ['{"choices": [null], "usage": 5, "error": null}', { text: '', error: undefined }],
  ])('reads the body %s', (body, reply) => expect(read('application/json', body)).toMatchObject(reply))
})

describe('writeCode', () => {
  const endpoint = {
    base: 'http://llm.example:8080/v1',
    headers: [
      ['authorization', 'Bearer k'],
      ['x-team', "it's"],
    ] as const,
  }

  test('writes a command that a shell takes as it is', () => {
    expect(writeCode('curl', chat({ turns: [{ role: 'user', text: "it's", image: '' }] }), endpoint)).toBe(
      [
        "curl 'http://llm.example:8080/v1/chat/completions' \\",
        "  -H 'content-type: application/json' \\",
        "  -H 'authorization: Bearer k' \\",
        "  -H 'x-team: it'\\''s' \\",
        `  -d '${JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: "it's" }] }, undefined, 2).replace("'", "'\\''")}'`,
      ].join('\n'),
    )
  })

  test('writes code for the SDKs of the format', () => {
    expect(clientsOf(chat({ format: 'messages' }))).toEqual(['curl', 'Anthropic SDK, Python', 'Anthropic SDK, TypeScript'])
    const python = writeCode('OpenAI SDK, Python', chat({ isStreaming: true }), endpoint)
    expect(python).toContain('client = OpenAI(base_url="http://llm.example:8080/v1", api_key="k", default_headers={"x-team": "it\'s"})')
    expect(python).toContain('    stream_options={"include_usage": True},')
    const anthropic = writeCode('Anthropic SDK, TypeScript', chat({ format: 'messages' }), endpoint)
    expect(anthropic).toContain('"baseURL":"http://llm.example:8080"')
    expect(anthropic).toContain('await client.messages.create({')
  })
})
