import { afterEach, describe, expect, test } from '@jest/globals'
import type { AIModel, BackendFull } from '#gen/config/types.ts'
import { startMockProvider, type MockProvider } from '../../../e2e/harness/llm/provider.ts'
import { errorTextOf } from '../../observe/telemetry/access-log/fields.ts'
import type { ConfigMessage } from '../../config/store.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { chat, sdkRoutes, send, type Post, type TestResponse } from './testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

interface Bed {
  readonly gateway: LlmGateway
  /** `a` is OpenAI, `b` Anthropic, `c` a Service; each is the backend `ns/<name>`. */
  readonly mocks: Readonly<Record<'a' | 'b' | 'c', MockProvider>>
  post(post: Post): Promise<TestResponse>
  /** Backend and model of each request that reached a mock. */
  sent(): string[]
}

/** Starts a gateway with models in front of three backends, whose mocks echo. */
async function start(models: AIModel[], options: Partial<LlmGatewayOptions> & { readonly of?: Readonly<Record<string, BackendFull>> } = {}): Promise<Bed> {
  const mocks = { a: await startMockProvider(), b: await startMockProvider(), c: await startMockProvider() }
  const { of = {}, more = [], ...rest } = options
  const backend = (name: 'a' | 'b', provider: object): ConfigMessage => ({
    kind: 'backend',
    message: {
      key: `ns/${name}`,
      ai: { provider: { ...provider, host: '127.0.0.1', port: mocks[name].port } },
      ...(of[name] && { policies: of[name] }),
    },
  })
  const gateway = await startLlmGateway({
    ai: { models },
    ...rest,
    more: [
      backend('a', { providerA: {} }),
      backend('b', { providerC: { model: 'claude-own' } }),
      { kind: 'service', message: { key: 'ns/c', ports: [{ port: 80, endpoints: [{ address: '127.0.0.1', port: mocks.c.port }] }] } },
      ...more,
    ],
  })
  open.push(gateway, mocks.a, mocks.b, mocks.c)
  return {
    gateway,
    mocks,
    post: (post) => send(gateway.port, { ...post, headers: { accept: 'application/json', ...post.headers } }),
    sent: () => Object.entries(mocks).flatMap(([name, mock]) => mock.requests.map(({ body }) => `${name} ${String(body?.['model'])}`)),
  }
}

const a = (model?: string, weight?: number) => ({
  backendRef: { backend: 'ns/a' },
  ...(model !== undefined && { model }),
  ...(weight !== undefined && { weight }),
})
const b = { backendRef: { backend: 'ns/b' } }
const c = { backendRef: { service: 'ns/c', port: 80 }, model: 'llama' }
const ask = (model: string, more: object = {}): Post => ({ body: chat('hello', { model, ...more }) })
const keyed = (metadata: object): Pick<LlmGatewayOptions, 'onGateway' | 'secrets'> => ({
  onGateway: [{ traffic: { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } } }],
  secrets: [{ key: 'opaque/ns/keys', type: 'opaque', data: { k: JSON.stringify({ key: 'k', metadata }) } }],
})
const headers = { authorization: 'Bearer k' }

