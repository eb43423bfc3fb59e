import { createHmac, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { compilePermissive, environments } from '#api/cel/index.ts'
import { rawNumber } from '#api/json/index.ts'
import type { JWTAuthentication, JWTProvider } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { fc } from '#api/property-testing.ts'
import { findKeySetProblem } from '#api/credentials/key-set.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { createPolicyState } from '../state.ts'
import { compileJwtAuthentication } from './index.ts'
import { createVerifier, type Claims } from './verify.ts'
import { variables } from '../../request/exchange/variables.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'

const nowSeconds = 1_700_000_000
const key = makeSigningKey('one')
const rsa = makeSigningKey('rsa', 'RSA')
const other = makeSigningKey('two')
const unknownKey = makeSigningKey('one')
const claims = { iss: 'https://issuer', aud: 'shop', sub: 'bob', exp: nowSeconds + 300, groups: ['a'] }
const keySet = (...keys: { jwk: object }[]): string => JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })
const provider: JWTProvider = { issuer: 'https://issuer', audiences: ['shop', 'office'], jwks: { inline: keySet(key, rsa) } }
const second: JWTProvider = { issuer: 'https://second', jwks: { remote: { inline: keySet(other) } } }

async function send(config: Partial<JWTAuthentication>, authorization?: string | string[], seconds = nowSeconds) {
  const policy = compileJwtAuthentication({ providers: [provider, second], ...config }, createPolicyState({ epochMs: () => seconds * 1000 }))
  const lines = authorization === undefined ? [] : [authorization].flat()
  const prepare = (exchange: { request: { headers: { append(name: string, value: string): void } } }) => {
    for (const line of lines) exchange.request.headers.append('authorization', line)
  }
  const { exchange, response, isForwarded } = await mountPolicies([policy], { prepare }).request('http://host/')
  const jwt = variables.jwt.get(exchange) as Claims | undefined
  return {
    status: response.status,
    text: await response.text(),
    isForwarded,
    forwarded: exchange.request.headers.getAll('authorization'),
    jwt,
    exchange,
    response,
  }
}

const bearer = (token: string): string => `Bearer ${token}`
const good = makeToken(key, claims)

describe('a valid token', () => {
  test('is removed, and its claims are passed on with the token as a secret', async () => {
    const { status, forwarded, jwt, exchange } = await send({}, bearer(good))
    expect([status, forwarded]).toEqual([200, []])
    expect(jwt).toMatchObject({ sub: 'bob', groups: ['a'] })
    expect([jwt?.rawToken.reveal(), JSON.stringify(jwt).includes(good)]).toEqual([good, false])
    expect(logFieldsOf(exchange)).toEqual({ 'jwt.sub': 'bob' })
  })

  test('has integers of 64 bits in its claims', async () => {
    const numbers = { uid: rawNumber('9007199254740993'), deep: { ids: [rawNumber('-9223372036854775808')] } }
    const { jwt } = await send({}, bearer(makeToken(key, { ...claims, ...numbers })))
    expect(jwt).toMatchObject({ sub: 'bob', uid: 9007199254740993n, deep: { ids: [-9223372036854775808n] } })
    const program = compilePermissive('[jwt.uid == 9007199254740993, jwt.uid == 9007199254740992]', environments.request).program
    expect(program.eval({ jwt })).toEqual([true, false])
  })

  test('is not replaced by a claim named rawToken', async () => {
    const token = makeToken(key, { ...claims, rawToken: 'forged' })
    expect((await send({}, bearer(token))).jwt?.rawToken.reveal()).toBe(token)
  })

  const rows: [string, string | string[], number?][] = [
    ['the scheme in any case', `bEARER ${good}`],
    ['a second audience, in a list', bearer(makeToken(key, { ...claims, aud: ['x', 'office'] }))],
    ['another provider without audiences', bearer(makeToken(other, { iss: 'https://second', exp: nowSeconds + 1 }))],
    ['RS256', bearer(makeToken(rsa, claims, { alg: 'RS256' }))],
    ['PS512', bearer(makeToken(rsa, claims, { alg: 'PS512' }))],
    ['expired for less than the leeway', bearer(good), claims.exp + 59],
    ['not yet valid, by less than the leeway', bearer(makeToken(key, { ...claims, nbf: nowSeconds + 59 }))],
  ]
  test.each(rows.map(([name, authorization, seconds = nowSeconds]) => [name, authorization, seconds] as const))(
    'is accepted: %s',
    async (_, authorization, seconds) => {
      expect(await send({}, authorization, seconds)).toMatchObject({ status: 200, isForwarded: true })
    },
  )

  test.each(['P-384', 'Ed25519'] as const)('can be signed with a key of %s', async (type) => {
    const special = makeSigningKey('special', type)
    const providers = [{ ...provider, jwks: { inline: keySet(special) } }]
    const token = makeToken(special, claims, { alg: type === 'P-384' ? 'ES384' : 'EdDSA' })
    expect(await send({ providers }, bearer(token))).toMatchObject({ status: 200 })
  })

  test('is removed without credentials of other schemes', async () => {
    expect(await send({}, [bearer(good), 'Basic Ym9iOng='])).toMatchObject({ status: 200, forwarded: ['Basic Ym9iOng='] })
  })
})

