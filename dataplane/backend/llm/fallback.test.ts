import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { AIModel, Budget } from '#gen/config/types.ts'
import { startMockProvider, type MockProvider } from '../../../e2e/harness/llm/provider.ts'
import { startMockServer, type Answer, type MockServer } from '../../../e2e/harness/llm/server.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { answerWith, failing, faults, type Failing, type Fault } from './testing/faults.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { chat, send, type Post, type TestResponse } from './testing/test-bed.ts'

/** Failures of each provider in its own shape, with fallbacks, without retries and evictions (llm.md §15.4). */

const open: { close(): Promise<void> }[] = []
let gateway: LlmGateway
let broken: MockServer
let healthy: MockProvider
let answer: Answer = () => undefined
const on = [
  'RateLimit',
  'Quota',
  'Overloaded',
  'Timeout',
  'ServerError',
  'FirstToken',
  'ContextLength',
  'ContentFilter',
  'Auth',
  'ModelNotFound',
  'Unreachable',
] as const
const providers = Object.keys(failing) as Failing[]
/** llm.md §5: Responses are not converted to Messages. */
const lacksResponses: ReadonlySet<Failing> = new Set(['anthropic', 'vertexClaude'])
const rates = { input: '1000000', output: '2000000' }

/** A response of the target that fails otherwise. */
const ok: Answer = (_, response) => {
  const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }]
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: 'c', object: 'chat.completion', model: 'gpt-5', choices, usage }))
}

beforeAll(async () => {
  broken = await startMockServer({ answer: (request, response) => answer(request, response) })
  healthy = await startMockProvider()
  const to = (backend: string, model: string) => [{ backendRef: { backend: `ns/${backend}` }, model }]
  const models = providers.flatMap((name): AIModel[] => {
    const own = to(name, failing[name]?.model ?? '')
    return [
      { name, to: own, fallback: [{ on: [...on], to: to('healthy', 'after') }] },
      { name: `${name}-silent`, to: to(`${name}-silent`, failing[name]?.model ?? ''), fallback: [{ on: [...on], to: to('healthy', 'after') }] },
      { name: `${name}-budget`, to: own, fallback: [{ on: ['Budget'], to: to('healthy', 'after') }] },
    ]
  })
  const chain: AIModel = {
    name: 'chain',
    to: to('openai', 'gpt-5'),
    fallback: [
      { on: ['Overloaded'], to: to('anthropic', 'claude-x') },
      { on: [...on], to: to('healthy', 'after') },
    ],
  }
  const refused: AIModel = { name: 'refused', to: to('refused', 'm'), fallback: [{ on: ['Unreachable'], to: to('healthy', 'after') }] }
  gateway = await startLlmGateway({
    ai: { models: [...models, chain, refused] },
    policies: { ai: { prices: { 'gpt-5': rates, after: { input: '3000000', output: '1000000' } } } },
    more: [
      ...providers.flatMap((name) => {
        const ai = { provider: { ...failing[name]?.config, host: '127.0.0.1', port: broken.port } }
        // Only a target that is silent has limits, so that no other one depends on the speed of the machine.
        const limits = { ai: { firstTokenTimeout: '150ms' }, http: { requestTimeout: '150ms' } }
        return [
          { kind: 'backend' as const, message: { key: `ns/${name}`, ai } },
          { kind: 'backend' as const, message: { key: `ns/${name}-silent`, ai, policies: limits } },
        ]
      }),
      { kind: 'backend', message: { key: 'ns/healthy', ai: { provider: { providerA: {}, host: '127.0.0.1', port: healthy.port } } } },
      { kind: 'backend', message: { key: 'ns/refused', ai: { provider: { providerA: {}, host: '127.0.0.1', port: 1 } } } },
    ],
  })
  open.push(gateway, healthy, broken)
})
afterAll(async () => {
  for (const one of open) await one.close()
})

