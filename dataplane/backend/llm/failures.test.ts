import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendFull, Health, NamedLLMProvider, Route } from '#gen/config/types.ts'
import { startMockServer, type Answer, type MockServer } from '../../../e2e/harness/llm/server.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { frame } from './convert/testdata/streams.ts'
import { startLlmGateway, type LlmGateway } from './testing/gateway.ts'
import { chat, send, type Post, type TestResponse } from './testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const ok: Answer = (_, response) => {
  const choice = { index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ id: 'c', object: 'chat.completion', model: 'm', choices: [choice], usage: { prompt_tokens: 1, completion_tokens: 1 } }))
}
const fail =
  (status: number, body: object | string, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) => {
    response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/html' : 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
const openai = (code: string, message = 'm', type = 'invalid_request_error') => ({ error: { message, type, param: null, code } })

interface Bed {
  readonly gateway: LlmGateway
  readonly first: MockServer
  readonly second: MockServer
  readonly counts: () => [number, number]
  readonly advance: (ms: number) => void
  readonly post: (post?: Post) => Promise<TestResponse>
  answer(answer: Answer): void
}

interface Options {
  readonly provider?: Omit<NamedLLMProvider, 'name'>
  readonly health?: Health
  readonly retry?: Route['retry']
  readonly route?: Partial<Route>
  readonly policies?: BackendFull
  readonly isAlone?: boolean
}

/** Starts a gateway in front of a provider that fails, and another one in the second group. */
async function start(
  answer: Answer,
  { provider = { providerA: {} }, health = { eviction: {} }, retry = { attempts: 1, codes: [429] }, route, policies, isAlone }: Options = {},
): Promise<Bed> {
  let current = answer
  let now = 0
  const first = await startMockServer({ answer: (request, response) => current(request, response) })
  const second = await startMockServer({ answer: ok })
  const at = (name: string, { port }: MockServer) => ({ providers: [{ name, host: '127.0.0.1', port, ...(name === 'first' ? provider : { providerA: {} }) }] })
  const gateway = await startLlmGateway({
    ai: { groups: [at('first', first), ...(isAlone === true ? [] : [at('second', second)])] },
    policies: { health, ...policies },
    route: { ...(retry && { retry }), ...route },
    clocks: { monotonicMs: () => now },
  })
  open.push(first, second, gateway)
  return {
    gateway,
    first,
    second,
    counts: () => [first.requests.length, second.requests.length],
    advance: (ms) => void (now += ms),
    post: (post = {}) => send(gateway.port, { body: chat(), ...post }),
    answer: (next) => void (current = next),
  }
}
const failedOf = ({ gateway }: Bed): unknown => logFieldsOf(gateway.finished.at(-1))['proxy.ai.failed']

describe('an exhausted account', () => {
  const gone = fail(429, openai('credit_balance_exhausted', 'You exceeded your current quota', 'insufficient_quota'), { 'retry-after': '1' })

  test('is evicted for 5 minutes, although its status is that of a rate limit', async () => {
    const bed = await start(gone)
    expect([(await bed.post()).status, bed.counts(), failedOf(bed)]).toEqual([200, [1, 1], 'first: Quota (429)'])
    bed.advance(299_000)
    await bed.post()
    expect(bed.counts()).toEqual([1, 2])
    bed.advance(1000)
    await bed.post()
    expect(bed.counts()).toEqual([2, 3])
  })

  test('is not asked again by a retry if there is no other provider', async () => {
    const bed = await start(gone, { isAlone: true })
    expect([(await bed.post()).status, bed.counts()]).toEqual([429, [1, 0]])
  })

  test('is evicted at once, also if the policy counts failures in a row', async () => {
    const bed = await start(gone, { health: { eviction: { consecutiveFailures: 5 } } })
    await bed.post()
    await bed.post()
    expect(bed.counts()).toEqual([1, 2])
  })
})

describe('a rate limit', () => {
  const limited = (headers: Record<string, string>) => fail(429, openai('rate_limit_exceeded'), headers)

  test('evicts until the time that the provider names, again and again', async () => {
    const bed = await start(limited({ 'retry-after': '7' }))
    for (let round = 1; round <= 3; round++) {
      await bed.post()
      bed.advance(6999)
      await bed.post()
      expect(bed.counts()[0]).toBe(round)
      bed.advance(1)
    }
  })

  test('of a model that clients name is for that model alone, and ends with the hint', async () => {
    const bed = await start((request, response) => (request.body?.['model'] === 'slow' ? limited({ 'retry-after': '7' }) : ok)(request, response))
    const ask = (model: string): Promise<TestResponse> => bed.post({ body: chat('hi', { model }) })
    await ask('slow')
    expect(bed.counts()).toEqual([1, 1])
    // The model is asked for elsewhere, and others here.
    await ask('slow')
    await ask('other')
    expect(bed.counts()).toEqual([2, 2])
    bed.advance(7000)
    await ask('slow')
    expect(bed.counts()).toEqual([3, 3])
  })

  test('of the model that the config names evicts the provider', async () => {
    const bed = await start(limited({ 'retry-after': '7' }), { provider: { providerA: { model: 'own' } } })
    await bed.post({ body: chat('hi', { model: 'a' }) })
    await bed.post({ body: chat('hi', { model: 'b' }) })
    expect(bed.counts()).toEqual([1, 2])
  })

  test('is retried with the only provider after that time', async () => {
    const bed = await start(limited({ 'retry-after-ms': '120' }), { isAlone: true })
    const startedAtMs = performance.now()
    const response = bed.post()
    const retry = setInterval(() => bed.first.requests.length === 1 && bed.answer(ok), 5)
    expect([(await response).status, bed.counts()]).toEqual([200, [2, 0]])
    clearInterval(retry)
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(115)
  })

  test.each<[string, Record<string, string>, Partial<Route>]>([
    ['a time that is longer than a minute', { 'retry-after': '61' }, {}],
    ['a time after the deadline of the request', { 'retry-after': '30' }, { timeouts: { requestMs: 5000 } }],
    ['x-should-retry: false', { 'x-should-retry': 'false' }, {}],
  ])('is returned at once for %s', async (_, headers, route) => {
    const bed = await start(limited(headers), { isAlone: true, route })
    const { status, headers: returned } = await bed.post()
    expect([status, returned['retry-after'], bed.counts()]).toEqual([429, headers['retry-after'], [1, 0]])
  })
})

describe('a failure of the request itself', () => {
  test.each<[string, Answer, string]>([
    ['a prompt over the window', fail(400, openai('context_length_exceeded')), 'first: ContextLength (400)'],
    ['a prompt that the provider filters', fail(400, openai('content_policy_violation')), 'first: ContentFilter (400)'],
    ['an invalid parameter', fail(400, openai('unsupported_value')), 'first: Invalid (400)'],
    ['HTML of a firewall', fail(403, '<html>blocked</html>'), 'first: Auth (403)'],
    ['a model that the client names', fail(404, openai('model_not_found')), 'first: ModelNotFound (404)'],
  ])('evicts nothing, whatever the condition says: %s', async (_, answer, failed) => {
    const bed = await start(answer, { health: { unhealthyCondition: 'response.code >= 400', eviction: {} } })
    for (let i = 0; i < 3; i++) await bed.post()
    expect([bed.counts(), failedOf(bed)]).toEqual([[3, 0], failed])
  })

  test('is retried with another provider only: a prompt over the window', async () => {
    const retry = { attempts: 1, codes: [400] }
    const options = { retry, provider: { providerA: {} } }
    const alone = await start(fail(400, openai('context_length_exceeded')), { ...options, isAlone: true })
    expect([(await alone.post()).status, alone.counts()]).toEqual([400, [1, 0]])
  })

  test('is not retried elsewhere: a prompt that the provider filters', async () => {
    const bed = await start(fail(400, openai('content_filter')), { retry: { attempts: 1, codes: [400] } })
    expect([(await bed.post()).status, bed.counts()]).toEqual([400, [1, 0]])
  })
})

describe('credentials that the provider rejects', () => {
  const rejected = fail(401, openai('invalid_api_key', 'Incorrect API key provided'))

  test('evict the provider for a minute', async () => {
    const bed = await start(rejected, { policies: { auth: { key: 'k' } } })
    await bed.post()
    bed.advance(59_000)
    await bed.post()
    expect(bed.counts()).toEqual([1, 1])
    bed.advance(1000)
    await bed.post()
    expect(bed.counts()).toEqual([2, 1])
  })

  test('evict nothing if they are those of the client', async () => {
    const bed = await start(rejected)
    for (let i = 0; i < 2; i++) await bed.post({ headers: { authorization: 'Bearer mine' } })
    expect([bed.counts(), failedOf(bed)]).toEqual([[2, 0], 'first: Auth (401)'])
  })
})

describe('a model that the provider does not have', () => {
  test('evicts the provider if the config names it', async () => {
    const bed = await start(fail(404, openai('model_not_found')), { provider: { providerA: { model: 'gone' } } })
    await bed.post()
    await bed.post()
    expect(bed.counts()).toEqual([1, 1])
  })
})

describe('a failure with status 200 and before the first content', () => {
  const streamOf =
    (...events: (object | Buffer)[]): Answer =>
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of events)
        response.write(Buffer.isBuffer(event) ? event : `${'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`)
      response.end()
    }
  const start200 = (answer: Answer, provider: Omit<NamedLLMProvider, 'name'>) => start(answer, { provider, retry: { attempts: 1, codes: [503, 502] } })

  test.each<[string, Omit<NamedLLMProvider, 'name'>, Answer, string]>([
    [
      'an error event of Anthropic after message_start',
      { providerC: {} },
      streamOf(
        {
          type: 'message_start',
          message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
        },
        { type: 'ping' },
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ),
      'first: Overloaded',
    ],
    ['an error of OpenRouter', { providerA: {} }, streamOf({ error: { code: 429, message: 'm' } }), 'first: RateLimit'],
    ['an exhausted account', { providerA: {} }, streamOf({ error: { code: 'insufficient_quota', type: 'insufficient_quota', message: 'm' } }), 'first: Quota'],
    [
      'a frame of Bedrock',
      { providerF: {}, policies: { auth: { key: 'k' } } },
      streamOf(frame('throttlingException', { message: 'm' }, 'exception')),
      'first: RateLimit',
    ],
    ['HTML', { providerA: {} }, (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), 'first: ServerError'],
    ['JSON', { providerA: {} }, fail(200, openai('server_is_overloaded')), 'first: Overloaded'],
    ['half a stream', { providerA: {} }, streamOf({ choices: [{ index: 0, delta: { role: 'assistant' } }] }), 'first: ServerError'],
  ])('has the cause of its error: %s', async (_, provider, answer, failed) => {
    const bed = await start200(answer, provider)
    const { status, text } = await bed.post({ body: chat('hi', { stream: true }) })
    expect([status, bed.counts(), failedOf(bed)]).toEqual([200, [1, 1], failed])
    expect(text).toContain('Hello')
  })

  test('is told from a slow first content', async () => {
    const hang: Answer = (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': keep-alive\n\n')
    const bed = await start(hang, { retry: { attempts: 1, codes: [503] }, policies: { ai: { firstTokenTimeout: '50ms' } } })
    const { status, text } = await bed.post({ body: chat('hi', { stream: true }) })
    expect([status, bed.counts(), failedOf(bed)]).toEqual([200, [1, 1], 'first: FirstToken'])
    expect(text).toContain('Hello')
  })
})
