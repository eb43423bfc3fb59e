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
    ['a GET from another site passes', 'GET', [['sec-fetch-site', 'cross-site']], true],
    ['so does OPTIONS', 'OPTIONS', [['sec-fetch-site', 'cross-site']], true],
    ['methods are compared exactly', 'get2', [['sec-fetch-site', 'cross-site']], false],
    ['what sends neither header is no browser', 'POST', [], true],
    ['same-origin passes', 'POST', [['sec-fetch-site', 'same-origin']], true],
    ['what the user typed passes', 'POST', [['sec-fetch-site', 'none']], true],
    ['cross-site is refused', 'POST', [['sec-fetch-site', 'cross-site']], false],
    ['same-site is another origin', 'DELETE', [['sec-fetch-site', 'same-site']], false],
    ['an unknown value is refused', 'POST', [['sec-fetch-site', 'SAME-ORIGIN']], false],
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
    ['the own origin passes', 'POST', [['origin', 'http://shop.com']], true],
    ['Origin: null passes without Sec-Fetch-Site', 'POST', [['origin', 'null']], true],
    [
      'but not against it',
      'POST',
      [
        ['sec-fetch-site', 'cross-site'],
        ['origin', 'null'],
      ],
      false,
    ],
    ['another scheme is another origin', 'POST', [['origin', 'https://shop.com']], false],
    ['another port is another origin', 'POST', [['origin', 'http://shop.com:8080']], false],
    ['an origin that only starts alike is refused', 'POST', [['origin', 'http://shop.com.evil.com']], false],
    ['a listed origin passes by Origin alone', 'PUT', [['origin', 'https://friend.com']], true],
    ['listed origins are exact text', 'PUT', [['origin', 'https://FRIEND.com']], false],
    ['an empty origin is refused', 'PUT', [['origin', '']], false],
  ]
  test.each(rows)('%s', async (_, method, headers, isAllowed) => {
    expect(await send(method, headers)).toEqual(isAllowed ? passed : refused)
  })

  test.each([
    ['https://shop.com/', 'https://shop.com', true],
    ['https://shop.com/', 'http://shop.com', false],
    ['https://shop.com:8443/', 'https://shop.com:8443', true],
  ])('%s over TLS, from %s: %j', async (url, origin, isAllowed) => {
    expect((await send('POST', [['origin', origin]], url, true)).isForwarded).toBe(isAllowed)
  })

  test.each([
    ['two values of Sec-Fetch-Site', ['sec-fetch-site', 'same-origin', 'sec-fetch-site', 'cross-site']],
    ['two origins', ['origin', 'https://friend.com', 'origin', 'https://evil.com']],
  ])('%s are refused', async (_, raw) => {
    const prepare = (exchange: { request: { headers: { raw: string[] } } }) => void exchange.request.headers.raw.push(...raw)
    expect((await mountPolicies([policy], { prepare }).request('http://shop.com/', { method: 'POST' })).response.status).toBe(403)
  })

  test('a gRPC caller gets its own kind of answer', async () => {
    const headers = { 'content-type': 'application/grpc', 'sec-fetch-site': 'cross-site' }
    const { response } = await mountPolicies([policy]).request('http://shop.com/', { method: 'POST', headers })
    expect([response.status, response.headers.get('grpc-status')]).toEqual([200, '7'])
  })
})
