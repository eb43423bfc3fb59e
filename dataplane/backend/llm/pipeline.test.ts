import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { WebSocket } from 'ws'
import type { BackendAI, BackendFull, FieldDefault } from '#gen/config/types.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

/** The generated types declare any JSON value as an object. */
const field = (name: string, value: unknown): FieldDefault => ({ field: name, value: value })

describe('parts that the provider does not support', () => {
  const hosted = { tools: [{ type: 'web_search' }], store: true, 'in\nvalid': 1 }
  const bedrock = { provider: { providerF: { model: 'amazon.nova-pro-v1:0' } } }

  test('are left out, and named in the header, the log and a metric', async () => {
    const { post, mock, gateway } = await start(bedrock)
    for (const stream of [false, true]) {
      const { status, headers } = await post({ body: chat('hi', { ...hosted, stream }) })
      expect([status, headers['x-proxy-omitted']]).toEqual([200, 'store, in_valid, tools[0]'])
    }
    expect(mock.requests[0]?.raw.toString()).not.toContain('web_search')
    expect(logFieldsOf(gateway.finished[0])['proxy.ai.omitted']).toBe('store, in_valid, tools[0]')
    expect((await post({ body: chat('hi') })).headers['x-proxy-omitted']).toBeUndefined()
  })

  test('are 400 with unsupported Reject', async () => {
    const { post, mock } = await start({ ...bedrock, ai: { unsupported: 'Reject' } })
    const { status, text } = await post({ body: chat('hi', { tools: [{ type: 'web_search' }] }) })
    expect([status, mock.requests.length]).toEqual([400, 0])
    expect(text).toBe(
      'failed to process LLM request: unsupported conversion: tools[0]: this provider does not support it; remove it, or set ai.unsupported to Omit',
    )
  })
})

describe('the Host header for a provider (llm.md §4.1, traffic.md §8.11)', () => {
  test.each<[string, TestBedOptions, string | undefined]>([
    ["the provider's", {}, undefined],
    ["the provider's, with hostRewrite Auto", { onGateway: [{ traffic: { hostRewrite: { mode: 'Auto' } } }] }, undefined],
    ["the client's, with hostRewrite None", { onGateway: [{ traffic: { hostRewrite: { mode: 'None' } } }] }, 'client.example'],
    ["the route's, with urlRewrite", { route: { filters: { urlRewrite: { hostname: 'rewritten.example' } } } }, 'rewritten.example'],
  ])('is %s', async (_, options, expected) => {
    const { post, mock } = await start(options)
    const { status } = await post({ body: chat('x'), headers: { host: 'client.example' } })
    expect([status, mock.requests[0]?.headers['host']]).toEqual([200, expected ?? `127.0.0.1:${mock.port}`])
  })
})

