import { describe, expect, test } from '@jest/globals'
import type { RouteFilters, Traffic } from '#gen/config/types.ts'
import { destinationTo } from '../callout/testing.ts'
import { mountPolicies } from '../testing/hono.ts'
import type { EffectiveTraffic } from '../config/merge.ts'
import { compileFilters, compilePolicies, filterHomes, trafficHomes } from './index.ts'
import { createPolicyState } from './state.ts'

const set = (value: string) => ({ set: [{ name: 'x-a', value }] })
const origin = { origin: 'https://a.com' }
const cors = { allowOrigins: ['https://a.com'] }
/** Sections that this build denies, with any content: it is not read. */
const denied = (Object.keys(trafficHomes) as (keyof Traffic)[]).filter((section) => trafficHomes[section] === 'denied')
const section = (name: keyof Traffic) => ({ [name]: {} }) as EffectiveTraffic

async function send(filters: RouteFilters, traffic: EffectiveTraffic, init: RequestInit = {}) {
  const { exchange, response, isForwarded } = await mountPolicies(compilePolicies({ filters, traffic })).request('http://host/a', init)
  return { exchange, isForwarded, status: response.status, text: await response.text(), headers: Object.fromEntries(response.headers) }
}

describe('where filters and policies meet', () => {
  test('a header filter replaces the same side of a policy, and only that', async () => {
    const result = await send({ requestHeaders: [set('filter')] }, { headerModifiers: { request: set('policy'), response: set('policy') } })
    expect([result.exchange.request.headers.getAll('x-a'), result.headers['x-a']]).toEqual([['filter'], 'policy'])
  })

  test('a CORS filter replaces a CORS policy', async () => {
    const result = await send({ cors: { allowOrigins: ['https://b.com'] } }, { cors }, { headers: origin })
    expect(result.headers['access-control-allow-origin']).toBeUndefined()
  })

  test('a hostname of a rewrite wins over hostRewrite', async () => {
    const { exchange } = await send({ urlRewrite: { hostname: 'b.com' } }, { hostRewrite: { mode: 'Auto' } })
    expect([exchange.request.authority, exchange.isAuthorityFixed]).toEqual(['b.com', true])
  })

  test('a redirect precedes a direct response', async () => {
    expect((await send({ redirect: { scheme: 'https' } }, { directResponse: { status: 418 } })).status).toBe(302)
  })

  test('a redirect goes where a header modifier pointed the request', async () => {
    const result = await send({ redirect: { scheme: 'https' }, requestHeaders: [{ set: [{ name: 'Host', value: 'b.com' }] }] }, {})
    expect(result.headers['location']).toBe('https://b.com/a')
  })
})

describe('responses made here', () => {
  test.each<[string, RouteFilters, EffectiveTraffic, number]>([
    ['a redirect', { redirect: {} }, {}, 302],
    ['a direct response', {}, { directResponse: { status: 418, body: 'tea' } }, 418],
    ['a failed filter', { urlRewrite: { path: { type: 'ReplacePrefixMatch', value: '/' } } }, {}, 500],
  ])('%s has the headers of CORS and of header modifiers', async (_, filters, traffic, status) => {
    const result = await send({ ...filters, cors, responseHeaders: [set('1')] }, traffic, { headers: origin })
    expect(result).toMatchObject({ status, headers: { 'access-control-allow-origin': 'https://a.com', 'x-a': '1' } })
  })

  test('CORS has the last word over header modifiers', async () => {
    const responseHeaders = [{ set: [{ name: 'access-control-allow-origin', value: '*' }] }]
    expect((await send({ cors, responseHeaders }, {}, { headers: origin })).headers['access-control-allow-origin']).toBe('https://a.com')
  })
})

describe('sections that this build lacks', () => {
  test.each(denied)('%s lets nobody pass', async (name) => {
    const result = await send({ cors, responseHeaders: [set('1')] }, section(name), { headers: origin })
    expect(result).toMatchObject({ status: 500, text: `failed to apply filters: policy ${name} is not supported by this version`, isForwarded: false })
    // CORS was reached, the header modifiers were not.
    expect([result.headers['access-control-allow-origin'], result.headers['x-a']]).toEqual(['https://a.com', undefined])
  })

  test('a preflight passes before them', async () => {
    expect((await send({ cors }, section('extProc'), { method: 'OPTIONS', headers: origin })).status).toBe(200)
  })

  test('a direct response does not', async () => {
    expect((await send({}, { ...section('extProc'), directResponse: { status: 200 } })).status).toBe(500)
  })
})

test('rules without filters have no policies', () => {
  expect(compileFilters(undefined)).toEqual([])
  expect(compileFilters({ mirrors: [{ backend: { address: 'a:1' } }] })).toEqual([])
})

describe('every filter of the schema is carried out where its line says', () => {
  const samples: Required<RouteFilters> = {
    requestHeaders: [set('1')],
    responseHeaders: [set('1')],
    redirect: { scheme: 'https' },
    urlRewrite: { hostname: 'b.com' },
    mirrors: [{ backend: { address: 'a:1' } }],
    cors,
    extAuth: { policy: { backendRef: { address: 'a:1' }, grpc: {} } },
    invalid: 'broken',
  }
  test.each(Object.entries(filterHomes))('%s by %s', (filter, home) => {
    const count = home === 'forward' || home === 'rule' ? 0 : 1
    const state = createPolicyState({ destinations: { forPolicy: () => destinationTo(1) } })
    expect(compilePolicies({ filters: { [filter]: samples[filter as keyof RouteFilters] }, state })).toHaveLength(count)
  })
})
