import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startBrowser } from '../browser/browser.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { startKeycloak, type Keycloak } from '../../harness/identity/keycloak.ts'
import { connectWithLogin } from '../../harness/identity/mcp-login.ts'
import { logIn, OAuthSession, startCallback } from '../../harness/identity/oauth-client.ts'
import { startOperator } from '../../harness/program/operator.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startOAuthEnvironment, type OAuthEnvironment } from '../mcp-oauth/environment.ts'

let keycloak: Keycloak
let environment: OAuthEnvironment

/** The realm of docs/guide/mcp-authentication.md: clients may register, and tokens have the audience `mcp`. */
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
  // Every client of this machine may register, with any redirect.
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
  environment = await startOAuthEnvironment(
    () => [
      { name: 'adapted', policies: { mcp: { authentication: { ...authentication, provider: 'IdpKind2' } } } },
      { name: 'plain', policies: { mcp: { authentication } } },
    ],
    [{ name: 'idp', port: keycloak.port }],
  )
}, 900_000)
afterAll(async () => {
  await environment?.stop()
  await keycloak?.stop()
})

describe('with Keycloak', () => {
  test.each([
    ['adapted', 1, false],
    ['adapted', 2, false],
    ['plain', 1, false],
    ['plain', 2, true],
  ] as const)('as provider on route %s, a client of SDK %i registers, logs in and calls a tool', async (name, sdk, isStrict) => {
    const session = new OAuthSession()
    const client = await connectWithLogin(new URL(`${environment.origin}/${name}`), session, { sdk, isStrict })
    expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
    await client.close()
  })

  test('a client that compares the issuer logs in with IdpKind2 if Keycloak excludes the issuer from the redirect', async () => {
    const session = new OAuthSession()
    const url = new URL(`${environment.origin}/adapted`)
    const client = await connectWithLogin(url, session, {
      sdk: 2,
      isStrict: true,
      // After the registration, before the login.
      login: async (authorizationUrl, redirectUrl) => {
        const clientId = authorizationUrl.searchParams.get('client_id')
        const [found] = (await (await keycloak.admin('GET', `/realms/shop/clients?clientId=${clientId}`)).json()) as { id: string; attributes: object }[]
        const attributes = { ...found?.attributes, 'exclude.issuer.from.auth.response': 'true' }
        await keycloak.admin('PUT', `/realms/shop/clients/${found?.id}`, { ...found, attributes })
        const redirected = await logIn(authorizationUrl, redirectUrl)
        expect(redirected.searchParams.has('iss')).toBe(false)
        return redirected
      },
    })
    expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
    await client.close()
  })

  test('a user logs in and consents in Chromium and is redirected to the client', async () => {
    const [browser, callback] = await Promise.all([startBrowser(), startCallback()])
    try {
      const page = await browser.context.newPage()
      const session = new OAuthSession(callback.url)
      const client = await connectWithLogin(new URL(`${environment.origin}/adapted`), session, {
        login: async (authorizationUrl) => {
          await page.goto(authorizationUrl.href)
          expect(page.url()).toContain(`http://localhost:${keycloak.port}/realms/shop/`)
          await page.fill('#username', 'bob')
          await page.fill('#password', 'wrong')
          await page.click('#kc-login')
          await page.getByText('Invalid username or password').waitFor()
          await page.fill('#password', 'secret')
          await page.click('#kc-login')
          await page.getByText('Grant Access to example').waitFor()
          await page.click('[name=accept]')
          await page.getByText('You are logged in.').waitFor()
          return callback.redirected
        },
      })
      expect((await client.callTool({ name: 'search', arguments: { text: 'x' } })).content).toEqual([{ type: 'text', text: 'search in documents: "x"' }])
      await client.close()
      await environment.dataplane.program.waitForLine(/jwt\.sub=/)
    } finally {
      await callback.close()
      await browser.close()
    }
  })

  test('the example mcp-oauth works unchanged', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mcp-oauth-'))
    const port = await findFreePort()
    const ports: Record<string, number> = { 8080: port, 9001: environment.upstream.port, 9002: keycloak.port }
    const manifests = await readFile(fileURLToPath(new URL('../../examples/mcp-oauth/manifests.yaml', import.meta.url)), 'utf8')
    await writeFile(
      join(directory, 'manifests.yaml'),
      manifests.replaceAll(/\b(8080|9001|9002)\b/g, (written) => String(ports[written])),
    )
    const operator = await startOperator({ directory })
    const dataplane = await startDataplane({ config: { address: operator.address, namespace: 'default', gateway: 'mcp-oauth' } })
    try {
      const url = new URL(`http://localhost:${port}/mcp`)
      const session = new OAuthSession()
      const connect = () => connectWithLogin(url, session)
      // The token is rejected until the operator has the keys, so the client logs in again.
      let client: Awaited<ReturnType<typeof connect>> | undefined
      await waitUntil('a session', async () => (client = await connect()) !== undefined, 120_000)
      expect((await client?.listTools())?.tools.map(({ name }) => name)).toEqual(['search'])
      await client?.close()
    } finally {
      await dataplane.stop(100)
      await operator.stop()
      await rm(directory, { recursive: true, force: true })
    }
  })

  test('that rejects registrations, the client receives the error of the provider', async () => {
    const registrationPolicies = '/realms/shop/components'
    const realmId = ((await (await keycloak.admin('GET', '/realms/shop')).json()) as { id: string }).id
    await keycloak.admin('POST', registrationPolicies, {
      name: 'Trusted Hosts',
      providerId: 'trusted-hosts',
      providerType: 'org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy',
      parentId: realmId,
      subType: 'anonymous',
      config: { 'host-sending-registration-request-must-match': ['true'], 'client-uris-must-match': ['true'], 'trusted-hosts': ['registrar.example.com'] },
    })
    const response = await fetch(`${environment.origin}/.well-known/oauth-authorization-server/adapted/client-registration`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(new OAuthSession().clientMetadata),
    })
    expect([response.status, await response.json()]).toMatchObject([403, { error: 'insufficient_scope' }])
  })
})