describe('a model', () => {
  test('is sent to its target, which is asked for the model of the target, of its provider, or of the client', async () => {
    const bed = await start([
      { name: 'mini', to: [a('gpt-5-mini-2026-08')] },
      { name: 'claude', to: [b] },
      { name: 'gpt-*', to: [a()] },
      { name: 'llama', to: [c] },
    ])
    const statuses: number[] = []
    for (const name of ['mini', 'claude', 'gpt-4.1', 'llama']) statuses.push((await bed.post(ask(name))).status)
    expect([statuses, bed.sent()]).toEqual([
      [200, 200, 200, 200],
      ['a gpt-5-mini-2026-08', 'a gpt-4.1', 'b claude-own', 'c llama'],
    ])
  })

  test('is served in each format that clients use, at the paths of the SDKs without routes', async () => {
    const bed = await start([{ name: 'm', to: [a('gpt-4o')] }])
    const responses = [
      await bed.post(ask('m')),
      await bed.post({ path: '/v1/messages', body: { ...chat(), model: 'm', max_tokens: 9 } }),
      await bed.post({ path: '/v1/responses', body: { model: 'm', input: 'hello' } }),
      await bed.post({ path: '/v1/embeddings', body: { model: 'm', input: 'hello' } }),
      await bed.post({ path: '/v1/messages/count_tokens', body: { ...chat(), model: 'm' } }),
      await bed.post(ask('m', { stream: true })),
    ]
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    expect(responses.map(({ json }) => json['object'] ?? json['type'] ?? Object.keys(json)[0])).toEqual([
      'chat.completion',
      'message',
      'response',
      'list',
      'input_tokens',
      undefined,
    ])
    expect(bed.sent()).toEqual(Array.from({ length: 5 }, () => 'a gpt-4o'))
  })

  test('is named to the client and the log: what was asked, which target responded, and why others did not', async () => {
    const catalog = { configMapRef: { providers: { openai: { models: { small: { rates: { input: '1', output: '1' }, contextWindow: 1 } } } } } }
    const bed = await start([{ name: 'm', to: [a('small'), a('gpt-4o')] }], { of: { a: { ai: { priceCatalog: catalog } } } })
    const { headers: received } = await bed.post(ask('m'))
    expect(received['x-proxy-model']).toBe('gpt-4o')
    const fields = logFieldsOf(bed.gateway.finished[0])
    expect([fields['proxy.ai.model.requested'], fields['proxy.ai.model.target'], fields['proxy.ai.model.skipped'], fields['gen_ai.request.model']]).toEqual([
      'm',
      'ns/a gpt-4o',
      'ns/a small: its context window has 1 tokens, the prompt about 2',
      'gpt-4o',
    ])
  })

  test('that does not exist, is internal, or has no rule that matches is 404 in the format of the client with the names it may use', async () => {
    const models: AIModel[] = [
      { name: 'm', to: [a()] },
      { name: 'hidden', visibility: 'Internal', to: [a()] },
      {
        name: 'never',
        rules: [
          { when: 'request.method == "GET" && size(llmRequest.tools) > 0', to: [a()] },
          { when: 'fail("x")', to: [a()] },
        ],
      },
    ]
    const bed = await start(models)
    const openai = await bed.post(ask('nothing'))
    expect([openai.status, openai.json]).toEqual([
      404,
      { error: { message: 'the model does not exist: "nothing"; use one of m', type: 'not_found_error', param: 'model', code: 'model_not_found' } },
    ])
    const anthropic = await bed.post({ path: '/v1/messages', body: { ...chat(), model: 'hidden', max_tokens: 1 } })
    expect([anthropic.status, anthropic.json]).toEqual([
      404,
      { type: 'error', error: { type: 'not_found_error', message: 'the model does not exist: "hidden"; use one of m' } },
    ])
    expect((await bed.post(ask('never'))).status).toBe(404)
    expect((await bed.post({ body: { messages: [] } })).status).toBe(400)
    expect(bed.sent()).toEqual([])
  })

  test('may be used by API keys that name it as clients do, whatever its target is asked for', async () => {
    const bed = await start(
      [
        { name: 'm', to: [a('gpt-4o')] },
        { name: 'other', to: [a('gpt-4o')] },
      ],
      keyed({ models: ['m'] }),
    )
    const statuses = [await bed.post({ ...ask('m'), headers }), await bed.post({ ...ask('other'), headers }), await bed.post({ ...ask('nothing'), headers })]
    expect(statuses.map(({ status }) => status)).toEqual([200, 403, 403])
    expect((await bed.post({ path: '/v1/models', method: 'GET', headers })).json['data']).toEqual([expect.objectContaining({ id: 'm' })])
  })

  test('has the policies of its section, of the backend with models and of the target, the nearer ones first', async () => {
    const set = (value: string): BackendFull => ({ ai: { overrides: [{ field: 'user', value }] } })
    const models: AIModel[] = [
      { name: 'm', to: [a('x')] },
      { name: 'n', to: [a('x')] },
      { name: 'o', to: [b] },
    ]
    const bed = await start(models, {
      policies: set('of-models'),
      onProvider: { m: { ai: { defaults: [{ field: 'seed', value: 7 }] } } },
      of: { b: set('of-b') },
    })
    for (const name of ['m', 'n', 'o']) await bed.post(ask(name))
    const [first, second] = bed.mocks.a.requests
    expect([first?.body?.['user'], first?.body?.['seed'], second?.body?.['user'], second?.body?.['seed']]).toEqual(['of-models', 7, 'of-models', undefined])
    expect(bed.mocks.b.requests[0]?.body?.['metadata']).toEqual({ user_id: 'of-b' })
  })

  test('sends no credentials of the backend with models to its targets', async () => {
    const bed = await start([{ name: 'm', to: [a('x')] }], { policies: { auth: { key: 'secret-of-models' } }, of: { a: { auth: { key: 'key-of-a' } } } })
    await bed.post(ask('m'))
    expect(bed.mocks.a.requests[0]?.headers['authorization']).toBe('Bearer key-of-a')
    const other = await start([{ name: 'm', to: [a('x')] }], { policies: { auth: { key: 'secret-of-models' } } })
    await other.post(ask('m'))
    expect(other.mocks.a.requests[0]?.headers['authorization']).toBeUndefined()
  })

  test('of a form or a path is found, and is not replaced in silence', async () => {
    const bed = await start(
      [
        { name: 'whisper-1', to: [a()] },
        { name: 'speech', to: [a('whisper-1')] },
      ],
      { policies: { ai: { routes: { '*': 'Detect' } } } },
    )
    const form = (model: string): Post => ({
      path: '/v1/audio/transcriptions',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: `--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n--b--`,
    })
    const json = await bed.post({ path: '/v1/images/generations', body: { model: 'speech', prompt: 'a' } })
    const responses = [await bed.post(form('whisper-1')), await bed.post(form('speech')), await bed.post(form('nothing')), json]
    expect(responses.map(({ status }) => status)).toEqual([200, 400, 404, 200])
    expect(bed.mocks.a.requests.map(({ body }) => body?.['model'])).toEqual(['whisper-1', undefined])
  })
})

