import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI, BackendFull, Budget, NamedLLMProvider } from '#gen/config/types.ts'
import { startMockServer, type Answer } from '../../../e2e/harness/llm/server.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { startLlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { send, type Post } from './testing/test-bed.ts'

/** Rankings and moderations, as their servers respond. */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

interface Setup {
  readonly provider?: Omit<NamedLLMProvider, 'name'>
  readonly ai?: BackendAI
  readonly policies?: BackendFull
  readonly budgets?: Budget[]
  readonly traffic?: NonNullable<LlmGatewayOptions['onGateway']>[number]['traffic']
}

const routes = { '/rerank': 'Rerank', '/moderations': 'Moderations', '*': 'Detect' } as const

async function start(answer: Answer, { provider = { providerA: {} }, ai, budgets, traffic }: Setup = {}) {
  const mock = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { ...provider, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes, ...ai } },
    onGateway: [{ traffic: { ...(budgets && { budgets }), ...traffic } }],
  })
  open.push(gateway, mock)
  const log = async (): Promise<Readonly<Record<string, unknown>>> => {
    await until(() => gateway.finished.length > 0)
    return logFieldsOf(gateway.finished.at(-1))
  }
  const spent = (unit: string): number =>
    Number(new RegExp(`proxy_budget_spent_total\\{[^}]*unit="${unit}"\\} ([\\d.]+)`).exec([...gateway.registry.expose('text')].join(''))?.[1] ?? 0)
  return { gateway, mock, log, spent, ask: (post: Post) => send(gateway.port, { headers: { accept: 'application/json' }, ...post }) }
}

const json =
  (body: unknown, status = 200): Answer =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const results = [{ index: 1, relevance_score: 0.9 }]
const ranking = { model: 'rerank-v3.5', query: 'capital of France', documents: ['Paris is the capital', { text: 'call 123-45-6789' }], top_n: 1 }
const dollars: Budget[] = [
  {
    name: 'b',
    limits: [
      { tokens: 1_000_000, window: 'Day' },
      { usd: '1000', window: 'Day' },
    ],
  },
]

