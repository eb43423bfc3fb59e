import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { AIPromptGuard, CustomResponse, PromptguardRequest } from '#gen/config/types.ts'
import { Destinations } from '../../../net/destination/destinations.ts'
import { createConfigStore } from '../../../config/store.ts'
import type { ProxyError } from '../../../request/exchange/error.ts'
import { RequestTrace } from '../../../request/exchange/trace.ts'
import { readBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { createPolicyState } from '../../../policy/state.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { createPool } from '../../../net/upstream/pools.ts'
import { clientFormats } from '../formats/index.ts'
import type { ChatFormat, JsonObject } from '../common/types.ts'
import { compileGuards } from './index.ts'

/** A guard service with configurable responses that records its requests. */
let service: Server
let url: string
let requests: { line: string; headers: IncomingMessage['headers']; body: unknown }[]
let reply: { status?: number; body: unknown }
let destinations: Destinations

beforeAll(async () => {
  service = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: JSON.parse(body) })
      response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' })
      response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body))
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => service.once('listening', resolve))
  url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  for (const variable of variables) process.env[variable] = url
  process.env['AWS_ACCESS_KEY_ID'] = 'AKID'
  process.env['AWS_SECRET_ACCESS_KEY'] = 'secret'
})
const variables = ['OPENAI_BASE_URL', 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME', 'CLOUDSDK_API_ENDPOINT_OVERRIDES_MODELARMOR'] as const
afterAll(async () => {
  for (const variable of [...variables, 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) delete process.env[variable]
  destinations.close()
  service.closeAllConnections()
  await new Promise((resolve) => service.close(resolve))
})
beforeEach(() => {
  requests = []
  reply = { body: {} }
  destinations?.close()
  destinations = new Destinations((kind, transport) => createPool(kind, transport))
  destinations.update(createConfigStore().snapshot(), new Map())
})

const chat = (...messages: [role: string, content: unknown][]): JsonObject => ({ model: 'm', messages: messages.map(([role, content]) => ({ role, content })) })
const completion = (...contents: string[]): JsonObject => ({
  id: '1',
  choices: contents.map((content, index) => ({ index, message: { role: 'assistant', content } })),
})

function compile(section: AIPromptGuard) {
  const guards = compileGuards(section, { destinations, state: createPolicyState({ destinations }) })
  if (guards === undefined) throw new Error('no guards')
  return guards
}

async function judge(
  phase: 'request' | 'response',
  entries: PromptguardRequest[],
  body: JsonObject,
  headers: Record<string, string> = {},
  format: ChatFormat = 'completions',
) {
  const exchange = testExchange({}, phase === 'request' ? headers : {})
  const context = { exchange, entry: clientFormats[format], isStreaming: false }
  const guards = compile({ [phase]: entries })
  const verdict = phase === 'request' ? await guards.request(body, context) : await guards.response(body, context, HeaderList.from(Object.entries(headers)))
  if ('body' in verdict) return { body: verdict.body, reason: exchange.error?.code }
  const { status, body: rejection } = verdict.rejection
  return { status, text: (await readBody(rejection, 1e6)).bytes.toString(), reason: exchange.error?.code }
}

const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'passed',
    (error: ProxyError) => `${error.row.status} ${error.message}`,
  )

describe('a regex guard', () => {
  const ssn = { regex: { builtins: ['Ssn'] } } satisfies PromptguardRequest

  test('masks prompts and keeps other fields', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:,' } }
    const { body } = await judge('request', [ssn], chat(['system', 'no'], ['user', [{ type: 'text', text: 'is 123-45-6789' }, image]]))
    expect(body).toEqual(chat(['system', 'no'], ['user', [{ type: 'text', text: 'is <SSN>' }, image]]))
  })

  test('finds a match that spans two parts of a message', async () => {
    const parts = [
      { type: 'text', text: 'no plan' },
      { type: 'text', text: 'B here' },
    ]
    const { body } = await judge('request', [{ regex: { matches: ['plan B'] } }], chat(['user', parts]))
    expect(JSON.stringify(body)).toContain('no <masked> here')
  })

  test('masks tool calls and tool results of a prompt', async () => {
    const make = (secret: string): JsonObject => ({
      model: 'm',
      messages: [
        { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: `{"x":"${secret}"}` } }] },
        { role: 'tool', tool_call_id: 'a', content: secret },
      ],
    })
    expect(await judge('request', [ssn], make('123-45-6789'))).toEqual({ body: make('<SSN>'), reason: undefined })
  })

  test.each<[string, CustomResponse | undefined, number, string]>([
    ['by default', undefined, 403, 'The request was rejected due to inappropriate content'],
    ['as configured', { statusCode: 422, message: 'no secrets' }, 422, 'no secrets'],
  ])('rejects prompts with the response set %s', async (_, response, status, text) => {
    const entry = { regex: { builtins: ['Ssn'], action: 'Reject' }, ...(response && { response }) } satisfies PromptguardRequest
    expect(await judge('request', [entry], chat(['user', '123-45-6789']))).toEqual({ status, text, reason: 'GUARD_REJECTED' })
  })

  test('masks responses, whatever its action', async () => {
    const { body } = await judge('response', [{ regex: { builtins: ['Ssn'], action: 'Reject' } }], completion('a 123-45-6789', 'b'))
    expect(body).toEqual(completion('a <SSN>', 'b'))
  })

  test('masks the tool input of a response', async () => {
    const call = (input: string): JsonObject => ({
      choices: [{ message: { content: null, tool_calls: [{ id: 'a', function: { name: 'f', arguments: input } }] } }],
    })
    expect((await judge('response', [ssn], call('{"n":123456789}'))).body).toEqual(call('{"n":"<SSN>"}'))
  })

  test('with an invalid pattern lets nothing pass', async () => {
    expect(await failure(judge('request', [{ regex: { matches: ['('] } }], chat(['user', 'hello'])))).toBe('503 prompt guard failed')
  })

  test('runs on the result of the previous guard, and only if that did not reject', async () => {
    const later = { regex: { matches: ['<SSN>'], action: 'Reject' }, response: { statusCode: 400, message: 'second' } } satisfies PromptguardRequest
    expect(await judge('request', [ssn, later], chat(['user', '123-45-6789']))).toMatchObject({ status: 400, text: 'second' })
  })
})

