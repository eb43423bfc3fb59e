import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI } from '#gen/config/types.ts'
import { chat, sdkRoutes, startTestBed, type Post, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

const prompt: BackendAI = { promptGuard: { request: [{ regex: { matches: ['forbidden'], action: 'Reject' }, response: { statusCode: 422, message: 'no' } }] } }
/** The options for one API key, `k`, with this metadata. */
const keyed = (metadata: object): Pick<TestBedOptions, 'onGateway' | 'secrets'> => ({
  onGateway: [{ traffic: { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } } }],
  secrets: [{ key: 'opaque/ns/keys', type: 'opaque', data: { k: JSON.stringify({ key: 'k', metadata }) } }],
})
const headers = { authorization: 'Bearer k' }

describe('the route type of a path', () => {
  const spellings = [
    '/v1/chat/completions',
    '/v1/chat/completion%73',
    '/v1/chat//completions',
    '/v1/chat/completions/',
    '/v1/CHAT/completions',
    '/v1/chat/Completions',
    '/v1/chat/completions;a',
    '/v1/chat;x=1/completions',
    '/v1/chat/./completions',
    '/v1/chat/x/../completions',
    '/v1/chat/%2e/completions',
    '/v1/chat/x/%2E%2e/completions',
    '/v1/chat%2fcompletions',
    '/v1/chat%5Ccompletions',
    '/v1/chat/completions%3ba',
    '/v1/chat/completions%3fa',
    '/v1/chat/completions%00',
    '/v1/chat/completions?a=/x',
  ]

  const modes = ['Default', 'Off'] as const
  const cases = spellings.flatMap((path) => modes.map((mode) => [path, mode] as const))

  test.each(cases)('of the chat completions API is found for %s with pathNormalization %s', async (path, pathNormalization) => {
    const { post, mock } = await start({ ai: { routes: sdkRoutes, ...prompt }, onGateway: [{ frontend: { http: { pathNormalization } } }] })
    const rejected = await post({ path, body: chat('forbidden') })
    expect([rejected.status, rejected.text, mock.requests.length]).toEqual([422, 'no', 0])
    expect((await post({ path, body: chat('fine') })).status).toBe(200)
  })

  test.each(['/v1/chat/completions', '/v1/CHAT/Completions/', '/v1/chat;v=1//completions'])('is found for the entry %s in any spelling', async (suffix) => {
    const { post } = await start({ ai: { routes: { [suffix]: 'Completions', '*': 'Passthrough' }, ...prompt } })
    expect((await post({ body: chat('forbidden') })).status).toBe(422)
  })
})

