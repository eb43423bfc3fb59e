import { afterEach, describe, expect, test } from '@jest/globals'
import { PRESET_NAMES, presets, type PresetName } from '#api/llm-presets.ts'
import type { CustomProvider } from '#gen/config/types.ts'
import { startMockProvider, type MockProvider } from '../../../e2e/harness/llm/provider.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { isObject } from './common/json.ts'
import { CompletionsReader } from './formats/completions/steps.ts'
import { createProvider } from './providers/index.ts'
import { rulesOf } from './rules/index.ts'
import { FactsRecorder } from './stream/facts.ts'
import { startLlmGateway, type LlmGateway } from './testing/gateway.ts'
import { sdkRoutes, send } from './testing/test-bed.ts'
import { readCompletionsUsage, toUsage } from './usage/raw.ts'

/** Providers that are data (llm.md §4.4). */

const open: (LlmGateway | MockProvider)[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** A request with everything that differs between servers. */
const everything = {
  model: 'm',
  messages: [
    { role: 'developer', content: 'be brief' },
    { role: 'user', name: 'bob', content: 'hi' },
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'hm',
      tool_calls: [{ id: 'call_abcdefghij', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call_abcdefghij', content: '1' },
  ],
  tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object', properties: {} } } }],
  tool_choice: 'auto',
  max_completion_tokens: 5,
  seed: 1,
  user: 'u',
  logprobs: true,
  logit_bias: {},
  presence_penalty: 0.5,
  parallel_tool_calls: false,
  reasoning_effort: 'low',
  response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object', properties: {} } } },
  stream: true,
}

/** What a server got of it, as far as servers differ. */
interface Received {
  readonly limit: string
  /** Fields that are not there. */
  readonly gone: readonly string[]
  readonly reasoning: object
  readonly format: string | undefined
  readonly hasName: boolean
  readonly hasThought: boolean
  readonly isStrict: boolean
  readonly id: string
  readonly asksUsage: boolean
}

const usual: Received = {
  limit: 'max_tokens',
  gone: [],
  reasoning: { reasoning_effort: 'low' },
  format: 'json_schema',
  hasName: true,
  hasThought: true,
  isStrict: true,
  id: 'call_abcdefghij',
  asksUsage: true,
}
const penalties = ['logit_bias', 'presence_penalty']
const on = { thinking: { type: 'enabled' } }

interface Row {
  /** Host of the provider; undefined: the user's own. */
  readonly host?: string
  readonly base: string
  /** Other APIs, by their paths. */
  readonly responses?: true
  readonly embeddings?: true
  readonly messages?: string
  readonly system?: string
  readonly body?: Partial<Received>
}

const rows: Readonly<Record<PresetName, Row>> = {
  groq: {
    host: 'api.groq.com',
    base: '/openai/v1',
    responses: true,
    body: { gone: ['logprobs', 'logit_bias'], hasName: false, hasThought: false },
  },
  mistral: {
    host: 'api.mistral.ai',
    base: '/v1',
    embeddings: true,
    system: 'mistral_ai',
    body: {
      gone: ['seed', 'user', 'logprobs', 'logit_bias'],
      hasName: false,
      hasThought: false,
      isStrict: false,
      id: expect.stringMatching(/^[A-Za-z0-9]{9}$/) as unknown as string,
      asksUsage: false,
    },
  },
  deepseek: {
    host: 'api.deepseek.com',
    base: '',
    messages: '/anthropic/v1/messages',
    body: { reasoning: { ...on, reasoning_effort: 'high' }, format: 'json_object' },
  },
  xai: { host: 'api.x.ai', base: '/v1', responses: true, system: 'x_ai', body: { limit: 'max_completion_tokens', isStrict: false } },
  together: { host: 'api.together.ai', base: '/v1', embeddings: true },
  fireworks: { host: 'api.fireworks.ai', base: '/inference/v1', responses: true, embeddings: true, messages: '/inference/v1/messages' },
  openrouter: { host: 'openrouter.ai', base: '/api/v1', responses: true, embeddings: true, messages: '/api/v1/messages' },
  baseten: { host: 'inference.baseten.co', base: '/v1' },
  cerebras: { host: 'api.cerebras.ai', base: '/v1', body: { gone: [...penalties, 'parallel_tool_calls'], hasThought: false } },
  deepinfra: { host: 'api.deepinfra.com', base: '/v1/openai', embeddings: true, messages: '/anthropic/v1/messages' },
  huggingface: { host: 'router.huggingface.co', base: '/v1', responses: true },
  nvidia: { host: 'integrate.api.nvidia.com', base: '/v1', embeddings: true },
  perplexity: { host: 'api.perplexity.ai', base: '/v1', responses: true, embeddings: true },
  cohere: { host: 'api.cohere.ai', base: '/compatibility/v1', embeddings: true },
  moonshot: { host: 'api.moonshot.ai', base: '/v1', messages: '/anthropic/v1/messages', body: { reasoning: on } },
  zhipu: { host: 'open.bigmodel.cn', base: '/api/paas/v4', embeddings: true, body: { reasoning: on, format: 'json_object' } },
  zai: { host: 'api.z.ai', base: '/api/paas/v4', embeddings: true, body: { reasoning: on, format: 'json_object' } },
  minimax: {
    host: 'api.minimax.io',
    base: '/v1',
    responses: true,
    messages: '/anthropic/v1/messages',
    body: { limit: 'max_completion_tokens', gone: ['tool_choice', 'seed', ...penalties, 'response_format'], reasoning: {}, format: undefined, isStrict: false },
  },
  dashscope: {
    host: 'dashscope-intl.aliyuncs.com',
    base: '/compatible-mode/v1',
    responses: true,
    embeddings: true,
    messages: '/apps/anthropic/v1/messages',
    body: { reasoning: { enable_thinking: true } },
  },
  sambanova: { host: 'api.sambanova.ai', base: '/v1', embeddings: true },
  novita: { host: 'api.novita.ai', base: '/openai/v1', embeddings: true },
  databricks: { base: '/ai-gateway/mlflow/v1', embeddings: true },
  ollama: { base: '/v1', responses: true, embeddings: true, body: { gone: ['tool_choice'] } },
  vllm: { base: '/v1', responses: true, embeddings: true },
  sglang: { base: '/v1', responses: true, embeddings: true },
  llamacpp: { base: '/v1', responses: true, embeddings: true },
  lmstudio: { base: '/v1', responses: true, embeddings: true },
  tgi: { base: '/v1' },
}

/** A gateway in front of a mock of a provider. */
async function start(preset: PresetName) {
  const mock = await startMockProvider()
  const gateway = await startLlmGateway({
    // The mock has no TLS.
    ai: presets[preset].hasTls === true ? { provider: { custom: customOf(preset, mock.url) } } : { provider: { preset, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes: sdkRoutes } },
  })
  open.push(gateway, mock)
  return { mock, gateway, post: (path: string, body: object) => send(gateway.port, { path, headers: { 'x-api-key': 'of the client' }, body }) }
}

const customOf = (preset: PresetName, url: string): CustomProvider => ({
  baseUrl: `${url}${presets[preset].base}`,
  formats: [...presets[preset].formats],
  rules: presets[preset].rules as NonNullable<CustomProvider['rules']>,
})

function summarize(body: Readonly<Record<string, unknown>>): Received {
  const messages = body['messages'] as typeof everything.messages
  const [tool] = body['tools'] as { function: object }[]
  const { thinking, reasoning_effort: effort, enable_thinking: isThinking } = body
  return {
    limit: Object.keys(body).find((field) => field.startsWith('max_')) ?? 'none',
    gone: Object.keys(everything).filter((field) => !['max_completion_tokens', 'reasoning_effort'].includes(field) && body[field] === undefined),
    reasoning: Object.fromEntries(
      Object.entries({ thinking, reasoning_effort: effort, enable_thinking: isThinking }).filter(([, value]) => value !== undefined),
    ),
    format: isObject(body['response_format']) ? String(body['response_format']['type']) : undefined,
    hasName: messages.some((message) => message.name !== undefined),
    hasThought: messages.some((message) => message.reasoning_content !== undefined),
    isStrict: tool !== undefined && 'strict' in tool.function,
    id: messages.flatMap((message) => message.tool_calls ?? [])[0]?.id ?? '',
    asksUsage: body['stream_options'] !== undefined,
  }
}

describe.each(PRESET_NAMES)('the preset %s', (name) => {
  const row = rows[name]
  const provider = createProvider({ preset: name, model: 'own' })

  test('has the host, the paths and the name for prices', () => {
    expect([provider?.host, provider?.isTls, provider?.model, provider?.system]).toEqual([
      row.host ?? '',
      name === 'databricks' ? true : undefined,
      'own',
      row.system ?? name,
    ])
    const paths = { completions: row.base, responses: row.base, embeddings: row.base }
    for (const [format, base] of Object.entries(paths))
      expect(provider?.pathFor({ format: format as 'completions', model: 'm', isStreaming: false })).toBe(
        `${base}/${format === 'completions' ? 'chat/completions' : format}`,
      )
  })

  test('sends requests as the provider takes them', async () => {
    const { mock, gateway, post } = await start(name)
    const system = name === 'databricks' ? 'custom' : (row.system ?? name)
    if (name !== 'perplexity') {
      const { status } = await post('/v1/chat/completions', everything)
      const sent = mock.requests.splice(0)
      expect([status, sent.map(({ path }) => path), sent[0]?.headers['authorization']]).toEqual([200, [`${row.base}/chat/completions`], 'Bearer k'])
      expect(summarize(sent[0]?.body ?? {})).toEqual({ ...usual, ...row.body })
      const fields = logFieldsOf(gateway.finished[0])
      // The mock reports usage on request only.
      expect([fields['gen_ai.provider.name'], typeof fields['gen_ai.usage.input_tokens']]).toEqual([
        system,
        row.body?.asksUsage === false ? 'undefined' : 'number',
      ])
    }
    for (const [path, body, own] of [
      ['responses', { model: 'm', input: 'hi' }, row.responses],
      ['embeddings', { model: 'm', input: 'hi' }, row.embeddings],
      ['messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }, row.messages],
    ] as const) {
      const { status } = await post(`/v1/${path}`, body)
      const sent = mock.requests.splice(0)
      if (own === undefined && (path === 'embeddings' || name === 'perplexity')) expect([path, status, sent]).toEqual([path, 400, []])
      else {
        const expected = own === true ? `${row.base}/${path}` : (own ?? `${row.base}/chat/completions`)
        expect([path, status, sent.map((request) => request.path)]).toEqual([path, 200, [expected]])
        const { authorization, 'x-api-key': key, 'anthropic-version': version } = sent[0]?.headers ?? {}
        expect([authorization, ...(path === 'messages' ? [key, version] : [])]).toEqual([
          'Bearer k',
          ...(path === 'messages' ? (own === undefined ? [undefined, undefined] : ['k', '2023-06-01']) : []),
        ])
      }
    }
  })
})

describe('a custom provider', () => {
  const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  async function startCustom(more: Partial<CustomProvider>, auth: object = { auth: { key: 'k' } }) {
    const mock = await startMockProvider()
    const gateway = await startLlmGateway({
      ai: { provider: { custom: { baseUrl: `${mock.url}/nested/v2/`, ...more } } },
      policies: { ...auth, ai: { routes: sdkRoutes } },
    })
    open.push(gateway, mock)
    return { mock, post: (path: string, body: object, headers = {}) => send(gateway.port, { path, headers, body }) }
  }

  test('is called below its base URL, with its own model', async () => {
    const { mock, post } = await startCustom({ model: 'theirs' })
    for (const path of ['chat/completions', 'embeddings']) expect((await post(`/v1/${path}`, { ...ask, input: 'x' })).status).toBe(200)
    expect(mock.requests.map(({ path, body }) => [path, body?.['model']])).toEqual([
      ['/nested/v2/chat/completions', 'theirs'],
      ['/nested/v2/embeddings', 'theirs'],
    ])
  })

  test.each<[string, NonNullable<CustomProvider['auth']>, Record<string, string | undefined>]>([
    ['a header without a word', { header: 'X-Api-Key' }, { 'x-api-key': 'k', authorization: undefined }],
    ['a header and a word', { header: 'Ocp-Apim-Subscription-Key', scheme: 'Key' }, { 'ocp-apim-subscription-key': 'Key k', authorization: undefined }],
    ['another word in Authorization', { scheme: 'Api-Key' }, { authorization: 'Api-Key k' }],
    ['Authorization by its name', { header: 'Authorization' }, { authorization: 'Bearer k' }],
  ])('gets its credential by %s, in place of that of the client', async (_, auth, expected) => {
    const { mock, post } = await startCustom({ auth })
    await post('/v1/chat/completions', ask, { 'x-api-key': 'client', 'ocp-apim-subscription-key': 'client', authorization: 'Bearer client' })
    expect(mock.requests[0]?.headers).toMatchObject(Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)))
    for (const [name, value] of Object.entries(expected)) expect([name, mock.requests[0]?.headers[name]]).toEqual([name, value])
  })

  test('gets Messages with the version of the API, whatever header has the credential', async () => {
    const { mock, post } = await startCustom({ formats: ['Messages'], auth: { header: 'x-key' } })
    expect((await post('/v1/messages', { ...ask, max_tokens: 9 })).status).toBe(200)
    const { path, headers } = mock.requests[0] ?? {}
    expect([path, headers?.['anthropic-version'], headers?.['x-key'], headers?.['authorization']]).toEqual([
      '/nested/v2/messages',
      '2023-06-01',
      'k',
      undefined,
    ])
  })

  test('gets translated requests by its rules, and what it loses is named', async () => {
    const { mock, post } = await startCustom({
      rules: { rename: { max_tokens: 'limit' }, drop: ['temperature'], outputFormat: 'None', reasoning: 'EnableThinking' },
    })
    const { status, headers } = await post('/v1/messages', {
      ...ask,
      max_tokens: 9,
      temperature: 0.5,
      thinking: { type: 'adaptive' },
      output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } } },
    })
    const { messages: _, ...body } = mock.requests[0]?.body ?? {}
    expect([status, body]).toEqual([200, { model: 'm', enable_thinking: true, limit: 9 }])
    expect(headers['x-proxy-omitted']).toBe('temperature, response_format')
  })
})

