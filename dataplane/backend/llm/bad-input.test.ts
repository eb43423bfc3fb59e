import { request as httpRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { startMockServer, type Answer as Respond, type MockServer } from '../../../e2e/harness/llm/server.ts'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { chat, sdkRoutes, send, startTestBed, type TestResponse, type Post, type TestBed, type TestBedOptions } from './testing/test-bed.ts'
import { letArrive } from '../../testing/turns.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

interface UpstreamBed {
  readonly gateway: LlmGateway
  readonly mock: MockServer
  post(post: Post): Promise<TestResponse>
}
/** Starts a gateway in front of an upstream with the given behaviour. */
async function startWithUpstream(
  answer: Respond,
  provider: Omit<NamedLLMProvider, 'name'> = { providerA: {} },
  options: Partial<LlmGatewayOptions> = {},
): Promise<UpstreamBed> {
  const mock = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { ...provider, host: '127.0.0.1', port: mock.port } },
    ...options,
    policies: { auth: { key: 'k' }, ...options.policies, ai: { routes: sdkRoutes, ...options.policies?.ai } },
  })
  open.push(mock, gateway)
  return { gateway, mock, post: (post) => send(gateway.port, post) }
}

/** Deeper than any recursive function can handle, and less than two MiB. */
const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
const deepChat = (extra: string): string => `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"metadata":${extra}}`
const tooDeep = 'failed to process LLM request: failed to parse request: it nests deeper than 512 levels (frontend.http.maxJsonDepth)'

test.each([
  ['without guards', {}, 'one'],
  ['if a guard changes the response', { promptGuard: { response: [{ regex: { builtins: ['Ssn' as const], action: 'Mask' as const } }] } }, '123-45-6789'],
])('numbers of a response that a double cannot represent are kept %s', async (_, ai, content) => {
  const body = `{"id":12345678901234567890,"choices":[{"message":{"content":"${content}","n":0.12345678901234567890}}]}`
  const headers = { 'content-type': 'application/json' }
  const { post } = await startWithUpstream((_request, response) => void response.writeHead(200, headers).end(body), { providerA: {} }, { policies: { ai } })
  const { text } = await post({ body: chat() })
  expect(text).toBe(body.replace('123-45-6789', '<SSN>'))
})

const object = (members: number): string => JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, i) => [`k${i}`, 0])))

test('integers of 64 bits keep their digits through edits and expressions', async () => {
  const transformations = [{ field: 'user', expression: 'llmRequest.id' }]
  const { post, mock } = await start({ ai: { transformations, defaults: [{ field: 'seed', value: 1 }] } })
  const id = '9007199254740993'
  expect((await post({ body: `{"model":"gpt-4o","messages":[{"role":"user","content":"hi","id":${id}}],"id":${id}}` })).status).toBe(200)
  expect(mock.requests[0]?.raw.toString()).toBe(`{"model":"gpt-4o","messages":[{"role":"user","content":"hi","id":${id}}],"id":${id},"user":${id},"seed":1}`)
})

