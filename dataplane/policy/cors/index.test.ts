import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { CORS } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compilePolicies } from '../index.ts'
import { createPolicyState } from '../state.ts'
import { compileCors } from './index.ts'
import { compileOrigins } from './origins.ts'

const config: CORS = {
  allowOrigins: ['https://a.com'],
  allowCredentials: true,
  allowMethods: ['GET', 'POST'],
  allowHeaders: ['x-a', 'x-b'],
  exposeHeaders: ['x-c', 'x-d'],
  maxAge: 60,
}
const preflight = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-1 ,x-2' }
const optionsVary = 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'
const allHeaders = {
  'access-control-allow-origin': 'https://a.com',
  'access-control-allow-methods': 'GET,POST',
  'access-control-allow-headers': 'x-a,x-b',
  'access-control-max-age': '60',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'x-c,x-d',
  vary: optionsVary,
}
const responseHeaders = {
  'access-control-allow-origin': 'https://a.com',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'x-c,x-d',
  vary: 'Origin',
}

async function send(cors: CORS, method: string, headers: Record<string, string>, upstream: Parameters<typeof mountPolicies>[1] = {}) {
  const { response, isForwarded } = await mountPolicies([compileCors(cors)], upstream).request('http://host/', { method, headers })
  const { 'content-length': _, ...rest } = Object.fromEntries(response.headers)
  return { status: response.status, headers: rest, isForwarded }
}

