import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Traffic } from '#gen/config/types.ts'
import { errorTextOf } from '../../observe/telemetry/access-log/fields.ts'
import { reasonOf } from '../../observe/telemetry/outcome.ts'
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
const frontend = { frontend: { http: { maxBufferSize: 1000 } } }
const small: TestBedOptions = { onGateway: [frontend] }
/** Deeper than any recursive function can handle. */
const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
const messages = { path: '/v1/messages', ai: { routes: sdkRoutes } }

describe("the gateway's own errors", () => {
  test.each<[string, TestBedOptions, Post, number, string | RegExp]>([
    ['invalid JSON', {}, { body: '{"model":' }, 400, /^failed to process LLM request: failed to parse request: ./],
    ['an empty body', {}, { body: '' }, 400, /^failed to process LLM request: failed to parse request: ./],
    ['a JSON array', {}, { body: '[1]' }, 400, 'failed to process LLM request: missing field: request must be an object'],
    ['a body without model', {}, { body: { messages: [] } }, 400, 'failed to process LLM request: missing field: model not specified'],
    ['a model that is not a string', {}, { body: { model: 3, messages: [] } }, 400, 'failed to process LLM request: missing field: model not specified'],
    [
      'a duplicate field',
      {},
      { body: '{"model":"a","model":"b","messages":[]}' },
      400,
      'failed to process LLM request: failed to parse request: duplicate field: remove one of them',
    ],
    [
      'JSON nested too deeply',
      { provider: { providerE: { projectId: 'p', region: 'eu' } }, ai: { routes: sdkRoutes } },
      { path: '/v1/messages', body: `{"model":"claude-x","max_tokens":1,"messages":[],"metadata":${deep}}` },
      400,
      'failed to process LLM request: failed to parse request: it nests deeper than 512 levels (frontend.http.maxJsonDepth)',
    ],
    [
      'a body over the limit',
      small,
      { body: chat('x'.repeat(2000)) },
      413,
      'failed to process LLM request: request was too large: the limit is 1000 bytes (frontend.http.maxBufferSize)',
    ],
    [
      'a prompt of 33 MiB',
      {},
      { body: chat('x'.repeat(33 * 1024 * 1024)) },
      413,
      'failed to process LLM request: request was too large: the limit is 33554432 bytes (frontend.http.maxBufferSize)',
    ],
    [
      'a small body that decompresses to 33 MiB',
      {},
      { body: gzipSync(Buffer.alloc(33 * 1024 * 1024)), headers: { 'content-encoding': 'gzip' } },
      413,
      'failed to process LLM request: request was too large: the limit is 33554432 bytes (frontend.http.maxBufferSize)',
    ],
    [
      'an unknown content-encoding',
      {},
      { body: 'x', headers: { 'content-encoding': 'lzma' } },
      415,
      'failed to process LLM request: unsupported content encoding: lzma',
    ],
    [
      'a body that does not match its content-encoding',
      {},
      { body: 'x', headers: { 'content-encoding': 'gzip' } },
      400,
      'failed to process LLM request: failed to parse request: the body does not match its content-encoding',
    ],
    [
      'an image URL for Bedrock',
      { provider: { providerF: {} }, policies: { auth: { key: 'k' } } },
      { body: { model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }] } },
      400,
      /^failed to process LLM request: unsupported conversion: /,
    ],
    [
      'a part that Anthropic does not have',
      { provider: { providerC: {} } },
      { body: { model: 'm', messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'QQ==', format: 'wav' } }] }] } },
      400,
      'failed to process LLM request: unsupported conversion: messages[0].content[0]: a part of type input_audio cannot be sent to this provider',
    ],
    ['an invalid response', {}, { body: chat(), headers: { 'x-mock': 'broken' } }, 502, /^failed to process LLM response: failed to parse response: ./],
    [
      'a response over the limit',
      small,
      { body: chat(), headers: { 'x-mock': `text=${'y'.repeat(2000)}` } },
      502,
      /^failed to process LLM response: failed to parse response: it is larger than 1000 bytes/,
    ],
    [
      'an unavailable guard',
      { ai: { promptGuard: { request: [{ webhook: { backendRef: { address: '127.0.0.1:1' } } }] } } },
      { body: chat() },
      503,
      'prompt guard failed',
    ],
    [
      'missing credentials',
      { policies: { auth: { secretRef: { secret: 'gone' } } } },
      { body: chat() },
      500,
      'backend authentication failed: the Secret of secretRef does not resolve',
    ],
  ])('%s is reported as text with its status', async (_, options, post, status, text) => {
    const bed = await start(options)
    const response = await bed.post(post)
    expect([response.status, response.headers['content-type']]).toEqual([status, 'text/plain'])
    if (typeof text === 'string') expect(response.text).toBe(text)
    else expect(response.text).toMatch(text)
  })

  test.each<[string, string, object]>([
    [
      'Chat Completions',
      '/v1/chat/completions',
      { error: { message: 'failed to process LLM request: missing field: model not specified', type: 'invalid_request_error', param: null, code: null } },
    ],
    [
      'Messages',
      '/v1/messages',
      { type: 'error', error: { type: 'invalid_request_error', message: 'failed to process LLM request: missing field: model not specified' } },
    ],
  ])('a client of %s that accepts JSON receives errors in its format', async (_, path, expected) => {
    const { post } = await start({ ai: messages.ai })
    const response = await post({ path, body: { messages: [] }, headers: { accept: 'application/json' } })
    expect([response.status, response.headers['content-type'], response.json]).toEqual([400, 'application/json', expected])
  })

  test.each<[string, { traffic: Traffic }, number, RegExp]>([
    ['a limit of requests', { traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } } }, 429, /^rate limit exceeded, retry in \d+ s$/],
    [
      'a budget',
      { traffic: { budgets: [{ name: 'team', limits: [{ requests: 1, window: '1h' }] }] } },
      429,
      /^budget exceeded: budget "team" of .+ is used up until \d{4}-.+Z$/,
    ],
    [
      'an authorization',
      { traffic: { authorization: { action: 'Deny', policy: { matchExpressions: ['request.headers["x-n"] == "2"'] } } } },
      403,
      /^authorization failed$/,
    ],
  ])('%s answers in the format of the client that accepts JSON, and other clients as text', async (_, policy, status, message) => {
    const { post } = await start({ ai: messages.ai, onGateway: [policy] })
    const send = (path: string, headers: Record<string, string>) => post({ path, body: chat('x', { max_tokens: 10 }), headers: { 'x-n': '2', ...headers } })
    expect((await send('/v1/chat/completions', { 'x-n': '1' })).status).toBe(200)
    const type = status === 429 ? 'rate_limit_error' : 'permission_error'
    const accept = { accept: 'application/json' }
    const openai = await send('/v1/chat/completions', accept)
    expect([openai.status, openai.json]).toEqual([status, { error: { message: expect.stringMatching(message), type, param: null, code: null } }])
    const anthropic = await send('/v1/messages', accept)
    expect([anthropic.status, anthropic.json]).toEqual([status, { type: 'error', error: { type, message: expect.stringMatching(message) } }])
    for (const response of [await send('/v1/files', accept), await send('/v1/messages', {})]) {
      expect([response.status, response.headers['content-type']]).toEqual([status, 'text/plain'])
    }
  })

  test('a provider that refuses connections is a 503, a slow one a 504', async () => {
    const { post, gateway } = await start()
    // Port 1 has no listener.
    gateway.update({ ai: { provider: { providerA: {}, host: '127.0.0.1', port: 1 } } })
    const refused = await post({ body: chat() })
    expect([refused.status, refused.text]).toEqual([503, 'upstream call failed: connection refused'])
    const slow = await start({ route: { timeouts: { requestMs: 100 } } })
    const late = await slow.post({ body: chat(), headers: { 'x-mock': 'delay=1000' } })
    expect([late.status, late.text]).toEqual([504, 'request timeout'])
    expect(gateway.finished[0]?.error?.code).toBe('UPSTREAM_FAILED')
  })
})

