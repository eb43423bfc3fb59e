import { GoogleGenAI } from '@google/genai'
import { afterEach, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { readGeminiRequest } from './formats/gemini/request.ts'
import { startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'
import { FormatError, type JsonObject } from './common/types.ts'
import { pair, responseContext } from './convert/testing.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

const routes = {
  ':generateContent': 'Gemini',
  ':streamGenerateContent': 'Gemini',
  ':countTokens': 'Gemini',
  ':embedContent': 'Gemini',
  ':batchEmbedContents': 'Gemini',
  '/models': 'Models',
} as const
const aws = { key: 'ns/aws', type: 'opaque', data: { accessKey: 'AK', secretKey: 'SK' } } as const

async function start(provider: Omit<NamedLLMProvider, 'name'>, more: TestBedOptions = {}): Promise<TestBed> {
  const auth = provider.providerF === undefined ? { key: 'secret-key' } : { cloudA: { secretRef: { secret: 'ns/aws' } } }
  const bed = await startTestBed({ provider, policies: { auth }, ai: { routes, ...more.ai }, secrets: [aws], ...more })
  open.push(bed)
  return bed
}

const call = (model: string, method: string): string => `/v1beta/models/${encodeURIComponent(model)}:${method}`
const contents = [{ role: 'user', parts: [{ text: 'hello you' }] }]
const body = { contents, systemInstruction: { parts: [{ text: 'be nice' }] }, generationConfig: { maxOutputTokens: 50 } }
const vertex = { providerE: { projectId: 'p', region: 'us-central1' } }
const google = '/v1/projects/p/locations/us-central1/publishers/google/models/gemini-2.5-pro'

/** Providers, with the model and the paths of their requests. */
const providers: readonly (readonly [string, Omit<NamedLLMProvider, 'name'>, string, string, string])[] = [
  ['OpenAI', { providerA: {} }, 'gpt-4o', '/v1/chat/completions', '/v1/chat/completions'],
  ['Anthropic', { providerC: {} }, 'claude-x', '/v1/messages', '/v1/messages'],
  [
    'Gemini',
    { providerD: {} },
    'gemini-2.5-pro',
    '/v1beta/models/gemini-2.5-pro:generateContent',
    '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
  ],
  ['Vertex AI', vertex, 'gemini-2.5-pro', `${google}:generateContent`, `${google}:streamGenerateContent?alt=sse`],
  ['Bedrock', { providerF: {} }, 'amazon.nova-pro-v1:0', '/model/amazon.nova-pro-v1:0/converse', '/model/amazon.nova-pro-v1:0/converse-stream'],
]

describe('a client of Gemini', () => {
  test.each(providers)('chats with %s, buffered, as events and as a list', async (_, provider, model, path, streamPath) => {
    const bed = await start(provider)
    const { status, json } = await bed.post({ path: call(model, 'generateContent'), body })
    expect([status, json['candidates']?.[0]?.['content']]).toEqual([200, { parts: [{ text: 'echo: hello you' }], role: 'model' }])
    expect(json['candidates']?.[0]?.['finishReason']).toBe('STOP')
    expect(json['usageMetadata']?.['totalTokenCount']).toBeGreaterThan(1)
    expect(bed.mock.requests.at(-1)?.path).toBe(path)
    const sse = await bed.post({ path: `${call(model, 'streamGenerateContent')}?alt=sse`, body })
    expect(sse.headers['content-type']).toBe('text/event-stream')
    const events = sse.text.split(/\r?\n\r?\n/).flatMap((event) => (event.startsWith('data: ') ? [JSON.parse(event.slice(6)) as JsonObject] : []))
    expect(events.length).toBeGreaterThan(1)
    expect(bed.mock.requests.at(-1)?.path).toBe(streamPath)
    const list = await bed.post({ path: call(model, 'streamGenerateContent'), body })
    expect(list.headers['content-type']).toBe('application/json')
    for (const pieces of [events, JSON.parse(list.text) as JsonObject[]]) {
      const texts = pieces.flatMap((piece) => (piece['candidates'] as { content: { parts: { text: string }[] } }[]).flatMap(({ content }) => content.parts))
      expect(texts.map(({ text }) => text).join('')).toBe('echo: hello you')
      expect(pieces.at(-1)).toMatchObject({ candidates: [{ finishReason: 'STOP' }], usageMetadata: { promptTokenCount: expect.any(Number) } })
    }
    expect(logFieldsOf(bed.gateway.finished.at(-1))['gen_ai.request.model']).toBe(model)
  })

  test.each(providers)('counts tokens and embeds at %s', async (_, provider, model) => {
    const bed = await start(provider)
    for (const counted of [{ contents }, { generateContentRequest: { model: `models/${model}`, contents } }]) {
      const { status, json } = await bed.post({ path: call(model, 'countTokens'), body: counted })
      expect([status, typeof json['totalTokens']]).toEqual([200, 'number'])
    }
    if (provider.providerC !== undefined) return
    const embedder = provider.providerF === undefined ? model : 'cohere.embed-v4'
    const single = await bed.post({ path: call(embedder, 'embedContent'), body: { content: { parts: [{ text: 'a' }] } } })
    expect([single.status, Array.isArray(single.json['embedding']?.['values'])]).toEqual([200, true])
    const requests = ['a', 'b'].map((text) => ({ model: `models/${embedder}`, content: { parts: [{ text }] } }))
    const batch = await bed.post({ path: call(embedder, 'batchEmbedContents'), body: { requests } })
    expect([batch.status, (batch.json['embeddings'] as unknown as unknown[]).length]).toEqual([200, 2])
  })

  test('is served by the SDK of Google, with tools, through a model of OpenAI', async () => {
    const bed = await start({ providerA: {} })
    const { models } = new GoogleGenAI({ apiKey: 'x' })
    const config = {
      tools: [{ functionDeclarations: [{ name: 'get_weather', parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } } } }] }],
    }
    const { fetch } = globalThis
    globalThis.fetch = async (url, init) => {
      const { pathname: path } = new URL(url as string)
      const { status, text } = await bed.post({ path, headers: { 'x-goog-api-key': 'x' }, body: init?.body as string })
      return new Response(text, { status, headers: { 'content-type': 'application/json' } })
    }
    const reply = await models.generateContent({ model: 'gpt-4o', contents: 'weather?', config }).finally(() => void (globalThis.fetch = fetch))
    expect(reply.functionCalls?.[0]).toMatchObject({ name: 'get_weather', args: { city: 'Paris' } })
  })

  test('has its key and its query removed for other providers, and sees its errors in the shape of Google', async () => {
    const bed = await start({ providerA: {} })
    const headers = { 'x-goog-api-key': 'AIzaMine', 'x-goog-api-client': 'genai-js' }
    await bed.post({ path: `${call('gpt-4o', 'generateContent')}?key=AIzaMine&$alt=json`, headers, body })
    expect(bed.mock.requests.at(-1)?.path).toBe('/v1/chat/completions')
    expect(JSON.stringify(bed.mock.requests.at(-1)?.headers)).not.toContain('AIzaMine')
    bed.mock.behave({ status: 429 })
    const failed = await bed.post({ path: call('gpt-4o', 'generateContent'), body })
    expect([failed.status, failed.json]).toEqual([429, { error: { code: 429, message: 'mock failure', status: 'RESOURCE_EXHAUSTED' } }])
  })

  test.each([
    ['a path without method', '/v1beta/models/x:future', { '*': 'Gemini' }, 'the path names no method of the Gemini API'],
    ['a path without model', '/v1beta/models/:generateContent', routes, 'model not specified in the path'],
    ['a model that leaves the path', '/v1beta/models/..%2f..%2fx:generateContent', routes, 'model not specified in the path'],
    ['contents of another type', call('gpt-4o', 'generateContent'), routes, 'contents must be a list'],
  ])('gets a 400 in the shape of Google for %s', async (_, path, table, text) => {
    const bed = await start({ providerA: {} }, { ai: { routes: table as typeof routes } })
    const { status, json } = await bed.post({ path, body: { contents: 'hi' } })
    expect([status, json['error']?.['code'], json['error']?.['status']]).toEqual([400, 400, 'INVALID_ARGUMENT'])
    expect(json['error']?.['message']).toEqual(expect.stringContaining(text))
    expect(bed.mock.requests).toEqual([])
  })

  test('is charged by the model of the path, whatever its body names', async () => {
    const bed = await start({ providerA: {} }, { ai: { routes, modelAliases: { dear: 'gpt-dear' } } })
    await bed.post({ path: call('dear', 'generateContent'), body: { ...body, model: 'cheap', stream: true } })
    expect(bed.mock.requests.at(-1)?.body).toMatchObject({ model: 'gpt-dear' })
    expect(bed.mock.requests.at(-1)?.body).not.toHaveProperty('stream')
  })

  test('lists models in the form of Google', async () => {
    const bed = await start({ providerA: { model: 'gpt-4o' } })
    const list = await bed.post({ path: '/v1beta/models?pageSize=50', method: 'GET' })
    expect(list.json['models']?.[0]).toMatchObject({ name: 'models/gpt-4o', supportedGenerationMethods: expect.arrayContaining(['generateContent']) })
    expect((await bed.post({ path: '/v1beta/models/gpt-4o', method: 'GET' })).json).toMatchObject({ name: 'models/gpt-4o' })
    expect((await bed.post({ path: '/v1beta/models/other', method: 'GET' })).json).toMatchObject({ error: { code: 404, status: 'NOT_FOUND' } })
  })
})

