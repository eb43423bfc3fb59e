import { afterEach, describe, expect, test } from '@jest/globals'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { startMockServer, type MockServer } from '../../../e2e/harness/llm/server.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { frame } from './convert/testdata/streams.ts'
import { startLlmGateway, type LlmGateway } from './testing/gateway.ts'
import { chat, sdkRoutes, send, startTestBed, type TestResponse } from './testing/test-bed.ts'

/** The tokens that the client is told, the log, and the budget agree. */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const sse = (...events: readonly (object | string)[]): Buffer =>
  Buffer.from(
    events
      .map((event) =>
        typeof event === 'string' ? `data: ${event}\n\n` : `${'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
      )
      .join(''),
  )
const choice = { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }
const completions = (usage: object) => ({
  buffered: { id: 'c', object: 'chat.completion', model: 'm', choices: [choice], usage },
  stream: sse(
    { id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] },
    { id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [], usage },
    '[DONE]',
  ),
})
const messagesUsage = { input_tokens: 5, cache_read_input_tokens: 2, cache_creation_input_tokens: 3 }
const responsesUsage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 4,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 14,
}
const message = { type: 'message', role: 'assistant', id: 'm1', content: [{ type: 'output_text', text: 'Hello' }] }
const converseUsage = { inputTokens: 5, outputTokens: 9, totalTokens: 19, cacheReadInputTokens: 2, cacheWriteInputTokens: 3 }

/** Responses of upstreams, in each of their formats. */
const upstreams = {
  completions: completions({ prompt_tokens: 10, completion_tokens: 4, total_tokens: 14, prompt_tokens_details: { cached_tokens: 3 } }),
  /** Gemini's quirk: no completion tokens, and a total that includes them. */
  gemini: completions({ prompt_tokens: 7, completion_tokens: 0, total_tokens: 67 }),
  messages: {
    buffered: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      usage: { ...messagesUsage, output_tokens: 9 },
    },
    stream: sse(
      {
        type: 'message_start',
        message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { ...messagesUsage, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ),
  },
  /** Some servers of the Messages API report usage at the start only. */
  messagesStart: {
    buffered: {},
    stream: sse(
      {
        type: 'message_start',
        message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { ...messagesUsage, output_tokens: 0 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null } },
      { type: 'message_stop' },
    ),
  },
  responses: {
    buffered: { id: 'r', object: 'response', status: 'completed', model: 'm', output: [message], usage: responsesUsage },
    stream: sse(
      { type: 'response.created', response: { id: 'r', model: 'm', status: 'in_progress' } },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'm1', delta: 'Hello' },
      { type: 'response.completed', response: { id: 'r', model: 'm', status: 'completed', output: [message], usage: responsesUsage } },
    ),
  },
  converse: {
    buffered: { output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } }, stopReason: 'end_turn', usage: converseUsage },
    stream: Buffer.concat([
      frame('messageStart', { role: 'assistant' }),
      frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' } }),
      frame('contentBlockStop', { contentBlockIndex: 0 }),
      frame('messageStop', { stopReason: 'end_turn' }),
      frame('metadata', { usage: converseUsage }),
    ]),
  },
} as const
type Upstream = keyof typeof upstreams

const paths = { completions: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses' } as const
type Client = keyof typeof paths

const LIMIT = 1000

async function start(provider: Omit<NamedLLMProvider, 'name'>, upstream: Upstream): Promise<LlmGateway> {
  const { buffered, stream } = upstreams[upstream]
  const mock: MockServer = await startMockServer({
    answer({ path, body }, response) {
      const isStream = body?.['stream'] === true || path.endsWith('converse-stream')
      const type = upstream === 'converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream'
      response.writeHead(200, { 'content-type': isStream ? type : 'application/json' }).end(isStream ? stream : JSON.stringify(buffered))
    },
  })
  const gateway = await startLlmGateway({
    ai: { provider: { ...provider, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes: sdkRoutes } },
    onGateway: [{ traffic: { rateLimit: { local: [{ tokens: LIMIT, unit: 'Hours' }] } } }],
  })
  open.push(mock, gateway)
  return gateway
}

const numberIn = (usage: Readonly<Record<string, unknown>>, ...names: readonly string[]): number =>
  names.reduce((sum, name) => sum + (Number(usage[name]) || 0), 0)

/** The tokens that a client adds up from a response: input with cached tokens, and output. */
function toldTokens(client: Client, { text, json }: TestResponse, isStream: boolean): [number, number] {
  const events = isStream
    ? text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Record<string, Record<string, object>>] : []))
    : [json]
  const usage: Record<string, unknown> = {}
  for (const event of events) Object.assign(usage, event['message']?.['usage'] ?? event['response']?.['usage'] ?? event['usage'] ?? {})
  switch (client) {
    case 'completions':
      return [numberIn(usage, 'prompt_tokens'), numberIn(usage, 'completion_tokens')]
    case 'messages':
      return [numberIn(usage, 'input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'), numberIn(usage, 'output_tokens')]
    case 'responses':
      return [numberIn(usage, 'input_tokens'), numberIn(usage, 'output_tokens')]
  }
}

const a = { providerA: {} }
const c = { providerC: {} }
const d = { providerD: {} }
const f = { providerF: {} }
const rows: [Client, Omit<NamedLLMProvider, 'name'>, Upstream, [number, number]][] = [
  ['completions', a, 'completions', [10, 4]],
  ['messages', a, 'completions', [10, 4]],
  ['responses', a, 'responses', [10, 4]],
  ['completions', c, 'messages', [10, 9]],
  ['messages', c, 'messages', [10, 9]],
  ['completions', d, 'gemini', [7, 60]],
  ['messages', d, 'gemini', [7, 60]],
  ['responses', d, 'gemini', [7, 60]],
  ['completions', f, 'converse', [10, 9]],
  ['messages', f, 'converse', [10, 9]],
  ['responses', f, 'converse', [10, 9]],
]

describe('the tokens that a client is told are logged and charged', () => {
  test.each(
    rows.flatMap(([client, provider, upstream, tokens]) =>
      [false, true].map((stream) => [client, upstream, stream ? 'streamed' : 'buffered', provider, tokens] as const),
    ),
  )('to %s from an upstream of %s, %s', async (client, upstream, mode, provider, tokens) => {
    const gateway = await start(provider, upstream)
    const stream = mode === 'streamed'
    const body = client === 'responses' ? { model: 'm', input: 'x', stream } : chat('x', { stream, max_tokens: 9 })
    const response = await send(gateway.port, { path: paths[client], body })
    const fields = logFieldsOf(gateway.finished[0])
    expect(response.status).toBe(200)
    expect({ told: toldTokens(client, response, stream), logged: [fields['gen_ai.usage.input_tokens'], fields['gen_ai.usage.output_tokens']] }).toEqual({
      told: tokens,
      logged: tokens,
    })
    const next = await send(gateway.port, { path: paths[client], body })
    expect(LIMIT - Number(next.headers['x-ratelimit-remaining'])).toBe(tokens[0] + tokens[1])
  })
})

test.each([
  ['Messages', sdkRoutes],
  ['Detect', { '*': 'Detect' }],
] as const)('a Messages stream that is cut off has no output tokens: %s', async (_, routes) => {
  const bed = await startTestBed({ provider: { providerC: {} }, ai: { routes } })
  open.push(bed)
  const body = chat('one two three', { stream: true, max_tokens: 9 })
  await bed.post({ path: '/v1/messages', body, headers: { 'x-mock': 'cut=5' } }).catch(() => undefined)
  const fields = logFieldsOf(bed.gateway.finished[0])
  expect([fields['gen_ai.usage.input_tokens'], fields['gen_ai.usage.output_tokens']]).toEqual([5, undefined])
})

test('a Messages stream whose usage has no output tokens is charged by its text', async () => {
  const gateway = await start(c, 'messagesStart')
  const post = { path: paths.messages, body: chat('x', { stream: true, max_tokens: 9 }) }
  await send(gateway.port, post)
  const next = await send(gateway.port, post)
  expect(LIMIT - Number(next.headers['x-ratelimit-remaining'])).toBe(10 + 2)
})