test.each<[model: string, stops: number, drops: number]>([
  ['grok-4.3', 0, 2],
  ['x-ai/grok-4', 0, 2],
  ['grok-3', Infinity, 0],
])('the model %s has the rules of its family at each server', (model, stops, drops) => {
  const rules = rulesOf('compatible', model, undefined, presets.xai.rules)
  expect([rules.stops.max, rules.drops.length, rules.tokenLimit]).toEqual([stops, drops, 'max_completion_tokens'])
})

test.each<[PresetName, object, object]>([
  ['deepseek', { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 }, { cachedInputTokens: 4 }],
  ['moonshot', { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 4 }, { cachedInputTokens: 4 }],
  ['mistral', { prompt_tokens: 10, completion_tokens: 5, num_cached_tokens: 4 }, { cachedInputTokens: 4 }],
  ['sglang', { prompt_tokens: 10, completion_tokens: 5, reasoning_tokens: 3 }, { reasoningTokens: 3 }],
  ['xai', { prompt_tokens: 10, completion_tokens: 2, total_tokens: 15, completion_tokens_details: { reasoning_tokens: 3 } }, { reasoningTokens: 3 }],
  [
    'dashscope',
    { prompt_tokens: 10, completion_tokens: 5, cache_creation_input_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
    { cachedInputTokens: 4, cacheCreationInputTokens: 2 },
  ],
  [
    'openai' as PresetName,
    { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } },
    { cachedInputTokens: 4 },
  ],
])('the usage of %s is read where it is', (_, usage, expected) =>
  expect(toUsage(readCompletionsUsage({ ...usage }))).toMatchObject({ inputTokens: 10, outputTokens: 5, totalTokens: 15, ...expected }),
)

test.each<[PresetName, object]>([
  ['groq', { choices: [], x_groq: { id: 'r', usage: { prompt_tokens: 10, completion_tokens: 5 } } }],
  ['moonshot', { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: { prompt_tokens: 10, completion_tokens: 5 } }] }],
])('the usage of streams of %s is read where it is', (_, chunk) => {
  const recorder = new FactsRecorder(false)
  for (const step of new CompletionsReader(true).read(undefined, chunk, JSON.stringify(chunk))) recorder.record(step)
  expect(recorder.facts.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 })
})
