import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createLocalJWKSet, decodeJwt, jwtVerify, type JSONWebKeySet } from 'jose'
import { Secret } from '#api/cel/index.ts'
import { fc } from '#api/property-testing.ts'
import { publishKeys, readSigningKey } from '#api/credentials/signing-key.ts'
import type { JWTSign } from '#gen/config/types.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { createSigner } from './jwt-sign.ts'

const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' })
const ec = (namedCurve: string): string => pemOf(generateKeyPairSync('ec', { namedCurve }).privateKey)
const keys = {
  ES256: ec('P-256'),
  ES384: ec('P-384'),
  ES512: ec('P-521'),
  EdDSA: pemOf(generateKeyPairSync('ed25519').privateKey),
  RS256: pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
}

function start(change: Partial<JWTSign> = {}, pem = keys.ES256) {
  const key = readSigningKey(pem)
  const keySet = publishKeys({ key: pem })
  if (typeof key === 'string' || typeof keySet === 'string') throw new Error('the key is not usable')
  let nowMs = 1_700_000_000_000
  const signer = createSigner({ issuer: 'https://gateway', audiences: ['orders'], secretRef: { secret: 's' }, ...change }, key, () => nowMs)
  return {
    pass: (ms: number) => (nowMs += ms),
    kid: key.id,
    sign: (jwt?: Record<string, unknown>) => {
      const exchange = testExchange({})
      if (jwt !== undefined) variables.jwt.set(exchange, jwt)
      return signer.tokenFor(exchange)
    },
    alone: () => signer.tokenFor(undefined),
    verify: (token: string) =>
      jwtVerify(token, createLocalJWKSet(JSON.parse(keySet.text) as JSONWebKeySet), {
        issuer: 'https://gateway',
        audience: 'orders',
        currentDate: new Date(nowMs),
      }),
  }
}

describe('a token that the gateway signs', () => {
  test.each(Object.entries(keys))('with %s is verified with the published key set', async (alg, pem) => {
    const { sign, verify, kid } = start({ claims: { sub: 'jwt.sub', groups: 'jwt.groups', none: 'null' } }, pem)
    const { payload, protectedHeader } = await verify(await sign({ sub: 'ann', groups: ['a', 'b'] }))
    expect(protectedHeader).toEqual({ alg, kid, typ: 'JWT' })
    const times = { iat: 1_700_000_000, nbf: 1_699_999_990, exp: 1_700_000_300 }
    expect(payload).toEqual({ iss: 'https://gateway', aud: ['orders'], sub: 'ann', groups: ['a', 'b'], ...times })
  })

  test('keeps all digits of integers', async () => {
    const token = await start({ claims: { uid: 'jwt.uid' } }).sign({ uid: 9007199254740993n })
    expect(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).toContain('"uid":9007199254740993')
  })

  test('is the same for equal claims until half of its lifetime, and never that of another user', async () => {
    const { sign, pass } = start({ claims: { sub: 'jwt.sub' }, lifetime: '1m' })
    const [ann, bob, again] = await Promise.all([sign({ sub: 'ann' }), sign({ sub: 'bob' }), sign({ sub: 'ann' })])
    expect(again).toBe(ann)
    expect(decodeJwt(bob).sub).toBe('bob')
    pass(29_999)
    expect(await sign({ sub: 'ann' })).toBe(ann)
    pass(1)
    expect(decodeJwt(await sign({ sub: 'ann' })).exp).toBe(1_700_000_090)
  })

  test('can be signed without a request only if no claim needs one', async () => {
    expect(decodeJwt(await start().alone()).aud).toEqual(['orders'])
    await expect(start({ claims: { sub: '"gateway"' } }).alone()).rejects.toMatchObject({ code: 'BACKEND_SUBJECT' })
  })

  test.each<[string, string, Record<string, unknown> | undefined]>([
    ['reads a claim of a request without a token', 'jwt.sub', undefined],
    ['reads a claim that the token lacks', 'jwt.sub', { iss: 'i' }],
    ['is a secret', 'jwt.rawToken', { rawToken: new Secret('hidden') }],
    ['does not compile', 'jwt.', { sub: 'a' }],
  ])('is not signed if an expression %s', async (_, sub, jwt) => {
    await expect(start({ claims: { sub } }).sign(jwt)).rejects.toMatchObject({ code: 'BACKEND_SUBJECT', detail: 'the claim sub has no value' })
  })

  test('is not signed with claims that no upstream accepts', async () => {
    await expect(start({ claims: { x: 'jwt.x' } }).sign({ x: 'x'.repeat(7000) })).rejects.toMatchObject({ code: 'BACKEND_AUTH' })
  })

  test('has the claims of the gateway, whatever names and values a client chooses', async () => {
    const { sign, verify } = start({ claims: { sub: 'jwt.sub', own: 'jwt.own', __proto__x: 'jwt.own' } })
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 2 })), async (sub, own) => {
        const { payload } = await verify(await sign({ sub, own: Object.assign(own, { exp: 9e9, iss: 'x', aud: 'y' }) }))
        expect(payload).toMatchObject({ sub, iss: 'https://gateway', aud: ['orders'], exp: 1_700_000_300 })
      }),
      { numRuns: 50 },
    )
  })
})

test('the id of a key is its thumbprint (RFC 7638)', () => {
  const key = readSigningKey(keys.EdDSA)
  if (typeof key === 'string') throw new Error(key)
  const text = JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: key.publicJwk['x'] })
  expect(key.id).toBe(createHash('sha256').update(text).digest('base64url'))
  expect(Object.keys(key.publicJwk)).not.toContain('d')
})