describe('the body for a provider', () => {
  test.each<[string, BackendAI, object, Record<string, unknown>]>([
    ['a default that adds an absent field', { defaults: [field('temperature', 0.2)] }, {}, { temperature: 0.2 }],
    ['a default that keeps a present field', { defaults: [field('temperature', 0.2)] }, { temperature: 1 }, { temperature: 1 }],
    ['a default that keeps an explicit null', { defaults: [field('stop', ['x'])] }, { stop: null }, { stop: null }],
    ['a default with a nested value', { defaults: [field('metadata', { a: [1, { b: null }] })] }, {}, { metadata: { a: [1, { b: null }] } }],
    ['an override that replaces a field', { overrides: [field('seed', 7)] }, { seed: 1 }, { seed: 7 }],
    [
      'a transformation that wins over an override',
      { overrides: [field('seed', 7)], transformations: [{ field: 'seed', expression: '40 + 2' }] },
      {},
      { seed: 42 },
    ],
    [
      'a transformation that reads the body and the request',
      { transformations: [{ field: 'user', expression: 'request.headers["x-user"] + "/" + llmRequest.model' }] },
      {},
      { user: 'ann/gpt-4o' },
    ],
    ['a transformation that limits a value', { transformations: [{ field: 'n', expression: 'llmRequest.n > 3 ? 3 : llmRequest.n' }] }, { n: 9 }, { n: 3 }],
    [
      'a failing transformation that removes its field',
      { transformations: [{ field: 'seed', expression: 'llmRequest.nothing.at.all' }] },
      { seed: 1 },
      { seed: undefined },
    ],
    ['an alias', { modelAliases: { fast: 'gpt-4o-mini' } }, { model: 'fast' }, { model: 'gpt-4o-mini' }],
    ['an exact alias that wins over a pattern', { modelAliases: { 'f*': 'one', fast: 'two' } }, { model: 'fast' }, { model: 'two' }],
    ['a longer pattern that wins over a shorter one', { modelAliases: { '*': 'one', 'f*t': 'two', 'f*': 'three' } }, { model: 'fast' }, { model: 'two' }],
    ['no matching alias', { modelAliases: { slow: 'one' } }, {}, { model: 'gpt-4o' }],
    ['an alias for an overridden model', { overrides: [field('model', 'fast')], modelAliases: { fast: 'real' } }, {}, { model: 'real' }],
    [
      'prompt enrichment',
      { prompt: { prepend: [{ role: 'SYSTEM', content: 'first' }], append: [{ role: 'user', content: 'last' }] } },
      {},
      {
        messages: [
          { role: 'system', content: 'first' },
          { role: 'user', content: 'hello there' },
          { role: 'user', content: 'last' },
        ],
      },
    ],
  ])('reflects %s', async (_, ai, fields, expected) => {
    const { post, mock } = await start({ ai })
    const { status } = await post({ body: chat('hello there', fields), headers: { 'x-user': 'ann' } })
    expect(status).toBe(200)
    const { body = {} } = mock.requests[0] ?? {}
    expect(Object.fromEntries(Object.keys(expected).map((name) => [name, body[name]]))).toEqual(expected)
  })

  test("the provider's model replaces the client's, and may have an alias", async () => {
    const { post, mock } = await start({ provider: { providerA: { model: 'fast' } }, ai: { modelAliases: { fast: 'gpt-real' } } })
    await post({ body: chat('x') })
    expect(mock.requests[0]?.body?.['model']).toBe('gpt-real')
  })

  test('an edit keeps the bytes of other fields', async () => {
    const { post, mock } = await start({ ai: { overrides: [field('seed', 1)] } })
    await post({ body: '{"model":"gpt-4o", "messages":[ ], "big": 9007199254740993, "x":1.50}' })
    expect(mock.requests[0]?.raw.toString()).toBe('{"model":"gpt-4o","messages":[ ],"big": 9007199254740993,"x":1.50,"seed":1}')
  })

  test('the ai sections of all levels merge field by field, the strongest wins', async () => {
    const level = (seed: number, user?: string): BackendFull => ({
      ai: { defaults: [field('seed', seed)], ...(user !== undefined && { overrides: [field('user', user)] }) },
    })
    const { post, mock, gateway } = await start({ onGateway: [{ backend: level(1, 'gateway') }] })
    const sent = async (): Promise<unknown[]> => {
      await post({ body: chat() })
      const { seed, user } = mock.requests.at(-1)?.body ?? {}
      return [seed, user]
    }
    expect(await sent()).toEqual([1, 'gateway'])
    gateway.update({ onProvider: { backend: level(2) } })
    expect(await sent()).toEqual([2, 'gateway'])
    gateway.update({ policies: level(3) })
    expect(await sent()).toEqual([3, 'gateway'])
    gateway.update({ policies: { ai: { defaults: [] as never } } })
    expect(await sent()).toEqual([2, 'gateway'])
  })
})

describe('compressed bodies', () => {
  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('a request in %s is decoded and sent uncompressed', async (coding, compress) => {
    const { post, mock } = await start()
    const { status } = await post({ body: compress(Buffer.from(JSON.stringify(chat('packed')))), headers: { 'content-encoding': coding } })
    expect([status, mock.requests[0]?.headers['content-encoding'], mock.requests[0]?.body?.['model']]).toEqual([200, undefined, 'gpt-4o'])
  })

  test('a changed response is compressed again', async () => {
    const { post } = await start({ provider: { providerC: {} } })
    const response = await post({ body: chat('x'), headers: { 'x-mock': 'gzip', 'accept-encoding': 'gzip' } })
    expect([response.status, response.headers['content-encoding']]).toEqual([200, 'gzip'])
  })
})

