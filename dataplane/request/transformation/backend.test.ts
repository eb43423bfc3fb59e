import { describe, expect, test } from '@jest/globals'
import type { BackendFull, Policy, Route, Transformation } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Exchange } from '../exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { isForwardingHeader } from '../../http/own-headers.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

const attached = (name: string, target: Policy['target'], sections: Pick<Policy, 'traffic' | 'backend'>): ConfigMessage => ({
  kind: 'policy',
  message: { key: `p/ns/${name}`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, target, ...sections },
})
const onGateway = (sections: Pick<Policy, 'traffic' | 'backend'>): ConfigMessage => attached('outer', testGateway, sections)
const backend = (name: string, policies?: BackendFull): ConfigMessage => ({
  kind: 'backend',
  message: { key: `ns/${name}`, static: { host: name, port: 80 }, ...(policies && { policies }) },
})
const set = (name: string, value: string) => ({ set: [{ name, value }] })

interface Seen {
  readonly line: string
  /** Without those that tell where the request is from. */
  readonly headers: Record<string, string>
  readonly body: string
}

/** Starts a gateway with backends that respond with `statuses` in turn and record their requests by host. */
function start(...messages: ConfigMessage[]) {
  const seen: Record<string, Seen[]> = {}
  const statuses: (number | 'refused')[] = []
  const gateway = new Gateway({
    createPool: (_, { host }) => ({
      size: 0,
      close: () => {},
      call: (request) => {
        const answer = async () => {
          const body = (await readBody(request.body, 10_000)).bytes.toString()
          ;(seen[host] ??= []).push({
            line: `${request.method} ${request.authority} ${request.target}`,
            headers: Object.fromEntries([...request.headers].filter(([name]) => !isForwardingHeader(name))),
            body,
          })
          const status = statuses.shift() ?? 200
          if (status === 'refused') throw new UpstreamError('connect', 'refused')
          return { status, headers: new HeaderList(['x-from', host]), body: new BufferBody(`from ${host}`), upgraded: undefined }
        }
        return { response: answer(), cancel: () => {} }
      },
    }),
  })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const replace = (...next: ConfigMessage[]): void => void replaceMessages(store, [...testListener, ...next])
  replace(...messages)
  const send = async (headers: Record<string, string> = {}, body?: string, method = body === undefined ? 'GET' : 'POST') => {
    const request = testRequest({ method, body: body === undefined ? undefined : new BufferBody(body) }, headers)
    const exchange = new Exchange(testConnection, request, performance.now())
    await gateway.handle(exchange)
    const { response } = exchange
    return {
      status: response?.status,
      headers: Object.fromEntries(response?.headers ?? []),
      text: (await readBody(response?.body, 10_000)).bytes.toString(),
      method: request.method,
    }
  }
  return { seen, statuses, send, replace }
}

const route = (change: Partial<Route> = {}): ConfigMessage => testRoute({ backend: 'ns/api' }, change)
const api = (transformation: Transformation): ConfigMessage => backend('api', { transformation })

describe('the request side of a backend transformation', () => {
  test('sees the chosen backend and the credentials, and precedes the header modifiers of the backendRef', async () => {
    const transformation: Transformation = {
      request: {
        set: [
          { name: 'x-backend', value: 'backend.name + " " + backend.type + " " + backend.protocol' },
          { name: 'x-auth', value: 'request.headers["authorization"]' },
          { name: 'x-last', value: '"transformation"' },
          { name: ':path', value: '"/v2" + request.path' },
        ],
      },
    }
    const { send, seen } = start(
      route({ backends: [{ ref: { backend: 'ns/api' }, requestHeaders: [{ set: [{ name: 'x-last', value: 'backendRef' }] }] }] }),
      backend('api', { auth: { key: 'k' }, transformation }),
    )
    expect((await send()).status).toBe(200)
    expect(seen['api']).toMatchObject([{ line: 'GET api /v2/', headers: { 'x-backend': 'ns/api static http', 'x-auth': 'Bearer k', 'x-last': 'backendRef' } }])
  })

  test('follows the transformation of the route, and a header whose value fails is removed', async () => {
    const { send, seen } = start(
      route(),
      onGateway({ traffic: { transformation: { request: set('x-a', '"route"') } } }),
      api({ request: { ...set('x-b', 'request.headers["x-a"] + "+backend"'), add: [{ name: 'x-c', value: 'jwt.sub' }] } }),
    )
    await send({ 'x-c': 'smuggled' })
    expect(seen['api']?.[0]?.headers).toEqual({ 'x-a': 'route', 'x-b': 'route+backend' })
  })

  test('reads and replaces the body, and its :authority stays', async () => {
    const { send, seen } = start(
      route(),
      api({ request: { body: '{"wrapped": json(request.body)}', set: [{ name: ':authority', value: '"fixed.example.com"' }] } }),
    )
    await send({ 'content-length': '7' }, '{"a":1}')
    expect(seen['api']).toEqual([{ line: 'POST fixed.example.com /', headers: {}, body: '{"wrapped":{"a":1}}' }])
  })

  test('runs once for all attempts, which use one backend', async () => {
    const { send, seen, statuses } = start(
      route({ retry: { codes: [503], attempts: 2 } }),
      api({ request: { add: [{ name: 'x-added', value: 'uuid()' }], body: '"<" + string(request.body) + ">"' } }),
    )
    statuses.push(503, 'refused', 200)
    expect((await send({}, 'body')).status).toBe(200)
    const attempts = seen['api'] ?? []
    expect(attempts.map(({ body }) => body)).toEqual(['<body>', '<body>', '<body>'])
    expect(new Set(attempts.map(({ headers }) => headers['x-added'])).size).toBe(1)
  })

  test('of a mirror does not change the forwarded request', async () => {
    const { send, seen } = start(
      route({ filters: { mirrors: [{ backend: { backend: 'ns/mirror' } }] } }),
      backend('api'),
      backend('mirror', { transformation: { request: { set: [{ name: 'x-for', value: 'backend.name' }], remove: ['x-private'], body: '"none"' } } }),
    )
    await send({ 'x-private': '1' }, 'text')
    expect(seen['mirror']).toEqual([{ line: 'POST mirror /', headers: { 'x-for': 'ns/mirror' }, body: '' }])
    expect(seen['api']).toEqual([{ line: 'POST api /', headers: { 'x-private': '1' }, body: 'text' }])
  })
})

