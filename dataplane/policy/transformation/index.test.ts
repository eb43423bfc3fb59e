import { describe, expect, test } from '@jest/globals'
import type { Transform, Transformation } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { LongBody, ManualBody } from '../../testing/body.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { compileTransformation } from './index.ts'
import { variables } from '../../request/exchange/variables.ts'

interface Given {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: Body
  readonly upstream?: Record<string, string>
  readonly error?: Error
}

async function send(sections: Transformation | Transformation[], { method = 'GET', headers = {}, body, upstream = {}, error }: Given = {}) {
  const policies = [sections].flat().map((section) => compileTransformation(section, createPolicyState()))
  let sent = ''
  const app = mountPolicies([...policies, async ({ var: { exchange } }, next) => ((sent = headOf(exchange.request)), next())], {
    headers: upstream,
    ...(error && { error }),
    prepare: (exchange) => (exchange.request.body = body),
  })
  const { response, exchange } = await app.request('http://host/a?b=1', { method, headers })
  return { sent, response, exchange, text: await response.text(), head: exchange.request.headers }
}

const headOf = ({ method, scheme, authority, target }: { method: string; scheme: string; authority: string; target: string }): string =>
  `${method} ${scheme}://${authority}${target}`
const set = (name: string, value: string): Transform => ({ set: [{ name, value }] })
const bodyOf = async (body: Body | undefined): Promise<string> => (await readBody(body, Infinity)).bytes.toString()

describe('request headers', () => {
  test.each<[string, Transform, string[]]>([
    ['set replaces a header', set('X-A', '"new"'), ['new']],
    ['add appends a field line', { add: [{ name: 'x-a', value: '"new"' }] }, ['old', 'new']],
    ['remove deletes a header', { remove: ['X-A'] }, []],
    ['a failing set removes the header (row 58)', set('x-a', 'request.headers["x-missing"]'), []],
    ['a failing add removes the header', { add: [{ name: 'x-a', value: 'jwt.sub' }] }, []],
    ['an expression that does not compile removes the header', set('x-a', 'jwt.'), []],
    ['null removes the header', set('x-a', 'null'), []],
    ['a list removes the header', set('x-a', '["a"]'), []],
    ['a map removes the header', set('x-a', '{"a": 1}'), []],
    ['numbers are values', set('x-a', '1 + 1'), ['2']],
    ['unsigned numbers are values', set('x-a', '7u'), ['7']],
    ['fractions are values', set('x-a', '0.5'), ['0.5']],
    ['addresses are values', set('x-a', 'ip("10.0.0.1")'), ['10.0.0.1']],
    ['the address of the client is a value', set('x-a', 'source.address'), ['127.0.0.1']],
    [
      'durations and timestamps are values',
      set('x-a', 'duration("90s") > duration("1s") ? timestamp("2025-01-01T00:00:00Z") : null'),
      ['2025-01-01T00:00:00Z'],
    ],
    ['bools are values', set('x-a', 'true'), ['true']],
    ['bytes are values', set('x-a', 'b"\\x41\\xe9"'), ['Aé']],
    ['text beyond ASCII is sent as UTF-8', set('x-a', '"é"'), ['Ã©']],
    ['white space around a value is trimmed', set('x-a', '" a "'), ['a']],
    ['text with a line end removes the header', set('x-a', '"a\\r\\nx-admin: 1"'), []],
    ['attributes of the request are values', set('x-a', 'request.pathAndQuery'), ['/a?b=1']],
    [
      'the order is add, set, remove',
      { remove: ['x-b'], set: [{ name: 'x-a', value: 'request.headers["x-b"]' }], add: [{ name: 'x-b', value: '"b"' }] },
      ['b'],
    ],
    [
      'each sees what the one before did',
      {
        set: [
          { name: 'x-b', value: '"1"' },
          { name: 'x-a', value: 'request.headers["x-b"] + "2"' },
        ],
      },
      ['12'],
    ],
    ['metadata is computed before headers', { ...set('x-a', 'metadata.user'), metadata: { user: '"ann"' } }, ['ann']],
  ])('%s', async (_, request, expected) => {
    expect((await send({ request }, { headers: { 'x-a': 'old' } })).head.getAll('x-a')).toEqual(expected)
  })

  test.each(['content-length', 'Transfer-Encoding', 'connection', 'upgrade'])('the framing header %s cannot be changed', async (name) => {
    const { head } = await send({ request: { ...set(name, '"5"'), remove: [name] } }, { headers: { 'content-length': '3' } })
    expect([head.get('content-length'), head.get('transfer-encoding'), head.get('connection'), head.get('upgrade')]).toEqual([
      '3',
      undefined,
      undefined,
      undefined,
    ])
  })

  test('UTF-8 values are copied byte by byte', async () => {
    const { head } = await send({ request: set('x-b', 'request.headers["x-a"]') }, { headers: { 'x-a': 'Ã©' } })
    expect(head.get('x-b')).toBe('Ã©')
  })
})

