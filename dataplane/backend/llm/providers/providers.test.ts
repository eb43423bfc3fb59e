import { describe, expect, test } from '@jest/globals'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ClientFormat, Target, UpstreamFormat } from '../common/types.ts'
import { createProvider, kinds } from './index.ts'

const make = (config: Omit<NamedLLMProvider, 'name'>) => {
  const provider = createProvider(config)
  if (provider === undefined) throw new Error('no provider')
  return provider
}
const a = { providerA: {} }
const b = (more: object = {}) => ({ providerB: { endpoint: 'https://res.openai.azure.com', ...more } })
const dated = b({ deploymentName: 'my-gpt', apiVersion: '2024-10-21' })
const c = { providerC: {} }
const d = { providerD: {} }
const e = (region = 'us-central1') => ({ providerE: { projectId: 'p1', region } })
const f = { providerF: {} }
const vertex = '/v1/projects/p1/locations/us-central1'

describe('the path of a call', () => {
  const paths: [string, Omit<NamedLLMProvider, 'name'>, UpstreamFormat, string, boolean, string][] = [
    ['A, chat', a, 'completions', 'gpt', false, '/v1/chat/completions'],
    ['A, responses', a, 'responses', 'gpt', true, '/v1/responses'],
    ['A, embeddings', a, 'embeddings', 'e', false, '/v1/embeddings'],
    ['B, v1', b(), 'completions', 'gpt', false, '/openai/v1/chat/completions'],
    ['B, preview', b({ apiVersion: 'preview' }), 'responses', 'gpt', false, '/openai/v1/responses?api-version=preview'],
    ['B, dated', dated, 'completions', 'my-gpt', false, '/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21'],
    ['B, dated responses', dated, 'responses', 'my-gpt', false, '/openai/responses?api-version=2024-10-21'],
    ['B, dated embeddings', dated, 'embeddings', 'my-gpt', false, '/openai/deployments/my-gpt/embeddings?api-version=2024-10-21'],
    ['C, messages', c, 'messages', 'claude', true, '/v1/messages'],
    ['C, count', c, 'messagesCount', 'claude', false, '/v1/messages/count_tokens'],
    ['D, chat', d, 'completions', 'gemini-2.0-flash', true, '/v1beta/openai/chat/completions'],
    ['D, embeddings', d, 'embeddings', 'e', false, '/v1beta/openai/embeddings'],
    ['E, Claude', e(), 'messages', 'claude-sonnet-4-20250514', false, `${vertex}/publishers/anthropic/models/claude-sonnet-4@20250514:rawPredict`],
    ['E, Claude stream', e(), 'messages', 'anthropic/claude-x', true, `${vertex}/publishers/anthropic/models/claude-x:streamRawPredict`],
    ['E, Claude count', e(), 'messagesCount', 'claude-x', false, `${vertex}/publishers/anthropic/models/count-tokens:rawPredict`],
    ['E, other models', e(), 'completions', 'google/gemini-2.5-pro', true, `${vertex}/endpoints/openapi/chat/completions`],
    ['E, embeddings', e(), 'predictEmbeddings', 'text-embedding-005', false, `${vertex}/publishers/google/models/text-embedding-005:predict`],
    ['F, chat', f, 'converse', 'anthropic.claude-3-haiku-20240307-v1:0', false, '/model/anthropic.claude-3-haiku-20240307-v1:0/converse'],
    ['F, stream', f, 'converse', 'm', true, '/model/m/converse-stream'],
    ['F, model by ARN', f, 'converse', 'arn:aws:bedrock:a/b%', false, '/model/arn:aws:bedrock:a%2Fb%25/converse'],
    ['F, embeddings', f, 'titanEmbeddings', 'amazon.titan', false, '/model/amazon.titan/invoke'],
    ['F, count', f, 'invokeCount', 'anthropic.claude-x', false, '/model/anthropic.claude-x/count-tokens'],
  ]

  test.each(kinds)('has a row here for %s', (kind) => {
    expect(paths.some(([, config]) => config[kind] !== undefined)).toBe(true)
  })

  test.each(paths)('to provider %s', (_, config, format, model, isStreaming, path) => expect(make(config).pathFor({ format, model, isStreaming })).toBe(path))
})

test.each<[string, Omit<NamedLLMProvider, 'name'>, string]>([
  ['A', a, 'api.openai.com'],
  ['B, scheme removed', b(), 'res.openai.azure.com'],
  ['C', c, 'api.anthropic.com'],
  ['D', d, 'generativelanguage.googleapis.com'],
  ['E, a region', e(), 'us-central1-aiplatform.googleapis.com'],
  ['E, global', e('global'), 'aiplatform.googleapis.com'],
  ['E, a continent', e('eu'), 'aiplatform.eu.rep.googleapis.com'],
  ['F, default region', f, 'bedrock-runtime.us-east-1.amazonaws.com'],
  ['F, a region', { providerF: { region: 'eu-west-1' } }, 'bedrock-runtime.eu-west-1.amazonaws.com'],
])('the host of provider %s', (_, config, host) => expect(make(config).host).toBe(host))

