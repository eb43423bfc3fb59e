import { afterEach, describe, expect, test } from '@jest/globals'
import { evalHost } from '#api/cel/index.ts'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { sdkRoutes, startTestBed, type TestBed } from './testing/test-bed.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

type Config = Omit<NamedLLMProvider, 'name'>
const aws = { key: 'ns/aws', type: 'opaque', data: { accessKey: 'AK', secretKey: 'SK', sessionToken: 'ST' } } as const
const start = async (provider: Config): Promise<TestBed> => {
  const auth = provider.providerF === undefined ? { key: 'secret-key' } : { cloudA: { secretRef: { secret: 'ns/aws' } } }
  const bed = await startTestBed({ provider, policies: { auth }, ai: { routes: sdkRoutes }, secrets: [aws] })
  open.push(bed)
  return bed
}

const a: Config = { providerA: {} }
const b: Config = { providerB: { endpoint: 'x.openai.azure.com', deploymentName: 'gpt-4o', apiVersion: '2024-10-21' } }
const c: Config = { providerC: {} }
const d: Config = { providerD: {} }
const e: Config = { providerE: { projectId: 'p', region: 'us-central1' } }
const f: Config = { providerF: {} }
const vertex = '/v1/projects/p/locations/us-central1'

/** The request of each client format, and the accessors for the text of its responses, buffered and streamed. */
const clients = {
  completions: {
    path: '/v1/chat/completions',
    body: (model: string) => ({
      model,
      max_tokens: 50,
      messages: [
        { role: 'system', content: 'be nice' },
        { role: 'user', content: 'hello you' },
      ],
    }),
    text: ['choices', 0, 'message', 'content'],
    streamed: /"content":"echo: "[^]*"content":"hello "[^]*"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/,
  },
  messages: {
    path: '/v1/messages',
    body: (model: string) => ({ model, max_tokens: 50, system: 'be nice', messages: [{ role: 'user', content: 'hello you' }] }),
    text: ['content', 0, 'text'],
    streamed:
      /^event: message_start\n[^]*event: content_block_delta\ndata: [^\n]*"text":"hello "[^]*event: message_delta\n[^]*"stop_reason":"end_turn"[^]*event: message_stop\n/,
  },
  responses: {
    path: '/v1/responses',
    body: (model: string) => ({ model, instructions: 'be nice', input: 'hello you' }),
    text: ['output', 0, 'content', 0, 'text'],
    streamed: /^event: response.created\n[^]*event: response.output_text.delta\ndata: [^\n]*"delta":"hello "[^]*event: response.completed\n/,
  },
} as const
type Client = keyof typeof clients

const rows: [string, Config, Client, string, string, string][] = [
  ['A', a, 'completions', 'gpt-4o', '/v1/chat/completions', '/v1/chat/completions'],
  ['A', a, 'messages', 'gpt-4o', '/v1/chat/completions', '/v1/chat/completions'],
  ['A', a, 'responses', 'gpt-4o', '/v1/responses', '/v1/responses'],
  [
    'B',
    b,
    'completions',
    'any',
    '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
    '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
  ],
  [
    'B',
    b,
    'messages',
    'any',
    '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
    '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
  ],
  ['B', b, 'responses', 'any', '/openai/responses?api-version=2024-10-21', '/openai/responses?api-version=2024-10-21'],
  ['C', c, 'completions', 'claude-x', '/v1/messages', '/v1/messages'],
  ['C', c, 'messages', 'claude-x', '/v1/messages', '/v1/messages'],
  ['C', c, 'responses', 'claude-x', '/v1/messages', '/v1/messages'],
  ['D', d, 'completions', 'gemini-2.5-pro', '/v1beta/openai/chat/completions', '/v1beta/openai/chat/completions'],
  ['D', d, 'messages', 'gemini-2.5-pro', '/v1beta/openai/chat/completions', '/v1beta/openai/chat/completions'],
  ['D', d, 'responses', 'gemini-2.5-pro', '/v1beta/openai/chat/completions', '/v1beta/openai/chat/completions'],
  [
    'E with Claude',
    e,
    'completions',
    'claude-x-20250101',
    `${vertex}/publishers/anthropic/models/claude-x@20250101:rawPredict`,
    `${vertex}/publishers/anthropic/models/claude-x@20250101:streamRawPredict`,
  ],
  [
    'E with Claude',
    e,
    'messages',
    'claude-x-20250101',
    `${vertex}/publishers/anthropic/models/claude-x@20250101:rawPredict`,
    `${vertex}/publishers/anthropic/models/claude-x@20250101:streamRawPredict`,
  ],
  [
    'E with Claude',
    e,
    'responses',
    'claude-x-20250101',
    `${vertex}/publishers/anthropic/models/claude-x@20250101:rawPredict`,
    `${vertex}/publishers/anthropic/models/claude-x@20250101:streamRawPredict`,
  ],
  ['E with Gemini', e, 'completions', 'google/gemini-2.5-pro', `${vertex}/endpoints/openapi/chat/completions`, `${vertex}/endpoints/openapi/chat/completions`],
  ['E with Gemini', e, 'messages', 'google/gemini-2.5-pro', `${vertex}/endpoints/openapi/chat/completions`, `${vertex}/endpoints/openapi/chat/completions`],
  ['E with Gemini', e, 'responses', 'google/gemini-2.5-pro', `${vertex}/endpoints/openapi/chat/completions`, `${vertex}/endpoints/openapi/chat/completions`],
  ['F', f, 'completions', 'anthropic.claude-3:0', '/model/anthropic.claude-3:0/converse', '/model/anthropic.claude-3:0/converse-stream'],
  ['F', f, 'messages', 'anthropic.claude-3:0', '/model/anthropic.claude-3:0/converse', '/model/anthropic.claude-3:0/converse-stream'],
  ['F', f, 'responses', 'anthropic.claude-3:0', '/model/anthropic.claude-3:0/converse', '/model/anthropic.claude-3:0/converse-stream'],
]

