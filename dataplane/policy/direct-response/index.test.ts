import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { readKeySet } from '#api/credentials/key-set.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compileDirectResponse } from './index.ts'

test.each([
  [200, 'hi', 'hi'],
  [503, 'é', 'é'],
  [404, undefined, ''],
  [204, 'dropped', ''],
  [304, 'dropped', ''],
])('a direct response has status %d and body %j', async (status, body, text) => {
  const { response, isForwarded, exchange } = await mountPolicies([compileDirectResponse({ status, ...(body !== undefined && { body }) })]).request(
    'http://host/',
  )
  expect([response.status, await response.text(), isForwarded, exchange.isLocalAnswer]).toEqual([status, text, false, true])
  expect(response.headers.get('content-type')).toBeNull()
})

test('a direct response to a gRPC call keeps its status', async () => {
  const app = mountPolicies([compileDirectResponse({ status: 418 })])
  expect((await app.request('http://host/', { headers: { 'content-type': 'application/grpc' } })).response.status).toBe(418)
})

test('headers and body are computed; a header that fails or frames the message is omitted', async () => {
  const policy = compileDirectResponse({
    status: 403,
    headers: [
      { name: 'content-type', value: '"application/json"' },
      { name: 'x-path', value: 'request.path' },
      { name: 'x-none', value: 'jwt.sub' },
      { name: 'x-split', value: '"a\\r\\nx-evil: 1"' },
      { name: 'content-length', value: '"9"' },
      { name: 'transfer-encoding', value: '"chunked"' },
    ],
    bodyExpression: '{"path": request.path}',
  })
  const { response } = await mountPolicies([policy]).request('http://host/a')
  expect([response.status, await response.text()]).toEqual([403, '{"path":"/a"}'])
  expect(Object.fromEntries(response.headers)).toEqual({ 'content-type': 'application/json', 'x-path': '/a' })
})

test.each([
  ['request.path.upperAscii()', 200, '/A'],
  ['b"\\x00\\x01"', 200, '\0\x01'],
  ['1 + 1', 200, '2'],
  ['jwt.sub', 500, 'failed to apply filters: bodyExpression of directResponse failed'],
  ['1 +', 500, 'failed to apply filters: bodyExpression of directResponse failed'],
])('the body expression %s gives %d %j', async (bodyExpression, status, text) => {
  const { response, isForwarded } = await mountPolicies([compileDirectResponse({ status: 200, bodyExpression })]).request('http://host/a')
  expect([response.status, await response.text(), isForwarded]).toEqual([status, text, false])
})

test('a status without content has no computed body', async () => {
  const { response } = await mountPolicies([compileDirectResponse({ status: 204, bodyExpression: '"x"', headers: [{ name: 'x-a', value: '"1"' }] })]).request(
    'http://host/',
  )
  expect([response.status, await response.text(), response.headers.get('x-a'), response.headers.get('content-length')]).toEqual([204, '', '1', null])
})

describe('a key set', () => {
  const pem = (): string => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  const answer = async (data: Record<string, string> | undefined) => {
    const secrets = new Map(data === undefined ? [] : [['s', { key: 's', type: 'opaque' as const, data }]])
    const policy = compileDirectResponse({ status: 200, keySet: { secretRef: { secret: 's' } } }, undefined, secrets)
    const { response } = await mountPolicies([policy]).request('http://host/')
    return { status: response.status, text: await response.text(), headers: response.headers }
  }

  test('has the public keys of the entries key, nextKey and previousKey, and nothing else of the Secret', async () => {
    const key = pem()
    const { status, text, headers } = await answer({ key, nextKey: pem(), previousKey: pem(), password: 'hunter2', other: pem() })
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([200, 'application/jwk-set+json', 'public, max-age=300'])
    const { keys } = JSON.parse(text) as { keys: Record<string, unknown>[] }
    expect(keys.map((one) => Object.keys(one).toSorted())).toEqual(Array.from({ length: 3 }, () => ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']))
    expect(text).not.toContain('hunter2')
    expect(readKeySet(text)).toMatchObject({ keys: [{ algorithms: ['ES256'] }, {}, {}], ignored: [] })
    expect((await answer({ key, nextKey: 'broken', previousKey: key })).text).toBe(JSON.stringify({ keys: [keys[0]] }))
  })

  test.each([
    ['the Secret is missing', undefined, 'failed to apply filters: the Secret of keySet does not resolve'],
    ['it has no key', { nextKey: pem() }, 'failed to apply filters: entry key holds no unencrypted private key in PEM'],
    ['its key is broken', { key: 'x' }, 'failed to apply filters: entry key holds no unencrypted private key in PEM'],
  ])('is 500 if %s', async (_, data, text) => expect(await answer(data)).toMatchObject({ status: 500, text }))
})
