import { setDefaultCACertificates, getCACertificates } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { makeAuthority, makeCertificate } from '../../harness/certificates.ts'
import { startIdentityProvider, type IdentityProvider } from '../../harness/identity/identity-provider.ts'
import { connectWithLogin, type LoginOptions } from '../../harness/identity/mcp-login.ts'
import { OAuthSession } from '../../harness/identity/oauth-client.ts'
import { startAuth0, type Auth0 } from './auth0.ts'
import { startOAuthEnvironment, type OAuthEnvironment } from './environment.ts'

const closing: (() => Promise<unknown>)[] = []
let providers: Record<'standard' | 'private' | 'keycloak', IdentityProvider>
let auth0: Auth0
let environment: OAuthEnvironment

beforeAll(async () => {
  const authority = makeAuthority('private')
  const server = makeCertificate({ name: 'idp', hosts: ['localhost'], issuer: authority })
  // The client trusts this authority; the gateway's system does not.
  setDefaultCACertificates([...getCACertificates(), authority.certificate])
  providers = {
    standard: await startIdentityProvider({ name: 'standard-idp' }),
    private: await startIdentityProvider({ name: 'private-idp', tls: server }),
    keycloak: await startIdentityProvider({ name: 'keycloak-idp', style: 'keycloak' }),
  }
  auth0 = await startAuth0()
  for (const each of [...Object.values(providers), auth0]) closing.unshift(() => each.close())
  const of = ({ name, issuer, keysPath }: IdentityProvider, more: object) => ({
    mcp: {
      authentication: {
        issuer,
        resourceMetadata: { scopesSupported: ['tools'] },
        jwks: { jwksPath: keysPath, backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name } },
        ...more,
      },
    },
  })
  environment = await startOAuthEnvironment(
    (origin) => [
      { name: 'standard', policies: of(providers.standard, { audiences: [`${origin}/standard`] }) },
      { name: 'private', policies: of(providers.private, { audiences: [`${origin}/private`] }) },
      { name: 'keycloak', policies: of(providers.keycloak, { provider: 'IdpKind2', audiences: ['mcp'] }) },
      {
        name: 'auth0',
        policies: of(
          { ...providers.standard, name: 'auth0-idp', issuer: auth0.issuer, keysPath: '/.well-known/jwks.json' },
          { provider: 'IdpKind1', audiences: ['shop'] },
        ),
      },
    ],
    [
      ...(['standard', 'keycloak'] as const).map((name) => ({ name: `${name}-idp`, port: providers[name].port })),
      { name: 'private-idp', port: providers.private.port, authority: authority.certificate },
      { name: 'auth0-idp', port: auth0.port },
    ],
  )
  closing.unshift(() => environment.stop())
  const exp = Math.floor(Date.now() / 1000) + 300
  for (const name of ['standard', 'private', 'keycloak'] as const)
    await environment.waitForKeys(
      `/${name}`,
      await providers[name].sign({ aud: name === 'keycloak' ? 'mcp' : `${environment.origin}/${name}`, sub: 'probe', exp }),
    )
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})
beforeEach(() => {
  environment.upstream.received.splice(0)
  for (const { requestLog } of [...Object.values(providers), auth0]) requestLog.splice(0)
})

const result = [{ type: 'text', text: 'search in documents: "x"' }]
const call = async (client: Client): Promise<unknown> => {
  const { content } = await client.callTool({ name: 'search', arguments: { text: 'x' } })
  await client.close()
  return content
}
const urlOf = (name: string): URL => new URL(`${environment.origin}/${name}`)
const claimsOf = ({ granted }: OAuthSession): unknown => JSON.parse(Buffer.from(granted?.access_token.split('.')[1] ?? '', 'base64url').toString())

describe.each<[string, LoginOptions]>([
  ['SDK 1', { sdk: 1 }],
  ['SDK 2', { sdk: 2, isStrict: true }],
])('a client of %s gets 401, logs in and calls a tool', (_, options) => {
  test('with a provider that follows the standards', async () => {
    const session = new OAuthSession()
    expect(await call(await connectWithLogin(urlOf('standard'), session, options))).toEqual(result)
    expect(claimsOf(session)).toMatchObject({ iss: providers.standard.issuer, aud: `${environment.origin}/standard`, sub: 'bob', scope: 'tools' })
    // The registration endpoint is that of the provider.
    expect(session.authorizationUrl?.origin).toBe(providers.standard.issuer)
    expect(providers.standard.requestLog.filter((line) => line === 'POST /reg')).toHaveLength(1)
  })

  test('with a provider behind a private CA that the backend of its keys trusts', async () => {
    expect(await call(await connectWithLogin(urlOf('private'), new OAuthSession(), options))).toEqual(result)
    expect(providers.private.requestLog).toContain('GET /.well-known/oauth-authorization-server')
  })

  test('with IdpKind2, registered through the gateway', async () => {
    const session = new OAuthSession()
    expect(await call(await connectWithLogin(urlOf('keycloak'), session, { ...options, isStrict: false }))).toEqual(result)
    expect(claimsOf(session)).toMatchObject({ iss: providers.keycloak.issuer, aud: 'mcp', sub: 'bob' })
    expect(providers.keycloak.requestLog.filter((line) => line.startsWith('POST') && line.includes('regist'))).toEqual([
      'POST /realms/shop/clients-registrations/openid-connect',
    ])
  })

  test('with IdpKind1, which receives the audience, registered through the gateway', async () => {
    const session = new OAuthSession()
    expect(await call(await connectWithLogin(urlOf('auth0'), session, options))).toEqual(result)
    // The login goes through the gateway, which adds the audience.
    expect(session.authorizationUrl?.href).toContain(
      `${environment.origin}/.well-known/oauth-authorization-server/auth0/client-authorization?response_type=code&`,
    )
    expect(claimsOf(session)).toMatchObject({ iss: auth0.issuer, aud: 'shop', sub: 'auth0|bob' })
    expect(auth0.requestLog.filter((line) => line === 'POST /oidc/register')).toHaveLength(1)
  })
})

test('no token of the client reaches the MCP server', async () => {
  expect(await call(await connectWithLogin(urlOf('standard'), new OAuthSession()))).toEqual(result)
  expect(environment.upstream.received.length).toBeGreaterThan(2)
  for (const { headers } of environment.upstream.received) expect(headers).not.toHaveProperty('authorization')
})
