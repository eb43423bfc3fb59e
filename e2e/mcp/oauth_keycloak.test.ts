import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startKeycloak, type Keycloak } from '../harness/keycloak.ts'
import { connectWithLogin } from '../harness/mcp_login.ts'
import { OAuthSession } from '../harness/oauth_client.ts'
import { startScene, type Scene } from '../mcp-oauth/scene.ts'

let keycloak: Keycloak
let scene: Scene

/** As docs/guide/mcp-authentication.md says: clients may register, and tokens are for `mcp`. */
const realm = {
  realm: 'shop',
  enabled: true,
  sslRequired: 'none',
  users: [
    {
      username: 'bob',
      enabled: true,
      firstName: 'Bob',
      lastName: 'B',
      email: 'bob@example.com',
      emailVerified: true,
      credentials: [{ type: 'password', value: 'secret', temporary: false }],
    },
  ],
}
const audience = {
  name: 'tools',
  protocol: 'openid-connect',
  attributes: { 'include.in.token.scope': 'true' },
  protocolMappers: [
    {
      name: 'audience',
      protocol: 'openid-connect',
      protocolMapper: 'oidc-audience-mapper',
      config: { 'included.custom.audience': 'mcp', 'access.token.claim': 'true' },
    },
  ],
}

beforeAll(async () => {
  keycloak = await startKeycloak()
  await keycloak.admin('POST', '/realms', realm)
  await keycloak.admin('POST', '/realms/shop/client-scopes', audience)
  const scopes = (await (await keycloak.admin('GET', '/realms/shop/client-scopes')).json()) as { id: string; name: string }[]
  await keycloak.admin('PUT', `/realms/shop/default-default-client-scopes/${scopes.find(({ name }) => name === 'tools')?.id}`)
  // Anybody on this machine may register, with any redirect.
  const policies = (await (
    await keycloak.admin('GET', '/realms/shop/components?type=org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy')
  ).json()) as { id: string; providerId: string; subType: string }[]
  for (const { id, providerId, subType } of policies)
    if (subType === 'anonymous' && providerId === 'trusted-hosts') await keycloak.admin('DELETE', `/realms/shop/components/${id}`)
  const issuer = `http://localhost:${keycloak.port}/realms/shop`
  const authentication = {
    issuer,
    audiences: ['mcp'],
    resourceMetadata: { scopesSupported: ['tools'] },
    jwks: { jwksPath: '/realms/shop/protocol/openid-connect/certs', backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name: 'idp' } },
  }
  scene = await startScene(
    () => [
      { name: 'adapted', policies: { mcp: { authentication: { ...authentication, provider: 'IdpKind2' } } } },
      { name: 'plain', policies: { mcp: { authentication } } },
    ],
    [{ name: 'idp', port: keycloak.port }],
  )
}, 420_000)
afterAll(async () => {
  await scene?.stop()
  await keycloak?.stop()
})

describe('Keycloak', () => {
  test.each([
    ['adapted', 1, false],
    ['adapted', 2, false],
    ['plain', 1, false],
    ['plain', 2, true],
  ] as const)('as %s: a client of SDK %i registers, logs in and calls a tool', async (name, sdk, isStrict) => {
    const session = new OAuthSession()
    const client = await connectWithLogin(new URL(`${scene.origin}/${name}`), session, { sdk, isStrict })
    expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
    await client.close()
  })
})