describe('JSON beyond the limits', () => {
  test.each<[string, TestBedOptions, string?]>([
    ['without policies', {}],
    ['with a default for another field', { ai: { defaults: [{ field: 'seed', value: 1 }] } }],
    ['with an expression that reads it', { ai: { transformations: [{ field: 'seed', expression: 'llmRequest.n' }] } }],
    ['with a guard', { ai: { promptGuard: { request: [{ regex: { builtins: ['Ssn'] } }] } } }],
    ['with a number that a double cannot represent', {}, deep.replace('1', '12345678901234567890')],
    ['at 513 levels', {}, `${'['.repeat(512)}1${']'.repeat(512)}`],
  ])('of depth is rejected with 400 %s', async (_, options, nested = deep) => {
    const { post, mock } = await start(options)
    const { status, text } = await post({ body: deepChat(nested) })
    expect([status, text, mock.requests.length]).toEqual([400, tooDeep, 0])
    expect((await post({ body: deepChat(`${'['.repeat(511)}1${']'.repeat(511)}`) })).status).toBe(200)
  })

  test('of members is rejected with 400, and 100,000 of them are forwarded unchanged', async () => {
    const { post, mock } = await start()
    const { status, text } = await post({ body: deepChat(object(140_000)) })
    expect([status, text, mock.requests.length]).toEqual([
      400,
      'failed to process LLM request: failed to parse request: it has more than 100000 members and elements (frontend.http.maxJsonMembers)',
      0,
    ])
    // The rest of the body has 6 members and elements.
    const body = deepChat(object(99_994))
    expect((await post({ body })).status).toBe(200)
    expect(mock.requests[0]?.raw.toString() === body).toBe(true)
  })

  test.each<[string, string, string, boolean?]>([
    ['with a number that a double cannot represent', '/v1/messages', `{"type":"message","content":[],"x":${deep.replace('1', '12345678901234567890')}}`, true],
    [
      'in a tool call',
      '/v1/chat/completions',
      `{"content":[{"type":"tool_use","id":"t","name":"f","input":${deep}}],"usage":{"input_tokens":1,"output_tokens":1}}`,
    ],
    ['with a guard', '/v1/messages', `{"type":"message","content":[{"type":"text","text":"123-45-6789"}],"more":${deep}}`],
  ])('in a response causes at most a 502 %s', async (_, path, body, isRejected = false) => {
    const guard = { promptGuard: { response: [{ regex: { builtins: ['Ssn' as const] } }] } }
    const { post } = await startWithUpstream(
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body),
      { providerC: {} },
      path === '/v1/messages' ? { policies: { ai: guard } } : {},
    )
    const { status, text } = await post({ path, body: chat('x', { max_tokens: 5 }) })
    if (isRejected) expect([status, text]).toEqual([502, expect.stringMatching(/^failed to process LLM response: failed to parse response: /)])
    else expect([200, 502]).toContain(status)
  })

  test('in a stream at most ends the stream', async () => {
    const event = `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","x":${deep}}}\n\n`
    const { post } = await startWithUpstream(
      (_request, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(event),
      { providerC: {} },
      { policies: { ai: { promptGuard: { response: [{ regex: { builtins: ['Ssn'] } }] } } } },
    )
    const { status, text } = await post({ path: '/v1/messages', body: chat('x', { max_tokens: 5, stream: true }) })
    expect([status, text]).toEqual([200, expect.stringMatching(/event: error\n[^]*$/)])
  })
})

describe('unusual request text', () => {
  test.each<[string, string | Buffer, string]>([
    ['a byte order mark', '\ufeff{"model":"gpt-4o","messages":[]}', '{"model":"gpt-4o","messages":[]}'],
    ['a lone surrogate', '{"model":"gpt-4o","messages":[],"user":"\\ud800"}', '{"model":"gpt-4o","messages":[],"user":"\\ud800"}'],
    ['a nested duplicate key', '{"model":"gpt-4o","messages":[],"x":{"a":1,"a":2}}', '{"model":"gpt-4o","messages":[],"x":{"a":1,"a":2}}'],
  ])('%s reaches the provider unchanged', async (_, body, sent) => {
    const { post, mock } = await start()
    expect((await post({ body })).status).toBe(200)
    expect(mock.requests[0]?.raw.toString()).toBe(sent)
  })

  test('nested duplicate keys are removed with guards, so that the provider reads what they checked', async () => {
    const { post, mock } = await start({ ai: { promptGuard: { request: [{ regex: { matches: ['nothing'] } }] } } })
    await post({ body: '{"model":"gpt-4o","messages":[{"role":"user","content":"hidden","content":"seen"}]}' })
    expect(mock.requests[0]?.raw.toString()).toBe('{"model":"gpt-4o","messages":[{"role":"user","content":"seen"}]}')
  })

  test('a lone surrogate survives translation', async () => {
    const { post, mock } = await start({ provider: { providerC: {} } })
    const response = await post({ body: '{"model":"claude-x","messages":[{"role":"user","content":"a\\ud800b"}]}' })
    expect([response.status, mock.requests[0]?.raw.toString()]).toEqual([200, expect.stringContaining('a\\ud800b')])
  })

  test('a request with any content-type is accepted', async () => {
    const { post } = await start()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
      expect((await post({ body: chat(), headers: { 'content-type': type } })).status).toBe(200)
  })
})

