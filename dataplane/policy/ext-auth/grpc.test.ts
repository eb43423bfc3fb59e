import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import type { ExtAuth } from '#gen/config/types.ts'
import { HeaderValueOption_HeaderAppendAction as Action } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { Authorization, CheckResponseSchema, type CheckRequest } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { destinationTo, startGrpcService, unary } from '../../net/callout/testing.ts'
import { compose } from '../../request/exchange/compose.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { LongBody } from '../../testing/body.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import { variables } from '../../request/exchange/variables.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

type Response = MessageInitShape<typeof CheckResponseSchema>
type Change = Partial<Parameters<typeof testRequest>[0]> & { readonly prepare?: (exchange: Exchange) => void; readonly connection?: object }

/** Sends a request through the policy. Returns the check requests, the forwarded request and the response. */
async function send(answer: Response | (() => Response), policy: Partial<ExtAuth> = {}, { prepare, connection, ...request }: Change = {}) {
  const received: CheckRequest[] = []
  const { port, close } = await startGrpcService([
    unary(Authorization.method.check, (question) => {
      received.push(question)
      return create(CheckResponseSchema, typeof answer === 'function' ? answer() : answer)
    }),
  ])
  open.push(close)
  return { ...(await sendTo(port, policy, { prepare, connection, ...request } as Change)), received }
}

async function sendTo(port: number, policy: Partial<ExtAuth>, { prepare, connection, ...request }: Change = {}) {
  const destination = destinationTo(port)
  open.push(() => destination.close())
  const exchange = new Exchange({ ...testConnection, ...connection }, testRequest(request), performance.now())
  prepare?.(exchange)
  let forwarded: string | undefined
  const upstream = async (): Promise<void> => {
    forwarded = (await readBody(exchange.request.body, Infinity)).bytes.toString()
    exchange.response = { status: 200, headers: new HeaderList(['x-up', 'yes']), body: new BufferBody('up'), upgraded: undefined }
  }
  const extAuth: ExtAuth = { backendRef: { address: 'a:1' }, grpc: {}, ...policy }
  const state = createPolicyState({ destinations: { forPolicy: () => destination } })
  await compose(compilePolicies({ traffic: { extAuth }, state }), upstream)(exchange)
  const { response } = exchange
  const text = (await readBody(response?.body, Infinity)).bytes.toString()
  return { exchange, forwarded, headers: exchange.request.headers, answer: `${response?.status} ${text}`, response }
}

const ok = (okResponse: object, code = 0): Response => ({ status: { code }, httpResponse: { case: 'okResponse', value: okResponse } })
const denied = (deniedResponse: object, code = 7): Response => ({ status: { code }, httpResponse: { case: 'deniedResponse', value: deniedResponse } })
const option = (key: string, value: string, more: object = {}) => ({ header: { key, value }, ...more })

const denyByStatus = (): Response => {
  throw Object.assign(new Error('no'), { code: 16 })
}

