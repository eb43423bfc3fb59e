import { afterEach, describe, expect, test } from '@jest/globals'
import type { AIModel, AIModelShadow, BackendFull } from '#gen/config/types.ts'
import type { Comparison } from '#api/management/comparison.ts'
import { startMockProvider, type MockProvider } from '../../../../e2e/harness/llm/provider.ts'
import { startMockServer, type Answer, type MockServer } from '../../../../e2e/harness/llm/server.ts'
import { until } from '../../../../e2e/harness/wait.ts'
import { capturedBodies, captureLimits } from '../../../request/exchange/captured-bodies.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { ConfigMessage } from '../../../config/store.ts'
import { ownRequests } from '../../../observe/telemetry/own-requests.ts'
import { logFieldsOf } from '../../../testing/log-fields.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from '../testing/gateway.ts'
import { chat, send, type Post, type TestResponse } from '../testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** Prices of all models of a backend. */
const priced: BackendFull = { ai: { prices: { '*': { input: '1', output: '1' } } } }

interface Bed {
  readonly gateway: LlmGateway
  /** `a` serves clients, `b` copies, `j` is the judge. */
  readonly mocks: { readonly a: MockProvider; readonly b: MockProvider; readonly j: MockServer }
  /** Requests of the gateway's own that were recorded. */
  readonly own: Exchange[]
  post(post: Post): Promise<TestResponse>
  /** Waits for a number of comparisons. */
  compared(count?: number): Promise<Comparison[]>
  /** Waits until a number of copies were skipped or compared with a result. */
  counted(result: string, count?: number): Promise<void>
}

const shadowTo = (more: Partial<AIModelShadow> = {}): AIModelShadow => ({
  to: { backendRef: { backend: 'ns/b' }, model: 'other' },
  percent: 100,
  budget: '10',
  ...more,
})

interface Setup extends Partial<LlmGatewayOptions> {
  /** Policies of the backends. */
  readonly of?: Readonly<Record<string, BackendFull>>
  /** The provider of copies. */
  readonly b?: object
  readonly judge?: Answer
}

const json =
  (body: object): Answer =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const says = (content: string): Answer =>
  json({
    id: 'j',
    object: 'chat.completion',
    model: 'judge',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5 },
  })

async function start(shadow: AIModelShadow, options: Setup = {}): Promise<Bed> {
  const { of = {}, b = { providerA: {} }, judge = says('{"winner": "tie"}'), ...rest } = options
  const mocks = { a: await startMockProvider(), b: await startMockProvider(), j: await startMockServer({ answer: judge }) }
  const models: AIModel[] = [{ name: 'assistant', to: [{ backendRef: { backend: 'ns/a' }, model: 'gpt-4o' }], shadow }]
  const backend = (name: 'a' | 'b' | 'j', provider: object): ConfigMessage => ({
    kind: 'backend',
    message: { key: `ns/${name}`, ai: { provider: { ...provider, host: '127.0.0.1', port: mocks[name].port } }, policies: of[name] ?? priced },
  })
  const gateway = await startLlmGateway({ ai: { models }, ...rest, more: [backend('a', { providerA: {} }), backend('b', b), backend('j', { providerA: {} })] })
  const own: Exchange[] = []
  ownRequests.set(gateway.registry, (exchange) => void own.push(exchange))
  open.push(gateway, mocks.a, mocks.b, mocks.j)
  const copies = (): Exchange[] => own.filter((exchange) => logFieldsOf(exchange)['gen_ai.operation.name'] === 'shadow')
  return {
    gateway,
    mocks,
    own,
    post: (post) => send(gateway.port, post),
    async compared(count = 1) {
      await until(() => copies().length >= count)
      return copies().map((exchange) => JSON.parse(capturedBodies.get(exchange)?.response ?? '{}') as Comparison)
    },
    async counted(result, count = 1) {
      const series = new RegExp(`proxy_llm_shadow_copies_total\\{backend="ns/llm",model="assistant",result="${result}"\\} (\\d+)`)
      await until(() => Number(series.exec([...gateway.registry.expose('text')].join(''))?.[1] ?? 0) >= count)
    },
  }
}

