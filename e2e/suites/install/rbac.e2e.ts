import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { generateKeyPairSync } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../contract/api-server.ts'
import { apply, installProxy, kubectl, list, read, run, startQuickstart, SYSTEM, until } from './cluster.ts'
import { rejectConfig } from './nack.ts'

const NAMESPACE = 'rbac'
const GATEWAY_API = 'gateway.networking.k8s.io'

interface AuditEvent {
  readonly verb: string
  readonly user: { readonly username: string }
  readonly objectRef?: {
    readonly resource: string
    readonly apiGroup?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code: number }
  readonly requestURI: string
}
interface Rule {
  readonly apiGroups: string[]
  readonly resources: string[]
  readonly verbs: string[]
}

const auditLog = process.env['AUDIT_LOG'] ?? ''
let offset = 0

/** Requests of the operator to the API server since the start of the test. */
async function readEvents(): Promise<AuditEvent[]> {
  const text = (await readFile(auditLog)).subarray(offset).toString()
  const events = text.split('\n').flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as AuditEvent] : []))
  return events.filter(({ user }) => user.username === `system:serviceaccount:${SYSTEM}:proxy`)
}

const nameOf = (group: string, resource: string, verb: string): string => `${verb} ${resource}${group === '' ? '' : `.${group}`}`

/** Permissions that a request used. Server-side apply of a new object needs patch and create. */
function permissionsOf({ verb, objectRef, responseStatus }: AuditEvent): string[] {
  if (!objectRef) return []
  const { resource, apiGroup = '', subresource } = objectRef
  const full = subresource === undefined ? resource : `${resource}/${subresource}`
  return [verb, ...(verb === 'patch' && responseStatus?.code === 201 ? ['create'] : [])].map((each) => nameOf(apiGroup, full, each))
}

async function readGranted(): Promise<Set<string>> {
  const roles = ['clusterrole/proxy-proxy-system', 'clusterrole/proxy-proxy-system-deployer', 'role/proxy-proxy-system-local']
  const { items } = JSON.parse(await kubectl('-n', SYSTEM, 'get', ...roles, '-o', 'json')) as { items: { rules: Rule[] }[] }
  const rules = items.flatMap((role) => role.rules)
  expect(JSON.stringify(rules)).not.toContain('*')
  return new Set(
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => nameOf(group, resource, verb)))),
    ),
  )
}

const route = (kind: string, name: string, rule: object, version = 'v1') => ({
  apiVersion: `gateway.networking.k8s.io/${version}`,
  kind,
  metadata: { name },
  spec: { parentRefs: [{ name: 'all' }], ...(kind === 'TLSRoute' ? { hostnames: ['tls.example'] } : {}), rules: [rule] },
})
const backend = { backendRefs: [{ name: 'echo', port: 80 }] }
/** One object of each kind with a status, and a change after which its status must be written again. */
const objects: readonly { readonly object: { apiVersion: string; kind: string; metadata: { name: string } }; readonly patch: (n: number) => object }[] = [
  {
    object: {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'Gateway',
      metadata: { name: 'all' },
      spec: {
        gatewayClassName: 'proxy',
        allowedListeners: { namespaces: { from: 'Same' } },
        infrastructure: { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'all' } },
        listeners: [
          { name: 'http', port: 80, protocol: 'HTTP' },
          { name: 'tcp', port: 9000, protocol: 'TCP' },
          { name: 'tls', port: 8443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
        ],
      },
    } as never,
    patch: (n) => ({ spec: { infrastructure: { annotations: { n: `${n}` } } } }),
  },
  {
    object: {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'ListenerSet',
      metadata: { name: 'set' },
      spec: { parentRef: { name: 'all' }, listeners: [{ name: 'more', port: 8080, protocol: 'HTTP' }] },
    } as never,
    patch: (n) => ({ spec: { listeners: [{ name: 'more', port: 8080, protocol: 'HTTP', hostname: `h${n}.example` }] } }),
  },
  { object: route('HTTPRoute', 'http', backend), patch: (n) => ({ spec: { hostnames: [`h${n}.example`] } }) },
  { object: route('GRPCRoute', 'grpc', backend), patch: (n) => ({ spec: { hostnames: [`g${n}.example`] } }) },
  { object: route('TLSRoute', 'tls', backend), patch: (n) => ({ spec: { hostnames: [`t${n}.example`] } }) },
  { object: route('TCPRoute', 'tcp', backend), patch: (n) => ({ spec: { rules: [{ backendRefs: [{ name: 'echo', port: 80, weight: n }] }] } }) },
  {
    object: {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'BackendTLSPolicy',
      metadata: { name: 'tls' },
      spec: {
        targetRefs: [{ group: '', kind: 'Service', name: 'echo' }],
        validation: { hostname: 'echo.example', wellKnownCACertificates: 'System' },
      },
    } as never,
    patch: (n) => ({ spec: { validation: { hostname: `e${n}.example` } } }),
  },
  {
    object: {
      apiVersion: 'proxy.dev/v1alpha1',
      kind: 'ProxyPolicy',
      metadata: { name: 'cors' },
      spec: { targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'all' }], traffic: { timeouts: { request: '9s' } } },
    } as never,
    patch: (n) => ({ spec: { traffic: { timeouts: { request: `${n + 1}s` } } } }),
  },
  {
    object: { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: { name: 'b' }, spec: { static: { host: 'a.example', port: 80 } } } as never,
    patch: (n) => ({ spec: { static: { port: 1000 + n } } }),
  },
]
const parameters = (spec: object) => ({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name: 'all' }, spec })

