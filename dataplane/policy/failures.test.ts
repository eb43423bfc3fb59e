import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import type { BackendFull, Budget, Frontend, JWTProvider, Secret, Traffic } from '#gen/config/types.ts'
import { Exchange } from '../request/exchange/exchange.ts'
import { BufferBody, type Body } from '../http/body.ts'
import { HeaderList } from '../http/headers.ts'
import { LongBody, ManualBody } from '../testing/body.ts'
import { testConnection, testRequest } from '../testing/exchange.ts'
import { makeSigningKey, makeToken } from '../testing/tokens.ts'
import { EncodedBody } from '../http/encoded.ts'
import { UpstreamError } from '../net/upstream/types.ts'
import { compose } from '../request/exchange/compose.ts'
import { compileBudgets } from './budgets/index.ts'
import { createPolicyState } from './state.ts'
import { variables } from '../request/exchange/variables.ts'
import { nowSeconds, start, type Answer, type World } from './failures-testing.ts'

const SHA_SECRET = '{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='

/** A row of docs/guide/failures.md with the test of it. */
const rows: { readonly policy: string; readonly wrong: string; readonly answer: string; run(): Promise<void> }[] = []
const row = (policy: string, wrong: string, answer: string, run: () => Promise<void>): void => void rows.push({ policy, wrong, answer, run })

const bearer = (token: string): [string, string][] => [['authorization', `Bearer ${token}`]]
const basic = (user: string): [string, string][] => [['authorization', `Basic ${Buffer.from(user).toString('base64')}`]]
const secret = (data: Record<string, string>): Secret[] => [{ key: 'opaque/ns/s', type: 'opaque', data }]
const toSecret = { secretRef: { secret: 'opaque/ns/s' } }