describe('the targets of a model', () => {
  test('are chosen by weight, and one that is evicted gets no requests', async () => {
    const bed = await start([{ name: 'm', to: [a('x'), b] }], { of: { a: { health: { eviction: { duration: '60s' } } } }, random: () => 0.1 })
    bed.mocks.a.behave({ status: 500 })
    const statuses = [(await bed.post(ask('m'))).status, (await bed.post(ask('m'))).status]
    expect([statuses, bed.sent()]).toEqual([
      [500, 200],
      ['a x', 'b claude-own'],
    ])
  })

  test('share the state of their backend with other models', async () => {
    const bed = await start(
      [
        { name: 'm', to: [a('x')] },
        { name: 'n', to: [a('y'), b] },
      ],
      { of: { a: { health: { eviction: { duration: '60s' } } } }, random: () => 0.1 },
    )
    bed.mocks.a.behave({ status: 500 })
    await bed.post(ask('m'))
    expect((await bed.post(ask('n'))).headers['x-proxy-model']).toBe('claude-own')
  })

  test('of one backend have rate limits of their own', async () => {
    const models = [{ name: 'm', to: [a('x', 1000), a('y')] }]
    const bed = await start(models, { of: { a: { health: { eviction: { duration: '60s' } } } }, random: () => 0.1 })
    bed.mocks.a.behave({ status: 429 })
    await bed.post(ask('m'))
    bed.mocks.a.behave({})
    await bed.post(ask('m'))
    await bed.post(ask('m'))
    expect(bed.sent()).toEqual(['a x', 'a y', 'a y'])
  })

  test('may be models of another backend, which has its own names', async () => {
    const team: ConfigMessage = {
      kind: 'backend',
      message: {
        key: 'ns/team',
        ai: {
          models: [
            { name: 'chat', visibility: 'Internal', to: [a()] },
            { name: 'own', to: [b] },
          ],
        },
      },
    }
    const bed = await start(
      [
        { name: 'm', to: [{ backendRef: { backend: 'ns/team' }, model: 'chat' }] },
        { name: 'n', to: [{ backendRef: { backend: 'ns/team' }, model: 'own' }] },
      ],
      {
        more: [team],
      },
    )
    expect([(await bed.post(ask('m'))).status, (await bed.post(ask('n'))).status, bed.sent()]).toEqual([200, 200, ['a chat', 'b claude-own']])
  })

  test('may be addresses in config files', async () => {
    const bed = await start([])
    bed.gateway.update({ ai: { models: [{ name: 'm', to: [{ backendRef: { address: `127.0.0.1:${bed.mocks.c.port}` }, model: 'x' }] }] } })
    expect([(await bed.post(ask('m'))).status, bed.sent()]).toEqual([200, ['c x']])
  })

  test('that do not exist are 503, and a change of the config is used by the next request', async () => {
    const bed = await start([{ name: 'm', to: [{ backendRef: { invalid: 'BACKEND_NOT_FOUND' } }, { backendRef: { backend: 'ns/none' } }] }])
    expect((await bed.post(ask('m'))).status).toBe(503)
    const [failed] = bed.gateway.finished
    expect(failed && errorTextOf(failed)).toContain('no target of the model exists')
    bed.gateway.update({ ai: { models: [{ name: 'm', to: [c] }] } })
    expect([(await bed.post(ask('m'))).status, bed.sent()]).toEqual([200, ['c llama']])
  })
})

