import { beforeEach, describe, expect, test } from '@jest/globals'
import type { Traffic } from '#gen/config/types.ts'
import { compose } from '../../request/exchange/compose.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { ManualBody } from '../../testing/body.ts'
import { valueStores } from '../../runtime/value-store.ts'
import { testExchange } from '../../testing/exchange.ts'
import { FakeValues } from '../../testing/values.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import type { Sharing } from './index.ts'

type Fields = Readonly<Record<string, string>>
interface Request {
  readonly method?: string
  readonly target?: string
  readonly headers?: Fields
  readonly prepare?: (exchange: Exchange) => void
}
interface Upstream {
  status?: number
  /** Instead of `status`, by the headers of the request. */
  statusOf?: (headers: Fields) => number
  headers: Fields
  body?: string
}

/** Where the caches of a test store responses. */
let kind: 'Memory' | 'Redis' = 'Memory'

/** A chain with a cache in front of an upstream whose response can be changed; `clock.nowMs` is the time. */
function start(upstream: Upstream, { traffic = {}, sharing = 'permitted', tenant }: { traffic?: Traffic; sharing?: Sharing; tenant?: string } = {}) {
  const clock = { nowMs: Date.parse('Tue, 01 Jul 2025 00:00:00 GMT') }
  const state = createPolicyState({ monotonicMs: () => clock.nowMs, epochMs: () => clock.nowMs })
  valueStores.set(state.registry, new FakeValues())
  const policies = compilePolicies({
    traffic: { ...(traffic as object), cache: { store: kind, ...(tenant !== undefined && { tenant }) } },
    state,
    sharingOf: () => sharing,
  })
  const received: { method: string; headers: Fields }[] = []
  const chain = compose(policies, (exchange) => {
    received.push({ method: exchange.request.method, headers: Object.fromEntries(exchange.request.headers) })
    if (upstream.status === 0) throw new ProxyError('UPSTREAM_FAILED')
    const { headers, body = 'hello', statusOf } = upstream
    const status = statusOf?.(Object.fromEntries(exchange.request.headers)) ?? upstream.status ?? 200
    const content = status === 304 ? undefined : new BufferBody(body)
    exchange.response = { status, headers: HeaderList.from(Object.entries(headers)), body: content, upgraded: undefined }
  })
  const send = async ({ method = 'GET', target = '/a', headers = {}, prepare }: Request = {}) => {
    const exchange = testExchange({ method, target }, headers)
    prepare?.(exchange)
    await chain(exchange)
    const { response } = exchange
    const text = (await readBody(response?.body, Infinity)).bytes.toString()
    return { status: response?.status, text, headers: Object.fromEntries(response?.headers ?? []), cacheStatus: response?.headers.get('cache-status') }
  }
  return { send, received, upstream, clock, state }
}

const fresh = { 'cache-control': 'max-age=60' }
const statuses = async (send: ReturnType<typeof start>['send'], ...requests: Request[]) => {
  const all: (string | undefined)[] = []
  for (const request of requests) all.push((await send(request)).cacheStatus?.replace('proxy; ', '').replace(/; ttl.*/, ''))
  return all
}

