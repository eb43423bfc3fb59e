import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { RouteFilters, Traffic } from '#gen/config/types.ts'
import { destinationTo } from '../net/callout/testing.ts'
import { mountPolicies } from '../testing/hono.ts'
import type { EffectiveTraffic } from '../config/merge.ts'
import { implementedElsewhere, compileFilters, compilePolicies, filterHomes } from './index.ts'
import { createPolicyState } from './state.ts'

const set = (value: string) => ({ set: [{ name: 'x-a', value }] })
const origin = { origin: 'https://a.com' }
const cors = { allowOrigins: ['https://a.com'] }

async function send(filters: RouteFilters, traffic: EffectiveTraffic, init: RequestInit = {}) {
  const { exchange, response, isForwarded } = await mountPolicies(compilePolicies({ filters, traffic })).request('http://host/a', init)
  return { exchange, isForwarded, status: response.status, text: await response.text(), headers: Object.fromEntries(response.headers) }
}

describe('combinations of filters and policies', () => {
  test('a header filter replaces the same side of a policy only', async () => {
    const result = await send({ requestHeaders: [set('filter')] }, { headerModifiers: { request: set('policy'), response: set('policy') } })
    expect([result.exchange.request.headers.getAll('x-a'), result.headers['x-a']]).toEqual([['filter'], 'policy'])
  })

  test('a CORS filter replaces a CORS policy', async () => {
    const result = await send({ cors: { allowOrigins: ['https://b.com'] } }, { cors }, { headers: origin })
    expect(result.headers['access-control-allow-origin']).toBeUndefined()
  })

  test('a hostname of URLRewrite overrides hostRewrite', async () => {
    const { exchange } = await send({ urlRewrite: { hostname: 'b.com' } }, { hostRewrite: { mode: 'Auto' } })
    expect([exchange.request.authority, exchange.isAuthorityFixed]).toEqual(['b.com', true])
  })

  test('a redirect precedes a direct response', async () => {
    expect((await send({ redirect: { scheme: 'https' } }, { directResponse: { status: 418 } })).status).toBe(302)
  })

  test('a redirect uses the Host that a header modifier set', async () => {
    const result = await send({ redirect: { scheme: 'https' }, requestHeaders: [{ set: [{ name: 'Host', value: 'b.com' }] }] }, {})
    expect(result.headers['location']).toBe('https://b.com/a')
  })
})

describe('responses of the gateway itself', () => {
  test.each<[string, RouteFilters, EffectiveTraffic, number]>([
    ['a redirect', { redirect: {} }, {}, 302],
    ['a direct response', {}, { directResponse: { status: 418, body: 'tea' } }, 418],
    ['a failed filter', { urlRewrite: { path: { type: 'ReplacePrefixMatch', value: '/' } } }, {}, 500],
  ])('have the headers of CORS and header modifiers: %s', async (_, filters, traffic, status) => {
    const result = await send({ ...filters, cors, responseHeaders: [set('1')] }, traffic, { headers: origin })
    expect(result).toMatchObject({ status, headers: { 'access-control-allow-origin': 'https://a.com', 'x-a': '1' } })
  })

  test('have CORS headers that override those of header modifiers', async () => {
    const responseHeaders = [{ set: [{ name: 'access-control-allow-origin', value: '*' }] }]
    expect((await send({ cors, responseHeaders }, {}, { headers: origin })).headers['access-control-allow-origin']).toBe('https://a.com')
  })
})

test('responses are transformed by the route, then by the backend, and then sent to the processor', () => {
  const traffic: EffectiveTraffic = {
    transformation: { response: { set: [{ name: 'x-a', value: '"1"' }] } },
    extProc: { backendRef: { address: 'a:1' } },
    headerModifiers: { response: set('1') },
    rateLimit: { local: [{ requests: 1, unit: 'Hours' }] },
  }
  const state = createPolicyState({ destinations: { forPolicy: () => destinationTo(1) } })
  const names = compilePolicies({ traffic, state, hasBackendTransformation: true }).map(({ name }) => name)
  expect(names.toReversed()).toEqual(['headerModifiers', 'transformation', 'backendTransformation', 'extProc', 'rateLimit'])
})