describe('a regex guard on a long text', () => {
  const builtins = ['PhoneNumber', 'CreditCard', 'Ssn', 'Email', 'CaSin'] as const
  const body = chat(['user', '1 4111 123-45-6789 a@b.c '.repeat(40_000)])

  test.each(builtins)('lets other events be processed while it searches for %s', async (builtin) => {
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    await judge('request', [{ regex: { builtins: [builtin] } }], body)
    clearInterval(timer)
    expect(turns).toBeGreaterThan(0)
  })

  test('stops when the client disconnects', async () => {
    const exchange = testExchange({})
    const guards = compile({ request: [{ regex: { builtins: [...builtins] } }] })
    const judging = guards.request(body, { exchange, entry: clientFormats.completions, isStreaming: false })
    exchange.abort(new Error('the client disconnected'))
    await expect(judging).rejects.toThrow('the client disconnected')
  })
})

describe('a webhook', () => {
  const webhook = () => ({ webhook: { backendRef: { address: url.slice('http://'.length) } } })

  test('receives a prompt as messages', async () => {
    reply = { body: { action: { reason: 'fine' } } }
    const body = chat(
      ['system', 'be kind'],
      [
        'user',
        [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      ],
    )
    expect(await judge('request', [webhook()], body)).toEqual({ body, reason: undefined })
    expect(requests).toMatchObject([
      {
        line: 'POST /request',
        body: {
          body: {
            messages: [
              { role: 'system', content: 'be kind' },
              { role: 'user', content: 'a b' },
            ],
          },
        },
      },
    ])
  })

  test('receives a response as choices and can change them', async () => {
    reply = { body: { action: { body: { choices: [{ message: { role: 'assistant', content: 'x' } }] }, reason: 'r' } } }
    expect((await judge('response', [webhook()], completion('a'))).body).toEqual(completion('x'))
    expect(requests).toMatchObject([{ line: 'POST /response', body: { body: { choices: [{ message: { role: 'assistant', content: 'a' } }] } } }])
  })

  test('replaces the messages of a prompt', async () => {
    reply = { body: { action: { body: { messages: [{ role: 'user', content: 'x' }] } } } }
    expect((await judge('request', [webhook()], chat(['user', 'a'], ['user', 'b']))).body).toEqual(chat(['user', 'x']))
  })

  test('receives other texts behind the messages, and can replace them', async () => {
    const make = (hint: string): JsonObject => ({ ...chat(['user', 'x']), tools: [{ type: 'function', function: { description: hint } }] })
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'user', content: 'new' },
    ]
    reply = { body: { action: { body: { messages } } } }
    expect((await judge('request', [webhook()], make('old'))).body).toEqual(make('new'))
    expect(requests).toMatchObject([{ body: { body: { messages: [{ content: 'x' }, { role: 'user', content: 'old' }] } } }])
  })

  test('can reject with its own status and text', async () => {
    reply = { body: { action: { body: 'go away', status_code: 451, reason: 'law' } } }
    expect(await judge('request', [{ ...webhook(), response: { message: 'not this' } }], chat(['user', 'a']))).toMatchObject({ status: 451, text: 'go away' })
  })

  test.each<[string, { status?: number; body: unknown }]>([
    ['an error', { status: 500, body: {} }],
    ['text that is not JSON', { body: '<html>' }],
    ['an object without action', { body: {} }],
    ['another number of choices', { body: { action: { body: { choices: [] } } } }],
    ['a message without content', { body: { action: { body: { choices: [{ message: {} }] } } } }],
    ['an invalid status', { body: { action: { body: 'x', status_code: 42 } } }],
  ])('that returns %s lets nothing pass', async (_, returned) => {
    reply = returned
    expect(await failure(judge('response', [webhook()], completion('a')))).toBe('503 prompt guard failed')
  })

  test('that is unavailable lets nothing pass', async () => {
    expect(await failure(judge('request', [{ webhook: { backendRef: { address: '127.0.0.1:1' } } }], chat(['user', 'a'])))).toBe('503 prompt guard failed')
    expect(await failure(judge('request', [{ webhook: { backendRef: { invalid: 'BACKEND_NOT_FOUND' } } }], chat(['user', 'a'])))).toBe(
      '503 prompt guard failed',
    )
  })

  test('receives all values of the headers that match, except content-length', async () => {
    reply = { body: { action: {} } }
    const forwardHeaderMatches = [
      { name: 'X-User', value: 'bob' },
      { name: 'x-team', value: 'a.*', type: 'RegularExpression' as const },
      { name: 'x-none', value: 'x' },
      { name: 'content-length', value: '.*', type: 'RegularExpression' as const },
    ]
    const headers = { 'x-user': 'bob', 'x-team': 'blue', 'x-none': 'y', 'x-other': '1', 'content-length': '99999' }
    await judge('request', [{ webhook: { ...webhook().webhook, forwardHeaderMatches } }], chat(['user', 'a']), headers)
    const seen = requests[0]?.headers ?? {}
    expect([seen['x-user'], seen['x-team'], seen['x-none'], seen['x-other'], seen['content-length'] === '99999']).toEqual([
      'bob',
      undefined,
      undefined,
      undefined,
      false,
    ])
    await judge('response', [{ webhook: { ...webhook().webhook, forwardHeaderMatches } }], completion('a'), { 'x-team': 'alpha' })
    expect(requests[1]?.headers['x-team']).toBe('alpha')
  })

  test('for responses can receive the traceparent of the request, traced or not', async () => {
    reply = { body: { action: {} } }
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const forwardHeaderMatches = [{ name: 'traceparent', value: '00-.*', type: 'RegularExpression' as const }]
    const guards = compile({ response: [{ webhook: { ...webhook().webhook, forwardHeaderMatches } }] })
    await guards.response(
      completion('a'),
      { exchange: testExchange({}, { traceparent }), entry: clientFormats.completions, isStreaming: false },
      new HeaderList(),
    )
    expect(requests[0]?.headers['traceparent']).toBe(traceparent)
  })
})

