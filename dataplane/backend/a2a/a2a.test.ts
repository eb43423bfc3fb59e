import { generateKeyPairSync } from 'node:crypto'
import { verifyAgentCardSignature, type AgentCard } from '@a2a-js/sdk'
import { describe, expect, test } from '@jest/globals'
import type { Route } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead } from '../../http/message.ts'
import { protocolOf } from '../../observe/telemetry/outcome.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { rewriteCard } from './card.ts'

interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

const agent: ConfigMessage = {
  kind: 'service',
  message: { key: 'ns/agent', ports: [{ port: 80, appProtocol: 'A2A', endpoints: [{ address: '10.0.0.1', port: 80 }] }] },
}
const backend: ConfigMessage = { kind: 'backend', message: { key: 'ns/agent', a2a: { host: '10.0.0.1', port: 80 } } }

interface Started {
  send(request: Partial<RequestHead>): Promise<{ exchange: Exchange; status: number; text: string; headers: HeaderList }>
  readonly seen: RequestHead[]
}

/** X-Forwarded-Proto of the tests is that of a proxy in front of the gateway. */
const trustedClients: ConfigMessage = {
  kind: 'policy',
  message: {
    key: 'frontend/ns/p',
    policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
    target: testGateway,
    frontend: { http: { clientIP: { trustedHops: 1 } } },
  },
}

/** A gateway whose agent responds with `reply`. */
function start(reply: Reply, message: ConfigMessage | readonly ConfigMessage[] = agent, change: Partial<Route> = {}): Started {
  const ref = message === agent ? { service: 'ns/agent', port: 80 } : { backend: 'ns/agent' }
  const seen: RequestHead[] = []
  const gateway = new Gateway({
    createPool: () => ({
      size: 0,
      close: () => {},
      call(request) {
        const respond = async () => {
          seen.push(request)
          if (request.body !== undefined) await readBody(request.body, 1_000_000)
          const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
          const headers = new HeaderList(
            Object.entries({ 'content-type': 'application/json', 'content-length': String(text.length), etag: '"1"', ...reply.headers }).flat(),
          )
          return { status: reply.status ?? 200, headers, body: new BufferBody(text), upgraded: undefined }
        }
        return { cancel: () => {}, response: respond() }
      },
    }),
  })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, [...testListener, testRoute(ref, change), trustedClients, ...[message].flat()])
  return {
    seen,
    async send(head) {
      const exchange = new Exchange(testConnection, testRequest({ authority: 'gw.example:8080', ...head }), performance.now())
      await gateway.handle(exchange)
      const { response } = exchange
      const { bytes } = response?.body === undefined ? { bytes: Buffer.alloc(0) } : await readBody(response.body, 10_000_000)
      return { exchange, status: response?.status ?? 0, text: bytes.toString(), headers: response?.headers ?? new HeaderList() }
    },
  }
}

/** A route that replaces the prefix `/agents/one`. */
const rewritten = (value: string): Partial<Route> => ({
  matches: [{ path: { type: 'PathPrefix', value: '/agents/one' } }],
  filters: { urlRewrite: { path: { type: 'ReplacePrefixMatch', value } } },
})

