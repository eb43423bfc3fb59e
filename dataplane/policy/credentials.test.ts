import { describe, expect, test } from '@jest/globals'
import type { Secret } from '#gen/config/types.ts'
import { mountPolicies } from '../testing/hono.ts'
import { makeSigningKey, makeToken } from '../testing/tokens.ts'
import { compilePolicies } from './index.ts'
import { createPolicyState } from './state.ts'
import { variables } from '../request/exchange/variables.ts'

type Mode = 'Strict' | 'Optional' | 'Permissive'

const key = makeSigningKey('one')
const claims = { iss: 'i', sub: 'bob', exp: 4_000_000_000 }
const token = makeToken(key, claims)
const forged = makeToken(makeSigningKey('one'), claims)
const none = `${Buffer.from('{"alg":"none","kid":"one"}').toString('base64url')}.${token.split('.')[1]}.`
const keys: Secret = { key: 's', type: 'opaque', data: { bob: 'k-bob', dotted: 'a.b.c' } }
const [aToken, aKey] = [`Bearer ${token}`, 'bearer k-bob']

/** Sends a request to a route with both policies. */
async function send(jwt: Mode, apiKey: Mode, lines: string[]) {
  const traffic = {
    jwtAuthentication: { mode: jwt, providers: [{ issuer: 'i', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }] },
    apiKeyAuthentication: { mode: apiKey, secretRef: { secret: 's' } },
  }
  const policies = compilePolicies({ traffic, state: { ...createPolicyState(), secrets: new Map([['s', keys]]) } })
  const prepare = (exchange: { request: { headers: { append(name: string, value: string): void } } }) => {
    for (const line of lines) exchange.request.headers.append('authorization', line)
  }
  const { exchange, response } = await mountPolicies(policies, { prepare }).request('http://host/')
  const known = (['jwt', 'apiKey'] as const).filter((name) => variables[name].get(exchange) !== undefined)
  return [response.status, response.status === 200 ? known.join(' ') : await response.text(), exchange.request.headers.getAll('authorization')]
}

describe('tokens and API keys on one route, both in Authorization: Bearer', () => {
  test.each<[string, Mode, Mode, string[], unknown[]]>([
    ['both, with both Strict', 'Strict', 'Strict', [aToken, aKey], [200, 'jwt apiKey', []]],
    ['both in the other order, beside another scheme', 'Strict', 'Strict', [aKey, 'Basic x', aToken], [200, 'jwt apiKey', ['Basic x']]],
    ['both, with dots in the key', 'Strict', 'Strict', [aToken, 'Bearer a.b.c'], [200, 'jwt apiKey', []]],
    ['a token, with both Optional', 'Optional', 'Optional', [aToken], [200, 'jwt', []]],
    ['a key, with both Optional', 'Optional', 'Optional', [aKey], [200, 'apiKey', []]],
    ['neither, with both Optional', 'Optional', 'Optional', [], [200, '', []]],
    ['an invalid token in mode Permissive', 'Permissive', 'Optional', [`Bearer ${forged}`], [200, '', [`Bearer ${forged}`]]],
  ])('are accepted if the request has %s', async (_, jwt, apiKey, lines, expected) => expect(await send(jwt, apiKey, lines)).toEqual(expected))

  test.each<[string, Mode, Mode, string[], string]>([
    ['only a token (row 40)', 'Strict', 'Strict', [aToken], 'api key authentication failure: no API Key found'],
    ['only a key (row 40)', 'Strict', 'Strict', [aKey], 'authentication failure: no bearer token found'],
    ['a forged token, though the key is right', 'Optional', 'Strict', [`Bearer ${forged}`, aKey], 'authentication failure: InvalidSignature'],
    ['a token without signature', 'Optional', 'Optional', [`Bearer ${none}`], 'authentication failure: InvalidAlgorithm'],
    ['a wrong key, though the token is right', 'Strict', 'Optional', [aToken, 'Bearer nope'], 'api key authentication failure: invalid credentials'],
    ['two tokens', 'Strict', 'Optional', [aToken, aToken], 'authentication failure: malformed authorization header'],
    ['two keys', 'Optional', 'Strict', [aKey, aKey], 'api key authentication failure: invalid credentials'],
    ['something that is neither', 'Optional', 'Optional', ['Bearer x.y'], 'api key authentication failure: invalid credentials'],
    ['an empty credential', 'Optional', 'Optional', ['Bearer'], 'api key authentication failure: invalid credentials'],
  ])('are rejected if the request has %s', async (_, jwt, apiKey, lines, text) => expect((await send(jwt, apiKey, lines)).slice(0, 2)).toEqual([401, text]))
})