describe('the check request', () => {
  test('contains all attributes of the request', async () => {
    const certificate = { pem: '', subject: '', subjectCn: '', issuer: '', subjectAltNames: ['a.example', 'spiffe://td/ns/a/sa/b'] }
    const tls = { sni: 'sni.example', alpn: 'h2', protocol: 'TLSv1.3', clientCertificate: certificate }
    const headers = new HeaderList(['x-a', '1', 'cookie', 'a=1', 'x-a', 'zwölf', 'cookie', 'b=2'].map((text) => Buffer.from(text).toString('latin1')))
    const { received } = await send(
      ok({}),
      { grpc: { contextExtensions: { shop: 'blue' } } },
      { method: 'PUT', target: '/p?q=1', version: 'HTTP/2', headers, connection: { tls } },
    )
    const attributes = received[0]?.attributes
    expect(attributes?.source).toMatchObject({
      principal: 'spiffe://td/ns/a/sa/b',
      address: { address: { value: { address: '127.0.0.1', portSpecifier: { value: 40000 } } } },
    })
    expect(attributes?.destination).toMatchObject({ address: { address: { value: { address: '127.0.0.1', portSpecifier: { value: 80 } } } } })
    expect(attributes?.tlsSession?.sni).toBe('sni.example')
    expect(attributes?.contextExtensions).toEqual({ shop: 'blue' })
    expect(attributes?.request?.http).toMatchObject({
      method: 'PUT',
      path: '/p?q=1',
      host: 'example.com',
      scheme: 'http',
      protocol: 'HTTP/2',
      size: 0n,
      body: '',
    })
    expect(attributes?.request?.http?.id).toMatch(/^[0-9a-f]{32}$/)
    expect(Math.abs(Number(attributes?.request?.time?.seconds) - Date.now() / 1000)).toBeLessThan(60)
    expect({ ...attributes?.request?.http?.headers }).toEqual({
      'x-a': '1, zwölf',
      cookie: 'a=1; b=2',
      ':method': 'PUT',
      ':scheme': 'http',
      ':authority': 'example.com',
      ':path': '/p?q=1',
    })
  })

  test('contains the claims of a verified token, but not the token', async () => {
    const prepare = (exchange: Exchange): void => variables.jwt.set(exchange, { sub: 'me', groups: ['a'], rawToken: new Secret('secret') })
    const { received } = await send(ok({}), {}, { prepare })
    expect(received[0]?.attributes?.metadataContext?.filterMetadata).toEqual({ 'envoy.filters.http.jwt_authn': { jwt_payload: { sub: 'me', groups: ['a'] } } })
  })

  test('contains the metadata of the policy in place of claims, without values that are no maps', async () => {
    const prepare = (exchange: Exchange): void => variables.jwt.set(exchange, { sub: 'me', rawToken: new Secret('secret') })
    const requestMetadata = { a: '{"m": request.method, "n": 1}', b: '"text"', c: 'nothing.here' }
    const { received } = await send(ok({}), { grpc: { requestMetadata } }, { prepare })
    expect(received[0]?.attributes?.metadataContext?.filterMetadata).toEqual({ a: { m: 'GET', n: 1 } })
  })

  test('contains the body, which is forwarded unchanged', async () => {
    const { received, forwarded } = await send(ok({}), { forwardBody: { maxSize: 5 } }, { method: 'POST', body: new BufferBody('hello') })
    expect([received[0]?.attributes?.request?.http?.body, received[0]?.attributes?.request?.http?.size, forwarded]).toEqual(['hello', 5n, 'hello'])
  })

  test.each<[string, Change['body']]>([
    ['of known length', new BufferBody('hello!')],
    ['of known length above the limit', new LongBody(1_000_000)],
    ['of unknown length', Object.defineProperty(new LongBody(100_000), 'length', { value: undefined })],
  ])('is not sent for a body over the limit, %s', async (_, body) => {
    const { received, answer, forwarded } = await send(ok({}), { forwardBody: { maxSize: 5 }, failureMode: 'FailOpen' }, { method: 'POST', body })
    expect([received.length, answer, forwarded]).toEqual([0, '413 external authorization failed', undefined])
  })
})