const CARD = '/.well-known/agent-card.json'
const old = {
  name: 'a',
  url: 'http://10.0.0.1/rpc',
  additionalInterfaces: [
    { transport: 'GRPC', url: '10.0.0.1:50051' },
    { transport: 'HTTP+JSON', url: 'http://10.0.0.1/v1?x=1' },
  ],
}
const current = {
  name: 'a',
  supportedInterfaces: [{ url: 'https://agent.internal:9000/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  signatures: [{ protected: 'e30', signature: 'x' }],
}

describe('a backend with signed cards and skills (mcp.md §14)', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const skills = [{ id: 'open' }, { id: 'staff', when: 'request.headers["x-group"] == "staff"' }]
  const a2a = { host: '10.0.0.1', port: 80, skills, cardSigning: { secretRef: { secret: 'opaque/ns/cards' } } }
  const withSecret = (data: Record<string, string>): ConfigMessage[] => [
    { kind: 'backend', message: { key: 'ns/agent', a2a } },
    { kind: 'secret', message: { key: 'opaque/ns/cards', type: 'opaque', data } },
  ]
  const body = { ...current, skills: [{ id: 'open' }, { id: 'staff' }] }
  const call = (method: string): Partial<RequestHead> => ({
    method: 'POST',
    target: '/rpc',
    body: new BufferBody(JSON.stringify({ jsonrpc: '2.0', id: 1, method })),
  })
  const verify = verifyAgentCardSignature(() => Promise.resolve(publicKey))

  test.each<[string, () => Partial<RequestHead>, object]>([
    ['of GET', () => ({ target: CARD }), body],
    ['of JSON-RPC', () => call('GetExtendedAgentCard'), { jsonrpc: '2.0', id: 1, result: body }],
  ])('a card %s has the skills of the user and a valid signature', async (_title, request, reply) => {
    const { send } = start({ body: reply }, withSecret({ key: pem }))
    const cardFor = async (group: string) => {
      const { text, headers } = await send({ ...request(), headers: new HeaderList(['x-group', group]) })
      const json = JSON.parse(text) as AgentCard & { result?: AgentCard }
      return { card: json.result ?? json, headers }
    }
    const { card, headers } = await cardFor('guests')
    expect([card.skills, headers.get('cache-control')]).toEqual([[{ id: 'open' }], 'private'])
    await verify(card)
    const staff = await cardFor('staff')
    expect(staff.card.skills).toEqual(body.skills)
    await verify(staff.card)
  })

  test('without a key cards are errors, and other requests pass', async () => {
    const { send } = start({ body: { jsonrpc: '2.0', id: 1, result: {} } }, withSecret({}))
    expect([(await send({ target: CARD })).status, (await send(call('SendMessage'))).status]).toEqual([503, 200])
  })
})

describe('the card of an agent (mcp.md §14)', () => {
  test.each([['/.well-known/agent.json'], [CARD], [`${CARD}?v=1`]])('at %s has the URLs of the gateway', async (target) => {
    const { send, seen } = start({ body: old })
    const { exchange, status, text, headers } = await send({
      target,
      headers: new HeaderList(['accept-encoding', 'gzip', 'if-none-match', '"1"', 'range', 'bytes=0-1']),
    })
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        name: 'a',
        url: 'http://gw.example:8080/rpc',
        additionalInterfaces: [
          { transport: 'GRPC', url: 'gw.example:8080' },
          { transport: 'HTTP+JSON', url: 'http://gw.example:8080/v1?x=1' },
        ],
      },
    ])
    expect([
      headers.get('content-length'),
      headers.get('etag'),
      seen[0]?.headers.get('accept-encoding'),
      seen[0]?.headers.get('if-none-match'),
      seen[0]?.headers.get('range'),
    ]).toEqual(Array.from({ length: 5 }))
    expect([protocolOf(exchange), logFieldsOf(exchange)]).toMatchObject(['a2a', { 'a2a.method': 'GetAgentCard' }])
  })

  test('of a backend of kind a2a has them too', async () => {
    expect(JSON.parse((await start({ body: old }, backend).send({ target: CARD })).text)).toMatchObject({ url: 'http://gw.example:8080/rpc' })
  })

  test('of A2A 1.0 has them in each interface, and loses signatures that would not match', async () => {
    const { text } = await start({ body: current }).send({ target: CARD, headers: new HeaderList(['x-forwarded-proto', 'https']) })
    expect(JSON.parse(text)).toEqual({
      name: 'a',
      supportedInterfaces: [{ url: 'https://gw.example:8080', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    })
  })

  test('of A2A 0.3 may have an empty list of interfaces', async () => {
    const { status, text } = await start({ body: { ...old, supportedInterfaces: [] } }).send({ target: CARD })
    expect([status, JSON.parse(text)]).toMatchObject([200, { url: 'http://gw.example:8080/rpc', supportedInterfaces: [] }])
  })

  test('has the path of the client where the route rewrites it', async () => {
    const { text } = await start({ body: { url: 'http://10.0.0.1/x/rpc' } }, agent, rewritten('/x')).send({ target: `/agents/one${CARD}` })
    expect(JSON.parse(text)).toEqual({ url: 'http://gw.example:8080/agents/one/rpc' })
  })

  test.each<[string, Reply]>([
    ['has no URL', { body: { name: 'a' } }],
    ['has an empty list of interfaces and no URL', { body: { ...current, supportedInterfaces: [] } }],
    ['is no object', { body: [1] }],
    ['is not JSON', { body: '{"url"' }],
    ['is of another type', { body: '<html>', headers: { 'content-type': 'text/html' } }],
    ['is empty', { body: '' }],
    ['has a URL that is not a string', { body: { url: 1, supportedInterfaces: [] } }],
    ['has interfaces that are not a list', { body: { url: 'http://10.0.0.1/', supportedInterfaces: {} } }],
    ['has an interface that is not an object', { body: { ...old, additionalInterfaces: ['http://10.0.0.1/'] } }],
    ['has an interface without URL', { body: { ...current, supportedInterfaces: [{ url: ['http://10.0.0.1/'] }] } }],
    ['has signatures that are not a list', { body: { ...old, signatures: 'x' } }],
    ['is too deep', { body: '['.repeat(200_000) }],
    ['is too large', { body: { url: 'http://a/', name: 'x'.repeat(300_000) } }],
    ['is compressed', { body: old, headers: { 'content-encoding': 'gzip' } }],
  ])('that %s is an error without the address of the agent', async (_, reply) => {
    const { status, text } = await start(reply).send({ target: CARD })
    expect([status, text]).toEqual([503, expect.stringMatching(/^the agent card cannot be rewritten: /)])
    expect(text).not.toContain('10.0.0.1')
  })

  test('that is an error passes unchanged', async () => {
    const { status, text } = await start({ status: 404, body: old }).send({ target: CARD })
    expect([status, text]).toEqual([404, JSON.stringify(old)])
  })

  test('that names the gateway already passes with its signatures and headers', async () => {
    const body = { ...current, supportedInterfaces: [{ url: 'http://gw.example:8080/agents/one/rpc' }], id: 12345678901234567890n.toString() }
    const { text, headers } = await start({ body }, agent, rewritten('/')).send({ target: `/agents/one${CARD}` })
    expect([text, headers.get('etag')]).toEqual([JSON.stringify(body), '"1"'])
  })

  test.each(['/agents/one/v1/card', '/agents/one/extendedAgentCard', '/agents/one/'.concat('.well-known/agent-card%2Ejson')])(
    'for authenticated clients at %s has the URLs of the gateway',
    async (target) => {
      const { text } = await start({ body: { ...old, skills: [] } }, agent, rewritten('/')).send({ target })
      expect(JSON.parse(text)).toMatchObject({ url: 'http://gw.example:8080/agents/one/rpc' })
    },
  )

  test('below the prefix of the route is found by its content, and other resources pass', async () => {
    const card = await start({ body: { ...current, skills: [] } }, agent, rewritten('/')).send({ target: '/agents/one/rest/extendedAgentCard' })
    expect(JSON.parse(card.text)).toMatchObject({ supportedInterfaces: [{ url: 'http://gw.example:8080/agents/one' }] })
    const other = await start({ body: { url: 'http://10.0.0.1/face.png' } }, agent, rewritten('/')).send({ target: '/agents/one/files/v1/card' })
    expect([other.status, JSON.parse(other.text)]).toEqual([200, { url: 'http://10.0.0.1/face.png' }])
    const malformed = await start({ body: { supportedInterfaces: 1 } }, agent, rewritten('/')).send({ target: '/agents/one/rest/v1/card' })
    expect(malformed.status).toBe(503)
    const direct = await start({ body: {} }, agent, rewritten('/')).send({ target: '/agents/one/v1/card' })
    expect(direct.status).toBe(503)
  })

  test.each(['/a2a.v1.A2AService/GetAgentCard', '/lf.a2a.v1.A2AService/GetExtendedAgentCard'])('over gRPC at %s is refused', async (target) => {
    const { send, seen } = start({ body: '' })
    const { exchange, headers } = await send({
      method: 'POST',
      target,
      headers: new HeaderList(['content-type', 'application/grpc']),
      body: new BufferBody('x'),
    })
    expect([exchange.error?.code, headers.get('grpc-status'), seen]).toEqual(['A2A_GRPC_CARD', '12', []])
  })

  test.each(['agent/getAuthenticatedExtendedCard', 'GetExtendedAgentCard'])('in the result of %s has the URLs of the gateway', async (method) => {
    const body = new BufferBody(JSON.stringify({ jsonrpc: '2.0', id: 1, method }))
    const { text } = await start({ body: { jsonrpc: '2.0', id: 1, result: old } }, agent, rewritten('/')).send({
      method: 'POST',
      target: '/agents/one/rpc',
      body,
    })
    expect(JSON.parse(text)).toMatchObject({ id: 1, result: { url: 'http://gw.example:8080/agents/one/rpc' } })
  })

  describe('in a result', () => {
    const method = 'GetExtendedAgentCard'
    const result = { ...current, skills: [] }
    const big = 'x'.repeat(100_000)
    const post = (reply: Reply, body: string | Buffer) => start(reply).send({ method: 'POST', target: '/rpc', body: new BufferBody(body) })

    test.each([
      ['of a request of 100 kB', JSON.stringify({ jsonrpc: '2.0', id: 1, params: { big }, method })],
      ['of a request with a doubled member', `{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"${method}"}`],
      ['of a request with an escaped name', `{"jsonrpc":"2.0","id":1,"m\\u0065thod":"${method}"}`],
      ['of a request in UTF-16', Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method }), 'utf16le')],
    ])('%s has the URLs of the gateway', async (_, request) => {
      const { status, text } = await post({ body: { jsonrpc: '2.0', id: 1, result } }, request)
      expect([status, JSON.parse(text)]).toMatchObject([200, { result: { supportedInterfaces: [{ url: 'http://gw.example:8080' }] } }])
    })

    test('keeps the digits of the id', async () => {
      const { text } = await post(
        { body: `{"jsonrpc":"2.0","id":12345678901234567890,"result":${JSON.stringify(result)}}` },
        JSON.stringify({ jsonrpc: '2.0', id: 1, method }),
      )
      expect(text).toContain('"id":12345678901234567890')
    })

    test.each<[string, Reply, string]>([
      ['in a batch', { body: [{ jsonrpc: '2.0', id: 1, result }] }, JSON.stringify([{ jsonrpc: '2.0', id: 1, method }])],
      ['in an event stream', { body: 'data: {}\n\n', headers: { 'content-type': 'text/event-stream' } }, JSON.stringify({ jsonrpc: '2.0', id: 1, method })],
      ['missing', { body: { jsonrpc: '2.0', id: 1 } }, JSON.stringify({ jsonrpc: '2.0', id: 1, method })],
      ['too large for a request that cannot be read', { body: { jsonrpc: '2.0', id: 1, result: { big: big.repeat(3) } } }, '[]'],
    ])('is an error if it is %s', async (_, reply, request) => {
      expect((await post(reply, request)).status).toBe(503)
    })

    test.each<[string, unknown, string]>([
      ['an error', { jsonrpc: '2.0', id: 1, error: { code: -32004, message: 'x' } }, JSON.stringify({ jsonrpc: '2.0', id: 1, method })],
      ['a task, also of a request that is not JSON', { jsonrpc: '2.0', id: 1, result: { kind: 'task', url: 'http://10.0.0.1/' } }, 'x'],
    ])('passes if it is %s', async (_, body, request) => {
      const { text } = await post({ body }, request)
      expect(text).toBe(JSON.stringify(body))
    })
  })
})