describe('pseudo headers of requests', () => {
  test.each<[string, string, string]>([
    [':path', '"/x?y=" + request.method', 'GET http://host/x?y=GET'],
    [':path', 'request.pathAndQuery.addQuery("c", "2")', 'GET http://host/a?b=1&c=2'],
    [':method', '"POST"', 'POST http://host/a?b=1'],
    [':authority', '"b.com:81"', 'GET http://b.com:81/a?b=1'],
    ['Host', '"b.com"', 'GET http://b.com/a?b=1'],
    [':scheme', '"https"', 'GET https://host/a?b=1'],
  ])('%s can be set to %s', async (name, value, expected) => expect((await send({ request: set(name, value) })).sent).toBe(expected))

  test.each<[string, string]>([
    [':path', '"x"'],
    [':path', '"/a b"'],
    [':path', '"/a HTTP/1.1\\r\\nx: y"'],
    [':path', 'request.headers["x-missing"]'],
    [':method', '"G T"'],
    [':method', '"CONNECT"'],
    [':authority', '"a/b"'],
    [':authority', '"user@a"'],
    [':scheme', '"ftp"'],
    [':status', '500'],
  ])('%s is unchanged if the value is %s', async (name, value) => expect((await send({ request: set(name, value) })).sent).toBe('GET http://host/a?b=1'))

  test('an authority that was set is not rewritten later', async () => {
    expect((await send({ request: set(':authority', '"b.com"') })).exchange.isAuthorityFixed).toBe(true)
    expect((await send({ request: set(':authority', '""') })).exchange.isAuthorityFixed).toBe(false)
  })

  test('a HEAD that is forwarded as GET gets a response without body', async () => {
    const { sent, exchange } = await send({ request: set(':method', '"GET"'), response: set('x-m', 'request.method') }, { method: 'HEAD' })
    expect([sent, exchange.request.method, exchange.response?.headers.get('x-m')]).toEqual(['GET http://host/a?b=1', 'HEAD', 'GET'])
  })
})

describe('request bodies', () => {
  const json = (): Body => new BufferBody('{"a":1}')
  test.each<[string, string, string]>([
    ['text is a body', '"new"', 'new'],
    ['bytes are a body', 'b"new"', 'new'],
    ['other values are sent as JSON', '{"a": [1, true]}', '{"a":[1,true]}'],
    ['the old body is available', '{"was": json(request.body).a}', '{"was":1}'],
    ['a failed expression makes an empty body (row 59)', 'request.headers["x-missing"]', ''],
    ['an expression that does not compile makes an empty body', 'json(', ''],
  ])('%s', async (_, body, expected) => {
    const { exchange } = await send({ request: { body } }, { method: 'POST', body: json(), headers: { 'content-length': '7', 'content-type': 'a/b' } })
    expect(await bodyOf(exchange.request.body)).toBe(expected)
    expect([exchange.request.headers.get('content-length'), exchange.request.headers.get('content-type')]).toEqual([undefined, 'a/b'])
  })

  test('a body that is replaced unread is cancelled', async () => {
    const body = new ManualBody()
    await send({ request: { body: '"new"' } }, { method: 'POST', body })
    expect(body.asked).toEqual(['cancel'])
  })

  test('later steps read the new body', async () => {
    const { head } = await send([{ request: { body: '"new"' } }, { request: set('x-a', 'string(request.body)') }], { method: 'POST', body: json() })
    expect(head.get('x-a')).toBe('new')
  })

  test('the response side reads the forwarded body', async () => {
    const { response } = await send({ response: set('x-a', 'json(request.body).a') }, { method: 'POST', body: json() })
    expect(response.headers.get('x-a')).toBe('1')
  })

  test('a body above the limit is forwarded unchanged, without the header that reads it', async () => {
    const body = new LongBody(3 * 1024 * 1024)
    const { head, exchange } = await send({ request: set('x-size', 'size(request.body)') }, { method: 'POST', body, headers: { 'x-size': '1' } })
    expect([head.has('x-size'), exchange.request.body?.length]).toEqual([false, 3 * 1024 * 1024])
  })
})