test('rules without filters have no policies', () => {
  expect(compileFilters(undefined)).toEqual([])
  expect(compileFilters({ mirrors: [{ backend: { address: 'a:1' } }] })).toEqual([])
})

describe('filters of the schema are implemented', () => {
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
  test.each(Object.entries(filterHomes))('%s is implemented by %s', (filter, home) => {
    const count = home === 'forward' || home === 'rule' ? 0 : 1
    const state = createPolicyState({ destinations: { forPolicy: () => destinationTo(1) } })
    expect(compilePolicies({ filters: { [filter]: samples[filter as keyof RouteFilters] }, state })).toHaveLength(count)
  })
})

describe('every traffic section of the schema', () => {
  const backendRef = { invalid: 'BACKEND_NOT_FOUND' } as const
  const secretRef = { secret: 'opaque/ns/s' }
  const samples: Required<Traffic> = {
    phase: 'PostRouting',
    cors,
    headerModifiers: { request: set('1') },
    hostRewrite: { mode: 'Auto' },
    directResponse: { status: 418 },
    jwtAuthentication: { providers: [{ issuer: 'i', jwks: { inline: '{"keys":[]}' } }] },
    oidc: { issuer: 'https://i', backendRef, clientId: 'c' },
    basicAuthentication: { secretRef },
    apiKeyAuthentication: { secretRef },
    extAuth: { backendRef, grpc: {} },
    authorization: { policy: { matchExpressions: ['true'] } },
    rateLimit: { local: [{ requests: 1, unit: 'Hours' }] },
    responseOverride: { rules: [{ match: { statusCodes: ['500'] }, response: {} }] },
    faultInjection: { abort: { status: 503 } },
    requestBody: { maxSize: 1 },
    bandwidthLimit: { response: { bytesPerSecond: 1024 } },
    compression: {},
    decompression: {},
    csrf: {},
    cache: {},
    budgets: [{ name: 'b', limits: [{ requests: 1, window: 'Day' }] }],
    plugins: [{ name: 'p', source: { configMapRef: { code: 'export default { setup: () => ({ request: (c, next) => next() }) }' } } }],
    ipAllowList: { deny: ['10.0.0.0/8'] },
    extProc: { backendRef },
    transformation: { request: { remove: ['x-a'] } },
    timeouts: { request: '1s' },
    retry: { attempts: 1 },
  }
  const sections = Object.keys(samples) as (keyof Traffic)[]
  test.each(sections)('%s is implemented by the policy of its name or elsewhere', (section) => {
    const state = createPolicyState({ destinations: { forPolicy: () => destinationTo(1) } })
    // Authorization and budgets are lists, because those of several policies are combined.
    const combined = { authorization: [samples.authorization], budgets: [{ policy: 'ns/p', budgets: samples.budgets }] }
    const traffic = {
      [section]: samples[section],
      ...(Object.hasOwn(combined, section) && { [section]: combined[section as keyof typeof combined] }),
    } as EffectiveTraffic
    const policies = compilePolicies({ traffic, state })
    expect(policies.map((policy) => policy.name)).toEqual(Object.hasOwn(implementedElsewhere, section) ? [] : [section])
  })

  const guides = join(import.meta.dirname, '../../docs/guide')
  test.each(sections.filter((section) => section !== 'phase'))('docs/guide/traffic-policies.md has a row for %s', (section) => {
    expect(readFileSync(join(guides, 'traffic-policies.md'), 'utf8')).toMatch(new RegExp(`^\\| \`${section}[.\`]`, 'm'))
  })

  /** Sections that depend on nothing and evaluate nothing. */
  const cannotFail: readonly (keyof Traffic)[] = ['phase', 'headerModifiers', 'hostRewrite']
  test.each(sections.filter((section) => !cannotFail.includes(section)))('docs/guide/failures.md has a row for %s', (section) => {
    expect(readFileSync(join(guides, 'failures.md'), 'utf8')).toMatch(new RegExp(`^\\| \`${section}[.\`]`, 'm'))
  })
})
