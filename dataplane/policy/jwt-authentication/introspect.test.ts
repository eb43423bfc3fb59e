import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { JWTAuthentication, JWTProvider, TokenIntrospection } from '#gen/config/types.ts'
import { destinationTo } from '../../net/callout/testing.ts'
import { variables } from '../../request/exchange/variables.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { createPolicyState } from '../state.ts'
import { compileJwtAuthentication } from './index.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

const key = makeSigningKey('one')
const signed: JWTProvider = { issuer: 'https://signed', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
const FAR = 4_102_444_800

/** An authorization server that returns `answer` for each token, and a gateway that asks it. */
async function start(own: { provider?: Partial<JWTProvider>; introspection?: Partial<TokenIntrospection>; config?: Partial<JWTAuthentication> } = {}) {
  const server = { answer: (_token: string): unknown => ({ active: true, sub: 'bob' }), status: 200, isSilent: false }
  const asked: { body: URLSearchParams; authorization: string | undefined; path: string | undefined }[] = []
  const http = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const body = new URLSearchParams(text)
      asked.push({ body, authorization: request.headers.authorization, path: request.url })
      const answer = server.answer(body.get('token') ?? '')
      if (!server.isSilent) response.writeHead(server.status).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const destination = destinationTo((http.address() as AddressInfo).port)
  open.push(
    () => http.close(),
    () => http.closeAllConnections(),
    () => destination.close(),
  )
  let nowMs = Date.now()
  const secrets = new Map([['opaque/ns/s', { key: 'opaque/ns/s', type: 'opaque' as const, data: { clientId: 'gate way', clientSecret: 's:ecret' } }]])
  const state = { ...createPolicyState({ destinations: { forPolicy: () => destination }, epochMs: () => nowMs }), secrets }
  const introspection = { backendRef: { address: 'a:1' }, path: '/introspect', secretRef: { secret: 'opaque/ns/s' }, ...own.introspection }
  const config: JWTAuthentication = { providers: [signed, { issuer: 'https://opaque', introspection, ...own.provider }], ...own.config }
  const policy = compileJwtAuthentication(config, state)
  return {
    server,
    asked,
    pass: (ms: number) => (nowMs += ms),
    nowSeconds: () => Math.floor(nowMs / 1000),
    async send(token: string | undefined) {
      const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` }
      const { response, exchange, isForwarded } = await mountPolicies([policy]).request('http://host/', headers && { headers })
      return { status: response.status, text: await response.text(), isForwarded, jwt: variables.jwt.get(exchange), response, exchange }
    },
  }
}

describe('an active token', () => {
  test('is removed, and the members of the response are claims', async () => {
    const { server, asked, send } = await start()
    server.answer = () => '{"active": true, "sub": "bob", "scope": "read write", "client_id": "app", "uid": 9007199254740993, "exp": 4102444800}'
    const { status, jwt, exchange } = await send('opaque-1')
    expect(status).toBe(200)
    expect(exchange.request.headers.get('authorization')).toBeUndefined()
    expect(jwt).toMatchObject({ iss: 'https://opaque', sub: 'bob', scope: 'read write', client_id: 'app', uid: 9007199254740993n })
    expect([jwt?.['active'], jwt?.rawToken?.reveal()]).toEqual([undefined, 'opaque-1'])
    expect(Object.fromEntries(asked[0]?.body ?? [])).toEqual({ token: 'opaque-1', token_type_hint: 'access_token' })
    expect([asked[0]?.path, asked[0]?.authorization]).toEqual(['/introspect', `Basic ${Buffer.from('gate+way:s%3Aecret').toString('base64')}`])
  })

  test('is asked about with id and secret in the body on request', async () => {
    const { asked, send } = await start({ introspection: { clientAuthentication: 'Body' } })
    await send('t')
    expect(Object.fromEntries(asked[0]?.body ?? [])).toMatchObject({ client_id: 'gate way', client_secret: 's:ecret' })
    expect(asked[0]?.authorization).toBeUndefined()
  })

  test('costs one call for requests at the same time, and none until it is cached too long', async () => {
    const { asked, send, pass } = await start({ introspection: { cacheDuration: '10s' } })
    await Promise.all(Array.from({ length: 20 }, () => send('t')))
    pass(9_999)
    await send('t')
    expect(asked).toHaveLength(1)
    pass(1)
    await send('t')
    expect(asked).toHaveLength(2)
  })

  test('is not accepted from the cache after its exp, and not cached with 0s', async () => {
    const first = await start({ introspection: { cacheDuration: '1h' } })
    const exp = first.nowSeconds() + 5
    first.server.answer = () => ({ active: true, exp })
    await first.send('t')
    first.pass(6000)
    first.server.answer = () => ({ active: false })
    expect((await first.send('t')).status).toBe(401)
    const second = await start({ introspection: { cacheDuration: '0s' } })
    await second.send('t')
    await second.send('t')
    expect(second.asked).toHaveLength(2)
  })
})

describe('a token that is not accepted', () => {
  test.each<[string, object, string]>([
    ['is not active', { active: false, sub: 'bob' }, 'token not active'],
    ['is of another issuer', { active: true, iss: 'https://other' }, 'InvalidIssuer'],
    ['has an issuer that is no text', { active: true, iss: ['https://opaque'] }, 'InvalidIssuer'],
    ['has no audience', { active: true }, 'missing claim aud'],
    ['has another audience', { active: true, aud: ['x'] }, 'InvalidAudience'],
    ['has an audience that is an object', { active: true, aud: { shop: 'shop' } }, 'InvalidAudience'],
    ['expired', { active: true, aud: 'shop', exp: 1 }, 'ExpiredSignature'],
    ['has an expiry that is text', { active: true, aud: 'shop', exp: '4102444800' }, 'invalid claim exp'],
    ['is not yet valid', { active: true, aud: 'shop', nbf: FAR }, 'ImmatureSignature'],
    ['is a refresh token of Hydra', { active: true, aud: 'shop', token_use: 'refresh_token' }, 'not an access token'],
    ['is a refresh token of Keycloak', { active: true, aud: 'shop', typ: 'Refresh' }, 'not an access token'],
    ['is an ID token', { active: true, aud: 'shop', typ: 'ID' }, 'not an access token'],
    ['is bound to a key', { active: true, aud: 'shop', cnf: { jkt: 'x' } }, 'token is bound to a key'],
    ['is of type DPoP', { active: true, aud: 'shop', token_type: 'DPoP' }, 'token is bound to a key'],
  ])('%s', async (_, answer, text) => {
    const { server, send, asked, pass } = await start({ provider: { audiences: ['shop'] } })
    server.answer = () => answer
    expect(await send('t')).toMatchObject({ status: 401, text: `authentication failure: ${text}`, isForwarded: false, jwt: undefined })
    expect((await send('t')).response.headers.get('www-authenticate')).toBe('Bearer realm="Restricted", error="invalid_token"')
    expect(asked).toHaveLength(1)
    pass(5000)
    await send('t')
    expect(asked).toHaveLength(2)
  })

  test('does not reach the server if it has no form of a token', async () => {
    const { asked, send } = await start()
    for (const token of ['a b', 'a"b', '=', 'a=b', 'ä', 'x'.repeat(16_385)]) expect((await send(token)).status).toBe(401)
    expect(asked).toEqual([])
  })

  test('is not asked about if a key of another provider verifies it, also if the signature is wrong', async () => {
    const { asked, send } = await start()
    const token = makeToken(key, { iss: 'https://signed', exp: FAR, sub: 'ann' })
    expect(await send(token)).toMatchObject({ status: 200, jwt: { sub: 'ann' } })
    expect((await send(`${token.slice(0, -8)}AAAAAAAA`)).status).toBe(401)
    expect(asked).toEqual([])
    expect((await send(makeToken(makeSigningKey('unknown'), { iss: 'https://signed' }))).status).toBe(200)
    expect(asked).toHaveLength(1)
  })

  test('takes the place of other rejected tokens only', async () => {
    const { server, asked, send } = await start()
    server.answer = (token) => ({ active: token === 'good' })
    await send('good')
    for (let i = 0; i < 300; i++) await send(`bad-${i}`)
    const before = asked.length
    await send('good')
    expect(asked).toHaveLength(before)
  })
})

describe('an authorization server', () => {
  const lies: [string, number, unknown][] = [
    ['responds 401, because the Secret is wrong', 401, { active: true }],
    ['responds 500', 500, { active: true }],
    ['redirects', 302, { active: true }],
    ['returns no JSON', 200, 'active'],
    ['returns a list', 200, [{ active: true }]],
    ['returns active as text', 200, { active: 'true' }],
    ['returns active as a number', 200, { active: 1 }],
    ['returns nothing about the token', 200, { sub: 'bob' }],
    ['returns more than 32 KiB', 200, { active: true, x: 'x'.repeat(40_000) }],
  ]
  test.each(lies)('that %s leads to 503 and no claims', async (_, status, answer) => {
    const { server, send } = await start()
    Object.assign(server, { status, answer: () => answer })
    const result = await send('t')
    expect(result).toMatchObject({ status: 503, isForwarded: false, jwt: undefined, text: expect.stringMatching(/^authentication not available: /) })
    expect(result.response.headers.get('retry-after')).toBe('5')
    Object.assign(server, { status: 200, answer: () => ({ active: true }) })
    expect((await send('t')).status).toBe(200)
  })

  test.each([
    ['Strict', 503, false],
    ['Optional', 503, false],
    ['Permissive', 200, true],
  ] as const)('that fails in mode %s: %i', async (mode, status, isForwarded) => {
    const { server, send } = await start({ config: { mode } })
    server.status = 500
    expect(await send('t')).toMatchObject({ status, isForwarded, jwt: undefined })
  })

  test('without the Secret of the client is not called: 503', async () => {
    const { asked, send } = await start({ introspection: { secretRef: { invalid: 'missing' } } })
    expect(await send('t')).toMatchObject({ status: 503, text: 'authentication not available: the Secret of the client is missing' })
    expect(asked).toEqual([])
  })

  test('that is slow has at most 32 calls of one client', async () => {
    const { server, asked, send } = await start()
    server.isSilent = true
    const results = Array.from({ length: 40 }, (_, index) => send(`t${index}`))
    const rejected = await Promise.race(results)
    expect(rejected).toMatchObject({ status: 503, text: 'authentication not available: too many tokens to introspect from one client' })
    expect(asked.length).toBeLessThanOrEqual(32)
    for (const close of open.splice(0).toReversed()) close()
    expect((await Promise.all(results)).map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 503))
  })

  test('that returns any JSON never leads to claims unless it says that the token is active', async () => {
    const { server, send, pass } = await start()
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (answer) => {
        server.answer = () => answer ?? 'null'
        pass(60_000)
        const { status, isForwarded } = await send('t')
        expect([status, isForwarded]).not.toContain(200)
        expect(isForwarded).toBe(false)
      }),
      { numRuns: 100 },
    )
  })
})
