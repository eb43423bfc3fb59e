import { request as httpRequest } from 'node:http'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Health, Traffic } from '#gen/config/types.ts'
import { errorTextOf } from '../../observe/telemetry/access-log/fields.ts'
import { reasonOf } from '../../observe/telemetry/outcome.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

/** Starts two groups of one provider each, with a clock that the test controls. */
async function startTwo(health: Health | undefined, more: Partial<TestBedOptions> = {}) {
  let now = 0
  const bed = await start({
    groups: [{ first: { providerA: {} } }, { second: { providerC: {} } }],
    ...(health && { policies: { health } }),
    clocks: { monotonicMs: () => now },
    ...more,
  })
  const [first, second] = bed.mocks
  if (first === undefined || second === undefined) throw new Error('two mocks')
  const requestCounts = (): [number, number] => [first.requests.length, second.requests.length]
  return { ...bed, first, second, requestCounts, advance: (ms: number) => void (now += ms) }
}

describe('failover', () => {
  test('requests go to the next group while the first is evicted; repeated evictions last longer until a success', async () => {
    const { post, first, requestCounts, advance } = await startTwo({ eviction: { duration: '3s' } })
    first.behave({ status: 500 })
    const statuses: number[] = []
    const ask = async (): Promise<void> => void statuses.push((await post({ body: chat() })).status)
    await ask()
    await ask()
    expect([statuses, requestCounts()]).toEqual([
      [500, 200],
      [1, 1],
    ])
    advance(3000)
    await ask()
    expect([statuses.at(-1), requestCounts()]).toEqual([500, [2, 1]])
    advance(3000)
    await ask()
    expect(requestCounts()).toEqual([2, 2])
    advance(3000)
    first.behave({})
    await ask()
    expect([statuses.at(-1), requestCounts()]).toEqual([200, [3, 2]])
  })

  test('the transformation of a failed provider is not applied to the response of the next one', async () => {
    const transformation = { response: { set: [{ name: 'x-from', value: '"first"' }] } }
    const { post, first, requestCounts } = await startTwo(
      { eviction: {} },
      { onProvider: { first: { transformation } }, route: { retry: { attempts: 1, codes: [500] } } },
    )
    const before = await post({ body: chat() })
    first.behave({ status: 500 })
    const after = await post({ body: chat() })
    expect([before.headers['x-from'], after.status, after.headers['x-from'], requestCounts()]).toEqual(['first', 200, undefined, [2, 1]])
  })

  test('the log names the parameters of the request that was answered, not those of a failed provider', async () => {
    const ai = { defaults: [{ field: 'temperature', value: 0.5 }], overrides: [{ field: 'max_tokens', value: 7 }] }
    const { post, first, gateway } = await startTwo({ eviction: {} }, { onProvider: { first: { ai } }, route: { retry: { attempts: 1, codes: [500] } } })
    first.behave({ status: 500 })
    const { status } = await post({ body: chat('hi', { max_tokens: 9 }) })
    const fields = logFieldsOf(gateway.finished[0])
    expect([status, fields['gen_ai.provider.name'], fields['gen_ai.request.max_tokens'], fields['gen_ai.request.temperature']]).toEqual([
      200,
      'anthropic',
      9,
      undefined,
    ])
  })

  test('onEviction is called at the start and the end of an eviction', async () => {
    const events: string[] = []
    const { post, first, advance } = await startTwo(
      { eviction: {} },
      { onEviction: (backend, { kind, endpoint, durationMs }) => events.push(`${backend} ${endpoint} ${kind} ${durationMs}`) },
    )
    first.behave({ status: 500 })
    await post({ body: chat() })
    advance(3000)
    first.behave({})
    await post({ body: chat() })
    expect(events).toEqual(['ns/llm first evicted 3000', 'ns/llm first back 0'])
  })

  test('requests go to the next group while the checks of the first fail', async () => {
    const events: string[] = []
    const active = { interval: '5ms', jitter: '0s', unhealthyThreshold: 2, http: { path: '/health' } }
    const { post, first, second } = await startTwo(undefined, { onProvider: { first: { health: { active } } }, onEviction: (_, { kind }) => events.push(kind) })
    const chats = () => [first, second].map(({ requests }) => requests.filter(({ path }) => path !== '/health').length)
    const until = async (count: number): Promise<void> => {
      while (events.length < count) await new Promise((resolve) => setTimeout(resolve, 2))
    }
    first.behave({ status: 500 })
    await until(1)
    await post({ body: chat() })
    expect([events, chats()]).toEqual([['down'], [0, 1]])
    first.behave({})
    await until(2)
    await post({ body: chat() })
    expect([events, chats()]).toEqual([
      ['down', 'up'],
      [1, 1],
    ])
  })

  test('a provider is evicted after the configured number of consecutive failures', async () => {
    const { post, first, requestCounts } = await startTwo({ eviction: { consecutiveFailures: 3 } })
    first.behave({ status: 503 })
    for (let i = 0; i < 4; i++) await post({ body: chat() })
    expect(requestCounts()).toEqual([3, 1])
  })

  test('a failing group keeps receiving requests without a health policy', async () => {
    const { post, first, requestCounts } = await startTwo(undefined)
    first.behave({ status: 500 })
    for (let i = 0; i < 3; i++) await post({ body: chat() })
    expect(requestCounts()).toEqual([3, 0])
  })

  test('group 0 receives requests if all providers are evicted', async () => {
    const { post, first, second, requestCounts } = await startTwo({ eviction: {} })
    first.behave({ status: 500 })
    second.behave({ status: 500 })
    for (let i = 0; i < 4; i++) await post({ body: chat() })
    expect(requestCounts()).toEqual([3, 1])
  })

  test.each<[string, Health, number]>([
    ['for the time in Retry-After', { unhealthyCondition: 'response.code == 429' }, 7000],
    ['for that time, whatever the configured time is', { unhealthyCondition: 'response.code == 429', eviction: {} }, 7000],
  ])('a provider with an unhealthy status is evicted %s', async (_, health, ms) => {
    const { post, first, requestCounts, advance } = await startTwo(health)
    first.behave({ status: 429, retryAfter: '7' })
    expect((await post({ body: chat() })).status).toBe(429)
    advance(ms - 1)
    await post({ body: chat() })
    expect(requestCounts()).toEqual([1, 1])
    advance(1)
    await post({ body: chat() })
    expect(requestCounts()).toEqual([2, 1])
  })

  test('a retry goes to a new selection, in the format of that provider', async () => {
    const { post, first, second } = await startTwo({ eviction: {} }, { route: { retry: { attempts: 1, codes: [500] } } })
    first.behave({ status: 500 })
    const { status, json } = await post({ body: chat('over there') })
    expect([status, json['choices']?.[0]?.['message']?.['content']]).toEqual([200, 'echo: over there'])
    expect([first.requests[0]?.path, second.requests[0]?.path]).toEqual(['/v1/chat/completions', '/v1/messages'])
    expect([first.requests[0]?.headers['x-retry-attempt'], second.requests[0]?.headers['x-retry-attempt']]).toEqual([undefined, '1'])
  })

  test.each([
    ['an error in the stream before any content', { error: 1 }],
    ['a stream that is reset before any content', { cut: 1 }],
    ['a stream that ends before any content', { end: 1 }],
  ])('%s is retried with another provider', async (_, behaviour) => {
    const { post, first, requestCounts } = await startTwo({ eviction: {} }, { route: { retry: { attempts: 1, codes: [503] } } })
    first.behave(behaviour)
    const { status, text } = await post({ body: chat('a b', { stream: true }) })
    expect([status, requestCounts()]).toEqual([200, [1, 1]])
    expect(text).toContain('"content":"echo: "')
    expect(text).not.toContain('error')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    await post({ body: chat() })
    expect(requestCounts()).toEqual([1, 2])
  })

  test('a stream that fails after its first content is not retried', async () => {
    const { post, first, requestCounts } = await startTwo({ eviction: {} }, { route: { retry: { attempts: 1, codes: [503] } } })
    first.behave({ cut: 3 })
    const { text } = await post({ body: chat('a b c', { stream: true }) })
    expect(requestCounts()).toEqual([1, 0])
    expect(text).toMatch(/"content":"echo: "[^]*"error"/)
  })

  test('the slower provider of a group receives fewer requests, but some', async () => {
    let seed = 7
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647
    const { post, mocks } = await start({ groups: [{ fast: { providerA: {} }, slow: { providerA: {} } }], random })
    // Long enough to tolerate pauses of the machine.
    mocks[1]?.behave({ delay: 250 })
    for (let i = 0; i < 40; i++) await post({ body: chat() })
    const [fast = 0, slow = 0] = mocks.map((mock) => mock.requests.length)
    expect(slow).toBeGreaterThan(0)
    expect(fast).toBeGreaterThan(slow * 1.5)
  })

  test('evictions survive a config update', async () => {
    const { post, first, requestCounts, gateway } = await startTwo({ eviction: {} })
    first.behave({ status: 500 })
    await post({ body: chat() })
    gateway.update({ policies: { health: { eviction: {} }, ai: { overrides: [{ field: 'seed', value: 1 }] } } })
    await post({ body: chat() })
    expect(requestCounts()).toEqual([1, 1])
  })
})