describe('a request to an agent', () => {
  const rpc = (method: string): BufferBody => new BufferBody(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }))
  const answer = (result: unknown): Reply => ({ body: { jsonrpc: '2.0', id: 1, result } })

  test.each<[string, Reply, Partial<RequestHead>, object]>([
    [
      'a task of 0.3',
      answer({ kind: 'task', id: 't', contextId: 'c', status: { state: 'completed' } }),
      { body: rpc('message/send') },
      { 'a2a.method': 'message/send', 'a2a.response.outcome': 'success', 'a2a.result.kind': 'task', 'a2a.task.state': 'completed', 'a2a.context.id': 'c' },
    ],
    [
      'a task of 1.0',
      answer({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }),
      { body: rpc('SendMessage') },
      { 'a2a.method': 'SendMessage', 'a2a.result.kind': 'task', 'a2a.task.state': 'TASK_STATE_WORKING', 'a2a.context.id': 'c' },
    ],
    [
      'a message of 1.0',
      answer({ message: { contextId: 'c', parts: [] } }),
      { body: rpc('SendMessage') },
      { 'a2a.result.kind': 'message', 'a2a.context.id': 'c' },
    ],
    [
      'an error',
      { body: { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'x' } } },
      { body: rpc('tasks/get') },
      { 'a2a.method': 'tasks/get', 'a2a.response.outcome': 'error', 'a2a.response.error_code': -32001 },
    ],
    [
      'a task over HTTP+JSON',
      { body: { task: { status: { state: 'TASK_STATE_COMPLETED' } } }, headers: { 'content-type': 'application/a2a+json' } },
      { target: '/x/message:send', body: new BufferBody('{}') },
      { 'a2a.method': 'SendMessage', 'a2a.response.outcome': 'success', 'a2a.task.state': 'TASK_STATE_COMPLETED' },
    ],
  ])('is logged with %s, and its bytes pass', async (_, reply, head, fields) => {
    const { exchange, text } = await start(reply).send({ method: 'POST', target: '/rpc', ...head })
    expect(text).toBe(JSON.stringify(reply.body))
    expect(logFieldsOf(exchange)).toMatchObject(fields)
  })

  test.each([
    ['GET', '/v1/tasks/1', 'GetTask'],
    ['POST', '/tasks/1:cancel', 'CancelTask'],
    ['GET', '/tasks', 'ListTasks'],
    ['POST', '/lf.a2a.v1.A2AService/SendStreamingMessage', 'SendStreamingMessage'],
  ])('%s %s is logged with the method %s', async (method, target, expected) => {
    const { exchange } = await start({ body: {} }).send({ method, target })
    expect(logFieldsOf(exchange)).toMatchObject({ 'a2a.method': expected })
  })

  test('passes an event stream and a body that is no JSON unread', async () => {
    const events = 'data: {"jsonrpc":"2.0","id":1,"result":{"kind":"task"}}\n\n'
    const { exchange, text } = await start({ body: events, headers: { 'content-type': 'text/event-stream' } }).send({
      method: 'POST',
      target: '/',
      body: new BufferBody('{'),
    })
    expect(text).toBe(events)
    expect(Object.keys(logFieldsOf(exchange)).filter((name) => name.startsWith('a2a.'))).toEqual([])
  })
})

const place = { origin: 'https://gw', base: '/a', upstreamBase: '' }
test.each([
  ['http://agent', 'https://gw/a'],
  ['HTTP://agent:1/', 'https://gw/a'],
  ['http://agent/x/y?q#f', 'https://gw/a/x/y?q'],
  ['agent:50051', 'gw'],
  ['grpc://agent:1', 'https://gw/a'],
  ['/relative', 'https://gw/a'],
  ['javascript:alert(1)', 'gw'],
  ['http://%', 'https://gw/a'],
])('the URL %s of a card becomes %s', (url, expected) => {
  expect(rewriteCard({ url }, place)).toEqual({ url: expected })
})

test('a URL outside the base that the agent received keeps its path', () => {
  expect(rewriteCard({ url: 'http://agent/xy/rpc' }, { ...place, upstreamBase: '/x' })).toEqual({ url: 'https://gw/xy/rpc' })
  expect(rewriteCard({ url: 'http://agent/x' }, { ...place, upstreamBase: '/x' })).toEqual({ url: 'https://gw/a' })
})