/** What Claude Code sends beside the body; `count` is a path of the same client. */
const claudeCode = {
  'anthropic-beta': 'claude-code-20250219,context-1m-2025-08-07,prompt-caching-scope-2026-01-05,advanced-tool-use-2025-11-20',
  'anthropic-version': '2023-06-01',
  'x-api-key': 'of-the-client',
}
const ownHeaders = ['anthropic-beta', 'anthropic-version', 'x-api-key']

test.each<[string, Config, string, Record<string, string>]>([
  ['A', a, 'gpt-4o', {}],
  ['B', b, 'any', {}],
  ['C', c, 'claude-x', { 'anthropic-beta': claudeCode['anthropic-beta'], 'anthropic-version': '2023-06-01', 'x-api-key': 'secret-key' }],
  ['D', d, 'gemini-2.5-pro', {}],
  ['E with Claude', e, 'claude-x', { 'anthropic-beta': 'context-1m-2025-08-07,tool-search-tool-2025-10-19', 'anthropic-version': '2023-06-01' }],
  ['E with Gemini', e, 'google/gemini-2.5-pro', {}],
  ['F', f, 'anthropic.claude-3:0', {}],
])('provider %s gets only those versions and keys of a Messages client that it knows', async (name, provider, model, headers) => {
  const { post, mock } = await start(provider)
  const { status } = await post({ path: '/v1/messages?beta=true&x=1', body: clients.messages.body(model), headers: claudeCode })
  expect(status).toBe(200)
  const [request] = mock.requests
  expect(Object.fromEntries(ownHeaders.flatMap((key) => (request?.headers[key] === undefined ? [] : [[key, request.headers[key]]])))).toEqual(headers)
  expect(/beta=true/.test(request?.path ?? '')).toBe(name === 'C')
  if (name.startsWith('E') || name === 'D' || name === 'F') expect(request?.path).not.toContain('x=1')
})