describe('unusual responses', () => {
  const completion = JSON.stringify({ id: 'c', object: 'chat.completion', model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'hi' } }] })
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}`
  const sse = [chunk({ content: 'hi' }), chunk({}, 'stop'), 'data: [DONE]']
  const paths = ['/v1/chat/completions', '/v1/messages'] as const

  test.each(paths)('a JSON response to a streaming request is an event stream: %s', async (path) => {
    const { post, gateway } = await startWithUpstream(
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(completion),
    )
    const { status, headers, text } = await post({ path, body: chat('x', { stream: true, max_tokens: 5 }) })
    expect([status, headers['content-type'], /"(?:content|text)":"hi"/.test(text)]).toEqual([200, 'text/event-stream', true])
    expect(gateway.finished[0]?.cutBy).toBeUndefined()
  })

  test.each<[string, Record<string, string>, string, boolean]>([
    ['an HTML page', { 'content-type': 'text/html' }, '<html>hello</html>', false],
    ['an HTML page instead of a stream', { 'content-type': 'text/html; charset=utf-8' }, '<html>hello</html>', true],
    ['an empty body', { 'content-type': 'application/json' }, '', false],
    ['a JSON array', { 'content-type': 'application/json' }, '[]', false],
    ['a body that does not match its content-encoding', { 'content-type': 'application/json', 'content-encoding': 'gzip' }, completion, false],
    ['an unknown content-encoding', { 'content-type': 'application/json', 'content-encoding': 'lzma' }, completion, false],
  ])('%s is a 502 for a client of Messages', async (_, headers, body, stream) => {
    const { post } = await startWithUpstream((_request, response) => void response.writeHead(200, headers).end(body))
    const response = await post({ path: '/v1/messages', body: chat('x', { stream, max_tokens: 5 }) })
    expect([response.status, response.text]).toEqual([502, expect.stringMatching(/^failed to process LLM response: failed to parse response/)])
  })

  test.each<[string, Record<string, string>, string | Buffer]>([
    ['of another content-type', { 'content-type': 'application/octet-stream' }, `${sse.join('\n\n')}\n\n`],
    ['without a content-type', {}, `${sse.join('\n\n')}\n\n`],
    ['without the last blank line', { 'content-type': 'text/event-stream' }, sse.join('\n\n')],
    ['with carriage returns', { 'content-type': 'text/event-stream' }, `${sse.join('\r\n\r\n')}\r\n\r\n`],
    ['after a byte order mark', { 'content-type': 'text/event-stream' }, `\ufeff${sse.join('\n\n')}\n\n`],
    ['in gzip', { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }, gzipSync(`${sse.join('\n\n')}\n\n`)],
  ])('a stream %s is translated', async (_, headers, body) => {
    const { post } = await startWithUpstream((_request, response) => void response.writeHead(200, headers).end(body))
    for (const path of paths) {
      const response = await post({ path, body: chat('x', { stream: true, max_tokens: 5 }) })
      expect([response.status, response.headers['content-type'], response.headers['content-encoding']]).toEqual([200, 'text/event-stream', undefined])
      expect(response.text).toMatch(path === '/v1/messages' ? /"text":"hi"[^]*event: message_stop/ : /"content":"hi"[^]*data: \[DONE\]/)
    }
  })

  test.each(paths)('a stream without blank lines ends with an error at the size limit: %s', async (path) => {
    const { post } = await startWithUpstream(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const line = `data: ${'x'.repeat(1000)}\n`
        for (let count = 0; count < 3000; count++) response.write(line)
        response.end()
      },
      { providerA: {} },
      { onGateway: [{ frontend: { http: { maxBufferSize: 1_000_000 } } }] },
    )
    const { text } = await post({ path, body: chat('x', { stream: true, max_tokens: 5 }) })
    expect(text.length).toBeLessThan(1000)
    expect(text).toContain('exceeds 1000000 bytes')
  })
})

describe('slow upstreams and disconnected clients', () => {
  test('a response body that stalls is a 504', async () => {
    const { post, mock } = await startWithUpstream(
      (_request, response) => void response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"id":'),
      { providerA: {} },
      { route: { timeouts: { requestMs: 150 } } },
    )
    const response = await post({ body: chat() })
    expect([response.status, response.text]).toEqual([504, 'request timeout'])
    await mock.requests[0]?.closed
  })

  test.each(['before the response head', 'during the response body'])('a client that disconnects closes the upstream connection %s', async (when) => {
    const { gateway, mock } = await startWithUpstream((_request, response) => {
      if (when === 'during the response body') response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"id":')
    })
    const request = httpRequest({ port: gateway.port, host: '127.0.0.1', method: 'POST', path: '/v1/chat/completions' })
    request.on('error', () => undefined)
    request.end(JSON.stringify(chat()))
    await until(() => mock.requests.length > 0)
    await letArrive()
    request.destroy()
    await expect(mock.requests[0]?.closed).resolves.toBeUndefined()
  })
})