describe.each(['Memory', 'Redis'] as const)('with store %s', (store) => {
  beforeEach(() => void (kind = store))

  describe('a stored response', () => {
    test('is returned with its age until its lifetime ends', async () => {
      const { send, received, clock } = start({ headers: { ...fresh, 'x-a': '1' } })
      expect(await send()).toMatchObject({ status: 200, text: 'hello', cacheStatus: 'proxy; fwd=uri-miss' })
      clock.nowMs += 59_000
      expect(await send()).toMatchObject({ text: 'hello', headers: { 'x-a': '1', age: '59', 'content-length': '5' }, cacheStatus: 'proxy; hit; ttl=1' })
      clock.nowMs += 1000
      expect((await send()).cacheStatus).toBe('proxy; fwd=stale')
      expect(received).toHaveLength(2)
    })

    test('counts the time that it spent in other caches', async () => {
      const { send, clock } = start({ headers: { ...fresh, age: '50', 'cache-status': 'cdn; hit' } })
      await send()
      clock.nowMs += 9000
      expect(await send()).toMatchObject({ headers: { age: '59' }, cacheStatus: 'cdn; hit' })
      clock.nowMs += 1000
      expect((await send()).headers['cache-status']).toBe('proxy; fwd=stale')
    })

    test('passes the response side of the policies, as the response of the upstream did', async () => {
      const set = [{ name: 'x-count', value: 'request.headers["x-n"]' }]
      const { send } = start({ headers: fresh }, { traffic: { transformation: { response: { set } } } })
      const counts = [await send({ headers: { 'x-n': '1' } }), await send({ headers: { 'x-n': '2' } })].map(({ headers }) => headers['x-count'])
      expect(counts).toEqual(['1', '2'])
    })

    test.each<[string, Request, Request]>([
      ['another target', { target: '/a?x=1' }, { target: '/a?x=2' }],
      ['another authority', {}, { prepare: ({ request }) => void (request.authority = 'other.com') }],
      ['another rule', {}, { prepare: (exchange) => void (exchange.labels = { rule: 'b' }) }],
      ['another backend', {}, { prepare: (exchange) => void (exchange.picked = { destination: { name: 'b', type: 'service' } }) }],
    ])('is not for %s', async (_, first, second) => {
      const { send } = start({ headers: fresh })
      expect(await statuses(send, first, second, first)).toEqual(['fwd=uri-miss', 'fwd=uri-miss', 'hit'])
    })

    test('is not for another tenant, and a request without tenant bypasses the cache', async () => {
      const { send } = start({ headers: fresh }, { tenant: 'request.headers["x-team"]' })
      const team = (name: string): Request => ({ headers: { 'x-team': name } })
      expect(await statuses(send, team('a'), team('b'), team('a'), {}, team(''))).toEqual(['fwd=uri-miss', 'fwd=uri-miss', 'hit', 'fwd=bypass', 'fwd=bypass'])
    })

    test('is chosen by the request headers that vary names', async () => {
      const { send } = start({ headers: { ...fresh, vary: 'Accept-Language' } })
      const de: Request = { headers: { 'accept-language': 'de' } }
      expect(await statuses(send, de, {}, de, {})).toEqual(['fwd=uri-miss', 'fwd=vary-miss', 'hit', 'hit'])
    })

    test('with a content coding is for clients with the same accept-encoding only, also if the upstream forgets vary', async () => {
      const { send } = start({ headers: { ...fresh, 'content-encoding': 'gzip' } })
      expect(await statuses(send, { headers: { 'accept-encoding': 'gzip' } }, {})).toEqual(['fwd=uri-miss', 'fwd=vary-miss'])
    })

    test('is not for a client with credentials if it was stored without', async () => {
      const { send } = start({ headers: fresh })
      expect(await statuses(send, {}, { headers: { cookie: 'a=b' } }, { headers: { cookie: 'a=b' } })).toEqual(['fwd=uri-miss', 'fwd=uri-miss', 'fwd=uri-miss'])
    })
  })

  describe('a request', () => {
    test.each<[string, Fields, string]>([
      ['no-store', { 'cache-control': 'no-store' }, 'fwd=bypass'],
      ['a cache-control that cannot be read', { 'cache-control': 'max-age="' }, 'fwd=bypass'],
      ['a range', { range: 'bytes=0-1' }, 'fwd=bypass'],
      ['if-match', { 'if-match': '"1"' }, 'fwd=bypass'],
      ['no-cache', { 'cache-control': 'no-cache' }, 'fwd=request'],
      ['pragma: no-cache', { pragma: 'no-cache' }, 'fwd=request'],
      ['a lower max-age', { 'cache-control': 'max-age=4' }, 'fwd=request'],
      ['a higher min-fresh', { 'cache-control': 'min-fresh=56' }, 'fwd=request'],
      ['max-age and min-fresh that the response meets', { 'cache-control': 'max-age=5, min-fresh=55' }, 'hit'],
      ['max-stale', { 'cache-control': 'max-stale' }, 'hit'],
    ])('with %s is handled as it asks', async (_, headers, expected) => {
      const { send, clock } = start({ headers: fresh })
      await send()
      clock.nowMs += 5000
      expect(await statuses(send, { headers })).toEqual([expected])
    })

    test('with only-if-cached gets a stored response or 504', async () => {
      const { send, received } = start({ headers: fresh })
      const only = { headers: { 'cache-control': 'only-if-cached' } }
      expect(await send(only)).toMatchObject({ status: 504, text: 'no stored response' })
      expect(received).toHaveLength(0)
      await send()
      expect((await send(only)).status).toBe(200)
    })

    test('to a backend that is never shared does not use the cache', async () => {
      const { send, received } = start({ headers: fresh }, { sharing: 'never' })
      expect([(await send()).cacheStatus, (await send()).cacheStatus, received.length]).toEqual([undefined, undefined, 2])
    })

    test('with HEAD or OPTIONS is forwarded and changes nothing', async () => {
      const { send, received } = start({ headers: fresh })
      expect(await statuses(send, {}, { method: 'HEAD' }, { method: 'OPTIONS' }, {})).toEqual(['fwd=uri-miss', undefined, undefined, 'hit'])
      expect(received.map(({ method }) => method)).toEqual(['GET', 'HEAD', 'OPTIONS'])
    })

    test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'purge'])('with %s drops the responses of its URI for all tenants, unless it fails', async (method) => {
      const { send, upstream } = start({ headers: fresh }, { tenant: 'request.headers["x-team"]' })
      const team = (name: string): Request => ({ headers: { 'x-team': name } })
      await statuses(send, team('a'), team('b'))
      upstream.status = 500
      await send({ method, ...team('a') })
      expect(await statuses(send, team('b'))).toEqual(['hit'])
      upstream.status = 200
      await send({ method, ...team('a') })
      expect(await statuses(send, team('a'), team('b'))).toEqual(['fwd=uri-miss', 'fwd=uri-miss'])
    })
  })

  describe('credentials', () => {
    const slot: Request = { prepare: (exchange) => variables.jwt.set(exchange, { sub: 'bob' }) }
    const explicit = ['public, max-age=60', 's-maxage=60', 'max-age=60, must-revalidate']
    test.each<[string, Request, Parameters<typeof start>[1]]>([
      ['authorization', { headers: { authorization: 'Bearer x' } }, {}],
      ['a cookie', { headers: { cookie: 'a=b' } }, {}],
      ['an accepted token that was removed', slot, {}],
      ['credentials of the gateway', {}, { sharing: 'explicit' }],
      ['a computed header', {}, { traffic: { transformation: { request: { set: [{ name: 'x-a', value: '"1"' }] } } } }],
    ])('%s: responses are stored only if the upstream shares them explicitly', async (_, request, options) => {
      const { send, upstream } = start({ headers: fresh }, options)
      expect(await statuses(send, request, request)).toEqual(['fwd=uri-miss', 'fwd=uri-miss'])
      for (const [index, value] of explicit.entries()) {
        const target = `/${index}`
        upstream.headers = { 'cache-control': value }
        expect(await statuses(send, { ...request, target }, { ...request, target })).toEqual(['fwd=uri-miss', 'hit'])
      }
    })
  })

  describe('revalidation', () => {
    const tagged = { 'cache-control': 'max-age=60', etag: '"1"', 'last-modified': 'Mon, 30 Jun 2025 00:00:00 GMT', 'content-type': 'a/b' }

    test('renews a stale response by a 304, with the headers of the 304', async () => {
      const { send, upstream, received, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      Object.assign(upstream, { status: 304, headers: { 'cache-control': 'max-age=100', etag: 'W/"1"', 'x-new': '1', 'content-type': 'c/d' } })
      const renewed = await send()
      expect(renewed).toMatchObject({ status: 200, text: 'hello', headers: { 'x-new': '1', 'content-type': 'a/b', age: '0' } })
      expect(renewed.cacheStatus).toBe('proxy; fwd=stale; fwd-status=304; ttl=100')
      expect(received[1]?.headers).toEqual({ 'if-none-match': '"1"', 'if-modified-since': tagged['last-modified'] })
      clock.nowMs += 99_000
      expect(await statuses(send, {})).toEqual(['hit'])
    })

    test('replaces a response that changed', async () => {
      const { send, upstream, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      Object.assign(upstream, { headers: { ...tagged, etag: '"2"' }, body: 'new' })
      expect([(await send()).text, (await send()).text]).toEqual(['new', 'new'])
      expect(await statuses(send, {})).toEqual(['hit'])
    })

    test('drops a response that the 304 makes private, after this client', async () => {
      const { send, upstream, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      Object.assign(upstream, { status: 304, headers: { 'cache-control': 'private' } })
      expect((await send()).text).toBe('hello')
      Object.assign(upstream, { status: 200, headers: {} })
      expect(await statuses(send, {})).toEqual(['fwd=uri-miss'])
    })

    test('asks again without conditions if the 304 is about another response', async () => {
      const { send, upstream, received, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      const other = { ...tagged, etag: '"other"' }
      Object.assign(upstream, { headers: other, body: 'new', statusOf: (headers: Fields) => ('if-none-match' in headers ? 304 : 200) })
      const client = { 'if-none-match': '"0"' }
      expect(await send({ headers: client })).toMatchObject({ status: 200, text: 'new', cacheStatus: 'proxy; fwd=stale', headers: { etag: '"other"' } })
      expect(received.slice(1).map(({ headers }) => headers['if-none-match'])).toEqual(['"1"', undefined])
      expect(await statuses(send, {})).toEqual(['hit'])
    })

    test('fails if a 304 responds to a request without conditions, and forgets the stored response', async () => {
      const { send, upstream, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      Object.assign(upstream, { status: 304, headers: { etag: '"other"' } })
      expect((await send()).status).toBe(503)
      Object.assign(upstream, { status: 200, headers: tagged })
      expect(await statuses(send, {})).toEqual(['fwd=uri-miss'])
    })

    test('with no-cache of the upstream happens for each request', async () => {
      const { send, upstream } = start({ headers: { ...tagged, 'cache-control': 'no-cache' } })
      await send()
      Object.assign(upstream, { status: 304, headers: {} })
      expect(await statuses(send, {}, {})).toEqual(['fwd=stale; fwd-status=304', 'fwd=stale; fwd-status=304'])
    })

    test.each<[string, Fields, number]>([
      ['the same tag', { 'if-none-match': '"0", W/"1"' }, 304],
      ['any tag', { 'if-none-match': '*' }, 304],
      ['another tag, whatever the date', { 'if-none-match': '"2"', 'if-modified-since': tagged['last-modified'] }, 200],
      ['the same date', { 'if-modified-since': tagged['last-modified'] }, 304],
      ['an earlier date', { 'if-modified-since': 'Sun, 29 Jun 2025 00:00:00 GMT' }, 200],
      ['an invalid date', { 'if-modified-since': 'tomorrow' }, 200],
    ])('of a client with %s is answered from the stored response', async (_, headers, status) => {
      const { send, received, upstream, clock } = start({ headers: tagged })
      await send()
      const response = await send({ headers })
      expect([response.status, response.text, received.length]).toEqual([status, status === 304 ? '' : 'hello', 1])
      if (status === 304) expect(Object.keys(response.headers)).toEqual(['cache-control', 'etag', 'last-modified', 'age', 'cache-status'])
      // The upstream is asked about the stored response, not about that of the client.
      clock.nowMs += 60_000
      Object.assign(upstream, { status: 304, headers: {} })
      expect((await send({ headers })).status).toBe(status)
      expect(received[1]?.headers['if-none-match']).toBe('"1"')
    })

    test('that the upstream does not answer returns its error', async () => {
      const { send, upstream, clock } = start({ headers: tagged })
      await send()
      clock.nowMs += 60_000
      upstream.status = 0
      expect((await send()).status).toBe(503)
    })
  })

  describe('a response in parts', () => {
    async function stream(end: (body: ManualBody) => void): Promise<boolean> {
      const state = createPolicyState({ monotonicMs: () => 0, epochMs: () => 0 })
      let calls = 0
      const chain = compose(compilePolicies({ traffic: { cache: {} }, state, sharingOf: () => 'permitted' }), (exchange) => {
        calls++
        const body = new ManualBody()
        exchange.response = { status: 200, headers: HeaderList.from(Object.entries(fresh)), body, upgraded: undefined }
        setImmediate(() => end(body))
      })
      for (let count = 0; count < 2; count++) {
        const exchange = testExchange()
        await chain(exchange)
        await readBody(exchange.response?.body, Infinity).catch(() => undefined)
      }
      return calls === 1
    }

    test('is stored when it is complete', async () => {
      const isStored = await stream((body) => {
        body.push('he')
        body.push('llo')
        body.end()
      })
      expect(isStored).toBe(true)
    })

    test.each<[string, (body: ManualBody) => void]>([
      ['breaks off', (body) => body.fail(new Error('reset'))],
      [
        'has trailers',
        (body) => {
          body.push('hello')
          body.end(new HeaderList(['x-t', '1']))
        },
      ],
      [
        'is larger than 1 MiB',
        (body) => {
          body.push('x'.repeat(1024 * 1024 + 1))
          body.end()
        },
      ],
    ])('is not stored if it %s', async (_, end) => {
      expect(await stream(end)).toBe(false)
    })
  })
})
