import { describe, expect, test } from '@jest/globals'
import type { CORS } from '#gen/config/types.ts'
import { ProxyError } from '../../exchange/error.ts'
import { mountPolicies } from '../../testing/hono.ts'
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
const allHeaders = {
  'access-control-allow-origin': 'https://a.com',
  'access-control-allow-methods': 'GET,POST',
  'access-control-allow-headers': 'x-a,x-b',
  'access-control-max-age': '60',
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'x-c,x-d',
  vary: 'Origin',
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
    ['a request without origin is forwarded without CORS headers', 'GET', {}, {}, true],
    ['OPTIONS without origin is forwarded', 'OPTIONS', preflight, {}, true],
    ['a preflight of an allowed origin gets the CORS headers', 'OPTIONS', { origin: 'https://a.com', ...preflight }, allHeaders, false],
    ['OPTIONS of an allowed origin without requested method gets the CORS headers', 'OPTIONS', { origin: 'https://a.com' }, allHeaders, false],
    ['a preflight of a foreign origin gets no CORS headers', 'OPTIONS', { origin: 'https://b.com', ...preflight }, {}, false],
    ['OPTIONS of a foreign origin that is no preflight is forwarded', 'OPTIONS', { origin: 'https://b.com' }, {}, true],
    ['a request of a foreign origin is forwarded without CORS headers', 'GET', { origin: 'https://b.com' }, {}, true],
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
    expect(answer.headers).toEqual({ 'access-control-allow-origin': 'null', 'access-control-max-age': '5', vary: 'Origin', ...expected })
  })

  test('headers of the upstream are replaced, and Vary is extended', async () => {
    const headers = { 'access-control-allow-origin': '*', 'access-control-allow-credentials': 'true', 'access-control-expose-headers': 'x', vary: 'accept' }
    const answer = await send({ allowOrigins: ['https://a.com'] }, 'GET', { origin: 'https://a.com' }, { headers })
    expect(answer.headers).toEqual({ 'access-control-allow-origin': 'https://a.com', 'access-control-expose-headers': 'x', vary: 'accept, Origin' })
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
