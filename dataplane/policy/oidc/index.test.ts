import { afterEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { JWTAuthentication, OIDC } from '#gen/config/types.ts'
import { destinationTo } from '../../net/callout/testing.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { compileOidc } from './index.ts'
import { Jar, startProvider } from './testing.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

const APP = 'https://app.example.com'
const KEY = Buffer.alloc(32, 7)

/** A provider, a gateway in front of an application, and a browser. */
async function start(own: Partial<OIDC> = {}, { tokens, keys = [KEY] }: { tokens?: JWTAuthentication; keys?: readonly Buffer[] } = {}) {
  const provider = await startProvider()
  const destination = destinationTo(provider.port)
  open.push(provider.close, () => destination.close())
  let nowMs = Date.now()
  const config: OIDC = { issuer: provider.issuer, backendRef: { address: 'a:1' }, clientId: 'gateway', publicUrl: APP, ...own }
  const replica = (sessionKeys = keys) =>
    compileOidc(config, createPolicyState({ destinations: { forPolicy: () => destination }, epochMs: () => nowMs, loginKeys: sessionKeys }), tokens)
  let policy = replica()
  const jar = new Jar()
  const send = async (
    path: string,
    init: { method?: string; headers?: Record<string, string>; cookies?: Jar; prepare?: (exchange: Exchange) => void } = {},
  ) => {
    const { method = 'GET', headers = { 'sec-fetch-mode': 'navigate' }, cookies = jar, prepare } = init
    const all = { ...headers, ...(cookies.header !== '' && { cookie: [cookies.header, headers['cookie']].filter(Boolean).join('; ') }) }
    const { response, exchange, isForwarded } = await mountPolicies([policy], prepare && { prepare }).request(path.startsWith('http') ? path : APP + path, {
      method,
      headers: all,
    })
    cookies.store(response)
    const location = response.headers.get('location') ?? ''
    return { status: response.status, location, text: await response.text(), response, exchange, isForwarded, jwt: variables.jwt.get(exchange) }
  }
  return {
    provider,
    jar,
    send,
    pass: (ms: number) => (nowMs += ms),
    restart: (sessionKeys?: readonly Buffer[]) => void (policy = replica(sessionKeys)),
    async logIn(path = '/page?x=1') {
      const first = await send(path)
      return send(provider.login(first.location))
    },
  }
}

describe('login', () => {
  test('a browser returns with a session to the URL that it asked for', async () => {
    const { provider, send, logIn, jar } = await start({ scopes: ['profile'], parameters: { prompt: 'login' } })
    const first = await send('/page?x=1')
    expect(first).toMatchObject({ status: 302, isForwarded: false })
    const asked = Object.fromEntries(new URL(first.location).searchParams)
    expect(asked).toMatchObject({
      response_type: 'code',
      client_id: 'gateway',
      redirect_uri: `${APP}/oauth2/callback`,
      scope: 'openid profile',
      prompt: 'login',
    })
    expect(asked).toMatchObject({ code_challenge_method: 'S256', code_challenge: expect.stringMatching(/^[\w-]{43}$/) })
    const back = await logIn()
    expect(back).toMatchObject({ status: 303, location: `${APP}/page?x=1` })
    expect(provider.requests.at(-2)?.body.get('code_verifier')).toMatch(/^[\w-]{64}$/)
    const page = await send('/page?x=1')
    expect(page).toMatchObject({ status: 200, text: 'upstream', jwt: { sub: 'ann', groups: ['staff'] } })
    expect(page.exchange.request.headers.get('cookie')).toBeUndefined()
    expect([...jar.cookies.keys()].filter((name) => name.includes('session'))).toEqual([expect.stringMatching(/^__Host-proxy-session-[0-9a-f]{10}$/)])
  })

  test('cookies of the application reach it, those of the gateway do not', async () => {
    const { send, logIn } = await start()
    await logIn()
    const { exchange } = await send('/', { headers: { cookie: 'theme=dark; a=b=c' } })
    expect(exchange.request.headers.get('cookie')).toBe('theme=dark; a=b=c')
  })

  test('a session is known to other replicas and after a restart, also with the key before', async () => {
    const { send, logIn, restart } = await start()
    await logIn()
    restart([Buffer.alloc(32, 9), KEY])
    expect((await send('/')).status).toBe(200)
    restart([Buffer.alloc(32, 9)])
    expect((await send('/')).status).toBe(302)
  })

  test.each([
    ['a script', { 'sec-fetch-mode': 'cors', accept: 'text/html' }, 'GET'],
    ['a program', { accept: 'application/json' }, 'GET'],
    ['a form', { 'sec-fetch-mode': 'navigate' }, 'POST'],
  ])('%s without a session gets 401 in JSON and no cookie', async (_, headers, method) => {
    const { send } = await start()
    const { status, text, response } = await send('/api', { headers, method })
    expect(status).toBe(401)
    expect(JSON.parse(text)).toEqual({ error: 'login', message: 'login required' })
    expect(response.headers.getSetCookie()).toEqual([])
  })

  test('an expression decides which requests start a login', async () => {
    const { send } = await start({ login: 'request.path.startsWith("/app")' })
    expect((await send('/app', { headers: { accept: '*/*' } })).status).toBe(302)
    expect((await send('/api')).status).toBe(401)
  })

  test('five tabs log in, in any order', async () => {
    const { provider, send } = await start()
    const starts = []
    for (const path of ['/1', '/2', '/3', '/4', '/5']) starts.push(await send(path))
    const returned = []
    for (const { location } of starts.toReversed()) returned.push((await send(provider.login(location))).location)
    expect(returned).toEqual(['/5', '/4', '/3', '/2', '/1'].map((path) => APP + path))
  })

  test('logins that are not finished do not pile up', async () => {
    const { jar, send } = await start()
    for (let i = 0; i < 12; i++) await send('/')
    expect(jar.cookies.size).toBe(5)
  })

  test('the target of the return stays on this site', () =>
    fc.assert(
      fc.asyncProperty(fc.stringMatching(/^\/[/\\@.%a-z0-9:;]{0,20}$/), async (path) => {
        const { send, logIn } = await start()
        const { location } = await logIn(new URL(APP).origin + path)
        expect(new URL(location).origin).toBe(APP)
        await send('/')
        for (const close of open.splice(0).toReversed()) await close()
      }),
      { numRuns: 20, examples: [['//evil.example'], ['/\\evil.example'], ['/..//evil.example'], ['/%5cevil.example'], ['/@evil.example']] },
    ))
})

describe('a login that is rejected', () => {
  type World = Awaited<ReturnType<typeof start>>
  const expectRejected = async (world: World, back: string, reason: string): Promise<void> => {
    const { status, text, isForwarded } = await world.send(back)
    expect({ status, isForwarded }).toEqual({ status: 403, isForwarded: false })
    expect(text).toContain(reason)
    expect([...world.jar.cookies.keys()].filter((name) => name.includes('session'))).toEqual([])
    expect((await world.send('/')).status).toBe(302)
  }

  test('was started in another browser, whose login stays valid', async () => {
    const world = await start()
    const { location } = await world.send('/')
    const back = world.provider.login(location)
    const thief = await world.send(back, { cookies: new Jar() })
    expect(thief.status).toBe(403)
    expect(thief.text).toContain('not started in this browser')
    expect((await world.send(back)).status).toBe(303)
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['a nonce of another login', { nonce: 'x' }, 'another login'],
    ['another audience', { aud: 'other' }, 'not valid'],
    ['another issuer', { iss: 'https://evil.example' }, 'not valid'],
    ['several audiences without azp', { aud: ['gateway', 'other'] }, 'another client'],
    ['another authorized party', { azp: 'other' }, 'another client'],
    ['an expired token', { exp: 1_000_000_000 }, 'not valid'],
  ])('has %s', async (_, claims, reason) => {
    const world = await start()
    world.provider.behaviour.claims = claims
    await expectRejected(world, world.provider.login((await world.send('/')).location), reason)
  })

  test('has an ID token without a signature', async () => {
    const world = await start()
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: world.provider.issuer, aud: 'gateway', sub: 'root', iat: 1, exp: 9_999_999_999 }
    world.provider.behaviour.tokens = { id_token: `${encode({ alg: 'none' })}.${encode(claims)}.` }
    await expectRejected(world, world.provider.login((await world.send('/')).location), 'not valid')
  })

  test('names another provider, and its code does not leave the gateway', async () => {
    const world = await start()
    const back = world.provider.login((await world.send('/')).location, { iss: 'https://evil.example' })
    await expectRejected(world, back, 'another provider')
    expect(world.provider.requests.filter(({ path }) => path.endsWith('/token'))).toEqual([])
  })

  test('has no issuer, though the provider sends it', async () => {
    const world = await start()
    world.provider.behaviour.document = { authorization_response_iss_parameter_supported: true }
    await expectRejected(world, world.provider.login((await world.send('/')).location), 'another provider')
  })

  test('has an error of the provider, without its text', async () => {
    const world = await start()
    const back = world.provider.login((await world.send('/')).location, { code: undefined, error: 'access_denied', error_description: '<script>' })
    const { text } = await world.send(back)
    expect(text).toContain('the provider responded access_denied')
    expect(text).not.toContain('<script>')
  })

  test.each([
    ['twice the state', (back: string) => `${back}&state=x`],
    ['twice the code', (back: string) => `${back}&code=x`],
    ['no code', (back: string) => back.replace('code=', 'c=')],
  ])('has %s', async (_, change) => {
    const world = await start()
    expect((await world.send(change(world.provider.login((await world.send('/')).location)))).status).toBe(403)
  })

  test('was used before', async () => {
    const world = await start()
    const back = world.provider.login((await world.send('/')).location)
    expect((await world.send(back)).status).toBe(303)
    expect((await world.send(back)).status).toBe(403)
  })

  test('took too long', async () => {
    const world = await start()
    const back = world.provider.login((await world.send('/')).location)
    world.pass(16 * 60_000)
    expect((await world.send(back)).status).toBe(403)
  })

  test('has a code that the provider does not accept', async () => {
    const world = await start()
    const back = world.provider.login((await world.send('/')).location)
    Object.assign(world.provider.behaviour, { status: 400, tokens: { error: 'invalid_grant' } })
    expect(await world.send(back)).toMatchObject({ status: 403, text: expect.stringContaining('the code is not valid') as unknown as string })
  })

  test('has more claims than cookies hold', async () => {
    const world = await start()
    const groups = Array.from({ length: 900 }, (_, i) => `${i}-${crypto.randomUUID()}`)
    world.provider.behaviour.claims = { groups }
    await expectRejected(world, world.provider.login((await world.send('/')).location), 'choose claims with oidc.claims')
  })
})

