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

const manifests = (issuer: string): string => `
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
`

beforeAll(async () => {
  keycloak = await startKeycloak()
  closing.unshift(() => keycloak.stop())
  realm = `${keycloak.url}/realms/shop`
  const account = { ...client, enabled: true, publicClient: false, serviceAccountsEnabled: true, standardFlowEnabled: false }
  await keycloak.admin('POST', '/realms', {
    realm: 'shop',
    enabled: true,
    roles: { realm: [{ name: 'buyer' }] },
    clients: [account, { ...account, clientId: 'other' }],
    users: [{ username: 'service-account-app', enabled: true, serviceAccountClientId: 'app', realmRoles: ['buyer'] }],
  })
  const upstream = await startEcho({ name: 'app' })
  closing.unshift(() => upstream.close())
  gateway = await startGateway({ services: { app: upstream.port, idp: keycloak.port }, manifests: () => [manifests(realm)] })
  closing.unshift(() => gateway.stop())
}, 900_000)
afterAll(async () => {
  for (const close of closing) await close()
})

const tokenOf = (clientId: string): Promise<string> =>
  fetchKeycloakToken(realm, { grant_type: 'client_credentials', client_id: clientId, client_secret: client.secret })
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