const changePart = (token: string, at: number, change: (part: string) => string): string =>
  token
    .split('.')
    .map((part, index) => (index === at ? change(part) : part))
    .join('.')
/** A last letter that decodes to the same byte: of 64 bytes, it has four bits too many. */
const nextLetter = (part: string): string => ({ A: 'B', Q: 'R', g: 'h', w: 'x' })[part.at(-1) ?? ''] ?? '?'

describe('a bad token', () => {
  const [head = '', body = ''] = good.split('.')
  const hmac = (): string => {
    const text = `${Buffer.from(JSON.stringify({ alg: 'HS256', kid: 'rsa' })).toString('base64url')}.${body}`
    // Algorithm confusion: the public key is used as the secret of an HMAC.
    return `${text}.${createHmac('sha256', JSON.stringify(rsa.jwk)).update(text).digest('base64url')}`
  }
  const none = `${Buffer.from('{"alg":"none","kid":"one"}').toString('base64url')}.${body}.`
  const rows: [string, string | string[] | undefined, string, number?][] = [
    ['no header', undefined, 'no bearer token found'],
    ['another scheme', 'Basic Ym9iOng=', 'no bearer token found'],
    ['no token', 'Bearer', 'malformed authorization header'],
    ['two tokens', [bearer(good), bearer(good)], 'malformed authorization header'],
    ['text that is no token', bearer('garbage'), 'malformed token'],
    ['a token of two parts', bearer(`${head}.${body}`), 'malformed token'],
    ...[0, 1, 2].flatMap((at): [string, string, string][] =>
      ['=', '==', ...(at < 2 ? [' '] : []), '%3D', '+'].map((tail) => [
        `"${tail}" after part ${at}`,
        bearer(changePart(good, at, (part) => part + tail)),
        'malformed token',
      ]),
    ),
    ['white space inside', bearer(changePart(good, 1, (part) => `${part.slice(0, 8)} ${part.slice(8)}`)), 'malformed token'],
    ['a tab inside', bearer(changePart(good, 2, (part) => `${part.slice(0, 8)}\t${part.slice(8)}`)), 'malformed token'],
    ['bits after the last byte', bearer(changePart(good, 2, (part) => part.slice(0, -1) + nextLetter(part))), 'malformed token'],
    ['no kid', bearer(makeToken(key, claims, { kid: undefined })), 'token has no kid'],
    ['an empty kid', bearer(makeToken(key, claims, { kid: '' })), 'token has no kid'],
    ['a kid that is not a string', bearer(makeToken(key, claims, { kid: ['one'] })), 'token has no kid'],
    ['an unknown kid', bearer(makeToken(key, claims, { kid: '../one' })), 'unknown key'],
    ['a kid named like a member of Object.prototype', bearer(makeToken(key, claims, { kid: '__proto__' })), 'unknown key'],
    ['a key in the token header', bearer(makeToken(unknownKey, claims, { jwk: unknownKey.jwk })), 'InvalidSignature'],
    ["another provider's key", bearer(makeToken(other, claims)), 'InvalidIssuer'],
    ['no issuer', bearer(makeToken(key, { ...claims, iss: undefined })), 'missing claim iss'],
    ['another audience', bearer(makeToken(key, { ...claims, aud: 'x' })), 'InvalidAudience'],
    ['no audience', bearer(makeToken(key, { ...claims, aud: undefined })), 'missing claim aud'],
    ['no expiry', bearer(makeToken(key, { ...claims, exp: undefined })), 'missing claim exp'],
    ['an expiry that is a string', bearer(makeToken(key, { ...claims, exp: '9999999999' })), 'invalid claim exp'],
    ['expired two minutes ago', bearer(good), 'ExpiredSignature', claims.exp + 120],
    ['not yet valid', bearer(makeToken(key, { ...claims, nbf: nowSeconds + 61 })), 'ImmatureSignature'],
    ['HMAC with a public key', bearer(hmac()), 'InvalidAlgorithm'],
    ['the algorithm none', bearer(none), 'InvalidAlgorithm'],
    ['changed claims', bearer(good.replace(body, `${body.slice(0, -4)}AAAA`)), 'InvalidSignature'],
    ['unknown critical extensions', bearer(makeToken(key, claims, { crit: ['x'], x: 1 })), 'InvalidToken'],
    ['a token that is too long', bearer(makeToken(key, { ...claims, filler: 'x'.repeat(16_384) })), 'token too long'],
  ]
  test.each(rows.map(([name, authorization, text, seconds = nowSeconds]) => [name, authorization, text, seconds] as const))(
    '%s',
    async (_, authorization, text, seconds) => {
      const result = await send({}, authorization, seconds)
      expect(result).toMatchObject({ status: 401, text: `authentication failure: ${text}`, isForwarded: false, jwt: undefined })
      const error = text === 'no bearer token found' ? '' : ', error="invalid_token"'
      expect(result.response.headers.get('www-authenticate')).toBe(`Bearer realm="Restricted"${error}`)
    },
  )

  test('is reported to a gRPC caller by grpc-status', async () => {
    const policy = compileJwtAuthentication({ providers: [provider] }, createPolicyState())
    const { response } = await mountPolicies([policy]).request('http://host/', { headers: { 'content-type': 'application/grpc' } })
    expect([response.status, response.headers.get('grpc-status')]).toEqual([200, '16'])
  })
})

