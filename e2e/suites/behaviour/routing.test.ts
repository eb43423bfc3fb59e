import { status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { ClientRequest } from '../../harness/client.ts'
import { makeGrpcClient } from '../../harness/grpc-client.ts'
import { waitUntil } from '../../harness/wait.ts'
import { modes, startEnvironment, type Environment } from './environment.ts'

// Rows 1 to 20 of the traffic test cases of the specification, except those of ReferenceGrant (e2e/examples/cross-namespace).
describe.each(modes)('routing with a %s', (mode) => {
  let environment: Environment
  beforeAll(async () => {
    environment = await startEnvironment(mode)
  })
  afterAll(() => environment?.stop())

  const ruleOf = async (host: string, request: Partial<ClientRequest>) => {
    const response = await environment.send(host, request)
    return response.headers['x-rule'] ?? response.status
  }

  test.each([
    ['a host without a listener', 'elsewhere.example', '/', 404, 'listener not found'],
    ['a host without a route', 'unknown.test', '/', 404, 'route not found'],
    ['a host whose routes do not match', 'only.test', '/', 404, 'route not found'],
    ['a rule without destinations', 'nowhere.test', '/none', 500, 'no valid backends'],
    ['a rule whose destinations have weight 0', 'nowhere.test', '/zero', 500, 'no valid backends'],
    ['a service without endpoints', 'nowhere.test', '/empty', 503, 'no healthy backends'],
    // The CRDs reject such a route.
    ...(mode === 'config file' ? [['a prefix replacement on an exact match', 'rewrite.test', '/exact', 500, 'failed to apply filters'] as const] : []),
    ['a response after the timeout', 'late.test', '/?delay=60000', 504, 'request timeout'],
  ])('returns the right error for %s', async (_sentence, host, path, code, text) => {
    const response = await environment.send(host, { path })
    expect([response.status, response.headers['content-type']]).toEqual([code, expect.stringMatching(/^text\/plain/)])
    expect(response.body.startsWith(text)).toBe(true)
  })

  test('returns 503 with the reason if the upstream refuses connections', async () => {
    const response = await environment.send('nowhere.test', { path: '/dead' })
    expect([response.status, response.body]).toEqual([503, expect.stringMatching(/^upstream call failed/)])
  })

  test.each([
    ['no route', 'unknown.test', 'echo.Echo', status.UNIMPLEMENTED, 'route not found'],
    ['no endpoints', 'nowhere.test', 'echo.Empty', status.UNAVAILABLE, 'no healthy backends'],
  ])('returns an error for %s to gRPC clients as a gRPC status', async (_sentence, authority, service, code, details) => {
    const client = makeGrpcClient(`127.0.0.1:${environment.ports.HTTP}`, { authority, service })
    await expect(client.unary('x')).rejects.toMatchObject({ code, details })
    client.close()
  })

  test.each<[string, string, Partial<ClientRequest>, string | number]>([
    ['a prefix matches itself', 'prefix.test', { path: '/foo' }, 'prefix'],
    ['a prefix matches with a slash', 'prefix.test', { path: '/foo/' }, 'prefix'],
    ['a prefix matches segments below', 'prefix.test', { path: '/foo/x?y=1' }, 'prefix'],
    ['a prefix does not match half a segment', 'prefix.test', { path: '/foobar' }, 404],
    ['an exact match takes precedence over prefix and regular expression', 'types.test', { path: '/a' }, 'exact'],
    ['a prefix takes precedence over a longer regular expression', 'types.test', { path: '/a/b' }, 'prefix'],
    ['a regular expression matches the complete path', 'types.test', { path: '/abc' }, 'regex'],
    ['a rule without conditions matches', 'conditions.test', { path: '/x' }, 'none'],
    ['a query parameter selects a rule', 'conditions.test', { path: '/x?q=1' }, 'query'],
    ['the last of two values of a query parameter counts', 'conditions.test', { path: '/x?q=1&q=2' }, 'none'],
    ['one header takes precedence over a query parameter', 'conditions.test', { path: '/x?q=1', headers: { 'x-a': '1' } }, 'one'],
    ['two headers take precedence over one', 'conditions.test', { path: '/x', headers: { 'X-A': '1', 'x-b': '1' } }, 'two'],
    ['any of two header lines may match', 'conditions.test', { path: '/x', headers: { 'x-a': ['0', '1'] } }, 'one'],
    ['a header value is not split at commas', 'conditions.test', { path: '/x', headers: { 'x-a': '0,1' } }, 'none'],
    ['a method takes precedence over headers', 'conditions.test', { path: '/x', method: 'DELETE', headers: { 'x-a': '1', 'x-b': '1' } }, 'method'],
    ['the exact host wins where its rule matches', 'a.x.test', { path: '/only' }, 'narrow'],
    ['another path of that host is matched by the wildcard', 'a.x.test', { path: '/other' }, 'wildcard'],
    ['a wildcard matches any depth', 'c.b.x.test', {}, 'wildcard'],
    ['a wildcard does not match the bare name', 'x.test', {}, 404],
    ['hosts are not case-sensitive, and their port is ignored', 'PLAIN.Test:1234', {}, 'plain'],
    ['the older of two equal routes wins', 'tie.test', {}, 'older'],
  ])('%s', async (_sentence, host, request, expected) => {
    expect(await ruleOf(host, request)).toBe(expected)
    expect(await ruleOf(host, { ...request, protocol: 'http2' })).toBe(expected)
  })

  test('distributes 500 requests by the weights 9 and 1', async () => {
    let blue = 0
    for (let batch = 0; batch < 10; batch++) {
      const names = await Promise.all(Array.from({ length: 50 }, async () => (await environment.send('weights.test')).json().name))
      blue += names.filter((name) => name === 'blue').length
    }
    // A random result outside these bounds occurs less than once in 10^12 runs.
    expect(blue).toBeGreaterThan(396)
    expect(blue).toBeLessThan(494)
  })

  // A config file with such a destination is rejected.
  if (mode === 'config stream') {
    test('fails the share of requests of a destination that does not exist', async () => {
      const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await environment.send('half.test')).status))
      const failed = statuses.filter((code) => code === 500).length
      // A random result outside these bounds occurs less than once in 10^12 runs.
      expect(failed).toBeGreaterThan(15)
      expect(failed).toBeLessThan(85)
      expect(statuses.filter((code) => code === 200).length).toBe(100 - failed)
    })
  }

  test('drops the port and keeps path and query in a redirect to https', async () => {
    const response = await environment.send(`redirect.test:${environment.ports.HTTP}`, { path: '/a?b=1' })
    expect([response.status, response.headers['location']]).toEqual([302, 'https://redirect.test/a?b=1'])
  })

  test('keeps one slash and the query after a prefix replacement', async () => {
    expect((await environment.send('rewrite.test', { path: '/a/b?x=1' })).json().path).toBe('/b?x=1')
    expect((await environment.send('rewrite.test', { path: '/a' })).json().path).toBe('/')
  })

  test('sends the head to a mirror and the body to the primary, also if the mirror is down', async () => {
    const headers = { 'x-mark': 'mirror' }
    expect((await environment.send('mirror.test', { path: '/up', body: 'text', headers })).json().body).toBe('text')
    const find = () => environment.green.requests.find((request) => request.headers['x-mark'] === 'mirror')
    await waitUntil('the mirrored request', () => find() !== undefined)
    expect(find()).toMatchObject({ method: 'POST', path: '/up', bodyBytes: 0 })
    expect((await environment.send('mirror.test', { path: '/down', body: 'text' })).status).toBe(200)
  })

  test('removes hop-by-hop headers and headers listed in Connection', async () => {
    const headers = { connection: 'x-secret, keep-alive', 'x-secret': '1', 'keep-alive': 'timeout=5', 'proxy-connection': 'x', 'x-kept': '1' }
    const seen = (await environment.send('plain.test', { headers })).json()
    expect(Object.keys(seen.headers)).not.toEqual(expect.arrayContaining(['x-secret']))
    expect([seen.headers['keep-alive'], seen.headers['proxy-connection'], seen.headers['x-kept'], seen.host]).toEqual([undefined, undefined, '1', 'plain.test'])
  })

  test.each([
    ['its own host', 'a.secure.test', 200],
    ["another listener's host", 'b.secure.test', 421],
    ['an unknown host', 'c.secure.test', 404],
  ])('over a TLS connection for one host, returns for %s (%s) status %i', async (_sentence, host, code) => {
    const request = { port: environment.ports.TLS, host, tls: { ca: environment.authority.certificate, sni: 'a.secure.test' } }
    expect((await environment.send(host, request)).status).toBe(code)
    expect((await environment.send(host, { ...request, protocol: 'http2' })).status).toBe(code)
  })

  test('merges policies by field: the retry of the route with the timeout of the listener', async () => {
    const key = mode.replace(' ', '-')
    expect((await environment.send('merged.test', { path: `/?failures=2&id=${key}` })).status).toBe(200)
    const unlisted = await environment.send('merged.test', { path: `/?status=500&key=500-${key}` })
    expect(unlisted.status).toBe(500)
    expect(environment.blue.requests.filter((request) => request.path.includes(`key=500-${key}`)).length).toBe(1)
    expect((await environment.send('merged.test', { path: '/?delay=60000' })).body).toBe('request timeout')
  })
})