/** Requests of each client format, which have one text in common in their responses. */
const clients: Readonly<Record<string, (model: string, more?: object) => Post>> = {
  Completions: (model, more) => ({ body: chat('hello', { model, ...more }) }),
  Messages: (model, more) => ({ path: '/v1/messages', body: { ...chat('hello', { model, max_tokens: 9 }), ...more } }),
  Responses: (model, more) => ({ path: '/v1/responses', body: { model, input: 'hello', ...more } }),
}
const ask = (client: string, model: string, isStream: boolean): Promise<TestResponse> => {
  const post = clients[client]?.(model, isStream ? { stream: true } : {})
  if (post === undefined) throw new Error(client)
  return send(gateway.port, { ...post, headers: { accept: 'application/json' } })
}
const lastFields = () => logFieldsOf(gateway.finished.at(-1))
const ways = Object.keys(clients).flatMap((client) => [
  [client, false],
  [client, true],
]) as [string, boolean][]

describe.each(providers)('a target of %s falls back after', (provider) => {
  test.each(Object.entries(faults) as [Fault, string][])('%s (%s), in each client format, plain and streamed', async (fault, cause) => {
    answer = answerWith(provider, fault)
    for (const [client, isStream] of ways) {
      if (client === 'Responses' && lacksResponses.has(provider)) continue
      const sent = healthy.requests.length
      const { status, text, headers } = await ask(client, fault === 'silence' ? `${provider}-silent` : provider, isStream)
      const expected = fault === 'silence' && isStream ? 'FirstToken' : cause
      const found = /^backend: (\w+)(?: \(\d+\))?$/.exec(String(lastFields()['proxy.ai.failed']))?.[1]
      expect([client, isStream, status, found, healthy.requests.length - sent, headers['x-proxy-model']]).toEqual([client, isStream, 200, expected, 1, 'after'])
      expect(text).toContain('echo')
      // Nothing of the failed target reaches the client or the next one.
      expect(text).not.toMatch(/"error"\s*:\s*\{|<html>/)
      expect(healthy.requests.at(-1)?.headers).not.toHaveProperty('x-goog-api-key')
      expect(healthy.requests.at(-1)?.headers['authorization']).toBeUndefined()
    }
  })

  test('no cause of the list: the client gets the error of the provider in its format', async () => {
    answer = answerWith(provider, 'a long prompt')
    for (const client of Object.keys(clients)) {
      if (client === 'Responses' && lacksResponses.has(provider)) continue
      const sent = healthy.requests.length
      const { status, json } = await ask(client, `${provider}-budget`, false)
      expect([client, status, healthy.requests.length - sent, typeof json['error']?.['message']]).toEqual([client, 400, 0, 'string'])
    }
  })
})

describe('fallbacks', () => {
  test('go on to the next entry for the cause of each failure, and each target is asked once', async () => {
    answer = (request, response) => answerWith(request.path.includes('messages') ? 'anthropic' : 'openai', 'overload')(request, response)
    const before = broken.requests.length
    const { status, headers } = await ask('Completions', 'chain', true)
    expect([status, headers['x-proxy-model'], broken.requests.length - before]).toEqual([200, 'after', 2])
    expect(lastFields()['proxy.ai.failed']).toBe('backend: Overloaded (503), backend: Overloaded (529)')
  })

  test('are used for a target that cannot be reached', async () => {
    expect((await ask('Completions', 'refused', false)).status).toBe(200)
    expect(lastFields()['proxy.ai.failed']).toBe('backend: Unreachable')
  })

  test('are not used after the first content: the stream ends with an error in the format of the client', async () => {
    answer = (_, response) => {
      const chunk = { id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(chunk)}\n\n`)
      setTimeout(() => response.socket?.destroy(), 20)
    }
    const sent = healthy.requests.length
    const { text } = await ask('Completions', 'openai', true)
    expect([healthy.requests.length - sent, /Hello[^]*"error"/.test(text), text.includes('echo')]).toEqual([0, true, false])
  })

  test('are not delayed by keep-alives and frames without content', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const timer = setInterval(() => response.write(': keep-alive\n\n'), 20)
      response.on('close', () => clearInterval(timer))
    }
    const { status, text } = await ask('Completions', 'openai-silent', true)
    expect([status, text.includes('echo'), lastFields()['proxy.ai.failed']]).toEqual([200, true, 'backend: FirstToken'])
  })
})

describe('the price of a request that falls back', () => {
  const costOf = () => lastFields()['proxy.ai.usage.cost.total']

  test('is that of the target that responds, if the failed one rejected it', async () => {
    answer = answerWith('openai', 'a rate limit')
    await ask('Completions', 'openai', false)
    // One word of the prompt at 3 dollars, two of the response at 1 dollar.
    expect([lastFields()['gen_ai.request.model'], costOf()]).toEqual(['after', 5])
  })

  test('includes what a provider bills for a response that was given up', async () => {
    answer = answerWith('openai', 'a filtered response')
    await ask('Completions', 'openai', false)
    // Three tokens at 1 dollar more.
    expect(costOf()).toBe(8)
  })

  test('is exact for a mixture of failures: who responds, and what it costs', async () => {
    let seed = 7
    const random = (count: number): number => (seed = (seed * 16_807) % 2_147_483_647) % count
    const kinds: readonly (Fault | 'none')[] = ['none', 'a rate limit', 'overload', 'a long prompt', 'spent credit', 'half a response', 'HTML with status 200']
    const wanted: [string, number][] = []
    const found: unknown[] = []
    for (let i = 0; i < 300; i++) {
      const kind = kinds[random(kinds.length)] ?? 'none'
      answer = kind === 'none' ? ok : answerWith('openai', kind)
      await ask('Completions', 'openai', false)
      wanted.push(kind === 'none' ? ['gpt-5', 8] : ['after', 5])
      found.push([lastFields()['gen_ai.request.model'], costOf()])
    }
    expect(found).toEqual(wanted)
  })
})

describe('the limits of a request hold for each target', () => {
  const to = (backend: string, model: string) => [{ backendRef: { backend: `ns/${backend}` }, model }]
  const startLimited = async (fallback: AIModel['fallback'], options: Partial<LlmGatewayOptions>): Promise<LlmGateway> => {
    const limited = await startLlmGateway({
      ai: { models: [{ name: 'm', to: to('broken', 'gpt-5'), ...(fallback && { fallback }) }] },
      policies: { ai: { prices: { 'gpt-5': rates, after: { input: '1', output: '1' }, dear: { input: '9000000', output: '9000000' } } } },
      more: [
        { kind: 'backend', message: { key: 'ns/broken', ai: { provider: { providerA: {}, host: '127.0.0.1', port: broken.port } } } },
        { kind: 'backend', message: { key: 'ns/healthy', ai: { provider: { providerA: {}, host: '127.0.0.1', port: healthy.port } } } },
      ],
      ...options,
    })
    open.push(limited)
    return limited
  }
  const post = ({ port }: LlmGateway, more: object = {}) => send(port, { body: chat('hello', { model: 'm', max_tokens: 5, ...more }) })
  const limitsOf = (limit: Budget['limits'][number], models?: string) => ({
    onGateway: [{ traffic: { budgets: [{ name: 'team', limits: [limit], ...(models !== undefined && { models }) }] } }],
  })
  const dollars = (usd: string) => limitsOf({ usd, window: 'Day' })

  test('a budget of the model of a target that is used up falls back to a target without it, as Budget', async () => {
    answer = ok
    const limited = await startLimited([{ on: ['Budget'], to: to('healthy', 'after') }], limitsOf({ tokens: 3, window: 'Day' }, 'llm.requestModel == "gpt-5"'))
    const before = broken.requests.length
    expect((await post(limited)).status).toBe(200)
    for (let i = 0; i < 2; i++) expect((await post(limited)).status).toBe(200)
    const fields = logFieldsOf(limited.finished.at(-1))
    expect([broken.requests.length - before, fields['proxy.ai.failed'], fields['gen_ai.request.model']]).toEqual([1, 'backend: Budget', 'after'])
  })

  test('a budget of the model of the fallback is checked before it', async () => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited(
      [{ on: ['Overloaded'], to: to('healthy', 'dear') }],
      limitsOf({ tokens: 2, window: 'Day' }, 'llm.requestModel == "dear"'),
    )
    const before = healthy.requests.length
    const statuses = [(await post(limited)).status, (await post(limited)).status]
    expect([statuses, healthy.requests.length - before]).toEqual([[200, 429], 1])
  })

  test('a limit of requests counts a request once, whatever its targets', async () => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], limitsOf({ requests: 2, window: 'Day' }))
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await post(limited)).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test.each<[string, Budget['limits'][number], string | undefined]>([
    ['tokens', { tokens: 4, window: 'Day' }, undefined],
    ['dollars', { usd: '0.000004', window: 'Day' }, undefined],
    ['tokens, for models of both targets', { tokens: 4, window: 'Day' }, 'true'],
  ])('what the fallback used is charged to a budget of %s', async (_, limit, models) => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], limitsOf(limit, models))
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await post(limited, { max_tokens: 1 })).status)
    expect([statuses[0], statuses.at(-1)]).toEqual([200, 429])
  })

  test('a limit of requests of the models of both targets counts a request once', async () => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], limitsOf({ requests: 2, window: 'Day' }, 'true'))
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await post(limited)).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test('what a failed target had reserved is returned', async () => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], dollars('12'))
    for (let i = 0; i < 3; i++) expect((await post(limited)).status).toBe(200)
  })

  test('retries stay on the target, and the fallback follows', async () => {
    answer = answerWith('openai', 'overload')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], { route: { retry: { attempts: 2, codes: [503] } } })
    const before = broken.requests.length
    expect([(await post(limited)).status, broken.requests.length - before]).toEqual([200, 3])
  })

  test('the deadline of the request holds for all targets together', async () => {
    answer = answerWith('openai', 'silence')
    const limited = await startLimited([{ on: ['Timeout'], to: to('healthy', 'after') }], { route: { timeouts: { requestMs: 200 } } })
    const before = healthy.requests.length
    expect([(await post(limited)).status, healthy.requests.length - before]).toEqual([504, 0])
  })

  test('a target gets nothing of the one before: no credential, no header, the body of the client', async () => {
    answer = (_, response) => void response.writeHead(503, { 'set-cookie': 'a=b', 'x-from': 'broken' }).end('{}')
    const limited = await startLimited([{ on: ['Overloaded'], to: to('healthy', 'after') }], {
      onGateway: [],
      more: [
        {
          kind: 'backend',
          message: {
            key: 'ns/broken',
            ai: {
              provider: {
                providerC: {},
                host: '127.0.0.1',
                port: broken.port,
              },
            },
            policies: { auth: { key: 'secret' }, ai: { overrides: [{ field: 'top_p', value: 0.5 }] } },
          },
        },
        { kind: 'backend', message: { key: 'ns/healthy', ai: { provider: { providerA: {}, host: '127.0.0.1', port: healthy.port } } } },
      ],
    })
    const { status, headers } = await post(limited)
    expect([status, headers['x-from'], headers['set-cookie'], broken.requests.at(-1)?.headers['x-api-key']]).toEqual([200, undefined, undefined, 'secret'])
    const received = healthy.requests.at(-1)
    expect(Object.values(received?.headers ?? {}).join()).not.toMatch(/secret|anthropic/)
    expect(received?.body).toEqual({ model: 'after', messages: [{ role: 'user', content: 'hello' }], max_tokens: 5 })
  })
})
