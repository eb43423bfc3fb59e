import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendFull, RouteRetry } from '#gen/config/types.ts'
import { startMockServer, type Answer, type MockServer } from '../../../e2e/harness/llm/server.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { chat, sdkRoutes, send, type Post, type TestResponse } from './testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const good = { id: 'c', object: 'chat.completion', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'good' }, finish_reason: 'stop' }] }
const goodChunk = { id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'good' }, finish_reason: 'stop' }] }
const answerWell: Answer = ({ body }, response) => {
  if (body?.['stream'] === true)
    return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(goodChunk)}\n\ndata: [DONE]\n\n`)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(good))
}
/** An upstream that sends this with status 200. */
const answerWith =
  (type: string, body: string): Answer =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)

interface TwoProviders {
  readonly gateway: LlmGateway
  readonly first: MockServer
  readonly second: MockServer
  counts(): [number, number]
  post(post: Post): Promise<TestResponse>
}

/** Starts a gateway in front of two groups of one provider each; the first is evicted at its first failure. */
async function startTwo(
  answer: Answer,
  { retry = { attempts: 1, codes: [502] }, policies, ...options }: { retry?: RouteRetry; policies?: BackendFull } & Partial<LlmGatewayOptions> = {},
): Promise<TwoProviders> {
  const [first, second] = [await startMockServer({ answer }), await startMockServer({ answer: answerWell })]
  const provider = (name: string, { port }: MockServer) => ({ providers: [{ name, providerA: {}, host: '127.0.0.1', port }] })
  const gateway = await startLlmGateway({
    ai: { groups: [provider('first', first), provider('second', second)] },
    ...options,
    policies: { auth: { key: 'k' }, health: { eviction: { duration: '60s' } }, ...policies, ai: { routes: sdkRoutes, ...policies?.ai } },
    ...(retry.codes?.length !== 0 && { route: { retry } }),
  })
  open.push(first, second, gateway)
  return { gateway, first, second, counts: () => [first.requests.length, second.requests.length], post: (post) => send(gateway.port, post) }
}

const invalid: [string, string, string][] = [
  ['an HTML page', 'text/html', '<html>proxy error</html>'],
  ['an HTML page without its type', 'application/json', '<html>proxy error</html>'],
  ['broken JSON', 'application/json', '{"choices":['],
  ['JSON that is not an object', 'application/json', '[]'],
  ['JSON of another shape', 'application/json', '{"error":{"message":"overloaded"}}'],
  ['an empty body', 'application/json', ''],
]

describe('a response with status 200', () => {
  test.each(invalid)('that is %s fails over to the next group', async (_, type, body) => {
    const { post, counts } = await startTwo(answerWith(type, body))
    const { status, json } = await post({ body: chat() })
    expect([status, json['choices']?.[0]?.['message']?.['content'], counts()]).toEqual([200, 'good', [1, 1]])
  })

  test.each([...invalid, ['JSON instead of a stream', 'application/json', '{"error":{"message":"overloaded"}}'] as const])(
    'that is %s fails over for a streaming client',
    async (_, type, body) => {
      const { post, counts } = await startTwo(answerWith(type, body))
      const { status, text } = await post({ body: chat('x', { stream: true }) })
      expect([status, counts()]).toEqual([200, [1, 1]])
      expect(text).toMatch(/"content":"good"[^]*\[DONE\]\n\n$/)
      expect(text).not.toContain('overloaded')
    },
  )

  test.each(invalid)('that is %s is a failure of the provider without retries too', async (_, type, body) => {
    const { post, counts } = await startTwo(answerWith(type, body), { retry: { attempts: 0, codes: [] } })
    await post({ body: chat() })
    expect((await post({ body: chat() })).status).toBe(200)
    expect(counts()).toEqual([1, 1])
  })

  test('that is an HTML page is a 502 if 502 is not retried', async () => {
    const { post, counts } = await startTwo(answerWith('text/html', '<html>'), { retry: { attempts: 1, codes: [503] } })
    const { status, text } = await post({ body: chat() })
    expect([status, text, counts()]).toEqual([502, 'failed to process LLM response: failed to parse response: it is not JSON', [1, 0]])
  })

  test.each([
    '{"error":{"message":"overloaded"}}',
    '{"object":"error","message":"overloaded","type":"BadRequestError"}',
    '{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}',
    '[{"error":{"code":429,"message":"overloaded","status":"RESOURCE_EXHAUSTED"}}]',
  ])('that is the error %s is 502 if no attempt is left, streamed or not', async (body) => {
    for (const stream of [false, true]) {
      const { post } = await startTwo(answerWith('application/json', body), { retry: { codes: [] } })
      const { status, text } = await post({ body: chat('x', { stream }) })
      expect([status, text.includes('overloaded')]).toEqual([502, true])
    }
  })

  test('that is JSON of another shape is forwarded if no attempt is left', async () => {
    const { post } = await startTwo(answerWith('application/json', '{"hello":1}'), { retry: { attempts: 0, codes: [] } })
    const { status, text } = await post({ body: chat() })
    expect([status, text]).toEqual([200, '{"hello":1}'])
  })

  test('that exceeds the size limit is neither retried nor a failure of the provider', async () => {
    const { post, counts } = await startTwo(answerWith('application/json', `{"x":"${'y'.repeat(2000)}"}`), {
      onGateway: [{ frontend: { http: { maxBufferSize: 1000 } } }],
    })
    expect((await post({ body: chat() })).status).toBe(502)
    expect((await post({ body: chat() })).status).toBe(502)
    expect(counts()).toEqual([2, 0])
  })
})

/** An upstream that sends the head of a stream, and then nothing but comments. */
const stall: Answer = (_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': wait\n\n')
}
/** An upstream that accepts requests and never responds. */
const hang: Answer = () => undefined

describe('a provider without a first token', () => {
  test.each<[string, Answer, BackendFull]>([
    ['requestTimeout', stall, { http: { requestTimeout: '100ms' } }],
    ['firstTokenTimeout', stall, { ai: { firstTokenTimeout: '100ms' } }],
    ['firstTokenTimeout before the head', hang, { ai: { firstTokenTimeout: '100ms' } }],
  ])('is cut at %s, and the next provider responds', async (_, answer, policies) => {
    const { post, counts, first } = await startTwo(answer, { policies })
    const { status, text } = await post({ body: chat('x', { stream: true }) })
    expect([status, counts()]).toEqual([200, [1, 1]])
    expect(text).toMatch(/"content":"good"[^]*\[DONE\]\n\n$/)
    await first.requests[0]?.closed
    expect((await post({ body: chat() })).status).toBe(200)
    expect(counts()).toEqual([1, 2])
  })

  test('is a 504 with reason Timeout if no attempt is left', async () => {
    const { post, gateway } = await startTwo(stall, { policies: { ai: { firstTokenTimeout: '100ms' } }, retry: { attempts: 0, codes: [] } })
    const { status, text } = await post({ body: chat('x', { stream: true }) })
    expect([status, text]).toEqual([504, 'upstream call timeout'])
    expect(gateway.finished.map(({ error }) => [error?.code, error?.detail])).toEqual([
      ['UPSTREAM_TIMEOUT', 'the stream had no content within requestTimeout or firstTokenTimeout'],
    ])
  })

  test('is not limited by firstTokenTimeout for a buffered response', async () => {
    const { post, counts } = await startTwo((request, response) => void setTimeout(() => void answerWell(request, response), 150), {
      policies: { ai: { firstTokenTimeout: '50ms' } },
    })
    expect((await post({ body: chat() })).status).toBe(200)
    expect(counts()).toEqual([1, 0])
  })

  test('that sent an error event passes it on from the last attempt', async () => {
    const { post } = await startTwo(answerWith('text/event-stream', 'data: {"error":{"message":"overloaded"}}\n\n'), {
      policies: { http: { requestTimeout: '60s' } },
      retry: { attempts: 0, codes: [] },
    })
    const { status, text } = await post({ body: chat('x', { stream: true }) })
    expect([status, text]).toEqual([200, 'data: {"error":{"message":"overloaded"}}\n\n'])
  })
})

describe('a stream that pauses for longer than streamIdleTimeout', () => {
  test.each([
    ['/v1/chat/completions', 'data: {"error":{"message":"upstream call timeout","type":"timeout_error","param":null,"code":"timeout_error"}}\n\n'],
    ['/v1/messages', 'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"upstream call timeout"}}\n\n'],
  ])('ends with an error event at %s', async (path, end) => {
    const { post, gateway, first } = await startTwo(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(`data: ${JSON.stringify({ ...goodChunk, choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }] })}\n\n`)
      },
      { policies: { ai: { streamIdleTimeout: '100ms' } } },
    )
    const { status, text } = await post({ path, body: chat('x', { stream: true, max_tokens: 9 }) })
    expect(status).toBe(200)
    expect(text).toContain('hello')
    expect(text.endsWith(end)).toBe(true)
    await first.requests[0]?.closed
    expect(gateway.finished.map(({ cutBy, error }) => [cutBy, error?.code, error?.detail])).toEqual([
      ['timeout', 'UPSTREAM_TIMEOUT', 'the stream paused for longer than streamIdleTimeout (100 ms)'],
    ])
  })

  test('may pause for longer before its first content', async () => {
    const { post } = await startTwo(
      (request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': wait\n\n')
        setTimeout(() => void response.end(`data: ${JSON.stringify(goodChunk)}\n\ndata: [DONE]\n\n`), 150)
      },
      { policies: { ai: { streamIdleTimeout: '50ms' } } },
    )
    const { text } = await post({ body: chat('x', { stream: true }) })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })
})

test('a stream that is cut off ends with an error event without the address of the upstream, which the log has', async () => {
  const { post, gateway, first } = await startTwo(
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ ...goodChunk, choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }] })}\n\n`, () =>
        response.destroy(),
      )
    },
    { retry: { attempts: 0, codes: [] } },
  )
  const { text } = await post({ body: chat('x', { stream: true }) })
  expect(text).toMatch(/hello[^]*"message":"the upstream closed the stream early: connection reset"/)
  expect(text).not.toContain(String(first.port))
  expect(gateway.finished.map(({ cutBy, error }) => [cutBy, error?.code])).toEqual([['upstream', 'UPSTREAM_FAILED']])
})