describe('cookies', () => {
  const long = { groups: Array.from({ length: 200 }, () => crypto.randomUUID()) }

  test('a long session has several cookies, which a shorter one replaces', async () => {
    const { provider, jar, send, logIn } = await start()
    provider.behaviour.claims = long
    await logIn()
    const sessions = (): string[] => [...jar.cookies.keys()].filter((name) => name.includes('session'))
    expect(sessions().length).toBeGreaterThan(1)
    expect(await send('/')).toMatchObject({ status: 200, jwt: long })
    provider.behaviour.claims = {}
    await send(provider.login((await send('/', { cookies: new Jar() })).location))
    const [last = ''] = sessions().toReversed()
    jar.cookies.delete(last)
    expect((await send('/')).status).toBe(302)
    await logIn()
    expect(sessions()).toHaveLength(1)
  })

  test('a changed character makes no session, and does not block the next login', async () => {
    const { jar, send, logIn } = await start()
    await logIn()
    const [[name, value] = ['', '']] = [...jar.cookies]
    fc.assert(
      fc.property(fc.nat({ max: value.length - 1 }), (at) => {
        jar.cookies.set(name, value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1))
      }),
      { numRuns: 1 },
    )
    expect((await send('/')).status).toBe(302)
    await logIn()
    expect((await send('/')).status).toBe(200)
  })

  test('a cookie of a login is no session, and one of another client is not either', async () => {
    const { jar, send } = await start()
    await send('/')
    const [login = ''] = [...jar.cookies.values()]
    const id = [...jar.cookies.keys()][0]?.split('-')[3]
    jar.cookies.set(`__Host-proxy-session-${id}`, `1.${login}`)
    expect((await send('/')).status).toBe(302)
  })

  test('values that are no sessions are ignored', () =>
    fc.assert(
      fc.asyncProperty(fc.stringMatching(/^[!-:<-~]{0,40}$/), async (value) => {
        const { jar, send } = await start()
        await send('/')
        const id = [...jar.cookies.keys()][0]?.split('-')[3]
        jar.cookies.set(`__Host-proxy-session-${id}`, value)
        expect((await send('/')).status).toBe(302)
        for (const close of open.splice(0).toReversed()) await close()
      }),
      { numRuns: 20, examples: [['9.x'], ['3.'], ['1.'], ['0.']] },
    ))

  test('without TLS cookies have no Secure, and a Domain excludes __Host-', async () => {
    const plain = await start({ publicUrl: 'http://localhost:8080' })
    expect((await plain.send('/')).response.headers.getSetCookie()[0]).toMatch(/^proxy-login-.*HttpOnly; SameSite=Lax$/)
    const shared = await start({ cookieDomain: 'example.com' })
    expect((await shared.send('/')).response.headers.getSetCookie()[0]).toMatch(/^__Secure-proxy-login-.*Domain=example\.com;.*; Secure$/)
  })

  test('with SameSite=Strict a page of this site continues', async () => {
    const { logIn } = await start({ sameSite: 'Strict' })
    const back = await logIn('/a?b="<')
    expect(back.status).toBe(200)
    expect(back.text).toContain('http-equiv="refresh"')
    expect(back.text).not.toContain('b="<')
  })
})