describe('a response that allows', () => {
  test('changes the request: headers are removed first, then set', async () => {
    const value = {
      headersToRemove: ['X-Gone', 'x-both', ':path', 'host', 'content-length'],
      headers: [
        option('x-both', 'new'),
        option('X-Set', 'über'),
        option('x-list', '2', { append: true }),
        option('x-add', '2', { appendAction: Action.ADD_IF_ABSENT }),
        option('x-none', '2', { appendAction: Action.OVERWRITE_IF_EXISTS }),
        option('x-empty', ''),
        option('x-bad', 'a\r\nb'),
        option('transfer-encoding', 'chunked'),
        option(':path', '/other'),
        option('host', 'other.example'),
      ],
    }
    const headers = new HeaderList(['x-gone', '1', 'x-both', 'old', 'x-list', '1', 'x-add', '1', 'x-empty', '1', 'content-length', '0'])
    const { exchange } = await send(ok(value), {}, { headers })
    expect([...exchange.request.headers]).toEqual([
      ['x-list', '1'],
      ['x-add', '1'],
      ['x-empty', '1'],
      ['content-length', '0'],
      ['x-both', 'new'],
      ['x-set', Buffer.from('über').toString('latin1')],
      ['x-list', '2'],
    ])
    expect([exchange.request.target, exchange.request.authority, exchange.isAuthorityFixed]).toEqual(['/other', 'other.example', true])
  })

  test.each([
    ['/a?x=1&y=2&x=3', { queryParametersToSet: [{ key: 'x', value: 'a b&c' }] }, '/a?y=2&x=a%20b%26c'],
    ['/a?x=1&y%5B%5D=2', { queryParametersToRemove: ['y[]'] }, '/a?x=1'],
    ['/a?x=1', { queryParametersToRemove: ['x'] }, '/a'],
  ])('changes the query of %s', async (target, value, expected) => {
    expect((await send(ok(value), {}, { target })).exchange.request.target).toBe(expected)
  })

  test('adds headers to the response', async () => {
    const { response } = await send(ok({ responseHeadersToAdd: [option('x-up', 'changed'), option('x-new', '1')] }))
    expect([...(response?.headers ?? [])]).toEqual([
      ['x-up', 'changed'],
      ['x-new', '1'],
    ])
  })

  test('sets metadata for expressions', async () => {
    for (const answer of [ok({}), {}]) {
      const { exchange } = await send({ ...answer, dynamicMetadata: { user: 'me' } })
      expect({ ...(variables.extauthz.get(exchange) as object) }).toEqual({ user: 'me' })
    }
  })

  const answers: Record<string, { answer: Response; expected: string }> = {
    'status OK only': { answer: { status: { code: 0 } }, expected: '200 up' },
    'status OK with a denial, which is ignored': { answer: denied({ body: 'no' }, 0), expected: '200 up' },
    'an OK response without a status, like Envoy': { answer: { httpResponse: { case: 'okResponse', value: {} } }, expected: '200 up' },
    'an empty response, because 0 is the default of proto3': { answer: {}, expected: '200 up' },
    'metadata without a status': { answer: { dynamicMetadata: { user: 'me' } }, expected: '200 up' },
    'an error status with an OK response, which denies': { answer: ok({}, 13), expected: '403 external authorization failed' },
  }
  test.each(Object.keys(answers))('can be %s', async (name) => {
    expect((await send(answers[name]?.answer ?? {})).answer).toBe(answers[name]?.expected)
  })
})

describe('a response that denies', () => {
  test('is returned to the client (row 54)', async () => {
    const value = { status: { code: 418 }, body: 'short and stout', headers: [option('x-why', 'tea'), option('content-length', '3')] }
    const { answer, response, forwarded, exchange } = await send(denied(value))
    expect([answer, response?.headers.get('x-why'), response?.headers.getAll('content-length'), forwarded]).toEqual([
      '418 short and stout',
      'tea',
      ['15'],
      undefined,
    ])
    expect(exchange.error?.row.reason).toBe('ExtAuth')
  })

  const denials: Record<string, { answer: Response | (() => Response); expected: string }> = {
    'without a denied response': { answer: { status: { code: 7 } }, expected: '403 external authorization failed' },
    'without an HTTP status': { answer: denied({ body: 'no' }), expected: '403 no' },
    'with an invalid status': { answer: denied({ status: { code: 999 }, body: 'no' }), expected: '403 no' },
    'with a status that has no body': { answer: denied({ status: { code: 204 }, body: 'no' }), expected: '204 ' },
    'by the status of the call': { answer: denyByStatus, expected: '403 external authorization failed' },
  }
  test.each(Object.keys(denials))('is accepted %s', async (name) => {
    expect((await send(denials[name]?.answer ?? {}, { failureMode: 'FailOpen' })).answer).toBe(denials[name]?.expected)
  })

  test('sets metadata for logs', async () => {
    const { exchange } = await send({ ...denied({}), dynamicMetadata: { why: 'x' } })
    expect({ ...variables.extauthz.get(exchange) }).toEqual({ why: 'x' })
  })
})

describe('a failed call', () => {
  const broken = (): Response => {
    throw Object.assign(new Error('broken'), { code: 13 })
  }
  test.each<[ExtAuth['failureMode'], string]>([
    [undefined, '403 external authorization failed'],
    ['FailClosed', '403 external authorization failed'],
    ['FailOpen', '200 up'],
  ])('is handled as %s says', async (failureMode, expected) => {
    expect((await send(broken, { failureMode } as ExtAuth)).answer).toBe(expected)
    expect((await sendTo(1, { failureMode } as ExtAuth)).answer).toBe(expected)
  })

  test('ends with the request timeout, whatever the failure mode', async () => {
    const prepare = (exchange: Exchange): void => void (exchange.deadlineAtMs = performance.now() - 1)
    expect((await send(ok({}), { failureMode: 'FailOpen' }, { prepare })).answer).toBe('504 request timeout')
  })
})