describe.each(rows)('provider %s', (_name, provider, client, model, path, streamPath) => {
  const { path: clientPath, body, text, streamed } = clients[client]

  test(`serves a client of ${client}`, async () => {
    const { post, mock, gateway } = await start(provider)
    const { status, json, headers } = await post({ path: clientPath, body: body(model) })
    let found: unknown = json
    for (const key of text) found = (found as Record<string | number, unknown> | undefined)?.[key]
    expect([status, found, headers['content-type']]).toEqual([200, 'echo: hello you', 'application/json'])
    expect(mock.requests.map((request) => request.path)).toEqual([path])
    const fields = logFieldsOf(gateway.finished[0])
    expect([fields['gen_ai.usage.output_tokens'], Number(fields['gen_ai.usage.input_tokens']) >= 4]).toEqual([3, true])
  })

  test(`serves a streaming client of ${client}`, async () => {
    const { post, mock, gateway } = await start(provider)
    const response = await post({ path: clientPath, body: { ...body(model), stream: true }, headers: { 'x-mock': 'chunk=7' } })
    expect([response.status, response.headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect(response.text).toMatch(streamed)
    expect(mock.requests.map((request) => request.path)).toEqual([streamPath])
    const fields = logFieldsOf(gateway.finished[0])
    expect([fields['gen_ai.usage.output_tokens'], Number(fields['gen_ai.usage.input_tokens']) >= 4, typeof fields['proxy.ai.time_to_first_token']]).toEqual([
      3,
      true,
      'number',
    ])
  })

  test(`returns an error to a client of ${client} in its format`, async () => {
    const { post } = await start(provider)
    const response = await post({ path: clientPath, body: { ...body(model), stream: true }, headers: { 'x-mock': 'status=429; retry-after=7' } })
    expect([response.status, response.headers['content-type'], response.headers['retry-after']]).toEqual([429, 'application/json', '7'])
    expect(response.json['error']?.['message']).toBe('mock failure')
    if (client === 'messages') expect([response.json['type'], typeof response.json['error']?.['type']]).toEqual(['error', 'string'])
  })
})

test.each<[string, Config, string, string]>([
  ['A', a, 'text-embedding-3-small', '/v1/embeddings'],
  ['B', b, 'x', '/openai/deployments/gpt-4o/embeddings?api-version=2024-10-21'],
  ['D', d, 'gemini-embedding-001', '/v1beta/openai/embeddings'],
  ['E', e, 'text-embedding-005', `${vertex}/publishers/google/models/text-embedding-005:predict`],
  ['F with Titan', f, 'amazon.titan-embed-text-v2:0', '/model/amazon.titan-embed-text-v2:0/invoke'],
  ['F with Cohere', f, 'cohere.embed-english-v3', '/model/cohere.embed-english-v3/invoke'],
  ['F with Nova', f, 'amazon.nova-embed', '/model/amazon.nova-embed/invoke'],
])('embeddings are served by %s', async (_, provider, model, path) => {
  const { post, mock, gateway } = await start(provider)
  const { status, json } = await post({ path: '/v1/embeddings', body: { model, input: 'some words here' } })
  expect([status, json['object'], json['data']?.[0]?.['embedding'], json['usage']?.['total_tokens']]).toEqual([200, 'list', [15 / 128, 3 / 16, 0.5], 3])
  expect(mock.requests[0]?.path).toBe(path)
  expect(logFieldsOf(gateway.finished[0])).toMatchObject({ 'gen_ai.operation.name': 'embeddings', 'gen_ai.usage.input_tokens': 3 })
})

test.each<[string, Config, string, string | undefined]>([
  ['C', c, 'claude-x', '/v1/messages/count_tokens'],
  ['E with Claude', e, 'claude-x', `${vertex}/publishers/anthropic/models/count-tokens:rawPredict`],
  ['F with Claude', f, 'anthropic.claude-3', '/model/anthropic.claude-3/count-tokens'],
  ['A by the gateway', a, 'gpt-4o', undefined],
  ['D by the gateway', d, 'gemini-2.5-pro', undefined],
  ['F with Nova by the gateway', f, 'amazon.nova-pro', undefined],
])('tokens are counted with %s', async (_, provider, model, path) => {
  const { post, mock, gateway } = await start(provider)
  const { status, json } = await post({ path: '/v1/messages/count_tokens', body: { model, messages: [{ role: 'user', content: 'one two three' }] } })
  expect([status, Number(json['input_tokens']) >= 1, Object.keys(json)]).toEqual([200, true, ['input_tokens']])
  expect(mock.requests[0]?.path).toBe(path)
  const [exchange] = gateway.finished
  expect(exchange && evalHost(compileExpression('llm.countTokens', 'log'), new ExchangeView(exchange))).toBe(Number(json['input_tokens']))
})

describe('credentials', () => {
  test.each<[string, Config, string, Record<string, string | undefined>]>([
    ['A receives a bearer token', a, 'gpt-4o', { authorization: 'Bearer secret-key', 'x-api-key': undefined }],
    ['B receives a bearer token', b, 'gpt-4o', { authorization: 'Bearer secret-key' }],
    ['C receives the key in x-api-key', c, 'claude-x', { authorization: undefined, 'x-api-key': 'secret-key', 'anthropic-version': '2023-06-01' }],
    ['D receives a bearer token', d, 'gemini', { authorization: 'Bearer secret-key' }],
    ['E receives a bearer token', e, 'gemini', { authorization: 'Bearer secret-key' }],
  ])('provider %s', async (_, provider, model, headers) => {
    const { post, mock } = await start(provider)
    await post({ body: clients.completions.body(model), headers: { authorization: 'Bearer of-the-client' } })
    const seen = mock.requests[0]?.headers ?? {}
    expect(Object.fromEntries(Object.keys(headers).map((name) => [name, seen[name]]))).toEqual(headers)
  })

  test('provider F receives a signature', async () => {
    const { post, mock } = await start(f)
    await post({ body: clients.completions.body('anthropic.claude-3'), headers: { authorization: 'Bearer of-the-client', 'x-mine': '1' } })
    const { headers = {} } = mock.requests[0] ?? {}
    expect(headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AK\/\d{8}\/us-east-1\/bedrock\/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
    expect([headers['x-amz-security-token'], headers['x-mine']]).toEqual(['ST', '1'])
  })
})