test('a traced request shows what each guard did and where, without what it found', async () => {
  const exchange = testExchange({}, {})
  exchange.trace = new RequestTrace(performance.now())
  const guards = compile({
    request: [
      { regex: { builtins: ['CreditCard'] } },
      { regex: { builtins: ['Ssn'], matches: ['se[a-z]+t'] } },
      { regex: { matches: ['stop'], action: 'Reject' } },
    ],
  })
  await guards.request(chat(['user', 'hello'], ['user', 'the secret is 123-45-6789, stop']), { exchange, entry: clientFormats.completions, isStreaming: false })
  expect(exchange.trace.steps.map(({ name, detail }) => [name, detail])).toEqual([
    ['prompt guard, Request: regex CreditCard', {}],
    ['prompt guard, Request: regex Ssn, se[a-z]+t', { masked: true, found: 'masked at 4-10 of text 2, SSN at 14-25 of text 2' }],
    ['prompt guard, Request: regex stop', { refused: 'by the guard', found: 'masked at 23-27 of text 2' }],
  ])
})

describe('a moderationApi guard', () => {
  test('sends every text and rejects flagged ones', async () => {
    const entry = { moderationApi: { policies: { auth: { key: 'k1' } } }, response: { statusCode: 400 } } satisfies PromptguardRequest
    reply = { body: { results: [{ flagged: false }] } }
    expect(await judge('request', [entry], chat(['system', 's'], ['user', 'u']))).toMatchObject({ reason: undefined })
    expect(requests).toMatchObject([
      { line: 'POST /v1/moderations', headers: { authorization: 'Bearer k1' }, body: { input: ['s', 'u'], model: 'omni-moderation-latest' } },
    ])
    reply = { body: { results: [{ flagged: false }, { flagged: true }] } }
    expect(await judge('request', [entry], chat(['user', 'u']))).toMatchObject({ status: 400, text: 'The request was rejected due to inappropriate content' })
    reply = { body: { error: 'x' } }
    expect(await failure(judge('request', [entry], chat(['user', 'u'])))).toBe('503 prompt guard failed')
  })
})

