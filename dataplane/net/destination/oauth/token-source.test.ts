import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import type { OAuthCredentials } from '#gen/config/types.ts'
import { destinationTo } from '../../callout/testing.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { TokenCache } from './token-cache.ts'
import { createTokenSource } from './token-source.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

interface Received {
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly form: readonly (readonly [string, string])[]
}

type Answer = (count: number) => readonly [status: number, body: unknown]

interface StartOptions {
  readonly answer?: Answer
  readonly client?: { readonly id: string; readonly secret: string }
  /** The endpoint does not respond before. */
  readonly gate?: Promise<void>
}

/** A token source in front of a fake token endpoint. */
async function start(change: Partial<OAuthCredentials>, { answer, client, gate }: StartOptions = {}) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += String(chunk)))
    request.on('end', () => {
      received.push({ path: request.url, headers: request.headers, form: [...new URLSearchParams(text)] })
      const [status, body] = answer?.(received.length) ?? [200, { access_token: `t${received.length}`, token_type: 'Bearer', expires_in: 100 }]
      const respond = (): unknown =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body))
      void (gate === undefined ? respond() : gate.then(respond))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const destination = destinationTo((server.address() as AddressInfo).port)
  const clock = { nowMs: 1_000_000 }
  const cache = new TokenCache({ nowMs: () => clock.nowMs })
  closing.push(async () => {
    destination.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const config: OAuthCredentials = { grantType: 'TokenExchange', tokenEndpoint: { backendRef: { address: 'idp:80' }, path: '/token' }, ...change }
  return { source: createTokenSource(config, { client, find: () => destination, cache, nowMs: () => clock.nowMs }), received, clock, destination }
}

/** A request with a bearer token. */
const from = (token: string): Exchange => testExchange({}, { authorization: `Bearer ${token}` })

const errorOf = (token: Promise<string>): Promise<ProxyError> =>
  token.then(
    () => Promise.reject(new Error('a token was returned')),
    (error: unknown) => (error instanceof ProxyError ? error : Promise.reject(error as Error)),
  )

const client = { id: 'gate way', secret: 's:c/t' }
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

describe('the request to the token endpoint', () => {
  test.each<[string, Partial<OAuthCredentials>, readonly (readonly [string, string])[]]>([
    [
      'TokenExchange',
      { audiences: ['a', 'b'], resources: ['https://r'], scopes: ['x', 'y'] },
      [
        ['grant_type', EXCHANGE],
        ['subject_token', 'user'],
        ['subject_token_type', 'urn:ietf:params:oauth:token-type:access_token'],
        ['scope', 'x y'],
        ['audience', 'a'],
        ['audience', 'b'],
        ['resource', 'https://r'],
      ],
    ],
    [
      'TokenExchange of id tokens',
      { subjectTokenType: 'IDToken' },
      [
        ['grant_type', EXCHANGE],
        ['subject_token', 'user'],
        ['subject_token_type', 'urn:ietf:params:oauth:token-type:id_token'],
      ],
    ],
    [
      'JWTBearer',
      { grantType: 'JWTBearer', parameters: { requested_token_use: 'on_behalf_of' }, clientAuthentication: 'Body' },
      [
        ['requested_token_use', 'on_behalf_of'],
        ['grant_type', 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
        ['assertion', 'user'],
        ['client_id', 'gate way'],
        ['client_secret', 's:c/t'],
      ],
    ],
    ['ClientCredentials', { grantType: 'ClientCredentials' }, [['grant_type', 'client_credentials']]],
  ])('has the parameters of %s', async (_, config, form) => {
    const { source, received } = await start(config, { client })
    expect(await source.tokenFor(from('user'))).toBe('t1')
    const [request] = received
    const basic = `Basic ${Buffer.from('gate+way:s%3Ac%2Ft').toString('base64')}`
    expect([request?.path, request?.form, request?.headers.authorization]).toEqual(['/token', form, config.clientAuthentication === 'Body' ? undefined : basic])
  })
})

describe('the token of the request', () => {
  const verified = (token: string, header?: string): Exchange => {
    const exchange = testExchange({}, header === undefined ? {} : { authorization: header })
    variables.jwt.set(exchange, { sub: 'ann', rawToken: new Secret(token) })
    return exchange
  }

  test.each<[string, Exchange, string | undefined, string]>([
    ['is that of the Authorization header', from('header'), undefined, 'header'],
    ['is that of a policy, if one verified it', verified('verified', 'Bearer header'), undefined, 'verified'],
    ['is the value of an expression', testExchange({}, { 'x-token': 'own' }), 'request.headers["x-token"]', 'own'],
    ['is a secret value of an expression', verified('verified'), 'jwt.rawToken', 'verified'],
  ])('%s', async (_, exchange, subjectToken, expected) => {
    const { source, received } = await start({ ...(subjectToken !== undefined && { subjectToken }) })
    await source.tokenFor(exchange)
    expect(new Map(received[0]?.form).get('subject_token')).toBe(expected)
  })

  test.each<[string, Exchange | undefined, string | undefined, string]>([
    ['there is no header', testExchange(), undefined, 'the request has no token'],
    ['there is no request', undefined, undefined, 'the request has no token'],
    ['the header has another scheme', testExchange({}, { authorization: 'Basic eDp5' }), undefined, 'the request has no token'],
    ['the expression fails', testExchange(), 'request.headers["x-token"]', 'the request has no token'],
    ['the expression is not valid', from('user'), 'request.', 'the request has no token'],
    ['it cannot be a token', testExchange({}, { 'x-token': 'a b' }), 'request.headers["x-token"]', 'the token was not accepted'],
    ['it is too long', from('x'.repeat(16 * 1024 + 1)), undefined, 'the token was not accepted'],
  ])('is not sent if %s', async (_, exchange, subjectToken, detail) => {
    const { source, received } = await start({ ...(subjectToken !== undefined && { subjectToken }) })
    const error = await errorOf(source.tokenFor(exchange))
    expect([error.code, error.row.status, error.detail, received.length]).toEqual(['BACKEND_SUBJECT', 401, detail, 0])
  })
})

describe('tokens', () => {
  test('are cached for each user until shortly before they expire', async () => {
    const { source, clock, received } = await start({})
    const tokens = [await source.tokenFor(from('ann')), await source.tokenFor(from('bob')), await source.tokenFor(from('ann'))]
    clock.nowMs += 89_000
    tokens.push(await source.tokenFor(from('ann')))
    clock.nowMs += 2000
    tokens.push(await source.tokenFor(from('ann')))
    expect([tokens, received.length]).toEqual([['t1', 't2', 't1', 't1', 't3'], 3])
  })

  test('are fetched once for concurrent requests of a user', async () => {
    const { source, received } = await start({})
    const tokens = await Promise.all([1, 2, 3].map(() => source.tokenFor(from('ann'))))
    expect([tokens, received.length]).toEqual([['t1', 't1', 't1'], 1])
  })

  test('of the gateway itself are cached for all users', async () => {
    const { source, received } = await start({ grantType: 'ClientCredentials' }, { client })
    expect([await source.tokenFor(from('ann')), await source.tokenFor(testExchange()), received.length]).toEqual(['t1', 't1', 1])
  })

  test('are not used longer than the token of the user is valid', async () => {
    const { source, clock } = await start({})
    const user = `e30.${Buffer.from(JSON.stringify({ exp: (clock.nowMs + 10_000) / 1000 })).toString('base64url')}.x`
    expect(await source.tokenFor(from(user))).toBe('t1')
    clock.nowMs += 10_000
    expect(await source.tokenFor(from(user))).toBe('t2')
  })

  test('without a lifetime are used for a minute', async () => {
    const { source, clock } = await start({}, { answer: (count) => [200, { access_token: `t${count}` }] })
    expect(await source.tokenFor(from('ann'))).toBe('t1')
    clock.nowMs += 50_000
    expect(await source.tokenFor(from('ann'))).toBe('t1')
    clock.nowMs += 10_000
    expect(await source.tokenFor(from('ann'))).toBe('t2')
  })

  test('stay in use if their renewal fails, until they expire', async () => {
    const { source, clock } = await start({}, { answer: (count) => (count === 1 ? [200, { access_token: 't1', expires_in: 100 }] : [500, '']) })
    expect(await source.tokenFor(from('ann'))).toBe('t1')
    clock.nowMs += 95_000
    expect(await source.tokenFor(from('ann'))).toBe('t1')
    clock.nowMs += 5000
    expect((await errorOf(source.tokenFor(from('ann')))).code).toBe('BACKEND_TOKEN')
  })
})

describe('a failed token request', () => {
  test.each<[string, number, unknown, string]>([
    ['a server error', 503, 'down: user-token s3cret', 'the token endpoint responded with status 503'],
    [
      'an invalid client',
      401,
      { error: 'invalid_client', error_description: 'user-token s3cret' },
      'the token endpoint responded with status 401 and invalid_client',
    ],
    ['a strange error code', 400, { error: 'user-token s3cret' }, 'the token endpoint responded with status 400'],
    ['a redirect', 302, '', 'the token endpoint responded with status 302'],
    ['no JSON', 200, 'user-token', 'the response of the token endpoint has no access_token'],
    ['no token', 200, { token_type: 'Bearer' }, 'the response of the token endpoint has no access_token'],
    ['a token of another type', 200, { access_token: 't', token_type: 'N_A' }, 'the response of the token endpoint has no bearer token'],
    ['a token that ends the header', 200, { access_token: 't\r\nx: y' }, 'the token of the token endpoint cannot be sent in a header'],
  ])('with %s is a 502, and is repeated by the next request', async (_, status, body, logged) => {
    const { source, received } = await start({}, { client: { id: 'c', secret: 's3cret' }, answer: () => [status, body] })
    const error = await errorOf(source.tokenFor(from('user-token')))
    expect([error.code, error.row.status, error.message]).toEqual(['BACKEND_TOKEN', 502, 'backend authentication failed: no token could be obtained'])
    expect(error.cause).toMatchObject({ message: logged })
    await errorOf(source.tokenFor(from('user-token')))
    expect(received.length).toBe(2)
  })

  test.each(['invalid_grant', 'invalid_request', 'invalid_token'])('with %s is a 401, and is not repeated for ten seconds', async (code) => {
    const { source, clock, received } = await start({}, { answer: () => [400, { error: code, error_description: 'user-token' }] })
    const errors = [await errorOf(source.tokenFor(from('user-token'))), await errorOf(source.tokenFor(from('user-token')))]
    for (const error of errors) {
      expect([error.code, error.row.status, error.message]).toEqual(['BACKEND_SUBJECT', 401, 'backend authentication failed: the token was not accepted'])
      expect(error.headers).toEqual({ 'www-authenticate': 'Bearer error="invalid_token"' })
    }
    expect(received.length).toBe(1)
    clock.nowMs += 10_000
    await errorOf(source.tokenFor(from('user-token')))
    expect(received.length).toBe(2)
  })

  test('of the gateway itself is a 502 for each error', async () => {
    const { source } = await start({ grantType: 'ClientCredentials' }, { client, answer: () => [400, { error: 'invalid_grant' }] })
    expect((await errorOf(source.tokenFor(testExchange()))).code).toBe('BACKEND_TOKEN')
  })

  test('ends at the deadline of its request, and goes on for others', async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const { source } = await start({}, { gate })
    const exchange = from('ann')
    exchange.deadlineAtMs = performance.now() - 1
    expect((await errorOf(source.tokenFor(exchange))).code).toBe('REQUEST_TIMEOUT')
    open()
    expect(await source.tokenFor(from('ann'))).toBe('t1')
  })

  test('is a 502 if the token endpoint needs a token of an authorization server itself', async () => {
    const { source } = await start({})
    const settings = { auth: { kind: 'oauth', source } } as const
    const endpoint = destinationTo(1, settings)
    closing.push(async () => endpoint.close())
    const config: OAuthCredentials = { grantType: 'TokenExchange', tokenEndpoint: { backendRef: { address: 'idp:80' }, path: '/token' } }
    const circular = createTokenSource(config, { client: undefined, find: () => endpoint, cache: new TokenCache() })
    expect((await errorOf(circular.tokenFor(from('ann')))).code).toBe('BACKEND_TOKEN')
  })
})

describe('the cache', () => {
  const valid = (token: string) => async () => ({ token, expiresAtMs: Infinity })

  test('keeps at most the given number of tokens, the most recently used ones', async () => {
    const cache = new TokenCache({ maxTokens: 2 })
    for (const key of ['a', 'b', 'a', 'c']) await cache.get(key, valid(`${key}1`))
    expect([await cache.get('a', valid('a2')), await cache.get('c', valid('c2')), await cache.get('b', valid('b2'))]).toEqual(['a1', 'c1', 'b2'])
  })

  test('keeps at most the given number of characters', async () => {
    const cache = new TokenCache({ maxChars: 100 })
    await cache.get('a', valid('1'.repeat(60)))
    await cache.get('b', valid('2'.repeat(60)))
    expect([await cache.get('b', valid('new')), await cache.get('a', valid('new'))]).toEqual(['2'.repeat(60), 'new'])
  })
})