test.each<[string, string, [string, number | undefined]]>([
  ['a host', 'res.openai.azure.com', ['res.openai.azure.com', undefined]],
  ['a port', 'res.internal:8443', ['res.internal', 8443]],
  ['a URL', 'HTTPS://res.internal:8443/openai/', ['res.internal', 8443]],
  ['an IPv6 address', 'https://[::1]:8443', ['::1', 8443]],
])('the endpoint of provider B may be %s', (_, endpoint, expected) => {
  const { host, port } = make(b({ endpoint }))
  expect([host, port]).toEqual(expected)
})

test.each<[string, Omit<NamedLLMProvider, 'name'>, ClientFormat, string, UpstreamFormat[]]>([
  ['A supports Chat Completions and Responses', a, 'completions', 'gpt', ['completions', 'responses']],
  ['C supports only Messages', c, 'completions', 'claude', ['messages']],
  ['C does not support embeddings', c, 'embeddings', 'claude', []],
  ['C counts tokens', c, 'tokenCount', 'claude', ['messagesCount']],
  ['E supports Messages for Claude', e(), 'responses', 'projects/x/publishers/anthropic/models/claude-3', ['messages']],
  ['E supports Chat Completions for other models', e(), 'messages', 'gemini-2.5-pro', ['completions']],
  ['F supports an embedding format per model family', f, 'embeddings', 'cohere.embed-v4', ['cohereEmbeddings']],
  ['F counts tokens for Claude', f, 'tokenCount', 'us.Anthropic.Claude-3', ['invokeCount']],
  ['F does not count tokens for other models', f, 'tokenCount', 'amazon.nova', []],
])('provider %s', (_, config, from, model, formats) => expect(make(config).supports(from, model)).toEqual(formats))

describe('provider C', () => {
  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['moves a bearer token to x-api-key', { authorization: 'Bearer k1', 'x-api-key': 'old' }, { 'anthropic-version': '2023-06-01', 'x-api-key': 'k1' }],
    [
      'keeps an OAuth token',
      { authorization: 'Bearer sk-ant-oat01-x', 'x-api-key': 'old' },
      { authorization: 'Bearer sk-ant-oat01-x', 'anthropic-version': '2023-06-01' },
    ],
    ["keeps the client's x-api-key", { 'x-api-key': 'mine' }, { 'x-api-key': 'mine', 'anthropic-version': '2023-06-01' }],
    ["replaces the client's anthropic-version", { 'anthropic-version': '2030-01-01' }, { 'anthropic-version': '2023-06-01' }],
    [
      'removes browser headers',
      { origin: 'https://x', 'sec-fetch-mode': 'cors', 'access-control-request-method': 'POST' },
      { 'anthropic-version': '2023-06-01' },
    ],
  ])('%s', (_, given, expected) => {
    const headers = HeaderList.from(Object.entries(given))
    make(c).finishHeaders?.(headers, 'completions', '/v1/messages')
    expect(Object.fromEntries(headers)).toEqual(expected)
  })
})

test.each<[string, Record<string, string>, Record<string, string>]>([
  ['sends a key in both headers', { authorization: 'Bearer k1', 'api-key': 'placeholder' }, { authorization: 'Bearer k1', 'api-key': 'k1' }],
  ["removes the client's key beside an access token", { authorization: 'Bearer eyJh.eyJz.sig-_', 'api-key': 'x' }, { authorization: 'Bearer eyJh.eyJz.sig-_' }],
  ["keeps the client's key", { 'api-key': 'mine' }, { 'api-key': 'mine' }],
])('provider B %s', (_, given, expected) => {
  const headers = HeaderList.from(Object.entries(given))
  make(dated).finishHeaders?.(headers, 'completions', '/openai/deployments/my-gpt/chat/completions')
  expect(Object.fromEntries(headers)).toEqual(expected)
})

