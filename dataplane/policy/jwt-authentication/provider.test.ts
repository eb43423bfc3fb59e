import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals'
import type { JWTProvider } from '#gen/config/types.ts'
import { destinationTo } from '../../net/callout/testing.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { compileJwtAuthentication } from './index.ts'
import { variables } from '../../request/exchange/variables.ts'

/** An OpenID-certified identity provider that issues the tokens and keys of these tests. */
let server: Server
let issuer: string
let keySet: string

const privateKey = (kid: string, alg: string) => {
  const pair = alg === 'RS256' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...pair.privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }
}

beforeAll(async () => {
  // It warns about the development setup and about new versions of Node.
  for (const method of ['info', 'warn'] as const) jest.spyOn(console, method).mockImplementation(() => {})
  const { Provider } = await import('oidc-provider')
  server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await new Promise((settle) => server.once('listening', settle))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'app', client_secret: 'test', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // The resource selects the signature algorithm.
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: 'read',
          audience: 'shop',
          accessTokenFormat: resource === 'urn:opaque' ? 'opaque' : 'jwt',
          jwt: { sign: { alg: resource.slice('urn:'.length) } },
        }),
      },
    },
    jwks: { keys: [privateKey('rsa', 'RS256'), privateKey('ec', 'ES256')] },
  })
  const answer = provider.callback()
  keySet = await (await fetch(`${issuer}/jwks`)).text()
})

afterAll(async () => {
  jest.restoreAllMocks()
  server.closeAllConnections()
  await new Promise((settle) => server.close(settle))
})

async function fetchToken(alg: string): Promise<string> {
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from('app:test').toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: `urn:${alg}`, scope: 'read' }),
  })
  return ((await response.json()) as { access_token: string }).access_token
}

async function send(token: string, provider: Partial<JWTProvider> = {}, state = createPolicyState()) {
  const keys = provider.introspection === undefined && { jwks: { inline: keySet } }
  const providers = [{ issuer, audiences: ['shop'], ...keys, ...provider }]
  const { response, exchange } = await mountPolicies([compileJwtAuthentication({ providers }, state)]).request('http://host/', {
    headers: { authorization: `Bearer ${token}` },
  })
  return { status: response.status, text: await response.text(), jwt: variables.jwt.get(exchange) }
}

describe('tokens of an identity provider', () => {
  test.each(['RS256', 'ES256'])('signed with %s are accepted with its published keys', async (alg) => {
    expect(await send(await fetchToken(alg))).toMatchObject({ status: 200, jwt: { iss: issuer, sub: 'app', aud: 'shop', scope: 'read' } })
  })

  test('that are opaque are introspected, until they are revoked', async () => {
    const destination = destinationTo(Number(new URL(issuer).port))
    const secrets = new Map([['s', { key: 's', type: 'opaque' as const, data: { clientId: 'app', clientSecret: 'test' } }]])
    const state = { ...createPolicyState({ destinations: { forPolicy: () => destination } }), secrets }
    const introspection = { backendRef: { address: 'a:1' }, path: '/token/introspection', secretRef: { secret: 's' }, cacheDuration: '0s' }
    const token = await fetchToken('opaque')
    expect(token).not.toContain('.')
    expect(await send(token, { introspection }, state)).toMatchObject({ status: 200, jwt: { iss: issuer, aud: 'shop', scope: 'read', client_id: 'app' } })
    await fetch(`${issuer}/token/revocation`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from('app:test').toString('base64')}` },
      body: new URLSearchParams({ token }),
    })
    expect(await send(token, { introspection }, state)).toMatchObject({ status: 401, text: 'authentication failure: token not active' })
    destination.close()
  })

  test.each<[string, Partial<JWTProvider>, string]>([
    ['another audience', { audiences: ['office'] }, 'InvalidAudience'],
    ['another issuer', { issuer: 'https://elsewhere' }, 'InvalidIssuer'],
    ['no keys', { jwks: { remote: { invalid: 'not fetched yet' } } }, 'unknown key'],
  ])('are rejected with %s', async (_, change, text) => {
    expect(await send(await fetchToken('ES256'), change)).toMatchObject({ status: 401, text: `authentication failure: ${text}` })
  })
})