beforeAll(async () => {
  if (auditLog === '') throw new Error('AUDIT_LOG is not set; run this through e2e/suites/install/run')
  await installProxy()
  // Start without Lease and GatewayClass, so that the operator must create them.
  await kubectl('-n', SYSTEM, 'scale', 'deployment/proxy', '--replicas=0')
  // Wait for deletions of earlier files: no object can be created in a terminating namespace.
  const phases = ['get', 'namespaces', '-o', 'jsonpath={.items[*].status.phase}']
  await until('no namespace is being deleted', async () => !(await kubectl(...phases)).includes('Terminating'), 400_000)
  await until('the operator is stopped', async () => (await kubectl('-n', SYSTEM, 'get', 'pods', '-o', 'name')) === '')
  await kubectl('-n', SYSTEM, 'delete', 'lease', 'proxy-operator')
  await kubectl('delete', 'gatewayclass', 'proxy')
  offset = (await stat(auditLog)).size
  await kubectl('-n', SYSTEM, 'scale', 'deployment/proxy', '--replicas=1')
  await kubectl('-n', SYSTEM, 'rollout', 'status', 'deployment/proxy', '--timeout=300s')
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

test('every request of the operator is allowed, and every granted permission is used', async () => {
  await startQuickstart(NAMESPACE)
  await provision()
  await keepKeySet()
  await churn()
  await requestConfig()

  const events = await readEvents()
  expect(events.filter(({ responseStatus }) => responseStatus?.code === 403).map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([])
  const used = new Set(events.flatMap(permissionsOf))
  const granted = await readGranted()
  expect([...granted].filter((permission) => !used.has(permission)).sort()).toEqual([])
  // Other used permissions are those of every service account.
  expect([...used].filter((permission) => !granted.has(permission)).sort()).toEqual([])
})

/** Creates and removes every object that a Gateway can have. */
async function provision(): Promise<void> {
  await apply(
    NAMESPACE,
    parameters({ podDisruptionBudget: { spec: { minAvailable: 1 } }, horizontalPodAutoscaler: { spec: { minReplicas: 1, maxReplicas: 2 } } }),
  )
  await apply(NAMESPACE, ...objects.map(({ object }) => object))
  await until('a budget and an autoscaler', async () => Boolean((await read('pdb', 'all', NAMESPACE)) && (await read('hpa', 'all', NAMESPACE))))
  await apply(NAMESPACE, parameters({ logging: { format: 'json' } }))
  await until('the objects are deleted', async () => !(await read('pdb', 'all', NAMESPACE)) && !(await read('hpa', 'all', NAMESPACE)))
  await runServer()
  await kubectl('-n', NAMESPACE, 'delete', 'secret', 'all-session-key')
  await until('a new session key', async () => (await read('secret', 'all-session-key', NAMESPACE)) !== undefined)
  // A key set that no policy refers to.
  const stale = `jwks-store-${'0'.repeat(64)}`
  await apply(SYSTEM, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: stale, labels: { 'app.kubernetes.io/component': 'jwks-store' } } })
  await until('a stale key set is deleted', async () => (await read('configmap', stale, SYSTEM)) === undefined)
}

/** An MCP server is started, and deleted with its permission. */
async function runServer(): Promise<void> {
  const image = (await read('deployment', 'echo', NAMESPACE))?.spec.template.spec.containers[0].image as string
  const servers = (kind: string) => list(kind, NAMESPACE, 'proxy.dev/mcp-backend=program')
  await apply(
    NAMESPACE,
    parameters({ mcp: { images: [image.replace(/:[^/]*$/, '')] } }),
    {
      apiVersion: 'proxy.dev/v1alpha1',
      kind: 'ProxyBackend',
      metadata: { name: 'program' },
      spec: { mcp: { targets: [{ name: 'program', image, command: ['node'] }] } },
    },
    route('HTTPRoute', 'program', { backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name: 'program' }] }),
  )
  await until('the server has a Deployment', async () => (await servers('deployments')).length === 1)
  await apply(NAMESPACE, parameters({ logging: { format: 'json' } }))
  await until('its objects are deleted', async () =>
    (await Promise.all(['deployments', 'services', 'serviceaccounts'].map(servers))).every(({ length }) => length === 0),
  )
}