describe('thinking of Claude', () => {
  const thinking = [
    { type: 'thinking', thinking: 'hm', signature: 'Eq+/8=' },
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
  ]
  const reply = pair('gemini', 'messages').response({ type: 'message', content: thinking, stop_reason: 'tool_use' }, responseContext()).body
  // The SDK of Python decodes base64, and encodes it again for URLs.
  const { content } = (JSON.parse(JSON.stringify(reply).replaceAll('+', '-')) as { candidates: [{ content: JsonObject }] }).candidates[0]

  test('goes back to Claude with its signature', () => {
    const { body: sent } = pair('gemini', 'messages').request(
      { contents: [...contents, content], generationConfig: { thinkingConfig: { thinkingBudget: 2048 } } },
      { model: 'claude-sonnet-4-5' },
    )
    expect(sent['messages']).toContainEqual({ role: 'assistant', content: thinking })
  })

  test('goes to Gemini without it', () => {
    const { body: sent } = pair('gemini', 'gemini').request({ contents: [...contents, content] }, { model: 'gemini-3-pro', target: 'gemini' })
    const parts = [
      { text: 'hm', thought: true },
      { functionCall: { id: 'toolu_1', name: 'f', args: {} }, thoughtSignature: 'skip_thought_signature_validator' },
    ]
    expect(sent['contents']).toContainEqual({ role: 'model', parts })
  })
})