const limit = (tokens: number): NonNullable<Traffic['rateLimit']> => ({ local: [{ tokens, unit: 'Hours' }] })

describe('token budgets', () => {
  const budget = (tokens: number): Pick<TestBedOptions, 'onGateway'> => ({ onGateway: [{ traffic: { rateLimit: limit(tokens) } }] })

  test.each([
    ['a buffered response', chat('one two three'), {}],
    ['a stream', chat('one two three', { stream: true }), {}],
    ['embeddings', { model: 'e', input: 'one two three four five six seven' }, { path: '/v1/embeddings' }],
  ])('%s is charged at its end, and the next request is a 429 with rate limit headers', async (_, body, more) => {
    const { post, mock } = await start({ ...budget(7), ai: { routes: sdkRoutes } })
    expect((await post({ body, ...more })).status).toBe(200)
    const rejected = await post({ body, ...more })
    expect([rejected.status, rejected.text, rejected.headers['x-ratelimit-limit'], rejected.headers['x-ratelimit-remaining']]).toEqual([
      429,
      'rate limit exceeded',
      '7',
      '0',
    ])
    expect(Number(rejected.headers['x-ratelimit-reset'])).toBeGreaterThan(0)
    expect(mock.requests.length).toBe(1)
  })

  test('token counting, model lists and Passthrough are not charged', async () => {
    const { post } = await start({ ...budget(1), ai: { routes: sdkRoutes } })
    for (let i = 0; i < 3; i++) {
      expect((await post({ path: '/v1/messages/count_tokens', body: { model: 'gpt-4o', messages: [{ role: 'user', content: 'x' }] } })).status).toBe(200)
      expect((await post({ path: '/v1/models', method: 'GET' })).status).toBe(200)
      expect((await post({ path: '/v1/files', body: { a: 1 } })).status).toBe(200)
    }
  })

  test('a rejected request and a failed request are not charged', async () => {
    const { post } = await start({ ...budget(5) })
    expect((await post({ body: { messages: [] } })).status).toBe(400)
    expect((await post({ body: chat(), headers: { 'x-mock': 'status=500' } })).status).toBe(500)
    expect((await post({ body: chat() })).status).toBe(200)
  })

  test('with reserveTokens a prompt over the budget is rejected, and excess reservations are returned', async () => {
    const { post, mock } = await start({ ...budget(60), ai: { reserveTokens: true } })
    const rejected = await post({ body: chat('word '.repeat(200)) })
    expect([rejected.status, rejected.headers['x-ratelimit-remaining'], mock.requests.length]).toEqual([429, '60', 0])
    const response = await post({ body: chat('one two') })
    expect(response.status).toBe(200)
    // The provider counts five tokens; the estimate of the prompt is higher.
    expect((await post({ path: '/x', body: { messages: [] } })).status).toBe(400)
    expect((await post({ body: chat('word '.repeat(30)) })).status).toBe(200)
  })

  test('a stream whose client asked for no usage is charged by the forwarded text', async () => {
    const { post } = await start({ ...budget(20) })
    const body = chat('word '.repeat(40), { stream: true, stream_options: { include_usage: false } })
    const { text } = await post({ body })
    expect(text).toMatch(/\[DONE\]\n\n$/)
    expect(text).not.toContain('"usage":{')
    expect((await post({ body: chat() })).status).toBe(429)
  })

  test('a truncated stream is charged by the forwarded text', async () => {
    const { post } = await start({ ...budget(20) })
    await post({ body: chat('word '.repeat(40), { stream: true }), headers: { 'x-mock': 'cut=30' } })
    expect((await post({ body: chat() })).status).toBe(429)
  })

  test.each([
    ['reports an error', 'error=30', 'failed to process LLM response: the stream ended with an error: overloaded_error: '],
    ['ends without its terminator', 'end=30', 'failed to process LLM response: the stream ended with an error: upstream_error: the upstream ended the stream'],
    ['breaks off', 'cut=30', 'upstream call failed: '],
  ])('a Messages stream that %s is charged by the forwarded text and logged as a failure of the upstream', async (_, fault, error) => {
    const { post, gateway } = await start({ ...budget(20), provider: { providerC: {} } })
    await post({ body: chat('hi', { stream: true }), headers: { 'x-mock': `text=${'word '.repeat(40)};${fault}` } })
    const [exchange] = gateway.finished
    expect(exchange && [reasonOf(exchange), errorTextOf(exchange)]).toEqual(['UpstreamFailure', expect.stringContaining(error)])
    expect((await post({ body: chat() })).status).toBe(429)
  })

  test('a client that disconnects closes the upstream connection and is charged for the forwarded text', async () => {
    const { gateway, mock, post } = await start({ ...budget(20) })
    const began = await new Promise<number>((resolve, reject) => {
      const body = JSON.stringify(chat('word '.repeat(2000), { stream: true }))
      const request = httpRequest(
        { port: gateway.port, host: '127.0.0.1', method: 'POST', path: '/', headers: { 'x-mock': 'interval=20', 'content-type': 'application/json' } },
        (response) => {
          let seen = 0
          response.on('error', () => undefined)
          response.on('data', (chunk: Buffer) => {
            seen += chunk.length
            if (seen < 3000) return
            request.destroy()
            resolve(performance.now())
          })
        },
      )
      request.on('error', reject)
      request.end(body)
    })
    await mock.requests[0]?.closed
    // The complete response would take 40 s.
    expect(performance.now() - began).toBeLessThan(20_000)
    expect((await post({ body: chat() })).status).toBe(429)
  })
})