describe('the list of models', () => {
  const models: AIModel[] = [
    { name: 'big', to: [a('gpt-4o')] },
    { name: 'team', rules: [{ when: 'request.headers["x-team"] == "blue"', to: [b] }] },
    { name: 'sized', rules: [{ when: 'size(llmRequest.tools) > 0', to: [a('gpt-4o')] }] },
    { name: 'gpt-*', to: [a()] },
    { name: 'hidden', visibility: 'Internal', to: [a()] },
  ]

  test('has what the caller may use, with what the catalog knows', async () => {
    const bed = await start(models)
    const { json } = await bed.post({ path: '/v1/models', method: 'GET' })
    expect(json['data']).toEqual([
      {
        id: 'big',
        object: 'model',
        created: 0,
        owned_by: 'openai',
        context_length: 128_000,
        max_output_tokens: 16_384,
        input_modalities: ['text', 'image'],
        capabilities: ['tools', 'vision'],
      },
      expect.objectContaining({ id: 'sized', owned_by: 'openai' }),
    ])
    const blue = await bed.post({ path: '/v1/models', method: 'GET', headers: { 'x-team': 'blue' } })
    expect(Object.values(blue.json['data'] ?? {}).map((model) => model['id'])).toEqual(['big', 'team', 'sized'])
  })

  test('has the format of Anthropic for its SDK', async () => {
    const bed = await start(models)
    const { json } = await bed.post({ path: '/v1/models', method: 'GET', headers: { 'anthropic-version': '2023-06-01' } })
    expect([json['has_more'], json['first_id'], json['last_id']]).toEqual([false, 'big', 'sized'])
    expect(json['data']?.[0]).toEqual({
      type: 'model',
      id: 'big',
      display_name: 'big',
      created_at: '1970-01-01T00:00:00Z',
      max_input_tokens: 128_000,
      max_tokens: 16_384,
      capabilities: { image_input: { supported: true }, structured_outputs: { supported: false }, thinking: { supported: false } },
    })
    const missing = await bed.post({ path: '/v1/models/none', method: 'GET', headers: { 'anthropic-version': '2023-06-01' } })
    expect([missing.status, missing.json['error']?.['type']]).toEqual([404, 'not_found_error'])
  })

  test.each([
    ['big', 200],
    ['gpt-any', 200],
    ['team', 404],
    ['hidden', 404],
    ['nothing', 404],
  ])('has one model by its name: %s', async (name, status) => {
    const bed = await start(models)
    const response = await bed.post({ path: `/v1/models/${name}`, method: 'GET' })
    expect([response.status, response.json['id'] ?? response.json['error']?.['code']]).toEqual([status, status === 200 ? name : 'model_not_found'])
    expect(bed.sent()).toEqual([])
  })
})

test('a realtime request is for the model of its query', async () => {
  const bed = await start([{ name: 'gpt-realtime', to: [a()] }], { policies: { ai: { routes: { ...sdkRoutes } } } })
  expect((await bed.post({ path: '/v1/realtime?model=nothing', method: 'GET' })).status).toBe(404)
})