describe('routes', () => {
  test('Models lists aliases without patterns, and the models of providers', async () => {
    const { post, mock } = await start({ provider: { providerA: { model: 'gpt-4o' } }, ai: { routes: sdkRoutes, modelAliases: { fast: 'a', 'x*': 'b' } } })
    const { status, json } = await post({ path: '/v1/models', method: 'GET' })
    expect([status, json['object'], json['data'], mock.requests.length]).toEqual([
      200,
      'list',
      [
        { id: 'fast', object: 'model', created: 0, owned_by: 'openai' },
        {
          id: 'gpt-4o',
          object: 'model',
          created: 0,
          owned_by: 'openai',
          context_length: 128_000,
          max_output_tokens: 16_384,
          input_modalities: ['text', 'image'],
          capabilities: ['tools', 'vision'],
        },
      ],
      0,
    ])
  })

  test('Passthrough forwards requests unchanged', async () => {
    const { post, mock } = await start({ ai: { routes: { '*': 'Passthrough' } } })
    const bytes = Buffer.from([0, 255, 1, 2])
    const { status } = await post({ path: '/v1/images?x=1', body: bytes, headers: { 'content-type': 'image/png' } })
    expect([status, mock.requests[0]?.path, mock.requests[0]?.raw, mock.requests[0]?.headers['content-type']]).toEqual([
      200,
      '/v1/images?x=1',
      bytes,
      'image/png',
    ])
  })

  test.each<[string, Buffer | object, string, string, object]>([
    ['a response to a body that is not JSON', Buffer.from('--b\r\nx'), 'multipart/form-data; boundary=b', '/v1/audio', { input_tokens: 3, output_tokens: 4 }],
    [
      'a response to a JSON body',
      { model: 'dall-e', prompt: 'x', temperature: 0.5 },
      'application/json',
      '/v1/images',
      { input_tokens: 3, output_tokens: 4, temperature: 0.5 },
    ],
    [
      'a native Gemini stream',
      { contents: [{ parts: [{ text: 'one two' }] }], generationConfig: { temperature: 0.5, topP: 0.8, maxOutputTokens: 9 } },
      'application/json',
      '/v1beta/models/gemini-x:streamGenerateContent?alt=sse',
      { input_tokens: 2, output_tokens: 3, temperature: 0.5, top_p: 0.8, max_tokens: 9 },
    ],
    [
      'a native Bedrock stream',
      { messages: [{ role: 'user', content: [{ text: 'one two' }] }], inferenceConfig: { temperature: 0.5, topP: 0.8, maxTokens: 9 } },
      'application/json',
      '/model/nova/converse-stream',
      { input_tokens: 2, output_tokens: 3, temperature: 0.5, top_p: 0.8, max_tokens: 9 },
    ],
  ])('Detect reads the usage of %s', async (_, body, type, path, expected) => {
    const { post, mock, gateway } = await start({ ai: { routes: { '*': 'Detect' } } })
    const { status } = await post({ path, body, headers: { 'content-type': type } })
    expect([status, mock.requests[0]?.path]).toEqual([200, path])
    expect(mock.requests[0]?.raw).toEqual(Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)))
    const fields = logFieldsOf(gateway.finished[0])
    const named = {
      input_tokens: fields['gen_ai.usage.input_tokens'],
      output_tokens: fields['gen_ai.usage.output_tokens'],
      temperature: fields['gen_ai.request.temperature'],
      top_p: fields['gen_ai.request.top_p'],
      max_tokens: fields['gen_ai.request.max_tokens'],
    }
    expect(named).toMatchObject(expected)
  })

  test.each(['Passthrough', 'Detect'] as const)('%s gives the native API of Gemini the key of the gateway as an API key', async (type) => {
    const routes = { '/chat/completions': 'Completions', '*': type } as const
    const { post, mock } = await start({ provider: { providerD: {} }, policies: { auth: { key: 'AIzaOfTheGateway' } }, ai: { routes } })
    const sent = async (path: string) => {
      await post({ path, body: chat('x'), headers: { 'x-goog-api-key': 'of the client' } })
      const { path: seen, headers } = mock.requests.at(-1) ?? {}
      return [seen, headers?.['authorization'], headers?.['x-goog-api-key']]
    }
    const native = '/v1beta/models/gemini-2.5-flash:generateContent'
    expect(await sent(native)).toEqual([native, undefined, 'AIzaOfTheGateway'])
    expect((await sent('/v1/chat/completions')).slice(0, 2)).toEqual(['/v1beta/openai/chat/completions', 'Bearer AIzaOfTheGateway'])
    expect((await sent('/v1beta/openai/models')).slice(0, 2)).toEqual(['/v1beta/openai/models', 'Bearer AIzaOfTheGateway'])
  })

  test('a response transformation on Detect reads the tokens of a buffered response', async () => {
    const transformation = { response: { set: [{ name: 'x-tokens', value: 'string(llm.totalTokens) + llm.responseModel' }] } }
    const { post } = await start({ ai: { routes: { '*': 'Detect' } }, onGateway: [{ traffic: { transformation } }] })
    const { status, headers } = await post({ path: '/v1/audio', body: Buffer.from('x'), headers: { 'content-type': 'audio/wav' } })
    expect([status, headers['x-tokens']]).toEqual([200, '7raw-mock'])
  })

  test('`path` replaces path and query of every request', async () => {
    const { post, mock } = await start({ provider: { providerA: {}, path: '/custom?key=1' } })
    await post({ path: '/v1/chat/completions?client=1', body: chat() })
    expect(mock.requests[0]?.path).toBe('/custom?key=1')
  })

  test('Realtime forwards a WebSocket to the provider', async () => {
    const { gateway, mock } = await start({ ai: { routes: sdkRoutes }, policies: { auth: { key: 'k' } } })
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/realtime?model=gpt-realtime`, ['realtime'])
    const messages: unknown[] = []
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('message', (data: Buffer) => {
        messages.push((JSON.parse(data.toString()) as { type: string }).type)
        if (messages.length === 1) socket.send(JSON.stringify({ type: 'response.create' }))
        else resolve()
      })
    })
    expect(messages).toEqual(['session.created', 'response.done'])
    expect([mock.upgrades[0]?.path, mock.upgrades[0]?.headers['authorization']]).toEqual(['/v1/realtime?model=gpt-realtime', 'Bearer k'])
    socket.terminate()
  })

  test('Realtime is rejected for providers without that API', async () => {
    const { post, mock } = await start({ provider: { providerC: {} }, ai: { routes: sdkRoutes } })
    const { status, text } = await post({ path: '/v1/realtime?model=m', body: {} })
    expect([status, text, mock.requests]).toEqual([400, 'failed to process LLM request: unsupported conversion: from Realtime to provider anthropic', []])
  })
})
