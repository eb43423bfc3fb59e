import { describe, expect, test } from '@jest/globals'
import type { HeaderModifier } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compileHeaderModifiers, type HeaderModifiersConfig } from './index.ts'

const pair = (name: string, value: string) => ({ name, value })

async function send(config: HeaderModifiersConfig, headers: Record<string, string>, upstream: Parameters<typeof mountPolicies>[1] = {}) {
  const policy = compileHeaderModifiers(config)
  if (policy === undefined) throw new Error('nothing to do')
  const { exchange, response, isForwarded } = await mountPolicies([policy], upstream).request('http://host:8080/', { headers })
  return { exchange, response, isForwarded, request: [...exchange.request.headers].map(([name, value]) => `${name}: ${value}`) }
}

describe('header modifiers of requests', () => {
  const rows: [string, HeaderModifier[], string[]][] = [
    ['add appends a field line', [{ add: [pair('X-A', '2')] }], ['x-a: 1', 'x-a: 2']],
    ['set replaces a header', [{ set: [pair('X-A', '2')] }], ['x-a: 2']],
    ['set adds a missing header', [{ set: [pair('x-b', '2')] }], ['x-a: 1', 'x-b: 2']],
    ['remove deletes a header', [{ remove: ['X-A'] }], []],
    ['values may be empty', [{ set: [pair('x-a', '')] }], ['x-a: ']],
    ['the order is add, set, remove', [{ remove: ['x-b'], set: [pair('x-a', '3')], add: [pair('x-a', '2'), pair('x-b', '2')] }], ['x-a: 3']],
    ['several modifiers are applied as one', [{ set: [pair('x-a', '3')] }, { add: [pair('x-a', '2')] }], ['x-a: 3']],
    ['text beyond ASCII is sent as UTF-8', [{ set: [pair('x-a', 'é')] }], ['x-a: Ã©']],
    ['content-length and host cannot be removed', [{ remove: ['content-length', 'host'] }], ['x-a: 1']],
  ]
  test.each(rows)('%s', async (_, request, expected) => {
    expect((await send({ request }, { 'x-a': '1' })).request).toEqual(expected)
  })

  test('a host header rewrites the authority and fixes it', async () => {
    const { exchange, request } = await send({ request: [{ set: [pair('Host', 'b.com')] }] }, {})
    expect([exchange.request.authority, exchange.isAuthorityFixed, request]).toEqual(['b.com', true, []])
  })

  test('other headers do not change the authority', async () => {
    const { exchange } = await send({ request: [{ set: [pair('x-a', 'b')] }] }, {})
    expect([exchange.request.authority, exchange.isAuthorityFixed]).toEqual(['host:8080', false])
  })

  test.each([
    ['transfer-encoding', 'chunked', 'header transfer-encoding cannot be set'],
    ['Content-Length', '5', 'header content-length cannot be set'],
    ['x a', '1', '"x a" is not a header name'],
    ['x-a', '1\r\nx-b: 2', 'the value of header x-a has control characters'],
    ['host', 'a.com/x', '"a.com/x" is not a host'],
    [':path', '/', '":path" is not a header name'],
  ])('the header %s: %j is rejected', async (name, value, reason) => {
    const { response, isForwarded } = await send({ request: [{ set: [pair(name, value)] }] }, {})
    expect([response.status, await response.text(), isForwarded]).toEqual([500, `failed to apply filters: ${reason}`, false])
  })
})

describe('header modifiers of responses', () => {
  test('change the response of the upstream', async () => {
    const { response } = await send({ response: [{ set: [pair('x-a', '2')], remove: ['server'] }] }, {}, { headers: { 'x-a': '1', server: 's' } })
    expect([response.headers.get('x-a'), response.headers.get('server')]).toEqual(['2', null])
  })

  test('change responses of the gateway itself', async () => {
    const { response } = await send({ response: [{ add: [pair('x-a', '1')] }] }, {}, { error: new ProxyError('NO_VALID_BACKENDS') })
    expect([response.status, response.headers.get('x-a')]).toEqual([500, '1'])
  })

  test('treat host like any other header', async () => {
    const { response, exchange } = await send({ response: [{ set: [pair('host', 'x')] }] }, {})
    expect([response.headers.get('host'), exchange.request.authority]).toEqual(['x', 'host:8080'])
  })

  test('can be combined with those of requests', async () => {
    const { response, request } = await send({ request: [{ add: [pair('x-a', '1')] }], response: [{ add: [pair('x-b', '2')] }] }, {})
    expect([request, response.headers.get('x-b')]).toEqual([['x-a: 1'], '2'])
  })
})

test('without modifiers there is no policy', () => {
  expect(compileHeaderModifiers({ request: [], response: undefined })).toBeUndefined()
})
