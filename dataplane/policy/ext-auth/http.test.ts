import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { AgentExtAuthHTTP, ExtAuth, RouteExtAuth } from '#gen/config/types.ts'
import { destinationTo } from '../../net/callout/testing.ts'
import { compose } from '../../request/exchange/compose.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange, type testRequest } from '../../testing/exchange.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import { variables } from '../../request/exchange/variables.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

type Answer = (request: IncomingMessage, response: ServerResponse) => void
type Change = Partial<Parameters<typeof testRequest>[0]> & { readonly prepare?: (exchange: Exchange) => void; readonly filter?: Omit<RouteExtAuth, 'policy'> }

/** Sends a request through the policy. `received` is the request to the authorization server, `sent` the forwarded request. */
async function send(answer: Answer, http: AgentExtAuthHTTP = {}, policy: Partial<ExtAuth> = {}, { prepare, filter, ...request }: Change = {}) {
  const received: { method?: string | undefined; url?: string | undefined; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      received.push({ method: incoming.method, url: incoming.url, headers: incoming.headers, body: Buffer.concat(chunks).toString() })
      answer(incoming, response)
    })
  })
  const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
  const destination = destinationTo(port)
  open.push(() => {
    destination.close()
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const exchange = testExchange(request)
  prepare?.(exchange)
  let sent: string | undefined
  const upstream = async (): Promise<void> => {
    sent = (await readBody(exchange.request.body, Infinity)).bytes.toString()
    exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody('up'), upgraded: undefined }
  }
  const extAuth: ExtAuth = { backendRef: { address: 'a:1' }, http, ...policy }
  const state = createPolicyState({ destinations: { forPolicy: () => destination } })
  const sources = filter === undefined ? { traffic: { extAuth } } : { filters: { extAuth: { policy: extAuth, ...filter } } }
  await compose(compilePolicies({ ...sources, state }), upstream)(exchange)
  const text = (await readBody(exchange.response?.body, Infinity)).bytes.toString()
  return { exchange, received: received[0], sent, answer: `${exchange.response?.status} ${text}`, response: exchange.response }
}

const allow: Answer = (_request, response) => void response.writeHead(200, { 'x-user': 'me', 'x-other': 'o', 'set-cookie': ['a=1', 'b=2'] }).end('fine')
const answerWith =
  (status: number, body: string, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)
const fields = (...raw: string[]): HeaderList => new HeaderList(raw)

describe('the authorization request', () => {
  test('has method, path and Authorization of the request only', async () => {
    const headers = fields('authorization', 'Basic x', 'x-a', '1', 'cookie', 'c', 'content-type', 'text/plain')
    const { received, sent } = await send(allow, {}, {}, { method: 'POST', target: '/p?q=1', headers, body: new BufferBody('hello') })
    expect(received).toMatchObject({ method: 'POST', url: '/p?q=1', body: '' })
    expect(Object.keys(received?.headers ?? {}).sort()).toEqual(
      ['authorization', 'connection', 'content-length', 'host'].filter((name) => received?.headers[name] !== undefined),
    )
    expect(sent).toBe('hello')
  })

  test('has the allowed headers in place of Authorization, and computed ones', async () => {
    const headers = fields('authorization', 'Basic x', 'x-a', '1', 'x-a', '2', 'x-forged', 'yes')
    const http = {
      allowedRequestHeaders: ['X-A', 'x-forged', 'connection'],
      addRequestHeaders: { 'X-Method': 'request.method', 'x-forged': 'nothing.here', host: '"evil"' },
    }
    const { received } = await send(allow, http, {}, { headers })
    expect(received?.headers).toMatchObject({ 'x-a': '1, 2', 'x-method': 'GET' })
    expect([received?.headers['authorization'], received?.headers['x-forged'], received?.headers.host?.startsWith('127.0.0.1')]).toEqual([
      undefined,
      undefined,
      true,
    ])
  })

  test("has the client's Host if it is allowed", async () => {
    expect((await send(allow, { allowedRequestHeaders: [':authority'] })).received?.headers.host).toBe('example.com')
    expect((await send(allow, {}, {}, { filter: { isHostSent: true } })).received?.headers.host).toBe('example.com')
  })

  test.each<[string, string, string]>([
    ['a constant', '"/check"', '/check'],
    ['a prefix', '"/auth" + string(request.pathAndQuery)', '/auth/p?q=1'],
  ])('is sent to the computed path: %s', async (_, path, expected) => {
    expect((await send(allow, { path }, {}, { target: '/p?q=1' })).received?.url).toBe(expected)
  })

  test.each(['nothing.here', '"no-slash"', '"/a b"', '1'])('is not sent and leads to 403 if the path is %s', async (path) => {
    const { received, answer } = await send(allow, { path }, { failureMode: 'FailOpen' })
    expect([received, answer]).toEqual([undefined, '403 external authorization failed'])
  })

  test('has the body if it is configured, and marks it as complete', async () => {
    const { received, sent } = await send(allow, {}, { forwardBody: { maxSize: 10 } }, { method: 'POST', body: new BufferBody('hello') })
    expect([received?.body, received?.headers['x-envoy-auth-partial-body'], sent]).toEqual(['hello', 'false', 'hello'])
  })

  test('is not sent for a body over the limit, which is a 413', async () => {
    const { received, answer } = await send(allow, {}, { forwardBody: { maxSize: 4 } }, { method: 'POST', body: new BufferBody('hello') })
    expect([received, answer]).toEqual([undefined, '413 external authorization failed'])
  })

  test('can be computed from the body', async () => {
    const { received, sent } = await send(
      allow,
      { addRequestHeaders: { 'x-size': 'size(request.body)' } },
      {},
      { method: 'POST', body: new BufferBody('hello') },
    )
    expect([received?.headers['x-size'], received?.body, sent]).toEqual(['5', '', 'hello'])
  })
})