const key = makeSigningKey('one')
const claims = { iss: 'i', sub: 'bob', exp: nowSeconds + 300 }
const token = makeToken(key, claims)
const good: JWTProvider = { issuer: 'i', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
const second = makeSigningKey('two')
const jwt = (jwks: NonNullable<JWTProvider['jwks']>, mode?: 'Optional'): Traffic => ({
  jwtAuthentication: { providers: [{ issuer: 'i', jwks }], ...(mode && { mode }) },
})

row('jwtAuthentication', 'its key set was not fetched yet', '401 for every token of that provider', async () => {
  const answer = await start({ traffic: jwt({ remote: { invalid: 'not fetched yet' } }) })(bearer(token))
  expect(answer).toMatchObject({ status: 401, text: 'authentication failure: unknown key', forwarded: [] })
})
row('jwtAuthentication', 'its key set is not JSON or has no usable key', '401 for every token of that provider; other providers work', async () => {
  const working: JWTProvider = { issuer: 'j', jwks: { inline: JSON.stringify({ keys: [second.jwk] }) } }
  for (const inline of ['<html>', JSON.stringify({ keys: [{ kty: 'oct', kid: 'x', k: 'AAAA' }] })]) {
    const send = start({ traffic: { jwtAuthentication: { providers: [{ issuer: 'i', jwks: { inline } }, working] } } })
    expect([(await send(bearer(token))).status, (await send(bearer(makeToken(second, { ...claims, iss: 'j' })))).status]).toEqual([401, 200])
  }
})
row('jwtAuthentication', 'some keys of its key set cannot be used', 'these keys are ignored; tokens of the others are accepted', async () => {
  const inline = JSON.stringify({ keys: [{ kty: 'oct', kid: 'x', k: 'AAAA' }, null, key.jwk] })
  const send = start({ traffic: jwt({ inline }) })
  expect([(await send(bearer(token))).status, (await send(bearer(makeToken(second, claims)))).status]).toEqual([200, 401])
})
row('jwtAuthentication', 'no key set is valid, in mode `Optional`', '401 for every token; requests without one are admitted', async () => {
  const send = start({ traffic: jwt({ inline: 'garbage' }, 'Optional') })
  expect([(await send(bearer(token))).status, (await send()).status]).toEqual([401, 200])
})
row('jwtAuthentication', 'the clocks differ by up to a minute', 'no effect', async () => {
  for (const seconds of [claims.exp + 59, nowSeconds]) {
    const send = start({ traffic: { jwtAuthentication: { providers: [good] } }, seconds: () => seconds })
    expect((await send(bearer(seconds === nowSeconds ? makeToken(key, { ...claims, nbf: nowSeconds + 59 }) : token))).status).toBe(200)
  }
})
row('jwtAuthentication', 'the clocks differ by more than a minute', '401 `ExpiredSignature` or `ImmatureSignature`', async () => {
  const traffic = { jwtAuthentication: { providers: [good] } }
  expect((await start({ traffic, seconds: () => claims.exp + 61 })(bearer(token))).text).toBe('authentication failure: ExpiredSignature')
  const early = makeToken(key, { ...claims, nbf: nowSeconds + 61 })
  expect((await start({ traffic })(bearer(early))).text).toBe('authentication failure: ImmatureSignature')
})
row('jwtAuthentication', 'the token is longer than 16 KiB', '401 without parsing it', async () => {
  const answer = await start({ traffic: { jwtAuthentication: { providers: [good] } } })(bearer('x'.repeat(16_385)))
  expect(answer).toMatchObject({ status: 401, text: 'authentication failure: token too long', forwarded: [] })
})

row('jwtAuthentication', 'the introspection endpoint fails, or the Secret of its client is missing', '503 for every token that needs it', async () => {
  const introspection = { backendRef: { invalid: 'BACKEND_NOT_FOUND' }, path: '/introspect', ...toSecret } as const
  const traffic: Traffic = { jwtAuthentication: { providers: [good, { issuer: 'j', introspection }] } }
  const secrets = secret({ clientId: 'a', clientSecret: 'b' })
  for (const world of [{ traffic }, { traffic, secrets }]) {
    expect(await start(world)(bearer('opaque'))).toMatchObject({ status: 503, forwarded: [] })
    expect((await start(world)(bearer(token))).status).toBe(200)
  }
})

row('basicAuthentication', 'the Secret is missing, in any mode', '401 for all requests', async () => {
  for (const mode of ['Strict', 'Optional'] as const) {
    const send = start({ traffic: { basicAuthentication: { mode, ...toSecret } } })
    expect([(await send()).status, (await send(basic('ann:secret'))).status]).toEqual([401, 401])
  }
})
row('basicAuthentication', 'the Secret has no entry `.htaccess`', '401 for all requests', async () => {
  const send = start({ traffic: { basicAuthentication: toSecret }, secrets: secret({ users: `ann:${SHA_SECRET}` }) })
  expect((await send(basic('ann:secret'))).status).toBe(401)
})
row('basicAuthentication', 'a line is not a user with a hash', 'the line is skipped; others work', async () => {
  const send = start({ traffic: { basicAuthentication: toSecret }, secrets: secret({ '.htaccess': `bob:secret\nnobody\nann:${SHA_SECRET}` }) })
  expect([(await send(basic('ann:secret'))).status, (await send(basic('bob:secret'))).status]).toEqual([200, 401])
})

const oidc: Traffic['oidc'] = { issuer: 'https://login.example.com', backendRef: { invalid: 'BACKEND_NOT_FOUND' }, clientId: 'gateway' }
const navigates: [string, string][] = [['sec-fetch-mode', 'navigate']]
row('oidc', 'the Secret of the client is missing, or the provider does not respond', '503 for all requests without a session', async () => {
  expect(await start({ traffic: { oidc: { ...oidc, ...toSecret } } })(navigates)).toMatchObject({ status: 503, forwarded: [] })
  expect(await start({ traffic: { oidc } })(navigates)).toMatchObject({ status: 503, forwarded: [] })
})
row('oidc', 'a cookie was changed, or is of an earlier SESSION_KEY', 'as without a session', async () => {
  const send = start({
    traffic: { oidc: { ...oidc, endpoints: { authorization: 'https://login.example.com/a', token: { path: '/t' }, keys: { path: '/k' } } } },
  })
  expect((await send([...navigates, ['cookie', '__Host-proxy-session-0000000000=1.AAAA']])).status).toBe(302)
  expect((await send([['cookie', '__Host-proxy-session-0000000000=1.AAAA']])).status).toBe(401)
})

row('apiKeyAuthentication', 'the Secret is missing, in mode `Strict` or `Optional`', '401 for all requests', async () => {
  for (const mode of ['Strict', 'Optional'] as const) {
    const send = start({ traffic: { apiKeyAuthentication: { mode, ...toSecret } } })
    expect([(await send()).status, (await send(bearer('k'))).status]).toEqual([401, 401])
  }
})
row('apiKeyAuthentication', 'the Secret is missing, in mode `Permissive`', 'requests are admitted without a key', async () => {
  const { status, exchange } = await start({ traffic: { apiKeyAuthentication: { mode: 'Permissive', ...toSecret } } })(bearer('k'))
  expect([status, variables.apiKey.get(exchange)]).toEqual([200, undefined])
})
row('apiKeyAuthentication', 'an entry is not a key', 'the entry is skipped; others work', async () => {
  const send = start({ traffic: { apiKeyAuthentication: toSecret }, secrets: secret({ a: '{"key":', b: '{"key":"k-b"}' }) })
  expect([(await send(bearer('k-b'))).status, (await send(bearer('{"key":'))).status]).toEqual([200, 401])
})

const rule = (expression: string, action: 'Allow' | 'Deny' | 'Require' = 'Allow'): Traffic => ({
  authorization: { action, policy: { matchExpressions: [expression] } },
})
const failing = ['jwt.sub == "bob"', 'request.path ==', '1', 'response.code == 200']
row('authorization', 'an expression of `Allow` does not compile or fails', 'it allows no request', async () => {
  for (const expression of failing) expect((await start({ traffic: rule(expression) })()).status).toBe(403)
})
row('authorization', 'an expression of `Require` does not compile or fails', '403', async () => {
  for (const expression of failing) expect((await start({ traffic: rule(expression, 'Require') })()).status).toBe(403)
})
row('authorization', 'an expression of `Deny` does not compile', '403 for all requests', async () => {
  for (const expression of ['request.path ==', 'nobody.knows', 'response.code == 200'])
    expect((await start({ traffic: rule(expression, 'Deny') })()).status).toBe(403)
})
row('authorization', 'an expression of `Deny` fails for another reason', '403', async () => {
  for (const expression of ['1', 'int(request.path) > 1', 'json(request.body).a == 1'])
    expect((await start({ traffic: rule(expression, 'Deny') })([], new BufferBody('no JSON'))).status).toBe(403)
})
row('authorization', 'an expression of `Deny` reads a value that is absent', 'it denies no request; other rules apply', async () => {
  expect((await start({ traffic: rule('jwt.sub == "bob"', 'Deny') })()).status).toBe(200)
  const both: Traffic = { authorization: { action: 'Deny', policy: { matchExpressions: ['jwt.sub == "bob"', 'request.path == "/a"'] } } }
  expect((await start({ traffic: both })()).status).toBe(403)
})
const past = 2 * 1024 * 1024 + 1
row('authorization', '`request.body` of a body above the buffer limit', 'the expression fails; `bodyPrefix` is available', async () => {
  expect((await start({ traffic: rule('size(request.body) > 0') })([], new LongBody(past))).status).toBe(403)
  const { status, forwarded } = await start({ traffic: rule('size(request.bodyPrefix) == 2097152') })([], new LongBody(past))
  expect([status, forwarded[0]?.bytes]).toEqual([200, past])
})
row('authorization', 'the request body ends early', '503, nothing is forwarded', async () => {
  const body = new ManualBody()
  const answer = start({ traffic: rule('size(request.body) >= 0') })([], body)
  await Promise.resolve()
  body.fail(new Error('reset'))
  expect(await answer).toMatchObject({ status: 503, forwarded: [] })
})
row('authorization', 'the request body takes longer than the request timeout', '504, nothing is forwarded', async () => {
  const traffic: Traffic = { ...rule('size(request.body) >= 0'), timeouts: { request: '20ms' } }
  expect(await start({ traffic })([], new ManualBody())).toMatchObject({ status: 504, text: 'request timeout', forwarded: [] })
})

row('rateLimit.local', 'the system clock is changed', 'no effect: a monotonic clock is used', async () => {
  let seconds = nowSeconds
  const send = start({ traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } }, seconds: () => seconds })
  const statuses = []
  for (const set of [0, 86_400, -86_400]) {
    seconds = nowSeconds + set
    statuses.push((await send()).status)
  }
  expect(statuses).toEqual([200, 429, 429])
})