const ask = (more: object = {}, text = 'hello'): Post => ({ body: chat(text, { model: 'assistant', ...more }) })

describe('a copy', () => {
  test('has nothing of the client but the conversation, and does not change the response to it', async () => {
    const bed = await start(shadowTo())
    const headers = { authorization: 'Bearer client', cookie: 'session=1', 'x-request-id': 'mine', 'openai-organization': 'org' }
    const { status, headers: received } = await bed.post({
      ...ask({ user: 'ann', metadata: { a: 'b' }, store: true, n: 2, service_tier: 'priority', temperature: 0.5 }),
      path: '/v1/chat/completions?key=secret',
      headers,
    })
    const [comparison] = await bed.compared()
    expect([status, received['x-proxy-model']]).toEqual([200, 'gpt-4o'])
    const { path, headers: sent, body } = bed.mocks.b.requests[0] ?? {}
    expect([path, Object.keys(sent ?? {}).toSorted(), body]).toEqual([
      '/v1/chat/completions',
      ['accept', 'content-length', 'content-type', 'host', 'x-proxy-loop'],
      { model: 'other', messages: [{ role: 'user', content: 'hello' }], temperature: 0.5 },
    ])
    expect(comparison).toMatchObject({
      backend: 'ns/llm',
      model: 'assistant',
      original: { target: 'ns/a gpt-4o', model: 'gpt-4o', inputTokens: 1, outputTokens: 2, cost: 0.000003, stop: 'end', json: null },
      copy: { target: 'ns/b other', model: 'other', inputTokens: 1, outputTokens: 2, cost: 0.000003, stop: 'end', json: null },
      error: null,
      similarity: 1,
      tools: null,
      verdict: null,
      texts: null,
    })
  })

  test.each(['completions', 'messages', 'responses'].flatMap((format) => [false, true].map((stream) => [format, stream] as const)))(
    'of %s (stream: %s) is translated for a provider of another API, and compared',
    async (format, stream) => {
      const bed = await start(shadowTo({ to: { backendRef: { backend: 'ns/b' }, model: 'claude-other' } }), { b: { providerC: {} } })
      const posts: Readonly<Record<string, Post>> = {
        completions: ask({ stream }),
        messages: { path: '/v1/messages', body: { ...chat(), model: 'assistant', max_tokens: 99, stream } },
        responses: { path: '/v1/responses', body: { model: 'assistant', input: 'hello', stream } },
      }
      const { status } = await bed.post(posts[format] ?? {})
      const [comparison] = await bed.compared()
      expect([status, bed.mocks.b.requests[0]?.path]).toEqual([200, '/v1/messages'])
      expect(comparison).toMatchObject({ error: null, original: { stop: 'end' }, copy: { stop: 'end', model: expect.stringContaining('claude') } })
      expect(typeof comparison?.original.firstTokenMs).toBe(stream ? 'number' : 'object')
      expect(typeof comparison?.copy.firstTokenMs).toBe(stream ? 'number' : 'object')
      expect(comparison?.similarity).toBeGreaterThan(0.5)
    },
  )

  test('has what the guards of the client request masked', async () => {
    const of = { a: { ai: { ...priced.ai, promptGuard: { request: [{ regex: { builtins: ['Email'], action: 'Mask' } }] } } } as BackendFull }
    const bed = await start(shadowTo(), { of })
    await bed.post(ask({}, 'write to ann@example.org'))
    await bed.compared()
    expect(JSON.stringify(bed.mocks.b.requests[0]?.body)).toContain('write to <EMAIL_ADDRESS>')
  })

  test.each([
    ['runs in the background', { path: '/v1/responses', body: { model: 'assistant', input: 'x', background: true } }, 'state'],
    ['continues a stored response', { path: '/v1/responses', body: { model: 'assistant', input: 'x', previous_response_id: 'r' } }, 'state'],
    ['has a tool that the provider runs', { path: '/v1/responses', body: { model: 'assistant', input: 'x', tools: [{ type: 'web_search' }] } }, 'state'],
    [
      'names MCP servers for the provider',
      { path: '/v1/messages', body: { ...chat(), model: 'assistant', max_tokens: 9, mcp_servers: [{ type: 'url', url: 'https://x.test' }] } },
      'state',
    ],
    ['names a file of the provider', ask({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] }), 'state'],
    ['is not a chat', { path: '/v1/embeddings', body: { model: 'assistant', input: 'x' } }, 'incomplete'],
    ['is large', ask({}, 'x'.repeat(1024 * 1024)), 'size'],
  ] as [string, Post, string][])('is not made of a request that %s', async (_, post, result) => {
    const bed = await start(shadowTo())
    expect((await bed.post(post)).status).toBe(200)
    await bed.counted(result)
    expect(bed.mocks.b.requests).toEqual([])
  })

  test('is not made of a request that failed', async () => {
    const bed = await start(shadowTo())
    bed.mocks.a.behave({ status: 400 })
    expect((await bed.post(ask())).status).toBe(400)
    await bed.counted('incomplete')
    expect(bed.mocks.b.requests).toEqual([])
  })

  test('is drawn by the percentage', async () => {
    let draws = 0
    const bed = await start(shadowTo({ percent: 25 }), { random: () => [0.1, 0.24, 0.25, 0.9][draws++ % 4] ?? 0 })
    for (let sent = 0; sent < 4; sent++) await bed.post(ask())
    await bed.compared(2)
    expect(bed.mocks.b.requests).toHaveLength(2)
  })

  test('that hangs does not delay the client, ends at the timeout, and counts as a failure of the copy only', async () => {
    const bed = await start(shadowTo({ timeout: '1s' }), { of: { b: { ...priced, health: { eviction: {} } } } })
    bed.mocks.b.behave({ delay: 3000 })
    const startedAtMs = performance.now()
    expect((await bed.post(ask())).status).toBe(200)
    expect(performance.now() - startedAtMs).toBeLessThan(1000)
    const [comparison] = await bed.compared()
    expect(comparison).toMatchObject({ error: 'Timeout', copy: { target: 'ns/b other' }, similarity: null })
  })

  test('that fails evicts no provider of clients', async () => {
    const bed = await start(shadowTo({ to: { backendRef: { backend: 'ns/a' }, model: 'broken' } }), {
      of: { a: { ...priced, health: { eviction: { duration: '1h' } } } },
    })
    bed.mocks.a.behave({})
    const statuses = [(await bed.post(ask())).status]
    bed.mocks.a.behave({ status: 500 })
    await bed.compared()
    bed.mocks.a.behave({})
    statuses.push((await bed.post(ask())).status)
    expect(statuses).toEqual([200, 200])
  })
})

