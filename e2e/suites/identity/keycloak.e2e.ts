import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { startGateway, type Gateway } from '../../harness/program/gateway.ts'
import { fetchKeycloakToken, startKeycloak, type Keycloak } from '../../harness/identity/keycloak.ts'
import { waitUntil } from '../../harness/wait.ts'

const closing: (() => Promise<unknown>)[] = []
const client = { clientId: 'app', secret: 'app-secret' }
let keycloak: Keycloak
let gateway: Gateway
let realm: string

const manifests = (issuer: string, port: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: app }
spec: { parentRefs: [{ name: gw }], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: jwt }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: gw }]
  traffic:
    jwtAuthentication:
      providers:
        - issuer: ${issuer}
          jwks: { remote: { jwksPath: /realms/shop/protocol/openid-connect/certs, cacheDuration: 5m, backendRef: { name: idp, port: 80 } } }
    authorization:
      policy: { matchExpressions: ['jwt.azp == "app" && "buyer" in jwt.realm_access.roles'] }
---
# By the host of the issuer: in development mode, Keycloak accepts only tokens whose issuer has the Host of the request.
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: issuer }
spec: { static: { host: 127.0.0.1, port: ${port} } }
---
apiVersion: v1
kind: Secret
metadata: { name: gateway }
stringData: { clientId: gateway, clientSecret: ${client.secret} }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: orders }
spec:
  parentRefs: [{ name: gw }]
  rules:
    - matches: [{ path: { value: /exchanged } }]
      backendRefs: [{ name: exchanged, port: 80 }]
    - matches: [{ path: { value: /own } }]
      backendRefs: [{ name: own, port: 80 }]
${['TokenExchange', 'ClientCredentials']
  .map(
    (grantType) => `---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: ${grantType.toLowerCase()} }
spec:
  targetRefs: [{ group: '', kind: Service, name: ${grantType === 'TokenExchange' ? 'exchanged' : 'own'} }]
  backend:
    auth:
      oauth:
        grantType: ${grantType}
        tokenEndpoint: { backendRef: { group: proxy.dev, kind: ProxyBackend, name: issuer }, path: /realms/shop/protocol/openid-connect/token }
        secretRef: { name: gateway }
        ${grantType === 'TokenExchange' ? 'audiences: [orders]' : 'clientAuthentication: Body'}
`,
  )
  .join('')}`

/** Adds a client to `aud` of the tokens of another one. */
const audience = (name: string) => ({
  name,
  protocol: 'openid-connect',
  protocolMapper: 'oidc-audience-mapper',
  config: { 'included.client.audience': name, 'access.token.claim': 'true' },
})

beforeAll(async () => {
  keycloak = await startKeycloak()
  closing.unshift(() => keycloak.stop())
  realm = `${keycloak.url}/realms/shop`
  const account = { ...client, enabled: true, publicClient: false, serviceAccountsEnabled: true, standardFlowEnabled: false }
  await keycloak.admin('POST', '/realms', {
    realm: 'shop',
    enabled: true,
    roles: { realm: [{ name: 'buyer' }] },
    clients: [
      { ...account, protocolMappers: [audience('gateway')] },
      { ...account, clientId: 'other' },
      { ...account, clientId: 'orders' },
      // Its tokens are for `orders`, and it may exchange tokens that are for itself.
      { ...account, clientId: 'gateway', attributes: { 'standard.token.exchange.enabled': 'true' }, protocolMappers: [audience('orders')] },
    ],
    users: [{ username: 'service-account-app', enabled: true, serviceAccountClientId: 'app', realmRoles: ['buyer'] }],
  })
  const upstream = await startEcho({ name: 'app' })
  closing.unshift(() => upstream.close())
  gateway = await startGateway({
    services: { app: upstream.port, exchanged: upstream.port, own: upstream.port, idp: keycloak.port },
    manifests: () => [manifests(realm, keycloak.port)],
  })
  closing.unshift(() => gateway.stop())
}, 900_000)
afterAll(async () => {
  for (const close of closing) await close()
})

const tokenOf = (clientId: string): Promise<string> =>
  fetchKeycloakToken(realm, { grant_type: 'client_credentials', client_id: clientId, client_secret: client.secret })
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
const get = (token?: string) => send({ port: gateway.port, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })

describe('with Keycloak as identity provider', () => {
  test('tokens are accepted after the operator has fetched the key set, which includes encryption keys', async () => {
    const token = await tokenOf('app')
    await waitUntil('the key set', async () => (await get(token)).status === 200)
    expect((await get(token)).json().headers).not.toHaveProperty('authorization')
    await gateway.dataplane.program.waitForLine(/jwt\.sub=[0-9a-f-]{36}/)
  })

  test('rules distinguish clients with a role from clients without it', async () => {
    expect([(await get(await tokenOf('other'))).status, (await get()).status]).toEqual([403, 401])
  })

  test('the upstream receives a token that is exchanged for that of the client, or one of the gateway', async () => {
    const token = await tokenOf('app')
    const claimsAt = async (path: string): Promise<Record<string, unknown>> => {
      const { headers } = (await send({ port: gateway.port, path, headers: { authorization: `Bearer ${token}` } })).json()
      return claimsOf(String(headers['authorization']).replace('Bearer ', ''))
    }
    const { sub } = claimsOf(token)
    expect(await claimsAt('/exchanged')).toMatchObject({ sub, azp: 'gateway', aud: 'orders' })
    expect(await claimsAt('/own')).toMatchObject({ sub: expect.not.stringContaining(String(sub)), azp: 'gateway' })
  })

  test('tokens of another realm are rejected', async () => {
    const master = await fetchKeycloakToken(`${keycloak.url}/realms/master`, {
      grant_type: 'password',
      client_id: 'admin-cli',
      username: 'admin',
      password: 'admin',
    })
    expect(await get(master)).toMatchObject({ status: 401, body: 'authentication failure: unknown key' })
  })

  test('a modified token is rejected', async () => {
    const [head, , signature] = (await tokenOf('app')).split('.')
    const claims = Buffer.from(JSON.stringify({ iss: realm, azp: 'app', exp: 4_000_000_000, realm_access: { roles: ['buyer'] } })).toString('base64url')
    expect(await get(`${head}.${claims}.${signature}`)).toMatchObject({ status: 401, body: 'authentication failure: InvalidSignature' })
  })
})