row('rateLimit.local', 'the expression of `key` does not compile or fails', 'all such requests share one budget', async () => {
  for (const expression of ['(((', 'jwt.sub']) {
    const send = start({ traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours', key: expression }] } } })
    expect([(await send()).status, (await send()).status]).toEqual([200, 429])
  }
})

const budgetOf = (more: Partial<Budget>): Traffic => ({ budgets: [{ name: 'b', limits: [{ requests: 1, window: 'Day' }], ...more }] })
row('budgets', 'the expression of `key` does not compile, fails or is null', '403; with `onMissingKey: Ignore` the request is not charged', async () => {
  for (const expression of ['(((', 'jwt.sub', 'null']) {
    expect((await start({ traffic: budgetOf({ key: expression }) })()).status).toBe(403)
    const send = start({ traffic: budgetOf({ key: expression, onMissingKey: 'Ignore' }) })
    expect([(await send()).status, (await send()).status]).toEqual([200, 200])
  }
})
/** Sends an LLM request of a model without a price through a budget. */
async function sendUnpriced(budget: Partial<Budget>, seconds = nowSeconds): Promise<number | undefined> {
  const exchange = new Exchange(testConnection, testRequest(), performance.now())
  const llm = async (): Promise<void> => {
    await exchange.tokenBudgets?.check(0, { model: 'm', promptTokens: 1, maxTokens: 1, priceOf: undefined })
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  }
  const section = { policy: 'ns/p', budgets: [{ name: 'b', limits: [{ usd: '1', window: 'Day' }], ...budget }] }
  await compose([compileBudgets([section], createPolicyState({ epochMs: () => seconds * 1000 }))], llm)(exchange)
  return exchange.response?.status
}
row('budgets', 'the expression of `models` does not compile or fails', 'the budget applies', async () => {
  for (const models of ['(((', 'jwt.sub == "a"']) expect(await sendUnpriced({ models })).toBe(403)
  expect(await sendUnpriced({ models: 'false' })).toBe(200)
})
row('budgets', 'a model has no price, under a limit of dollars', '403; with `unpriced: Allow` it costs nothing', async () => {
  expect([await sendUnpriced({}), await sendUnpriced({ unpriced: 'Allow' })]).toEqual([403, 200])
})
row('budgets', '`onExceeded` is none of its values', 'the budget rejects; the status says so', async () => {
  const send = start({ traffic: budgetOf({ onExceeded: 'Stop' }) })
  expect([(await send()).status, (await send()).status]).toEqual([200, 429])
})
row('budgets', 'the replica restarts', 'what was spent is forgotten, unless `scope: Gateway`, `store` or `config.budgets.sqlite`', async () => {
  for (let replica = 0; replica < 2; replica++) expect((await start({ traffic: budgetOf({}) })()).status).toBe(200)
})
const ALONE = '503; with `onDisconnect: Allow` the full budget holds for this replica'
async function expectAlone(how: Partial<Pick<Budget, 'scope' | 'store' | 'quotaService'>>): Promise<void> {
  const statusesOf = async (onDisconnect: 'Reject' | 'Allow'): Promise<(number | undefined)[]> => {
    const budgets: Budget[] = [{ name: 'b', ...how, onDisconnect, limits: [{ requests: 1, window: 'Day' }] }]
    const none = async (): Promise<boolean> => false
    const policy = compileBudgets([{ policy: 'ns/p', budgets }], createPolicyState({ shares: { want: none }, quotas: { assign: none } }))
    const send = async (): Promise<number | undefined> => {
      const exchange = new Exchange(testConnection, testRequest(), performance.now())
      await compose([policy], async () => {
        exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
      })(exchange)
      return exchange.response?.status
    }
    return [await send(), await send()]
  }
  expect([await statusesOf('Reject'), await statusesOf('Allow')]).toEqual([
    [503, 503],
    [200, 429],
  ])
}
row('budgets', '`scope: Gateway`, and the replica gets no share from the operator', ALONE, () => expectAlone({ scope: 'Gateway' }))
row('budgets', '`store: Redis`, and Redis does not respond within 250 ms or is not configured', ALONE, () => expectAlone({ store: 'Redis' }))
row('budgets', '`store: Postgres`, and PostgreSQL does not respond within 250 ms or is not configured', ALONE, () => expectAlone({ store: 'Postgres' }))
const LIMIT_ALONE = '503; with `onDisconnect: Allow` the limit of the budget holds for this replica'
const quotaService = { backendRef: { address: 'quota.test:1' }, domain: 'shop' }
row('budgets', '`quotaService`, and no assignment of the service is in force', LIMIT_ALONE, () => expectAlone({ quotaService }))
row('budgets', 'the system clock is set back', 'a window that ended does not begin again', async () => {
  let seconds = nowSeconds + 86_400
  const send = start({ traffic: budgetOf({}), seconds: () => seconds })
  expect((await send()).status).toBe(200)
  seconds -= 86_400
  expect((await send()).status).toBe(429)
})

const withHeader = { request: { set: [{ name: 'x-user', value: 'jwt.sub' }] } }
row('transformation', 'the value of a header fails', 'the header is removed, also if the client sent it', async () => {
  const { forwarded } = await start({ traffic: { transformation: withHeader } })([
    ['x-user', 'root'],
    ['X-User', 'root'],
    ['x-other', '1'],
  ])
  expect(forwarded[0]?.headers).toEqual({ 'x-other': '1' })
})
row('transformation', 'the value of a pseudo header fails', 'the pseudo header is unchanged', async () => {
  const { forwarded } = await start({ traffic: { transformation: { request: { set: [{ name: ':path', value: 'jwt.sub' }] } } } })()
  expect(forwarded[0]?.target).toBe('/a')
})
row('transformation', 'the expression of a body fails', 'the body is empty', async () => {
  const traffic: Traffic = { transformation: { request: { body: 'jwt.sub' }, response: { body: 'jwt.sub' } } }
  const { forwarded, text, status } = await start({ traffic })([], new BufferBody('secret'))
  expect([forwarded[0]?.bytes, text, status]).toEqual([0, '', 200])
})
row('transformation', 'the value of a metadata entry fails', 'the entry is left out', async () => {
  const traffic: Traffic = {
    transformation: { request: { metadata: { bad: 'jwt.sub', good: '"x"' }, set: [{ name: 'x-a', value: 'metadata.good + string(has(metadata.bad))' }] } },
  }
  expect((await start({ traffic })()).forwarded[0]?.headers['x-a']).toBe('xfalse')
})
row('transformation', '`request.body` of a body above the buffer limit', 'the expression fails; the body is forwarded unchanged', async () => {
  const traffic: Traffic = { transformation: { request: { set: [{ name: 'x-a', value: 'size(request.body)' }] } } }
  const { forwarded, status } = await start({ traffic })([['x-a', '1']], new LongBody(past))
  expect([status, forwarded]).toEqual([200, [{ target: '/a', headers: {}, bytes: past }]])
})

const stored = { answerHeaders: { 'cache-control': 'max-age=60', etag: '"1"' } }
/** Requests to the backend, of two equal ones. */
const countOfTwo = async (send: ReturnType<typeof start>): Promise<number> => (await send()).forwarded.length + (await send()).forwarded.length

row('cache', 'the expression of `tenant` fails', 'the request is forwarded, its response is not stored', async () => {
  expect(await countOfTwo(start({ traffic: { cache: {} }, ...stored }))).toBe(1)
  expect(await countOfTwo(start({ traffic: { cache: { tenant: 'jwt.sub' } }, ...stored }))).toBe(2)
})
row('cache', '`cache-control` of the upstream cannot be read', 'the response is not stored', async () => {
  expect(await countOfTwo(start({ traffic: { cache: {} }, answerHeaders: { 'cache-control': 'max-age=60, "' } }))).toBe(2)
})
row('cache', 'the upstream responds 304 for another ETag than the stored one', 'the request is sent again without conditions', async () => {
  const answerHeaders = { 'cache-control': 'max-age=0', etag: '"1"' }
  const send = start({ traffic: { cache: {} }, answerHeaders, answer: (headers) => ('if-none-match' in headers ? 304 : 200) })
  await send()
  answerHeaders.etag = '"2"'
  const { status, text, forwarded } = await send()
  expect([status, text, forwarded.map(({ headers }) => headers['if-none-match'])]).toEqual([200, 'ok', ['"1"', undefined]])
})
row('cache', 'the upstream fails while a stale response is stored', 'its error; the stale response is not used', async () => {
  const headers = { 'cache-control': 'max-age=0', etag: '"1"' }
  let isDown = false
  const answerHeaders = new Proxy(headers, {
    ownKeys: (target) => {
      if (isDown) throw new UpstreamError('connect', 'refused')
      return Reflect.ownKeys(target)
    },
  })
  const send = start({ traffic: { cache: {} }, answerHeaders })
  expect((await send()).status).toBe(200)
  isDown = true
  expect((await send()).status).toBe(503)
})

const hasCors = ({ headers }: Answer): boolean => headers?.has('access-control-allow-origin') ?? false
row('cors', 'the value of `Origin` is invalid', 'no CORS headers', async () => {
  const send = start({ traffic: { cors: { allowOrigins: ['https://*.example.com'] } } })
  expect(hasCors(await send([['origin', 'https://a.example.com']]))).toBe(true)
  for (const origin of ['https://a.example.com/', 'null', 'https://a.example.com:0', 'javascript://a.example.com', ''])
    expect([origin, hasCors(await send([['origin', origin]]))]).toEqual([origin, false])
})
const csrf = async (...origins: string[]): Promise<Answer> =>
  start({ traffic: { csrf: { additionalOrigins: ['https://a.com'] } } })(
    origins.map((origin) => ['origin', origin]),
    new BufferBody('x'),
  )
row('csrf', 'there are two values of `Origin`', '403', async () => {
  expect((await csrf('https://a.com')).status).toBe(200)
  expect((await csrf('https://a.com', 'https://b.com')).status).toBe(403)
})
row('csrf', 'the value of `Origin` is invalid', '403', async () => expect((await csrf('https://a.com/path')).status).toBe(403))

row('ipAllowList', 'the address of the client is unknown', '403', async () => {
  const world: World = { traffic: { ipAllowList: { deny: ['10.0.0.0/8'] } } }
  expect(await start(world)()).toMatchObject({ status: 200 })
  expect(await start({ ...world, remoteAddress: '' })()).toMatchObject({ status: 403, forwarded: [] })
})

row('responseOverride', 'the ConfigMap of `bodyRef` is missing', 'the rule applies with an empty body', async () => {
  const rules = [{ match: { statusCodes: ['500'] }, response: { status: 502, bodyRef: { invalid: 'ConfigMap ns/pages not found' } } }]
  expect(await start({ traffic: { responseOverride: { rules } }, answer: 500 })()).toMatchObject({ status: 502, text: '' })
})
row('responseOverride', 'the condition does not compile or fails', 'the rule does not apply', async () => {
  for (const condition of ['response.code ==', 'jwt.sub == "x"']) {
    const rules = [{ match: { condition }, response: { status: 502 } }]
    expect(await start({ traffic: { responseOverride: { rules } } })()).toMatchObject({ status: 200, text: 'ok' })
  }
})
row('faultInjection', 'the expression of `when` does not compile or fails', 'the request has no faults', async () => {
  for (const when of ['request.path ==', 'jwt.sub == "x"', '1 / 0 == 1'])
    expect(await start({ traffic: { faultInjection: { abort: {}, when } } })()).toMatchObject({ status: 200, text: 'ok' })
})
row('faultInjection', 'the delay is longer than the timeout of the request', '504 at the timeout', async () => {
  const send = start({ traffic: { faultInjection: { delay: { duration: '1h' } }, timeouts: { request: '10ms' } } })
  expect(await send()).toMatchObject({ status: 504, forwarded: [] })
})
row('directResponse', '`bodyExpression` fails', '500', async () => {
  expect(await start({ traffic: { directResponse: { status: 200, bodyExpression: 'jwt.sub' } } })()).toMatchObject({ status: 500, forwarded: [] })
})
row('directResponse', 'the value of a header fails', 'the header is omitted', async () => {
  const headers = [{ name: 'x-user', value: 'jwt.sub' }]
  const answer = await start({ traffic: { directResponse: { status: 200, body: 'tea', headers } } })()
  expect([answer.status, answer.text, answer.headers?.has('x-user')]).toEqual([200, 'tea', false])
})
row('directResponse', 'the expression of `when` reads an absent value', 'the request is forwarded', async () => {
  expect(await start({ traffic: { directResponse: { status: 503, when: 'request.headers["x-a"] == "1"' } } })()).toMatchObject({ status: 200, text: 'ok' })
})
row('transformation', 'the expression of `when` reads an absent value', 'no changes', async () => {
  const request = { set: [{ name: 'x-b', value: '"1"' }] }
  const { forwarded } = await start({ traffic: { transformation: { request, when: 'request.headers["x-a"] == "1"' } } })()
  expect(forwarded[0]?.headers).not.toHaveProperty('x-b')
})
row('rateLimit.local', 'the expression of `when` does not compile or fails', 'the limit applies', async () => {
  for (const when of ['request.path ==', 'request.headers["x-a"] == "1"']) {
    const send = start({ traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours', when }] } } })
    expect([(await send()).status, (await send()).status]).toEqual([200, 429])
  }
})
row('requestBody', 'the body is longer than `maxSize`', '413, nothing is forwarded', async () => {
  const send = start({ traffic: { requestBody: { maxSize: 3 } } })
  for (const body of [new BufferBody('1234'), new LongBody(4)]) expect(await send([], body)).toMatchObject({ status: 413, forwarded: [] })
  expect(await send([], new BufferBody('123'))).toMatchObject({ status: 200, forwarded: [{ bytes: 3 }] })
})
row('requestBody', 'a body of unknown length breaks off', '503, nothing is forwarded', async () => {
  const body = new ManualBody()
  const answer = start({ traffic: { requestBody: { maxSize: 3 } } })([], body)
  body.fail(new Error('reset'))
  expect(await answer).toMatchObject({ status: 503, forwarded: [] })
})
row('bandwidthLimit', 'the rate is used up', 'the body waits, until the timeout of the request', async () => {
  const send = start({ traffic: { bandwidthLimit: { request: { bytesPerSecond: 1024 } }, timeouts: { request: '50ms' } } })
  expect(await send([], new BufferBody('x'.repeat(100)))).toMatchObject({ status: 200, forwarded: [{ bytes: 100 }] })
  expect(await send([], new BufferBody('x'.repeat(1000)))).toMatchObject({ status: 504, forwarded: [] })
})
row('decompression', 'the coding is unknown', '415', async () => {
  const send = start({ traffic: { decompression: {} } })
  expect(await send([['content-encoding', 'lzw']], new BufferBody('x'))).toMatchObject({ status: 415, forwarded: [] })
})
row('decompression', 'the body does not match its coding', '400', async () => {
  expect(await start({ traffic: { decompression: {} } })([['content-encoding', 'gzip']], new BufferBody('x'))).toMatchObject({ status: 400, forwarded: [] })
})
row('decompression', 'the body is longer than `maxSize`', '413', async () => {
  const send = start({ traffic: { decompression: { maxSize: 1000 } } })
  const fields: [string, string][] = [['content-encoding', 'gzip']]
  expect(await send(fields, new BufferBody(gzipSync(Buffer.alloc(1000))))).toMatchObject({ status: 200, forwarded: [{ bytes: 1000 }] })
  expect(await send(fields, new BufferBody(gzipSync(Buffer.alloc(1001))))).toMatchObject({ status: 413, forwarded: [] })
})
row('compression', '256 responses of a worker are being compressed', 'further responses are sent as they are', async () => {
  const send = start({ traffic: { compression: { minContentLength: 0 } }, answerHeaders: { 'content-type': 'text/plain' } })
  const codingOf = async (): Promise<string | undefined> => (await send([['accept-encoding', 'gzip']])).headers?.get('content-encoding')
  const busy = Array.from({ length: 256 }, () => new EncodedBody(new ManualBody(), 'gzip'))
  for (const body of busy) body.start({ onData() {}, onEnd() {}, onError() {} })
  expect(await codingOf()).toBeUndefined()
  busy[0]?.cancel()
  expect(await codingOf()).toBe('gzip')
  for (const body of busy) body.cancel()
})
row('frontend.http.clientIP', 'a trusted proxy sends no usable address, with FailClosed', '403', async () => {
  const send = start({ frontend: { http: { clientIP: { trustedHops: 1 } } } })
  expect(await send([['x-forwarded-for', '192.0.2.1']])).toMatchObject({ status: 200 })
  expect(await send([['x-forwarded-for', '192.0.2.1, unknown']])).toMatchObject({ status: 403, text: 'client address unknown', forwarded: [] })
})
row('frontend.http.clientIP', 'a trusted proxy sends no usable address, with FailOpen', 'the address of the proxy is used', async () => {
  const frontend: Frontend = { http: { clientIP: { header: 'x-real-ip', failureMode: 'FailOpen' } } }
  const { status, exchange } = await start({ frontend, traffic: { ipAllowList: { allow: ['127.0.0.1'] } } })([['x-real-ip', 'unknown']])
  expect([status, exchange.connection.remoteAddress]).toEqual([200, '127.0.0.1'])
})

row('retry', 'the body is too long to be replayed', 'one attempt', async () => {
  const world: World = { route: { retry: { codes: [503], attempts: 3 } }, answer: 503 }
  expect((await start(world)([], new BufferBody('short'))).forwarded).toHaveLength(4)
  expect((await start(world)([], new LongBody(100 * 1024))).forwarded).toHaveLength(1)
})
row('timeouts', 'the backend does not respond in time', '504', async () => {
  expect(await start({ traffic: { timeouts: { request: '20ms' } }, answer: 'never' })()).toMatchObject({ status: 504, text: 'request timeout' })
})
row('directResponse', 'the Secret of `keySet` is missing, or its entry `key` cannot sign', '500', async () => {
  const traffic: Traffic = { directResponse: { status: 200, keySet: toSecret } }
  expect((await start({ traffic })()).status).toBe(500)
  expect((await start({ traffic, secrets: secret({ key: 'x' }) })()).status).toBe(500)
})
row('directResponse', 'an earlier authentication rejects the request', '401 of the authentication', async () => {
  const send = start({ traffic: { ...jwt({ inline: 'garbage' }), directResponse: { status: 200, body: 'tea' } } })
  expect(await send(bearer(token))).toMatchObject({ status: 401, text: 'authentication failure: unknown key' })
})

const nowhere = { backendRef: { invalid: 'BACKEND_NOT_FOUND' } } as const
const open = { failureMode: 'FailOpen' } as const
const silent = { backendRef: { backend: 'ns/api' } } as const
const callOut = (traffic: Traffic, body?: Body) => start({ traffic })([['x-user', 'bob']], body)
/** Sends a request to a policy whose service refuses connections. */
const callSilent = async (traffic: Traffic) => (await start({ traffic, answer: 'refused' })()).text
row('extAuth', 'the server is missing or does not respond', '403, nothing is forwarded', async () => {
  for (const protocol of [{ grpc: {} }, { http: {} }])
    expect(await callOut({ extAuth: { ...nowhere, ...protocol } })).toMatchObject({ status: 403, text: 'external authorization failed', forwarded: [] })
  expect(await callSilent({ extAuth: { ...silent, grpc: {} } })).toBe('external authorization failed')
})
row('extAuth', 'the same, with `failureMode: FailOpen`', 'the request is forwarded', async () => {
  for (const protocol of [{ grpc: {} }, { http: {} }]) expect((await callOut({ extAuth: { ...nowhere, ...protocol, ...open } })).forwarded).toHaveLength(1)
})
row('extAuth', 'the body is longer than `forwardBody.maxSize`, in any failure mode', '413, nothing is forwarded', async () => {
  for (const mode of [{}, open]) {
    const extAuth = { ...nowhere, ...mode, grpc: {}, forwardBody: { maxSize: 4 } }
    expect(await callOut({ extAuth }, new BufferBody('12345'))).toMatchObject({ status: 413, forwarded: [] })
  }
})
row('extProc', 'the processor is missing or does not respond', '500, nothing is forwarded', async () => {
  expect(await callOut({ extProc: nowhere })).toMatchObject({ status: 500, text: expect.stringMatching(/^ext_proc failed: /), forwarded: [] })
  expect(await callSilent({ extProc: silent })).toMatch(/^ext_proc failed: /)
})
row('extProc', 'the same, with `failureMode: FailOpen`', 'the request is forwarded unchanged', async () => {
  expect((await callOut({ extProc: { ...nowhere, ...open } }, new BufferBody('12345'))).forwarded).toEqual([
    { target: '/a', headers: { 'x-user': 'bob' }, bytes: 5 },
  ])
})
const counted = (expression: string) => ({ domain: 'd', descriptors: [{ entries: [{ name: 'n', expression }] }] })
const withPlugin = (failureMode: 'FailClosed' | 'FailOpen'): Traffic => ({
  plugins: [{ name: 'p', source: { configMapRef: { invalid: 'ConfigMap ns/p not found' } }, failureMode }],
})
row('plugins', 'the plugin cannot be loaded or throws', '500, nothing is forwarded', async () => {
  expect(await start({ traffic: withPlugin('FailClosed') })()).toMatchObject({ status: 500, text: 'plugin failed', forwarded: [] })
})
row('plugins', 'the same, with `failureMode: FailOpen`', 'the request is forwarded unchanged', async () => {
  expect((await start({ traffic: withPlugin('FailOpen') })()).forwarded).toHaveLength(1)
})
row('plugins', '`isolation: InProcess` without the permission of the Gateway', '500, nothing is forwarded', async () => {
  const code = `export default { setup: () => ({ request: (c, next) => next() }) }`
  const traffic: Traffic = { plugins: [{ name: 'p', source: { configMapRef: { code } }, isolation: 'InProcess' }] }
  expect(await start({ traffic })()).toMatchObject({ status: 500, text: 'plugin failed', forwarded: [] })
})
row('rateLimit.global', 'the service is missing or does not respond', '500, nothing is forwarded', async () => {
  const answer = await callOut({ rateLimit: { global: { ...nowhere, ...counted('"x"') } } })
  expect(answer).toMatchObject({ status: 500, text: 'rate limit failed', forwarded: [] })
  expect(await callSilent({ rateLimit: { global: { ...silent, ...counted('"x"') } } })).toBe('rate limit failed')
})
row('rateLimit.global', 'the same, with `failureMode: FailOpen`', 'the request is forwarded', async () => {
  expect((await callOut({ rateLimit: { global: { ...nowhere, ...open, ...counted('"x"') } } })).forwarded).toHaveLength(1)
})
row('rateLimit.global', 'an expression of a descriptor fails', 'the descriptor is left out; without descriptors the request is forwarded', async () => {
  expect((await callOut({ rateLimit: { global: { ...nowhere, ...counted('jwt.sub') } } })).forwarded).toHaveLength(1)
})

const upstreamFails = async (backend: BackendFull, secrets: Secret[], status: number, text: string): Promise<void> =>
  expect(await start({ backend, secrets })()).toMatchObject({ status, text: expect.stringContaining(text), forwarded: [] })
row('backend.auth', 'the Secret is missing', '500, nothing is forwarded', () =>
  upstreamFails({ auth: toSecret }, [], 500, 'backend authentication failed: the Secret of secretRef does not resolve'),
)
row('backend.auth', 'the Secret has no entry `Authorization`', '500, nothing is forwarded', () =>
  upstreamFails({ auth: toSecret }, secret({ token: 't' }), 500, 'backend authentication failed: the Secret of secretRef has no entry Authorization'),
)
row('backend.tls', 'the CA certificates are missing', '503, nothing is forwarded', () =>
  upstreamFails({ tls: { caCertificateRefs: [{ secret: 'gone' }] } }, [], 503, 'upstream call failed: the ConfigMap of caCertificateRefs does not resolve'),
)
row('backend.tls', 'the client certificate is missing', '503, nothing is forwarded', () =>
  upstreamFails({ tls: { mtlsCertificateRef: [{ secret: 'gone' }] } }, [], 503, 'upstream call failed: the Secret of mtlsCertificateRef does not resolve'),
)
row('backend.tunnel', 'the proxy server is missing', '503, nothing is forwarded', () =>
  upstreamFails({ tunnel: { backendRef: { invalid: 'BACKEND_NOT_FOUND' } } }, [], 503, 'upstream call failed: connection failed'),
)
row('backend.transformation', 'the value of a header fails', 'the header is removed, also if the client sent it', async () => {
  expect((await start({ backend: { transformation: withHeader } })([['x-user', 'root']])).forwarded[0]?.headers).toEqual({})
})
row('sessionPersistence', 'the token is expired, forged, or its endpoint is gone', 'forwarded, to an endpoint as for a new client', async () => {
  const { status, headers } = await start({ route: { sessionPersistence: { type: 'Cookie', name: 's' } } })([['cookie', 's=forged']])
  expect(status).toBe(200)
  expect(headers?.get('set-cookie')).toMatch(/^s=/)
})
row('backend.loadBalancer', 'the request has no key', 'forwarded, to an endpoint as `LeastRequest` selects it', async () => {
  const loadBalancer = { type: 'ConsistentHash', consistentHash: { type: 'Header', name: 'x-user' } } as const
  expect(await start({ backend: { loadBalancer } })()).toMatchObject({ status: 200 })
})
row('backend.health', 'the condition does not compile or fails', 'responses count as healthy, failed calls as unhealthy', async () => {
  for (const unhealthyCondition of ['jwt.sub == "x"', 'response.code ==']) {
    const health = { unhealthyCondition, eviction: {} }
    expect(await start({ backend: { health }, answer: 500 })()).toMatchObject({ status: 500, evictions: 0 })
    expect(await start({ backend: { health }, answer: 'refused' })()).toMatchObject({ status: 503, evictions: 1 })
  }
})

row('backend.health.active', 'checks of all endpoints fail, or cannot be made', 'requests are sent nevertheless', async () => {
  const active = { interval: '1ms', jitter: '0s', unhealthyThreshold: 1, http: { path: '/health' } }
  for (const answer of [503, 'refused'] as const) {
    let isOut = false
    const send = start({ backend: { health: { active } }, answer, onFailing: () => void (isOut = true) })
    while (!isOut) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(await send()).toMatchObject({ status: 503, evictions: 0 })
  }
})

describe('the behavior of policies in case of errors', () => {
  test.each(rows.map((each) => [`${each.policy}: ${each.wrong}: ${each.answer}`, each] as const))('%s', (_, { run }) => run())

  test('is documented in docs/guide/failures.md row by row', () => {
    const text = readFileSync(join(import.meta.dirname, '../../docs/guide/failures.md'), 'utf8')
    const documented = [...text.matchAll(/^\| `(.*)` \| (.*) \| (.*) \|$/gm)].map(([, policy, wrong, answer]) => `${policy}: ${wrong}: ${answer}`)
    const tested = rows.map(({ policy, wrong, answer }) => `${policy}: ${wrong}: ${answer}`)
    expect(documented).toEqual(tested)
  })
})