describe('the budget of a shadow', () => {
  test('pays the copies, not the budget of the client', async () => {
    const bed = await start(shadowTo(), { onGateway: [{ traffic: { budgets: [{ name: 'user', limits: [{ usd: '1', window: 'Day' }] }] } }] })
    await bed.post(ask())
    await bed.compared()
    const spent = [...[...bed.gateway.registry.expose('text')].join('').matchAll(/proxy_budget_spent_total\{[^}]*budget="(\w+)"[^}]*\} (\S+)/g)]
    expect(Object.fromEntries(spent.map(([, name, usd]) => [name, Number(usd)]))).toEqual({ assistant: 0.000003, user: 0.000003 })
  })

  test('ends copies before they may exceed it', async () => {
    // 4,096 output tokens are reserved.
    const bed = await start(shadowTo({ budget: '0.0042', concurrency: 1 }))
    for (let sent = 0; sent < 40; sent++) await bed.post(ask({}, 'word '.repeat(200)))
    await bed.counted('budget')
    expect(bed.mocks.b.requests.length).toBeLessThan(40)
  })

  test('needs a price', async () => {
    const bed = await start(shadowTo(), { of: { b: {} } })
    await bed.post(ask())
    await bed.counted('price')
    expect(bed.mocks.b.requests).toEqual([])
  })
})