describe("an upstream's errors", () => {
  test.each<[string, string, object]>([
    [
      'an HTML page for a client of Chat Completions',
      '/v1/chat/completions',
      { error: { message: '<html><body>Bad Gateway</body></html>', type: 'server_error' } },
    ],
    [
      'an HTML page for a client of Messages',
      '/v1/messages',
      { type: 'error', error: { type: 'api_error', message: '<html><body>Bad Gateway</body></html>' } },
    ],
  ])('%s is translated and keeps its status', async (_, path, expected) => {
    const { post } = await start({ provider: path.endsWith('messages') ? { providerA: {} } : { providerC: {} }, ai: messages.ai })
    const response = await post({ path, body: chat('x', { max_tokens: 10 }), headers: { 'x-mock': 'status=502; html' } })
    expect([response.status, response.json]).toEqual([502, expected])
  })
})

describe('streams that end with an error', () => {
  test.each<[string, string, string, RegExp]>([
    ['a reset stream for Chat Completions', '/v1/chat/completions', 'cut=3', /data: \{"error":\{[^\n]*"message":"[^"]+"[^\n]*\n\n$/],
    ['a reset stream for Messages', '/v1/messages', 'cut=3', /event: error\ndata: \{"type":"error","error":\{[^\n]*\n\n$/],
    ['a reset stream for Responses', '/v1/responses', 'cut=4', /event: error\ndata: [^\n]*\n\n$/],
    ['a stream without terminator for Chat Completions', '/v1/chat/completions', 'end=3', /data: \{"error":\{[^\n]*\n\n$/],
    ['a stream without terminator for Messages', '/v1/messages', 'end=3', /event: error\ndata: \{"type":"error"[^\n]*\n\n$/],
    ['a stream with an error event for Messages', '/v1/messages', 'error=3', /event: error\ndata: \{"type":"error","error":\{[^\n]*\n\n$/],
  ])('%s ends with an error event', async (_, path, mock, ending) => {
    const { post, gateway } = await start({ ai: messages.ai })
    const body = path.endsWith('responses') ? { model: 'gpt-4o', input: 'one two three', stream: true } : chat('one two three', { stream: true, max_tokens: 9 })
    const response = await post({ path, body, headers: { 'x-mock': mock } })
    expect(response.status).toBe(200)
    expect(response.text).toMatch(ending)
    expect(response.text).not.toContain('[DONE]')
    expect(gateway.finished.length).toBe(1)
  })

  test('a stream whose guard fails ends with an error event, and the log names the failure', async () => {
    const response = [{ webhook: { backendRef: { address: '127.0.0.1:1' } } }]
    const { post, gateway } = await start({ ai: { promptGuard: { response } } })
    const { status, text } = await post({ body: chat('one', { stream: true }) })
    const [exchange] = gateway.finished
    expect([status, text]).toEqual([200, expect.stringContaining('"message":"prompt guard failed"')])
    expect(exchange && [reasonOf(exchange), errorTextOf(exchange)]).toEqual(['Guardrail', expect.stringContaining('prompt guard failed: ')])
  })
})

describe('the duration of requests that fail', () => {
  const rejecting = [{ regex: { action: 'Reject' as const, matches: ['secret'] } }]
  test.each<[string, TestBedOptions, Post, number, string]>([
    ['a response', {}, { body: chat('one') }, 200, ''],
    ['a stream', {}, { body: chat('one', { stream: true }) }, 200, ''],
    ['a count of tokens', messages, { path: '/v1/messages/count_tokens', body: chat('one', { max_tokens: 1 }) }, 200, ''],
    ['a status of the provider', {}, { body: chat('one'), headers: { 'x-mock': 'status=404' } }, 404, '404'],
    [
      'a status of the provider on a route that is not converted',
      { ai: { routes: { '*': 'Passthrough' } } },
      { body: chat('one'), headers: { 'x-mock': 'status=429' } },
      429,
      '429',
    ],
    ['a request that a guard rejects', { ai: { promptGuard: { request: rejecting } } }, { body: chat('secret') }, 403, '403'],
    [
      'a response whose guard fails',
      { ai: { promptGuard: { response: [{ webhook: { backendRef: { address: '127.0.0.1:1' } } }] } } },
      { body: chat('one') },
      503,
      'Guardrail',
    ],
    ['a response that cannot be read', {}, { body: chat('one'), headers: { 'x-mock': 'broken' } }, 502, 'UpstreamFailure'],
    ['a stream that is cut', {}, { body: chat('one two three', { stream: true }), headers: { 'x-mock': 'cut=3' } }, 200, 'UpstreamFailure'],
  ])('%s has its error.type', async (_, options, request, status, errorType) => {
    const { post, gateway } = await start(options)
    expect((await post(request)).status).toBe(status)
    const durations = [...gateway.registry.expose('text')].join('').matchAll(/server_request_duration_count\{[^}]*error_type="([^"]*)"\} (\d+)/g)
    expect([...durations].map(([, ...found]) => found)).toEqual([[errorType, '1']])
  })
})