describe('without routes', () => {
  test.each<[string, Post, string]>([
    ['a list of models', { path: '/v1/models', method: 'GET' }, '"/v1/models": Models'],
    ['embeddings', { path: '/v1/embeddings', body: { model: 'e', input: 'x' } }, '"/v1/embeddings": Embeddings'],
    ['embeddings below another prefix', { path: '/openai/embeddings', body: { model: 'e', input: 'x' } }, '"/embeddings": Embeddings'],
    ['an embeddings body at another path', { path: '/embed', body: { model: 'e', input: ['x'] } }, '"/embed": Embeddings'],
    ['a Responses body at another path', { path: '/ask', body: { model: 'm', input: 'x', stream: false } }, '"/ask": Responses'],
    ['a list of items', { path: '/ask', body: { model: 'm', input: [{ role: 'user', content: 'x' }] } }, '"/ask": Responses'],
    ['a prompt at the path of chats', { path: '/v1/chat/completions', body: { model: 'm', input: 'x' } }, '"/v1/chat/completions": Responses'],
    ['items at the path of chats', { body: { model: 'm', input: [{ role: 'user', content: 'x' }] } }, '"/v1/chat/completions": Responses'],
    ['tokens to embed', { body: { model: 'm', input: [[1, 2]] } }, '"/v1/chat/completions": Embeddings'],
    ['a text for an embedding model', { body: { model: 'text-embedding-3-small', input: 'x' } }, '"/v1/chat/completions": Embeddings'],
    ['a text with dimensions', { body: { model: 'm', input: 'x', dimensions: 3 } }, '"/v1/chat/completions": Embeddings'],
    ['Anthropic messages', { path: '/v1/messages', body: chat() }, '"/v1/messages": Messages'],
    ['token counts', { path: '/v1/messages/count_tokens', body: chat() }, '"/v1/messages/count_tokens": TokenCount'],
    ['a response', { path: '/v1/responses', body: { model: 'm', input: 'x' } }, '"/v1/responses": Responses'],
    ...['completions', 'fim/completions', 'images/generations', 'images/edits', 'audio/speech', 'audio/transcriptions'].map((name): [string, Post, string] => [
      name,
      { path: `/v1/${name}`, body: { model: 'm', input: 'x', prompt: 'x' } },
      `"/v1/${name}": Detect`,
    ]),
    ['a moderation', { path: '/v1/moderations', body: { input: 'x' } }, '"/v1/moderations": Moderations'],
    ['a ranking', { path: '/v1/rerank', body: { model: 'm', query: 'x' } }, '"/v1/rerank": Rerank'],
    ['a body with a prompt at another path', { path: '/generate', body: { model: 'm', prompt: 'x' } }, '"/generate": Detect'],
    ['a GET request', { path: '/v1/files', method: 'GET' }, '"/v1/files": Passthrough'],
    ['a request without a body', { path: '/v1/files/f/cancel' }, '"/v1/files/f/cancel": Passthrough'],
    ['a GET request with a long path', { path: `/${'x'.repeat(200)}`, method: 'GET' }, '"*": Passthrough'],
  ])('%s gets 400 with the entry to add', async (_, request, entry) => {
    const { post, mock } = await start()
    const { status, text } = await post(request)
    expect([status, mock.requests.length]).toEqual([400, 0])
    expect(text).toMatch(/^failed to process LLM request: .* no chat completion: add /)
    expect(text.endsWith(`add ${entry} to backend.ai.routes`)).toBe(true)
  })

  const otherApis: readonly (readonly [string, object, string])[] = [
    ['/v1/completions', { prompt: 'x' }, '"/v1/completions": Detect'],
    ['/v1/completions', { prompt: ['x', 'y'], stream: true }, '"/v1/completions": Detect'],
    ['/v1/fim/completions', { prompt: 'x', suffix: 'y' }, '"/v1/fim/completions": Detect'],
    ['/v1/images/generations', { prompt: 'x' }, '"/v1/images/generations": Detect'],
    ['/v1/images/edits', { prompt: 'x', image: 'y' }, '"/v1/images/edits": Detect'],
    ['/v1/rerank', { query: 'q', documents: ['a'] }, '"/v1/rerank": Rerank'],
    ['/v2/rerank', { query: 'q', documents: ['a'] }, '"/rerank": Rerank'],
    ['/v1/audio/speech', { input: 'x', voice: 'v' }, '"/v1/audio/speech": Detect'],
    ['/v1/audio/transcriptions', { file: 'x' }, '"/v1/audio/transcriptions": Detect'],
    ['/v1/moderations', { input: 'x' }, '"/v1/moderations": Moderations'],
    ['/v1/ocr', { document: {} }, '"/v1/ocr": Detect'],
    ['/v1/responses/compact', { input: 'x' }, '"/v1/responses/compact": Detect'],
    ['/api/generate', { prompt: 'x' }, '"/api/generate": Detect'],
    ['/v1beta/models/gemini-pro:generatecontent', { contents: [] }, '":generatecontent": Gemini'],
    ['/model/m/converse', { messages: [] }, '"/model/m/converse": Detect'],
    ['/v1/files', { purpose: 'x' }, '"/v1/files": Passthrough'],
    ['/v1/batches', { input_file_id: 'x' }, '"/v1/batches": Passthrough'],
  ]
  test.each(otherApis)('requests of other APIs for %s are not sent to chat completions', async (path, body, entry) => {
    const { post, mock } = await start()
    const { status, text } = await post({ path, body: { model: 'm', ...body } })
    expect([status, mock.requests.length]).toEqual([400, 0])
    expect(text.endsWith(`add ${entry} to backend.ai.routes`)).toBe(true)
  })

  test.each(otherApis.filter(([, body]) => !('messages' in body || 'image' in body || 'purpose' in body || 'input_file_id' in body)))(
    'an entry of type Completions does not send the body of %s to chat completions',
    async (path, body, entry) => {
      const { post, mock } = await start({ ai: { routes: { '*': 'Completions', '/completions': 'Completions' } } })
      const { status, text } = await post({ path, body: { model: 'm', ...body } })
      expect([status, mock.requests.length]).toEqual([400, 0])
      expect(text).toContain(`${JSON.stringify(path)}: ${entry.slice(entry.lastIndexOf(' ') + 1)} to backend.ai.routes`)
    },
  )

  test.each(otherApis.filter(([path]) => !path.includes(':')))('an entry of type Detect sends the request for %s on at its path', async (path, body) => {
    const { post, mock } = await start({ ai: { routes: { [path]: 'Detect', '*': 'Completions' } } })
    await post({ path, body: { model: 'm', ...body } })
    expect(mock.requests.map((request) => request.path)).toEqual([path])
  })

  test('a chat completion passes at any other path', async () => {
    const { post, mock } = await start()
    expect((await post({ path: '/anything', body: chat('x', { input: 'not of embeddings' }) })).status).toBe(200)
    expect(mock.requests.length).toBe(1)
  })
})