describe('renewal', () => {
  test('requests that come together renew the session once', async () => {
    const { provider, jar, send, logIn, pass } = await start()
    await logIn()
    const before = new Jar()
    for (const [name, value] of jar.cookies) before.cookies.set(name, value)
    pass(290_000)
    const count = (): number => provider.requests.filter(({ body }) => body.get('grant_type') === 'refresh_token').length
    const results = await Promise.all([send('/'), send('/'), send('/')])
    expect(results.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(results[0]?.response.headers.getSetCookie()).toHaveLength(1)
    expect((await send('/', { cookies: before })).status).toBe(200)
    expect(count()).toBe(1)
    pass(290_000)
    await send('/')
    expect(count()).toBe(2)
  })

  test('a session outlives a provider that fails while its tokens are valid, and ends with an error after it', async () => {
    const { provider, send, logIn, pass } = await start()
    await logIn()
    Object.assign(provider.behaviour, { status: 500 })
    pass(280_000)
    expect((await send('/')).status).toBe(200)
    pass(30_000)
    expect((await send('/')).status).toBe(503)
    Object.assign(provider.behaviour, { status: 200 })
    expect((await send('/')).status).toBe(200)
  })

  test.each<[string, object]>([
    ['is rejected', { status: 400, tokens: { error: 'invalid_grant' } }],
    ['is of another user', { claims: { sub: 'bob' } }],
  ])('a session ends when its renewal %s', async (_, behaviour) => {
    const { provider, send, logIn, pass } = await start()
    await logIn()
    Object.assign(provider.behaviour, behaviour)
    pass(310_000)
    expect((await send('/')).status).toBe(302)
    expect((await send('/', { headers: { accept: 'application/json' } })).status).toBe(401)
  })

  test('without a refresh token a session ends with its tokens, and with one at its lifetime', async () => {
    const short = await start()
    short.provider.behaviour.tokens = { refresh_token: undefined }
    await short.logIn()
    short.pass(290_000)
    expect((await short.send('/')).status).toBe(200)
    short.pass(20_000)
    expect((await short.send('/')).status).toBe(302)
    const long = await start({ lifetime: '6m' })
    await long.logIn()
    long.pass(290_000)
    expect((await long.send('/')).status).toBe(200)
    long.pass(80_000)
    expect((await long.send('/')).status).toBe(302)
  })
})

describe('the provider', () => {
  test('has new keys', async () => {
    const { provider, logIn, send, pass } = await start()
    await logIn()
    await provider.rotateKeys()
    pass(20_000)
    expect((await send(provider.login((await send('/', { cookies: new Jar() })).location))).status).toBe(403)
    const jar = new Jar()
    expect((await send(provider.login((await send('/', { cookies: jar })).location), { cookies: jar })).status).toBe(303)
  })

  test.each<[string, Record<string, unknown>]>([
    ['is of another issuer', { issuer: 'https://evil.example' }],
    ['has a token endpoint on another host', { token_endpoint: 'http://169.254.169.254/token' }],
    ['has an authorization endpoint that is no URL for browsers', { authorization_endpoint: 'javascript:alert(1)' }],
    ['has no keys', { jwks_uri: undefined }],
  ])('cannot be used if its discovery document %s, and is asked again later', async (_, document) => {
    const { provider, send, pass } = await start()
    provider.behaviour.document = document
    const { status, response } = await send('/')
    expect({ status, retry: response.headers.get('retry-after') }).toEqual({ status: 503, retry: '5' })
    provider.behaviour.document = {}
    expect((await send('/')).status).toBe(503)
    pass(11_000)
    expect((await send('/')).status).toBe(302)
  })

  test('gets the secret of the client by Basic, or in the body', async () => {
    const { provider, logIn } = await start({ clientAuthentication: 'Body' })
    await logIn()
    const { body, authorization } = provider.requests.find(({ path }) => path.endsWith('/token')) ?? {}
    expect({ id: body?.get('client_id'), authorization }).toEqual({ id: 'gateway', authorization: undefined })
  })

  test('needs no discovery if all endpoints are given', async () => {
    const { provider, send } = await start({ endpoints: { authorization: 'https://login.example/auth', token: { path: '/t' }, keys: { path: '/k' } } })
    expect((await send('/')).location).toMatch(/^https:\/\/login\.example\/auth\?/)
    expect(provider.requests).toEqual([])
  })
})

describe('logout', () => {
  test('deletes the session and ends it at the provider', async () => {
    const { provider, jar, send, logIn } = await start({ afterLogoutPath: '/bye' })
    await logIn()
    const { status, location } = await send('/oauth2/logout', { headers: { 'sec-fetch-site': 'same-origin' } })
    expect(status).toBe(303)
    const url = new URL(location)
    expect(url.origin + url.pathname).toBe(`${provider.issuer}/logout`)
    expect(url.searchParams.get('post_logout_redirect_uri')).toBe(`${APP}/bye`)
    expect(url.searchParams.get('id_token_hint')).toMatch(/^ey/)
    expect(jar.cookies.size).toBe(0)
  })

  test.each<[string, string, Record<string, string>]>([
    ['a link', 'GET', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling', 'POST', { 'sec-fetch-site': 'same-site' }],
    ['a form without Sec-Fetch-Site', 'POST', { origin: 'https://evil.example' }],
  ])('%s of another site logs nobody out', async (_, method, headers) => {
    const { jar, send, logIn } = await start()
    await logIn()
    expect((await send('/oauth2/logout', { method, headers })).status).toBe(403)
    expect(jar.cookies.size).toBe(1)
  })
})

describe('beside other policies', () => {
  const tokens = { mode: 'Optional', providers: [{ issuer: 'https://tokens.example', jwks: {} }] } as JWTAuthentication

  test('a token that jwtAuthentication of the route accepted needs no session, one of an earlier phase does', async () => {
    const { send } = await start({}, { tokens })
    const as = (iss: string) => ({ headers: {}, prepare: (exchange: Exchange) => variables.jwt.set(exchange, { iss, sub: 'bot' }) })
    expect(await send('/', as('https://tokens.example'))).toMatchObject({ status: 200, jwt: { sub: 'bot' } })
    expect((await send('/', as('https://other.example'))).status).toBe(401)
  })

  test('tokens are forwarded when asked for, in place of those of the client', async () => {
    const { send, logIn } = await start({ forwardAccessToken: true, forwardIdToken: 'X-Id-Token' })
    await logIn()
    const { exchange } = await send('/', { headers: { authorization: 'Bearer forged', 'x-id-token': 'forged' } })
    expect(exchange.request.headers.getAll('authorization')).toEqual([expect.stringMatching(/^Bearer access-/)])
    expect(exchange.request.headers.getAll('x-id-token')).toEqual([expect.stringMatching(/^ey/)])
  })

  test('nobody logs in without a key or without the Secret of the client', async () => {
    const { send } = await start({}, { keys: [] })
    expect(await send('/')).toMatchObject({ status: 503, text: expect.stringContaining('there is no key for sessions') as unknown as string })
    const { send: other } = await start({ secretRef: { secret: 'opaque/a/b' } })
    expect(await other('/')).toMatchObject({ status: 503, text: expect.stringContaining('the Secret of the client is missing') as unknown as string })
  })
})