describe('a response with status 200', () => {
  test('replaces headers of the client by allowed ones (row 53)', async () => {
    const { exchange, answer } = await send(
      allow,
      { allowedResponseHeaders: ['X-User', 'x-missing'] },
      {},
      { headers: fields('x-user', 'forged', 'x-missing', 'forged', 'x-a', '1') },
    )
    expect([[...exchange.request.headers], answer]).toEqual([
      [
        ['x-a', '1'],
        ['x-user', 'me'],
      ],
      '200 up',
    ])
  })

  test('replaces all headers except for framing if a filter names none', async () => {
    const { exchange } = await send(allow, {}, {}, { filter: { areAllHeadersCopied: true }, headers: fields('x-user', 'forged') })
    const copied = Object.fromEntries(exchange.request.headers)
    expect(copied).toMatchObject({ 'x-user': 'me', 'x-other': 'o' })
    expect([copied['content-length'], copied['transfer-encoding'], copied['connection'], copied['keep-alive']]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })

  test('sets metadata computed from the response', async () => {
    const responseMetadata = { body: 'string(response.body)', user: 'response.headers["x-user"] + " " + request.method', none: 'nothing.here' }
    const { exchange } = await send(allow, { responseMetadata })
    expect({ ...(variables.extauthz.get(exchange) as object) }).toEqual({ body: 'fine', user: 'me GET' })
  })
})

describe('a response with another status denies', () => {
  test.each([
    [401, 'no', { 'www-authenticate': 'Basic', 'x-a': '1' }],
    [201, 'other than 200', {}],
    [302, '', { location: '/login' }],
    [500, 'broken', {}],
  ])('and %s is returned with its headers and body (row 52)', async (status, body, headers) => {
    const { response, answer, sent } = await send(answerWith(status, body, headers), {}, { failureMode: 'FailOpen' })
    expect([answer, sent]).toEqual([`${status} ${body}`, undefined])
    for (const [name, value] of Object.entries(headers)) expect(response?.headers.getAll(name)).toEqual([value])
    expect(response?.headers.getAll('content-length')).toEqual([String(body.length)])
  })

  test('and its cookies reach the client as separate lines', async () => {
    const { response } = await send((_request, res) => void res.writeHead(401, { 'set-cookie': ['a=1', 'b=2'] }).end())
    expect(response?.headers.getAll('set-cookie')).toEqual(['a=1', 'b=2'])
  })

  const redirect = '"/login?to=" + request.path'
  test.each<[number, string, string | undefined]>([
    [401, '302 ', '/login?to=/p'],
    [403, '302 ', '/login?to=/p'],
    [500, '500 no', undefined],
  ])('and %s is turned into a configured redirect', async (status, expected, location) => {
    const { answer, response } = await send(answerWith(status, 'no'), { redirect }, {}, { target: '/p' })
    expect([answer, response?.headers.get('location')]).toEqual([expected, location])
  })

  test('and is returned if the redirect fails', async () => {
    expect((await send(answerWith(401, 'no'), { redirect: 'nothing.here' })).answer).toBe('401 no')
  })
})

describe('a failed call', () => {
  test.each<[string, Answer]>([
    ['a cut connection', (request) => request.socket.destroy()],
    ['a response that is not HTTP', (request) => request.socket.end('nonsense\r\n\r\n')],
    ['a body of gigabytes', (_request, response) => void response.writeHead(401, { 'content-length': String(2 ** 32) }).write(Buffer.alloc(3_000_000))],
  ])('is handled by the failure mode: %s', async (_, answer) => {
    expect((await send(answer)).answer).toBe('403 external authorization failed')
    expect((await send(answer, {}, { failureMode: 'FailOpen' })).answer).toBe('200 up')
  })

  test('ends after 2 s for a silent server, but not after the request timeout', async () => {
    const startedAt = performance.now()
    expect((await send(() => undefined)).answer).toBe('403 external authorization failed')
    expect(performance.now() - startedAt).toBeGreaterThan(1900)
    const prepare = (exchange: Exchange): void => void (exchange.deadlineAtMs = performance.now() + 50)
    // The server's own timeout of 2 s would lead to the failure mode's 200.
    expect((await send(() => undefined, {}, { failureMode: 'FailOpen' }, { prepare })).answer).toBe('504 request timeout')
  })
})