describe('requests that no check covers', () => {
  const routes: BackendAI['routes'] = { '/completions': 'Completions', '/raw': 'Passthrough', '/detect': 'Detect', '/realtime': 'Realtime' }
  const budget = { tokenBudget: { tokens: 1000, unit: 'Days' } }
  const rateLimit = { onGateway: [{ traffic: { rateLimit: { local: [{ tokens: 100, unit: 'Hours' as const }] } } }] }
  const cases: [string, TestBedOptions, string][] = [
    ['prompt guards', { ai: prompt }, 'prompt guards'],
    ['models of the key', keyed({ models: ['*'] }), 'models of the API key'],
    ['a budget of the key', keyed(budget), 'token limits'],
    ['a token limit', rateLimit, 'token limits'],
    ['all of them', { ai: prompt, ...keyed({ models: ['*'], ...budget }) }, 'prompt guards and models of the API key and token limits'],
  ]

  test.each(cases)('with unguardedRoutes Reject get 403 under %s', async (_, options, evaded) => {
    const { post, mock } = await start({ ...options, ai: { routes, unguardedRoutes: 'Reject', ...options.ai } })
    for (const [path, type] of [
      ['/raw', 'Passthrough'],
      ['/detect', 'Detect'],
      ['/realtime?model=m', 'Realtime'],
    ] as const) {
      const { status, text } = await post({ path, body: chat(), headers })
      expect([status, text]).toEqual([403, `request not allowed: ${evaded} do not cover requests of type ${type}, and ai.unguardedRoutes is Reject`])
    }
    expect(mock.requests.length).toBe(0)
    expect((await post({ body: chat(), headers })).status).toBe(200)
  })

  test.each(cases)('are forwarded by default under %s', async (_, options) => {
    const { post } = await start({ ...options, ai: { routes, ...options.ai } })
    expect((await post({ path: '/raw', body: chat(), headers })).status).toBe(200)
  })

  test('with unguardedRoutes Reject are forwarded if nothing is to be checked', async () => {
    const { post } = await start({ ai: { routes, unguardedRoutes: 'Reject' } })
    expect((await post({ path: '/raw', body: chat() })).status).toBe(200)
  })
})

describe('one model of the list', () => {
  const ai: BackendAI = { routes: sdkRoutes, modelAliases: { fast: 'gpt-4o-mini', 'org/big': 'gpt-4o', 'claude-*': 'gpt-4o' } }

  test.each([
    ['/v1/models/fast', 'fast'],
    ['/models/fast/', 'fast'],
    ['/v1/models/org%2Fbig', 'org/big'],
    ['/v1/models/org/big', 'org/big'],
    ['/v1/models/claude-any', 'claude-any'],
  ])('is the response to GET %s', async (path, id) => {
    const { post, mock } = await start({ ai })
    const { status, json } = await post({ path, method: 'GET' })
    expect([status, json['id'], json['object'], json['owned_by']]).toEqual([200, id, 'model', 'openai'])
    expect(mock.requests).toEqual([])
  })

  test('that is unknown is 404 with the names of the list', async () => {
    const { post, mock } = await start({ ai })
    const { status, json } = await post({ path: '/v1/models/nothing', method: 'GET' })
    expect([status, json['error']?.['code']]).toEqual([404, 'model_not_found'])
    expect(json['error']?.['message']).toBe('the model "nothing" is not in the list of models; use one of fast, org/big')
    expect(mock.requests).toEqual([])
  })

  test('that the key may not use is 404', async () => {
    const { post } = await start({ ai, ...keyed({ models: ['fast'] }) })
    expect((await post({ path: '/v1/models/org%2Fbig', method: 'GET', headers })).status).toBe(404)
    expect((await post({ path: '/v1/models/fast', method: 'GET', headers })).status).toBe(200)
  })

  test('is not what a POST request for a verb of Google is', async () => {
    const { post, mock } = await start({ ai })
    await post({ path: '/v1beta/models/gemini-pro:generateContent', body: { contents: [] } })
    expect(mock.requests.map(({ path }) => path)).toEqual(['/v1beta/models/gemini-pro:generateContent'])
  })

  test('without routes gets the hint of the list', async () => {
    const { post } = await start()
    expect((await post({ path: '/v1/models/gpt-4o', method: 'GET' })).text).toMatch(/add "\/v1\/models": Models to backend.ai.routes$/)
  })
})