describe('modes', () => {
  test.each([
    ['Optional', 'no token', [], 200, false],
    ['Optional', 'a bad token', [bearer('bad')], 401, false],
    ['Optional', 'a valid token', [bearer(good)], 200, true],
    ['Permissive', 'no token', [], 200, false],
    ['Permissive', 'a bad token', [bearer('bad')], 200, false],
    ['Permissive', 'two tokens', [bearer(good), bearer(good)], 200, false],
    ['Permissive', 'a valid token', [bearer(good)], 200, true],
  ] as const)('%s, %s', async (mode, _, authorization, status, isKnown) => {
    const result = await send({ mode }, [...authorization])
    expect([result.status, result.jwt !== undefined]).toEqual([status, isKnown])
    // A token that was not accepted stays in the header.
    if (status === 200) expect(result.forwarded).toEqual(isKnown ? [] : authorization)
  })
})

const { kid: _kid, ...nameless } = key.jwk
/** Keys that cannot be used, most of them under the id of the good one. */
const unusable: [string, unknown][] = [
  ...[null, 1, 'text', [key.jwk], {}].map((jwk): [string, unknown] => [`the element ${JSON.stringify(jwk).slice(0, 20)}`, jwk]),
  ['no kid', nameless],
  ['a kid that is a number', { ...key.jwk, kid: 1 }],
  ['no kty', { ...key.jwk, kty: undefined }],
  ['a kty that is a list', { ...key.jwk, kty: ['EC'] }],
  ['an unknown kty', { kty: 'AKP', alg: 'ML-DSA-65', pub: 'AAAA', kid: 'one' }],
  ['a symmetric key', { kty: 'oct', kid: 'one', k: 'AAAA' }],
  ['P-521', { ...generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey.export({ format: 'jwk' }), kid: 'one' }],
  ['secp256k1', { ...generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' }), kid: 'one' }],
  ['X25519', { ...generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }), kid: 'one' }],
  ['a curve of another type', { ...key.jwk, crv: 'Ed25519' }],
  ['a short RSA key', { ...generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }), kid: 'one' }],
  ['a missing member', { ...key.jwk, y: undefined }],
  ['a member that is a number', { ...key.jwk, x: 1 }],
  ['a member with padding', { ...key.jwk, x: `${String(key.jwk['x'])}=` }],
  ['a member in base64', { ...key.jwk, x: `+/${String(key.jwk['x']).slice(2)}` }],
  ['a point that is not on the curve', { ...key.jwk, x: key.jwk['y'], y: key.jwk['x'] }],
  ['an alg of another type', { ...key.jwk, alg: 'ES384' }],
  ['an alg that is no text', { ...key.jwk, alg: ['ES256'] }],
  ['another use', { ...key.jwk, use: 'tls' }],
  ['key_ops without verify', { ...key.jwk, key_ops: ['sign'] }],
]