test('a native request and response of Gemini pass as they are, with signatures, sources, ratings and results of code', () => {
  const parts = [
    { text: 'hm', thought: true },
    { executableCode: { language: 'PYTHON', code: 'print(1)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
    { text: 'one', thoughtSignature: 'AAAA' },
  ]
  const candidate = {
    content: { role: 'model', parts },
    finishReason: 'STOP',
    safetyRatings: [{ category: 'a' }],
    groundingMetadata: { webSearchQueries: ['q'] },
  }
  const received = {
    candidates: [candidate],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 2, totalTokenCount: 10 },
    future: 1,
  }
  const { body: passed, facts } = pair('gemini', 'gemini').response(received, responseContext())
  expect(passed).toBe(received)
  expect(facts.usage).toMatchObject({ inputTokens: 5, outputTokens: 5, reasoningTokens: 2 })
  const request = { contents: [{ role: 'model', parts }], tools: [{ googleSearch: {} }], safetySettings: [{}], future: { a: 1 } }
  expect(pair('gemini', 'gemini').request(request, { model: 'gemini-2.5-pro', target: 'gemini' }).body).toBe(request)
})

test('any JSON is read as a request, or is a FormatError', () => {
  const names = [
    'contents',
    'parts',
    'text',
    'functionCall',
    'function_response',
    'functionResponse',
    'inlineData',
    'fileData',
    'tools',
    'generationConfig',
    'role',
    'thought',
    'args',
  ]
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 6 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.dictionary(fc.constantFrom(...names, 'parameters', 'nullable', 'name', 'id', 'response'), tie('node'), { maxKeys: 5 }),
      fc.array(tie('node'), { maxLength: 4 }),
    ),
  })).node
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names, 'systemInstruction', 'toolConfig'), value), (given) => {
      try {
        expect(Array.isArray(readGeminiRequest(given).turns)).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(FormatError)
      }
    }),
    { numRuns: 300 },
  )
})

test('any bytes of a stream of Gemini are read without an exception, and end it', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'data: ',
      '\n\n',
      '\r\n\r\n',
      '{"candidates":[',
      '{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}',
      ']}',
      '[DONE]',
      '{"error":{"code":1}}',
    ),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, isGuarded) => {
      const stream = pair('gemini', 'gemini').stream(responseContext(), { isGuarded })
      for (const one of pieces) stream.push(Buffer.from(one))
      stream.end()
      expect(stream.isOver).toBe(true)
    }),
    { numRuns: 300 },
  )
})