/** A remote key set is stored in a ConfigMap of the operator's namespace and deleted with its policy. */
async function keepKeySet(): Promise<void> {
  const image = (await read('deployment', 'echo', NAMESPACE))?.spec.template.spec.containers[0].image as string
  const { x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const keys = JSON.stringify({ keys: [{ kid: 'a', kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', x, y }] })
  const script = `import('node:http').then(({ createServer }) => createServer((_, response) => response.end('${keys}')).listen(8080))`
  const jwks = { remote: { jwksPath: '/keys', backendRef: { name: 'idp', port: 80 } } }
  await apply(
    NAMESPACE,
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'idp', labels: { app: 'idp' } },
      spec: { containers: [{ name: 'idp', image, command: ['node', '-e', script] }] },
    },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'idp' }, spec: { selector: { app: 'idp' }, ports: [{ port: 80, targetPort: 8080 }] } },
    {
      apiVersion: 'proxy.dev/v1alpha1',
      kind: 'ProxyPolicy',
      metadata: { name: 'jwt' },
      spec: {
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'all' }],
        traffic: { jwtAuthentication: { providers: [{ issuer: 'i', jwks }] } },
      },
    },
  )
  const keySets = () => list('configmaps', SYSTEM, 'app.kubernetes.io/component=jwks-store')
  await until('the key set is stored', async () => (await keySets()).length === 1)
  await kubectl('-n', NAMESPACE, 'delete', 'proxypolicy', 'jwt')
  await until('the key set is deleted', async () => (await keySets()).length === 0)
}

/** Changes every object faster than its status is written, so that writes conflict and are retried. */
async function churn(): Promise<void> {
  const targets = [
    ...objects.map(({ object: { apiVersion, kind, metadata }, patch }) => ({
      kind,
      patch,
      path: `/apis/${apiVersion}/namespaces/${NAMESPACE}/${toPlural(kind)}/${metadata.name}`,
    })),
    { kind: 'GatewayClass', patch: (n: number) => ({ spec: { description: `${n}` } }), path: `/apis/${GATEWAY_API}/v1/gatewayclasses/proxy` },
  ]
  const wanted = new Map(targets.map((target) => [nameOf(target.kind.startsWith('Proxy') ? 'proxy.dev' : GATEWAY_API, toPlural(target.kind), 'get'), target]))
  const server = await connect()
  let n = 0
  try {
    // A conflict needs a change between the operator's read and its write, so repeat until each object had one.
    await until(
      'every status was written again after a conflict',
      async () => {
        for (let change = 0; change < 10; change++) {
          n += 1
          await Promise.all([...wanted.values()].map(({ path, patch }) => server.call('PATCH', path, patch(n), 'application/merge-patch+json')))
          await sleep(30)
        }
        for (const event of await readEvents()) for (const permission of permissionsOf(event)) wanted.delete(permission)
        return wanted.size === 0
      },
      400_000,
    )
  } finally {
    server.close()
  }
  process.stdout.write(`rbac: ${n} changes of each object until every status had a conflict\n`)
}

const toPlural = (kind: string): string => {
  const lower = kind.toLowerCase()
  if (lower === 'gatewayclass') return 'gatewayclasses'
  return lower.endsWith('y') && !lower.endsWith('ay') ? `${lower.slice(0, -1)}ies` : `${lower}s`
}

/** A data plane authenticates and rejects its config, which the operator reports in the status of the Gateway. */
async function requestConfig(): Promise<void> {
  await kubectl('-n', SYSTEM, 'rollout', 'status', 'deployment/proxy', '--timeout=300s')
  const token = (await run('kubectl', ['-n', NAMESPACE, 'create', 'token', 'web', '--audience=proxy'])).trim()
  const service = (await read('service', 'proxy', SYSTEM))?.spec.clusterIP as string
  expect(await rejectConfig(`${service}:9978`, token, `${NAMESPACE}~web`)).toContain(`bind/80/${NAMESPACE}/web`)
  await expect(rejectConfig(`${service}:9978`, token, `${NAMESPACE}~all`)).rejects.toThrow(/UNAUTHENTICATED|PERMISSION_DENIED/)
  await until('an Event on the Gateway', async () => (await kubectl('-n', NAMESPACE, 'get', 'events')).includes('ProxyNackError'))
  // A repeated Event is counted by a patch.
  await rejectConfig(`${service}:9978`, token, `${NAMESPACE}~web`)
  const counts = ['get', 'events', '-o', 'jsonpath={.items[?(@.reason=="ProxyNackError")].count}']
  await until('the repeated Event is counted', async () => Number(await kubectl('-n', NAMESPACE, ...counts)) >= 2)
  await sleep(1000)
}