describe('a ranking', () => {
  const cohere = { id: 'r', results, meta: { api_version: { version: '2' }, billed_units: { search_units: 3 } } }

  test.each<[string, string, object, Record<string, number>]>([
    ['of Cohere by its search units', '/v2/rerank', cohere, { 'gen_ai.usage.searches': 3, 'proxy.ai.usage.cost.total': 0.006 }],
    [
      'of Jina and vLLM by its tokens',
      '/v1/rerank',
      { model: 'jina-reranker', results, usage: { total_tokens: 50 } },
      { 'gen_ai.usage.input_tokens': 50, 'gen_ai.usage.searches': 1, 'proxy.ai.usage.cost.total': 0.00005 },
    ],
    [
      'of Voyage, whose results are data, by its tokens',
      '/v1/rerank',
      { object: 'list', data: results, usage: { total_tokens: 50 } },
      { 'gen_ai.usage.input_tokens': 50, 'proxy.ai.usage.cost.total': 0.00005 },
    ],
    ['without usage by the documents of the request', '/rerank', { results }, { 'gen_ai.usage.searches': 1, 'proxy.ai.usage.cost.total': 0.002 }],
  ])('%s is priced once, and reaches the path of the client as it is', async (_, path, response, expected) => {
    const prices = { 'rerank-v3.5': { input: '0', output: '0', searches: '2000' }, 'jina-*': { input: '1', output: '0', searches: '9' } }
    const { ask, mock, log, spent } = await start(json(response), {
      ai: { prices: path === '/v1/rerank' ? { '*': prices['jina-*'] } : prices },
      budgets: dollars,
    })
    const { status, json: body } = await ask({ path, body: ranking })
    expect([status, body]).toEqual([200, response])
    expect([mock.requests[0]?.path, mock.requests[0]?.body]).toEqual([path, ranking])
    expect(await log()).toMatchObject({ 'gen_ai.operation.name': 'rerank', 'gen_ai.request.model': 'rerank-v3.5', ...expected })
    expect(spent('usd')).toBeCloseTo(expected['proxy.ai.usage.cost.total'] ?? -1, 9)
  })

  test.each([
    [1, 200],
    [101, 429],
  ])('reserves search units: one of %i documents leaves room for a %i', async (count, expected) => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const answer: Answer = async (request, response) => {
      if (request.path === '/slow/rerank') await released
      await json(cohere)(request, response)
    }
    const budgets: Budget[] = [{ name: 'b', limits: [{ usd: '0.003', window: 'Day' }] }]
    const { ask, mock } = await start(answer, { ai: { prices: { '*': { input: '0', output: '0', searches: '2000' } } }, budgets })
    const first = ask({ path: '/slow/rerank', body: { ...ranking, documents: Array.from({ length: count }, () => 'text') } })
    await until(() => mock.requests.length > 0)
    expect((await ask({ path: '/rerank', body: ranking })).status).toBe(expected)
    release()
    expect((await first).status).toBe(200)
  })

  test('uses the names of aliases, and the models that a key may use', async () => {
    const { ask, mock } = await start(json(cohere), { ai: { modelAliases: { ranker: 'rerank-v3.5' } } })
    await ask({ path: '/rerank', body: { ...ranking, model: 'ranker' } })
    expect(mock.requests[0]?.body?.['model']).toBe('rerank-v3.5')
  })

  test.each<[string, 'Mask' | 'Reject', number]>([
    ['masks', 'Mask', 200],
    ['rejects', 'Reject', 403],
  ])('is checked by guards: one %s its query and documents', async (_, action, expected) => {
    const { ask, mock } = await start(json(cohere), { ai: { promptGuard: { request: [{ regex: { builtins: ['Ssn'], action } }] } } })
    expect((await ask({ path: '/rerank', body: { ...ranking, query: 'who is 123-45-6789' } })).status).toBe(expected)
    const sent = JSON.stringify(mock.requests[0]?.body ?? {})
    expect(sent).not.toContain('123-45-6789')
    expect(sent.match(/<SSN>/g)?.length ?? 0).toBe(expected === 200 ? 2 : 0)
  })

  test.each<[string, unknown, number, string]>([
    ['documents that are no list', { ...ranking, documents: 'one' }, 400, 'documents must be a list'],
    ['no model', { query: 'q', documents: [] }, 400, 'missing field: model not specified'],
    ['a list', [ranking], 400, 'request must be an object'],
    ['a repeated field', '{"model":"a","model":"b","documents":[]}', 400, 'duplicate field'],
    ['too many levels', `{"model":"a","documents":${'['.repeat(1000)}${']'.repeat(1000)}}`, 400, 'nests deeper than'],
  ])('with %s is rejected', async (_, body, status, text) => {
    const { ask, mock } = await start(json(cohere))
    const response = await ask({ path: '/rerank', body })
    expect([response.status, mock.requests.length]).toEqual([status, 0])
    expect(response.text).toContain(text)
  })

  test('whose response has no results is an error of the provider', async () => {
    const { ask } = await start(json({ error: { message: 'no such model' } }))
    expect((await ask({ path: '/rerank', body: ranking })).status).toBe(502)
  })

  test('keeps the error of its server', async () => {
    const { ask } = await start(json({ message: 'invalid api token' }, 401))
    const { status, json: body } = await ask({ path: '/v2/rerank', body: ranking })
    expect([status, body]).toEqual([401, { message: 'invalid api token' }])
  })
})