describe('a cloudGuardrails guard', () => {
  const entry = { cloudGuardrails: { identifier: 'g/1', version: 'DRAFT', region: 'eu-west-1' } } satisfies PromptguardRequest
  const assessments = (...actions: string[]) => [{ sensitiveInformationPolicy: { piiEntities: actions.map((action) => ({ action })) } }]

  test('sends one block per text, signed for its region', async () => {
    reply = { body: { action: 'NONE' } }
    await judge('request', [entry], chat(['system', 's'], ['user', 'u']))
    expect(requests).toMatchObject([
      { line: 'POST /guardrail/g%2F1/version/DRAFT/apply', body: { source: 'INPUT', content: [{ text: { text: 's' } }, { text: { text: 'u' } }] } },
    ])
    expect(requests[0]?.headers.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/bedrock\/aws4_request, /)
    await judge('response', [entry], completion('a'))
    expect(requests[1]?.body).toMatchObject({ source: 'OUTPUT' })
  })

  test.each<[string, unknown, unknown]>([
    [
      'masks each anonymized text',
      { outputs: [{ text: 'X' }, { text: 'Y' }], assessments: assessments('ANONYMIZED') },
      { body: chat(['system', 'X'], ['user', 'Y']) },
    ],
    ['rejects a blocked text', { outputs: [{ text: 'X' }, { text: 'Y' }], assessments: assessments('ANONYMIZED', 'BLOCKED') }, { status: 403 }],
    ['rejects a response with another number of texts', { outputs: [{ text: 'X' }], assessments: assessments('ANONYMIZED') }, { status: 403 }],
    ['rejects an intervention without assessments', { outputs: [] }, { status: 403 }],
  ])('%s', async (_, returned, expected) => {
    reply = { body: { action: 'GUARDRAIL_INTERVENED', ...(returned as object) } }
    expect(await judge('request', [entry], chat(['system', 's'], ['user', 'u']))).toMatchObject(expected as object)
  })

  test('is not called without texts, and an invalid response lets nothing pass', async () => {
    await judge('request', [entry], { model: 'm', messages: [] })
    expect(requests).toEqual([])
    reply = { body: {} }
    expect(await failure(judge('request', [entry], chat(['user', 'u'])))).toBe('503 prompt guard failed')
  })
})

describe('a modelArmor guard', () => {
  const entry = { modelArmor: { templateId: 't', projectId: 'p', location: 'l', policies: { auth: { key: 'token' } } } } satisfies PromptguardRequest
  const found = (filter: object) => ({ sanitizationResult: { filterResults: filter } })

  test('sends all text of a request or response at once', async () => {
    reply = { body: found({}) }
    await judge('request', [entry], chat(['system', 's'], ['user', 'u']))
    await judge('response', [entry], completion('a', 'b'))
    expect(requests).toMatchObject([
      {
        line: 'POST /v1/projects/p/locations/l/templates/t:sanitizeUserPrompt',
        body: { user_prompt_data: { text: 's\nu' } },
        headers: { authorization: 'Bearer token' },
      },
      { line: 'POST /v1/projects/p/locations/l/templates/t:sanitizeModelResponse', body: { model_response_data: { text: 'a\nb' } } },
    ])
  })

  test.each<[string, object, boolean]>([
    ['a map', { rai: { raiFilterResult: { matchState: 'MATCH_FOUND' } } }, true],
    ['a list', [{ csamFilterResult: { matchState: 'NO_MATCH_FOUND' } }, { virusScanFilterResult: { matchState: 'MATCH_FOUND' } }], true],
    ['matches of sensitive data', { sdp: { sdpFilterResult: { deidentifyResult: { matchState: 'MATCH_FOUND' } } } }, true],
    ['no match', { rai: { raiFilterResult: { matchState: 'NO_MATCH_FOUND' } } }, false],
  ])('reads filter results with %s', async (_, filter, isRejected) => {
    reply = { body: found(filter) }
    expect((await judge('response', [entry], completion('a'))).status).toBe(isRejected ? 403 : undefined)
  })
})