describe('keys that cannot be used', () => {
  test.each(unusable)('are ignored and reported, and the other keys work: %s', async (_, jwk) => {
    for (const keys of [
      [jwk, key.jwk],
      [key.jwk, jwk],
    ]) {
      const inline = JSON.stringify({ keys })
      expect(findKeySetProblem(inline)).toEqual({ isUsable: true, problem: expect.stringContaining(`keys.${keys.indexOf(jwk)} `) })
      for (const jwks of [{ inline }, { remote: { inline } }]) expect((await send({ providers: [{ ...provider, jwks }] }, bearer(good))).status).toBe(200)
    }
  })

  test('are ignored in any mix', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.jsonValue(), fc.constantFrom(...unusable.map(([, jwk]) => jwk)))), fc.nat(), async (keys, at) => {
        const inline = JSON.stringify({ keys: keys.toSpliced(at % (keys.length + 1), 0, key.jwk) })
        expect((await send({ providers: [{ ...provider, jwks: { inline } }] }, bearer(good))).status).toBe(200)
      }),
      { numRuns: 50 },
    )
  })

  test('are the later ones of two with one kid', async () => {
    const twice = keySet(key, { jwk: { ...other.jwk, kid: 'one' } })
    expect(findKeySetProblem(twice)).toEqual({ isUsable: true, problem: expect.stringContaining('keys.1 has the kid of an earlier key') })
    expect((await send({ providers: [{ ...provider, jwks: { inline: twice } }] }, bearer(good))).status).toBe(200)
  })
})

describe('invalid key sets', () => {
  test.each<[string, NonNullable<JWTProvider['jwks']>]>([
    ['text that is not JSON', { inline: 'garbage' }],
    ['keys that are no array', { inline: '{"keys":1}' }],
    ['a key set that was not fetched yet', { remote: { invalid: 'not fetched yet' } }],
    ['an empty key set', { inline: '{"keys":[]}' }],
    ['an encryption key', { inline: keySet({ jwk: { ...key.jwk, use: 'enc' } }) }],
    ...unusable.map(([name, jwk]): [string, NonNullable<JWTProvider['jwks']>] => [name, { inline: JSON.stringify({ keys: [jwk] }) }]),
  ])('lead to 401 for every token: %s', async (_name, jwks) => {
    expect((await send({ providers: [{ ...provider, jwks }] }, bearer(good))).status).toBe(401)
  })

  test('do not affect other providers, and encryption keys are skipped', async () => {
    const jwks = { inline: keySet({ jwk: { kty: 'RSA', use: 'enc', n: 'x' } }, key) }
    expect(
      (
        await send(
          {
            providers: [
              { issuer: 'x', jwks: { inline: '' } },
              { ...provider, jwks },
            ],
          },
          bearer(good),
        )
      ).status,
    ).toBe(200)
  })

  test('do not include keys with an alg, which restricts the algorithm of tokens', async () => {
    const providers = [{ ...provider, jwks: { inline: keySet({ jwk: { ...rsa.jwk, alg: 'RS256' } }) } }]
    const send1 = (alg: string) => send({ providers }, bearer(makeToken(rsa, claims, { alg })))
    expect([(await send1('RS256')).status, (await send1('PS256')).text]).toEqual([200, 'authentication failure: InvalidAlgorithm'])
  })
})

describe('verified tokens', () => {
  test('are verified once, until they expire', async () => {
    let seconds = nowSeconds
    const verify = createVerifier({ providers: [provider] }, () => seconds * 1000)
    const first = await verify(good)
    expect(verify(good)).toBe(first)
    seconds = claims.exp + 60
    expect(() => verify(good)).toThrow('ExpiredSignature')
    await expect(verify(good)).rejects.toThrow('ExpiredSignature')
  })

  test('are shared by the routes of a policy and dropped with it', async () => {
    const state = createPolicyState({ epochMs: () => nowSeconds * 1000 })
    const config: JWTAuthentication = { providers: [provider] }
    const read = async (section: JWTAuthentication) =>
      variables.jwt.get(
        (await mountPolicies([compileJwtAuthentication(section, state)]).request('http://host/', { headers: { authorization: bearer(good) } })).exchange,
      )
    const first = await read(config)
    expect(await read(config)).toBe(first)
    expect(await read({ ...config })).not.toBe(first)
    expect(await read({ providers: [{ ...provider, jwks: { inline: keySet(rsa) } }] })).toBeUndefined()
  })
})