describe('responses', () => {
  test.each<[string, Transform, Record<string, unknown>]>([
    ['headers can be computed', set('x-a', 'response.code + 1'), { a: '201' }],
    ['headers of the upstream are available', set('x-a', 'response.headers["x-up"]'), { a: 'u' }],
    ['the forwarded request is available', set('x-a', 'request.path'), { a: '/a' }],
    ['a failing header is removed', set('x-up', 'response.headers["x-missing"]'), { up: null }],
    ['the status can be set (row 60)', set(':status', '418'), { status: 418 }],
    ['the status can be text', set(':status', '"418"'), { status: 418 }],
    ['an invalid status is ignored', set(':status', '99'), { status: 200 }],
    ['an interim status is ignored', set(':status', '101'), { status: 200 }],
    ['a failed status is ignored', set(':status', 'jwt.status'), { status: 200 }],
    ['a status without a body drops the body', set(':status', '204'), { status: 204, text: '' }],
    ['the body can be replaced', { body: '"new"' }, { text: 'new' }],
    ['the old body is available', { body: '{"was": string(response.body)}' }, { text: '{"was":"upstream"}' }],
    ['the beginning of the old body is available', { body: 'response.bodyPrefix' }, { text: 'upstream' }],
    ['a failed body is empty', { body: 'response.headers["x-missing"]' }, { text: '', length: null }],
    ['a body for a status without one is dropped', { ...set(':status', '304'), body: '"new"' }, { status: 304, text: '' }],
    ['pseudo headers of requests are ignored', set(':path', '"/x"'), { status: 200 }],
  ])('%s', async (_, transform, expected) => {
    const { response, text } = await send({ response: transform }, { upstream: { 'x-up': 'u', 'content-length': '8' } })
    const { headers, status } = response
    expect({ status, text, a: headers.get('x-a'), up: headers.get('x-up'), length: headers.get('content-length') }).toMatchObject(expected)
  })

  test('the content-length of a replaced body is dropped', async () => {
    const { exchange } = await send({ response: { body: '"longer than before"' } }, { upstream: { 'content-length': '8', 'content-type': 'a/b' } })
    expect([exchange.response?.headers.get('content-length'), exchange.response?.headers.get('content-type')]).toEqual([undefined, 'a/b'])
  })

  test('are transformed for errors of the gateway too, after the request side ran', async () => {
    const { response, text } = await send(
      { response: { ...set(':status', 'response.code == 503 ? 502 : response.code'), body: '{"error": string(response.body)}' } },
      { error: new ProxyError('NO_HEALTHY_BACKENDS') },
    )
    expect([response.status, text]).toEqual([502, '{"error":"no healthy backends"}'])
  })

  test('can read and override metadata of the request side', async () => {
    const { response, exchange } = await send({
      request: { metadata: { a: '"request"', b: 'request.path', c: 'jwt.sub' } },
      response: { metadata: { a: '"response"' }, ...set('x-a', 'metadata.a + metadata.b + string(has(metadata.c))') },
    })
    expect(response.headers.get('x-a')).toBe('response/afalse')
    expect(variables.metadata.get(exchange)).toEqual({ a: 'response', b: '/a' })
  })

  test('are changed last by the transformation nearest to the client', async () => {
    const { response } = await send([{ response: set('x-a', 'response.headers["x-a"] + "2"') }, { response: set('x-a', '"1"') }])
    expect(response.headers.get('x-a')).toBe('12')
  })
})

test('bodies are read only if an expression uses them', async () => {
  const body = new ManualBody()
  await send({ request: set('x-a', 'request.path'), response: set('x-a', 'response.code') }, { method: 'POST', body })
  expect(body.asked).toEqual([])
})