describe('the judge of a shadow', () => {
  const judge = { to: { backendRef: { backend: 'ns/j' }, model: 'judge' }, rubric: 'The shorter response is better. $& {rubric}' }
  const texts = { a: 'long long answer', b: 'short' }
  const judged = async (answer: Answer): Promise<{ readonly bed: Bed; readonly comparison: Comparison | undefined }> => {
    const bed = await start(shadowTo({ judge }), { judge: answer })
    bed.mocks.a.behave({ text: texts.a })
    bed.mocks.b.behave({ text: texts.b })
    await bed.post(ask())
    return { bed, comparison: (await bed.compared())[0] }
  }
  /** Answers by the response that is at a place. */
  const prefers =
    (text: string): Answer =>
    (request, response) => {
      const { responseA } = JSON.parse((request.body?.['messages'] as { content: string }[] | undefined)?.[1]?.content ?? '{}') as { responseA: string }
      return says(responseA === text ? '{"winner": "A"}' : ' {"winner": "B"}\n')(request, response)
    }

  test('decides if the same response wins in both places, and the shadow pays', async () => {
    const { bed, comparison } = await judged(prefers(texts.b))
    expect(comparison).toMatchObject({ verdict: 'Copy', judgeCost: 0.00003 })
    expect(bed.mocks.j.requests[0]?.body?.['messages']).toMatchObject([
      { role: 'system', content: expect.stringContaining('The shorter response is better. $& {rubric}') },
      { role: 'user', content: JSON.stringify({ request: 'hello', responseA: texts.a, responseB: texts.b }) },
    ])
    expect((await judged(prefers(texts.a))).comparison?.verdict).toBe('Original')
  })

  test('that prefers a place decides nothing', async () => {
    expect((await judged(says('{"winner": "A"}'))).comparison?.verdict).toBe('Inconsistent')
  })

  test.each(['A', 'The winner is {"winner": "A"}', '{"winner": "C"}', '{"winner": "A", "reason": "x"}', '```json\n{"winner": "A"}\n```', '[]', ''])(
    'that answers %j has no verdict',
    async (text) => {
      expect((await judged(says(text))).comparison?.verdict).toBe('Invalid')
    },
  )

  test('is not asked about equal responses', async () => {
    const bed = await start(shadowTo({ judge }))
    await bed.post(ask())
    expect((await bed.compared())[0]?.verdict).toBe('Tie')
    expect(bed.mocks.j.requests).toEqual([])
  })
})

test('texts are kept only where the ledger stores bodies', async () => {
  const bed = await start(shadowTo())
  captureLimits.set(bed.gateway.registry, 1000)
  await bed.post(ask())
  expect((await bed.compared())[0]?.texts).toEqual({ request: 'hello', original: 'echo: hello', copy: 'echo: hello' })
})

test('calls of tools and JSON are compared', async () => {
  const bed = await start(shadowTo())
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]
  await bed.post(ask({ tools }))
  await bed.compared(1)
  bed.mocks.a.behave({ text: '{"city": "Bern"}' })
  bed.mocks.b.behave({ text: '{"town": "Bern"}' })
  await bed.post(ask({ response_format: { type: 'json_object' } }))
  await bed.compared(2)
  bed.mocks.b.behave({ text: 'Bern' })
  await bed.post(ask({ response_format: { type: 'json_object' } }))
  expect((await bed.compared(3)).map(({ tools: calls, sameMembers, original, copy }) => [calls, sameMembers, original.json, copy.json])).toEqual([
    ['none', null, null, null],
    [null, false, true, true],
    [null, null, true, false],
  ])
})
