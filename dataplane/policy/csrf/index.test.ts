import { describe, expect, test } from '@jest/globals'
import { mountPolicies } from '../../testing/hono.ts'
import { compileCsrf } from './index.ts'

const policy = compileCsrf({ additionalOrigins: ['https://friend.com'] })

async function send(method: string, headers: [string, string][], url = 'http://shop.com/cart', isTls = false) {
  const prepare = (exchange: object) => void (isTls && Object.assign(exchange, { connection: { tls: {} } }))
  const { response, isForwarded } = await mountPolicies([policy], { prepare }).request(url, { method, headers })
  return { status: response.status, text: await response.text(), isForwarded }
}

const passed = { status: 200, text: 'upstream', isForwarded: true }
const refused = { status: 403, text: 'CSRF validation failed', isForwarded: false }

describe('csrf', () => {
  const rows: [string, string, [string, string][], boolean][] = [
    ['a GET from another site is admitted', 'GET', [['sec-fetch-site', 'cross-site']], true],
    ['OPTIONS from another site is admitted', 'OPTIONS', [['sec-fetch-site', 'cross-site']], true],
    ['an unknown method is checked like POST', 'get2', [['sec-fetch-site', 'cross-site']], false],
    ['a request with neither header is admitted', 'POST', [], true],
    ['same-origin is admitted', 'POST', [['sec-fetch-site', 'same-origin']], true],
    ['a navigation by the user is admitted', 'POST', [['sec-fetch-site', 'none']], true],
    ['cross-site is rejected', 'POST', [['sec-fetch-site', 'cross-site']], false],
    ['same-site is rejected as another origin', 'DELETE', [['sec-fetch-site', 'same-site']], false],
    ['an unknown value of Sec-Fetch-Site is rejected', 'POST', [['sec-fetch-site', 'SAME-ORIGIN']], false],
    [
      'cross-site from a listed origin passes',
      'POST',
      [
        ['sec-fetch-site', 'cross-site'],
        ['origin', 'https://friend.com'],
      ],
      true,
    ],
    [
      'Sec-Fetch-Site outweighs a matching Origin',
      'POST',
      [
        ['sec-fetch-site', 'cross-site'],
        ['origin', 'http://shop.com'],
      ],
      false,
    ],
    ['the origin of the site itself is admitted', 'POST', [['origin', 'http://shop.com']], true],
    ['Origin: null is rejected, because it equals no Host', 'POST', [['origin', 'null']], false],
    ['an origin with another scheme is rejected', 'POST', [['origin', 'https://shop.com']], false],
    ['an origin with another port is rejected', 'POST', [['origin', 'http://shop.com:8080']], false],
    ['an origin with the same beginning is rejected', 'POST', [['origin', 'http://shop.com.evil.com']], false],
    ['a listed origin is admitted by Origin only', 'PUT', [['origin', 'https://friend.com']], true],
    ['a listed origin in another spelling is rejected', 'PUT', [['origin', 'https://FRIEND.com']], false],
    ['an empty origin is rejected', 'PUT', [['origin', '']], false],
  ]
  test.each(rows)('%s', async (_, method, headers, isAllowed) => {
    expect(await send(method, headers)).toEqual(isAllowed ? passed : refused)
  })

  test.each([
    ['https://shop.com/', 'https://shop.com', true],
    ['https://shop.com/', 'http://shop.com', false],
    ['https://shop.com:8443/', 'https://shop.com:8443', true],
  ])('a request to %s over TLS from origin %s is admitted: %j', async (url, origin, isAllowed) => {
    expect((await send('POST', [['origin', origin]], url, true)).isForwarded).toBe(isAllowed)
  })

  test.each([
    ['two values of Sec-Fetch-Site', ['sec-fetch-site', 'same-origin', 'sec-fetch-site', 'cross-site']],
    ['two origins', ['origin', 'https://friend.com', 'origin', 'https://evil.com']],
  ])('requests with %s are rejected', async (_, raw) => {
    const prepare = (exchange: { request: { headers: { raw: string[] } } }) => void exchange.request.headers.raw.push(...raw)
    expect((await mountPolicies([policy], { prepare }).request('http://shop.com/', { method: 'POST' })).response.status).toBe(403)
  })

  test('a rejected gRPC call gets a grpc-status', async () => {
    const headers = { 'content-type': 'application/grpc', 'sec-fetch-site': 'cross-site' }
    const { response } = await mountPolicies([policy]).request('http://shop.com/', { method: 'POST', headers })
    expect([response.status, response.headers.get('grpc-status')]).toEqual([200, '7'])
  })
})
