import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send } from '../harness/client.ts'
import { startDataplane, type Dataplane } from '../harness/dataplane.ts'
import { startEcho } from '../harness/echo.ts'
import { fetchKeycloakToken, startKeycloak, type Keycloak } from '../harness/keycloak.ts'
import { startOperator } from '../harness/operator.ts'
import { findFreePort } from '../harness/ports.ts'
import { waitUntil } from '../harness/wait.ts'

const closing: (() => Promise<unknown>)[] = []
const client = { clientId: 'app', secret: 'app-secret' }
let keycloak: Keycloak
let dataplane: Dataplane
let port: number
let realm: string

const manifests = (issuer: string, keycloakPort: number, upstreamPort: number): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: gw }
spec: { gatewayClassName: proxy, listeners: [{ name: http, port: ${port}, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: app }
spec: { parentRefs: [{ name: gw }], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }
---
apiVersion: v1
kind: Service
metadata: { name: app, annotations: { proxy.dev/endpoints: "127.0.0.1:${upstreamPort}" } }
spec: { ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Service
metadata: { name: idp, annotations: { proxy.dev/endpoints: "127.0.0.1:${keycloakPort}" } }
spec: { ports: [{ port: 80 }] }
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
  const directory = await mkdtemp(join(tmpdir(), 'identity-'))
  closing.unshift(() => rm(directory, { recursive: true }))
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
  port = await findFreePort()
  await writeFile(join(directory, 'manifests.yaml'), manifests(realm, keycloak.port, upstream.port))
  const operator = await startOperator({ directory })
  closing.unshift(() => operator.stop())
  dataplane = await startDataplane({ config: { address: operator.address, namespace: 'default', gateway: 'gw' } })
  closing.unshift(() => dataplane.stop())
}, 480_000)
afterAll(async () => {
  for (const close of closing) await close()
})

const tokenOf = (clientId: string): Promise<string> =>
  fetchKeycloakToken(realm, { grant_type: 'client_credentials', client_id: clientId, client_secret: client.secret })
const ask = (token?: string) => send({ port, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })

describe('Keycloak', () => {
  test('its tokens are good once the operator has fetched its keys, encryption keys among them', async () => {
    const token = await tokenOf('app')
    await waitUntil('the key set', async () => (await ask(token)).status === 200, 30_000)
    expect((await ask(token)).json().headers).not.toHaveProperty('authorization')
    await dataplane.program.waitForLine(/jwt\.sub=[0-9a-f-]{36}/)
  })

  test('a role that a client has not is told from one that it has', async () => {
    expect([(await ask(await tokenOf('other'))).status, (await ask()).status]).toEqual([403, 401])
  })

  test('tokens of another realm are refused', async () => {
    const master = await fetchKeycloakToken(`${keycloak.url}/realms/master`, {
      grant_type: 'password',
      client_id: 'admin-cli',
      username: 'admin',
      password: 'admin',
    })
    expect(await ask(master)).toMatchObject({ status: 401, body: 'authentication failure: unknown key' })
  })

  test('a changed token is refused', async () => {
    const [head, , signature] = (await tokenOf('app')).split('.')
    const claims = Buffer.from(JSON.stringify({ iss: realm, azp: 'app', exp: 4_000_000_000, realm_access: { roles: ['buyer'] } })).toString('base64url')
    expect(await ask(`${head}.${claims}.${signature}`)).toMatchObject({ status: 401, body: 'authentication failure: InvalidSignature' })
  })
})