test.each<[string, ClientFormat | undefined, string, Record<string, string>, Record<string, string>]>([
  [
    'moves an API key for native paths, in place of that of the client',
    undefined,
    '/v1beta/models/gemini-2.5-flash:generateContent',
    { authorization: 'Bearer AIzaKey', 'x-goog-api-key': 'placeholder' },
    { 'x-goog-api-key': 'AIzaKey' },
  ],
  [
    'keeps an API key for the compatible endpoint',
    undefined,
    '/v1beta/openai/models',
    { authorization: 'Bearer AIzaKey' },
    { authorization: 'Bearer AIzaKey' },
  ],
  ['keeps an API key for chats at a configured path', 'completions', '/gemini', { authorization: 'Bearer AIzaKey' }, { authorization: 'Bearer AIzaKey' }],
  ['keeps other tokens', undefined, '/v1beta/models/m:countTokens', { authorization: 'Bearer ya29.x' }, { authorization: 'Bearer ya29.x' }],
  [
    "removes the client's API key beside another token",
    undefined,
    '/v1beta/models/m:countTokens',
    { authorization: 'Bearer ya29.x', 'x-goog-api-key': 'AIzaMine' },
    { authorization: 'Bearer ya29.x' },
  ],
  ["keeps the client's API key", undefined, '/v1beta/models/m:countTokens', { 'x-goog-api-key': 'AIzaMine' }, { 'x-goog-api-key': 'AIzaMine' }],
])('provider D %s', (_, from, path, given, expected) => {
  const headers = HeaderList.from(Object.entries(given))
  make(d).finishHeaders?.(headers, from, path)
  expect(Object.fromEntries(headers)).toEqual(expected)
})

test.each<[Record<string, string>, Record<string, string>]>([
  [{ authorization: 'Bearer ya29.x', 'x-goog-api-key': 'AIzaMine' }, { authorization: 'Bearer ya29.x' }],
  [{ 'x-goog-api-key': 'AIzaMine' }, { 'x-goog-api-key': 'AIzaMine' }],
])('provider E removes the API key of a client beside a token: %j', (given, expected) => {
  const headers = HeaderList.from(Object.entries(given))
  make(e()).finishHeaders?.(headers, undefined, '/v1/publishers/google/models/m:generateContent')
  expect(Object.fromEntries(headers)).toEqual(expected)
})

test.each<[ClientFormat | undefined, string[]]>([
  ['responses', ['x-mine']],
  ['completions', ['conversation_id', 'session_id', 'x-mine']],
  ['messages', ['conversation_id', 'session_id', 'x-mine']],
  [undefined, ['conversation_id', 'session_id', 'x-mine']],
])('provider F removes session ids only from Responses requests: %s', (from, expected) => {
  const headers = HeaderList.from(Object.entries({ 'anthropic-beta': 'a', conversation_id: 'c', session_id: 's', 'x-mine': 'm' }))
  make(f).finishHeaders?.(headers, from, '/model/m/converse')
  expect([...headers].map(([name]) => name)).toEqual(expected)
})

test.each<[string, Omit<NamedLLMProvider, 'name'>, UpstreamFormat, string, Target]>([
  ['A, a model of OpenAI', a, 'completions', 'openai/gpt-4o', 'openai'],
  ['A, a fine-tuned model', a, 'completions', 'ft:gpt-4.1:me', 'openai'],
  ['A, a model of another vendor', a, 'completions', 'llama', 'compatible'],
  ['A, a model with open weights', a, 'completions', 'gpt-oss-20b', 'compatible'],
  ['A, Responses', a, 'responses', 'gpt-5', 'responses'],
  ['B, a deployment of any name', b(), 'completions', 'mine', 'azure'],
  ['C', c, 'messages', 'claude-x', 'anthropic'],
  ['D', d, 'completions', 'gemini-2.5-pro', 'gemini'],
  ['E, Gemini', e(), 'completions', 'google/gemini-3-pro', 'vertex'],
  ['E, Claude', e(), 'messages', 'claude-opus-4-7', 'vertexClaude'],
  ['F', f, 'converse', 'm', 'converse'],
  ['E, Claude, counting', e(), 'messagesCount', 'claude-opus-4-7', 'vertexClaude'],
])('the rules of provider %s', (_, config, format, model, expected) => expect(make(config).targetOf(format, model)).toBe(expected))

test('provider E adds the version to bodies for Claude, and removes model and cache scopes', () => {
  const provider = make(e())
  const body = {
    model: 'claude-x',
    output_format: {},
    messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'e', scope: 's' } }] }],
  }
  expect(provider.finishBody?.(body, { format: 'messages', model: 'claude-x', isStreaming: false })).toEqual({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'e' } }] }],
    anthropic_version: 'vertex-2023-10-16',
  })
  const count = provider.finishBody?.(
    { model: 'anthropic/claude-x-20250101', messages: [] },
    { format: 'messagesCount', model: 'anthropic/claude-x-20250101', isStreaming: false },
  )
  expect(count).toEqual({ messages: [], anthropic_version: 'vertex-2023-10-16', model: 'claude-x@20250101' })
  const chat = { model: 'gemini' }
  expect(provider.finishBody?.(chat, { format: 'completions', model: 'gemini', isStreaming: false })).toBe(chat)
})