describe('the response side of a backend transformation', () => {
  test('follows the transformation of the route and precedes that of the phase before routing', async () => {
    const append = (text: string): Transformation => ({ response: set('x-order', `default(response.headers["x-order"], "") + ">${text}"`) })
    const { send } = start(
      route({ filters: { responseHeaders: [{ set: [{ name: 'x-order', value: 'modifier' }] }] } }),
      onGateway({ traffic: { phase: 'PreRouting', transformation: append('pre') } }),
      attached('of-route', { kind: 'HTTPRoute', namespace: 'ns', name: 'r' }, { traffic: { transformation: append('route') } }),
      api(append('backend')),
    )
    expect((await send()).headers['x-order']).toBe('modifier>route>backend>pre')
  })

  test('reads and replaces body and status', async () => {
    const { send } = start(route(), api({ response: { body: 'string(response.body).upperAscii()', set: [{ name: ':status', value: '203' }] } }))
    expect(await send()).toMatchObject({ status: 203, text: 'FROM API' })
  })

  test('runs on failures of its backend, but not if the backend was not reached', async () => {
    const mark: Transformation = { response: set('x-mark', '"1"') }
    const { send, statuses } = start(route(), api(mark), onGateway({ traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } } }))
    statuses.push('refused')
    expect(await send()).toMatchObject({ status: 503, headers: { 'x-mark': '1' } })
    expect((await send()).headers).not.toHaveProperty('x-mark')
  })

  test('reads the forwarded method, while the response follows the method of the client', async () => {
    const { send } = start(route(), api({ request: set(':method', '"GET"'), response: set('x-method', 'request.method') }))
    expect(await send({}, undefined, 'HEAD')).toMatchObject({ method: 'HEAD', headers: { 'x-method': 'GET' } })
  })
})

describe('the effective transformation', () => {
  const named = (name: string): BackendFull => ({ transformation: { request: set('x-by', `"${name}"`) } })
  const onBackend = (name: string): ConfigMessage => attached(name, { kind: 'Backend', namespace: 'ns', name: 'api' }, { backend: named(name) })

  test.each<[string, ConfigMessage[], string]>([
    ['that of a Gateway policy for all backends', [backend('api'), onGateway({ backend: named('gateway') })], 'gateway'],
    ['that of a policy on the backend over the Gateway', [backend('api'), onGateway({ backend: named('gateway') }), onBackend('attached')], 'attached'],
    ['that of the backend itself over all others', [backend('api', named('inline')), onBackend('attached')], 'inline'],
  ])('is %s', async (_, messages, expected) => {
    const { send, seen } = start(route(), ...messages)
    await send()
    expect(seen['api']?.[0]?.headers['x-by']).toBe(expected)
  })

  test('changes with a new version of the backend, on responses too', async () => {
    const { send, replace } = start(route(), backend('api'))
    expect((await send()).headers).not.toHaveProperty('x-new')
    replace(route(), api({ response: set('x-new', '"1"') }))
    expect((await send()).headers).toHaveProperty('x-new', '1')
    replace(route(), backend('api'))
    expect((await send()).headers).not.toHaveProperty('x-new')
  })
})