describe('a moderation', () => {
  const flagged = { id: 'modr-1', model: 'omni-moderation-latest', results: [{ flagged: true }] }

  test('costs nothing, names the default model, and is not rejected by guards for the text that it asks about', async () => {
    const { ask, mock, log, spent } = await start(json(flagged), {
      budgets: dollars,
      ai: { promptGuard: { request: [{ regex: { builtins: ['Ssn'], action: 'Reject' } }] } },
    })
    expect((await ask({ path: '/v1/moderations', body: { input: 'is 123-45-6789 harmful' } })).json).toEqual(flagged)
    expect([mock.requests[0]?.path, mock.requests[0]?.body]).toEqual(['/v1/moderations', { input: 'is 123-45-6789 harmful', model: 'omni-moderation-latest' }])
    expect(await log()).toMatchObject({ 'gen_ai.operation.name': 'moderation', 'gen_ai.request.model': 'omni-moderation-latest' })
    expect(spent('usd')).toBe(0)
  })

  test('takes a list of texts and images', async () => {
    const { ask, mock } = await start(json(flagged))
    const input = [
      { type: 'text', text: 'one' },
      { type: 'image_url', image_url: { url: 'https://e.test/a.png' } },
    ]
    expect((await ask({ path: '/v1/moderations', body: { model: 'omni-moderation-latest', input } })).status).toBe(200)
    expect(mock.requests[0]?.body?.['input']).toEqual(input)
  })
})

test.each<[string, Omit<NamedLLMProvider, 'name'>, string]>([
  ['Rerank to Anthropic', { providerC: {} }, '/rerank'],
  ['Rerank to Gemini', { providerD: {} }, '/rerank'],
  ['Rerank to Vertex AI', { providerE: { projectId: 'p', region: 'us-central1' } }, '/rerank'],
  ['Rerank to Bedrock', { providerF: {} }, '/rerank'],
  ['Moderations to Anthropic', { providerC: {} }, '/moderations'],
  ['Moderations to Azure OpenAI', { providerB: { endpoint: 'e.openai.azure.com', deploymentName: 'd' } }, '/moderations'],
])('%s is 400, because the provider does not have the API', async (_, provider, path) => {
  const { ask, mock } = await start(json({}), { provider })
  const { status, text } = await ask({ path, body: { model: 'm', query: 'q', documents: ['d'], input: 'i' } })
  expect([status, mock.requests.length]).toEqual([400, 0])
  expect(text).toContain('unsupported conversion')
})

const form =
  '--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--b--\r\n'

test.each<[string, string, unknown, unknown, Record<string, number>]>([
  [
    'images by their number',
    '/v1/images/generations',
    { model: 'dall-e-3', prompt: 'a cat', n: 2 },
    { data: [] },
    { 'gen_ai.usage.images': 2, 'proxy.ai.usage.cost.total': 0.08 },
  ],
  [
    'images by their tokens, where those have a price',
    '/v1/images/generations',
    { model: 'gpt-image-1', prompt: 'a cat' },
    { data: [], usage: { input_tokens: 10, output_tokens: 1000, total_tokens: 1010 } },
    { 'gen_ai.usage.images': 1, 'proxy.ai.usage.cost.total': 0.04005 },
  ],
  [
    'speech by its characters',
    '/v1/audio/speech',
    { model: 'tts-1', input: 'hello there', voice: 'v' },
    {},
    { 'gen_ai.usage.characters': 11, 'proxy.ai.usage.cost.total': 0.000165 },
  ],
  [
    'a transcription by its seconds',
    '/v1/audio/transcriptions',
    form,
    { text: 'hi', usage: { type: 'duration', seconds: 30 } },
    { 'gen_ai.usage.seconds': 30, 'proxy.ai.usage.cost.total': 0.003 },
  ],
])('%s has a price', async (_, path, body, response, expected) => {
  const { ask, log, spent } = await start(json(response), { budgets: dollars, ai: { prices: { 'dall-e-3': { input: '0', output: '0', images: '40000' } } } })
  const type = typeof body === 'string' ? 'multipart/form-data; boundary=b' : 'application/json'
  expect((await ask({ path, body, headers: { 'content-type': type } })).status).toBe(200)
  expect(await log()).toMatchObject(expected)
  expect(spent('usd')).toBeCloseTo(expected['proxy.ai.usage.cost.total'] ?? -1, 9)
})