describe('cors', () => {
  const rows: [string, string, Record<string, string>, Record<string, string>, boolean][] = [
    ['a request without origin is forwarded without CORS headers', 'GET', {}, { vary: 'Origin' }, true],
    ['OPTIONS without origin is forwarded', 'OPTIONS', preflight, { vary: optionsVary }, true],
    ['a preflight of an allowed origin gets the CORS headers', 'OPTIONS', { origin: 'https://a.com', ...preflight }, allHeaders, false],
    ['OPTIONS of an allowed origin without requested method gets the CORS headers', 'OPTIONS', { origin: 'https://a.com' }, allHeaders, false],
    ['a preflight of a foreign origin gets no CORS headers', 'OPTIONS', { origin: 'https://b.com', ...preflight }, { vary: optionsVary }, false],
    ['OPTIONS of a foreign origin that is no preflight is forwarded', 'OPTIONS', { origin: 'https://b.com' }, { vary: optionsVary }, true],
    ['a request of a foreign origin is forwarded without CORS headers', 'GET', { origin: 'https://b.com' }, { vary: 'Origin' }, true],
    ['a request of an allowed origin is forwarded, and the response has CORS headers', 'GET', { origin: 'https://a.com' }, responseHeaders, true],
    [
      'the origin is echoed in the spelling of the client',
      'GET',
      { origin: 'HTTPS://A.com' },
      { ...responseHeaders, 'access-control-allow-origin': 'HTTPS://A.com' },
      true,
    ],
  ]
  test.each(rows)('%s', async (_, method, headers, expected, isForwarded) => {
    expect(await send(config, method, headers)).toEqual({ status: 200, headers: expected, isForwarded })
  })

  const lists: [string, CORS, Record<string, string>, Record<string, string>][] = [
    ['empty lists leave their headers out', { allowMethods: [], allowHeaders: [] }, preflight, {}],
    [
      'stars echo the requested values',
      { allowMethods: ['*'], allowHeaders: ['*'] },
      preflight,
      { 'access-control-allow-methods': 'PUT', 'access-control-allow-headers': 'x-1, x-2' },
    ],
    [
      'stars are stars without requested values',
      { allowMethods: ['*'], allowHeaders: ['*'] },
      {},
      { 'access-control-allow-methods': '*', 'access-control-allow-headers': '*' },
    ],
    [
      'stars without requested values leave the headers out with credentials',
      { allowMethods: ['*'], allowHeaders: ['*'], allowCredentials: true },
      {},
      { 'access-control-allow-credentials': 'true' },
    ],
    ['max age is 5 by default', {}, preflight, {}],
  ]
  test.each(lists)('%s', async (_, cors, headers, expected) => {
    const answer = await send({ allowOrigins: ['*'], ...cors }, 'OPTIONS', { origin: 'null', ...headers })
    expect(answer.headers).toEqual({ 'access-control-allow-origin': 'null', 'access-control-max-age': '5', vary: optionsVary, ...expected })
  })

  test('headers of the upstream are replaced, and Vary is extended', async () => {
    const headers = { 'access-control-allow-origin': '*', 'access-control-allow-credentials': 'true', 'access-control-expose-headers': 'x', vary: 'accept' }
    const answer = await send({ allowOrigins: ['https://a.com'] }, 'GET', { origin: 'https://a.com' }, { headers })
    expect(answer.headers).toEqual({ 'access-control-allow-origin': 'https://a.com', 'access-control-expose-headers': 'x', vary: 'accept, Origin' })
  })

  const granting = {
    'access-control-allow-origin': '*',
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'PUT',
    'access-control-allow-headers': '*',
    'access-control-max-age': '86400',
    'access-control-allow-private-network': 'true',
    'access-control-expose-headers': 'x-a, *',
  }
  test.each<[string, string, Record<string, string>]>([
    ['a foreign origin', 'GET', { origin: 'https://b.com' }],
    ['the origin null', 'POST', { origin: 'null' }],
    ['no origin', 'GET', {}],
    ['a foreign origin that is no preflight', 'OPTIONS', { origin: 'https://b.com' }],
  ])('what the upstream grants does not reach %s', async (_, method, request) => {
    const { headers, isForwarded } = await send(config, method, request, { headers: granting })
    expect([isForwarded, Object.keys(headers)]).toEqual([true, ['vary']])
  })

  test.each([
    ['an allowed origin', { origin: 'https://a.com' }],
    ['a foreign origin', { origin: 'https://b.com' }],
    ['no origin', {}],
  ])('what header modifiers of the route add stays, for %s', async (_, headers) => {
    const own = { 'access-control-allow-private-network': 'true', 'access-control-max-age': '5' }
    const modifier = { add: Object.entries(own).map(([name, value]) => ({ name, value })), set: [{ name: 'access-control-allow-methods', value: 'GET' }] }
    for (const sources of [
      { filters: { responseHeaders: [modifier] }, traffic: { cors: config } },
      { filters: { responseHeaders: [modifier], cors: config } },
      { traffic: { cors: config, headerModifiers: { response: modifier } } },
    ]) {
      const policies = compilePolicies({ ...sources, state: createPolicyState() })
      const { response } = await mountPolicies(policies, { headers: granting }).request('http://host/', { headers })
      const kept = Object.fromEntries([...response.headers].filter(([name]) => /^access-control-(?:allow-(?:private|methods)|max-age)/.test(name)))
      expect(kept).toEqual({ ...own, 'access-control-allow-methods': 'GET' })
    }
  })

  test('of what the upstream grants, an allowed origin gets the exposed names, without a star for credentials', async () => {
    const { headers } = await send({ allowOrigins: ['*'], allowCredentials: true }, 'GET', { origin: 'https://a.com' }, { headers: granting })
    expect(headers).toEqual({
      'access-control-allow-origin': 'https://a.com',
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'x-a',
      vary: 'Origin',
    })
    const open = await send({ allowOrigins: ['*'] }, 'GET', { origin: 'https://a.com' }, { headers: granting })
    expect(open.headers).toEqual({ 'access-control-allow-origin': 'https://a.com', 'access-control-expose-headers': 'x-a,*', vary: 'Origin' })
  })

  test('of all headers, requests with credentials get the names that the response has', async () => {
    const headers = {
      'x-a': '1',
      etag: '"1"',
      'set-cookie': 'a=b',
      'content-type': 'text/plain',
      'cache-control': 'no-store',
      'access-control-expose-headers': '*',
    }
    const origin = { origin: 'https://a.com' }
    const cors: CORS = { ...config, exposeHeaders: ['*'] }
    expect((await send(cors, 'GET', origin, { headers })).headers['access-control-expose-headers']).toBe('x-a,etag')
    const safe = { 'content-type': 'text/plain', 'access-control-expose-headers': '*' }
    expect((await send(cors, 'GET', origin, { headers: safe })).headers).not.toHaveProperty('access-control-expose-headers')
    expect((await send(cors, 'OPTIONS', { ...origin, ...preflight })).headers).not.toHaveProperty('access-control-expose-headers')
    expect((await send({ ...cors, allowCredentials: false }, 'GET', origin, { headers })).headers['access-control-expose-headers']).toBe('*')
  })

  test('no header of a response with credentials is a star, and each response names all request headers that it depends on', async () => {
    const maybe = (...values: string[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
    const request = fc.record({
      origin: maybe('https://a.com', 'https://b.com', 'null'),
      'access-control-request-method': maybe('PUT', 'GET'),
      'access-control-request-headers': maybe('x-1', 'authorization,x-2'),
    })
    const list = fc.constantFrom(undefined, [], ['*'], ['x-a'])
    const cors = fc.record({
      allowOrigins: fc.constantFrom(['*'], ['https://a.com']),
      allowMethods: list,
      allowHeaders: list,
      exposeHeaders: list,
      allowCredentials: fc.boolean(),
    })
    const vary = fc.constantFrom('accept', 'Accept, origin', 'accept-encoding', '*')
    await fc.assert(
      fc.asyncProperty(cors, fc.constantFrom('GET', 'POST', 'OPTIONS'), request, request, vary, async (policy, method, first, second, upstream) => {
        const given = { headers: { vary: upstream, 'x-a': '1' } }
        const [a, b] = await Promise.all([first, second].map((headers) => send(policy as unknown as CORS, method, JSON.parse(JSON.stringify(headers)), given)))
        if (a === undefined || b === undefined) throw new Error('no response')
        if (policy.allowCredentials)
          for (const [name, value] of Object.entries(a.headers)) if (name.startsWith('access-control-')) expect([name, value]).not.toEqual([name, '*'])
        const names = (a.headers['vary'] ?? '').toLowerCase().split(/, */)
        if (a.isForwarded) expect(a.headers['vary']).toContain(upstream)
        if (names.includes('*')) expect(a.headers['vary']).toBe('*')
        // A cache that has the first response may use it for the second request.
        else if (Object.entries(first).every(([name, value]) => !names.includes(name) || second[name as keyof typeof second] === value)) expect(b).toEqual(a)
      }),
      { numRuns: 300 },
    )
  })

  test.each(['Origin', 'accept, ORIGIN', '*'])('Vary: %s is not extended', async (vary) => {
    expect((await send(config, 'GET', { origin: 'https://a.com' }, { headers: { vary } })).headers['vary']).toBe(vary)
  })

  test('error responses to allowed origins have CORS headers', async () => {
    const answer = await send(config, 'GET', { origin: 'https://a.com' }, { error: new ProxyError('NO_HEALTHY_BACKENDS') })
    expect(answer).toMatchObject({ status: 503, headers: responseHeaders })
  })
})

describe('origins', () => {
  test.each([
    ['https://a.com', 'https://a.com', true],
    ['https://a.com', 'https://A.COM', true],
    ['https://A.com', 'https://a.com:443', true],
    ['http://a.com:80', 'http://a.com', true],
    ['https://a.com', 'http://a.com', false],
    ['https://a.com', 'https://a.com:8443', false],
    ['https://a.com:8443', 'https://a.com:8443', true],
    ['https://*.com', 'https://a.b.com', true],
    ['https://*.b.com', 'https://b.com', false],
    ['https://*.b.com', 'https://eb.com', false],
    ['https://*.com', 'https://a.b.com:8443', false],
    ['https://*', 'https://anything', true],
    ['https://*', 'http://anything', false],
    ['https://*:8443', 'https://a.com:8443', true],
    ['http://[::1]', 'http://[::1]:80', true],
    ['https://a.com', 'https://a.com/', false],
    ['https://*', 'https://a.com/x', false],
    ['https://*', 'https://user@a.com', false],
    ['https://*', 'https://a.com:0', false],
    ['https://*', 'https://a.com:65536', false],
    ['https://*', 'null', false],
    ['https://*', 'chrome-extension://x', false],
    ['*', 'null', true],
    ['*', 'chrome-extension://x', true],
    ['nonsense', 'nonsense', false],
    ['https://a*b.com', 'https://axb.com', true],
    ['https://a*b*c.com', 'https://a1b2c.com', true],
    ['https://a*a.com', 'https://a.com', false],
    ['https://a*b*b.com', 'https://ab.com', false],
  ])('that match the pattern %s include %s: %j', (pattern, origin, expected) => {
    expect(compileOrigins([pattern])(origin)).toBe(expected)
  })
})
