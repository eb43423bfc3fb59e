import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { OPERATOR_MAIN } from '../../harness/program/operator.ts'
import { startProgram, tailOf, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { install, type ApiServer } from './api-server.ts'
import { connectWithCrds, readGatewayApiCrds } from './create.ts'

/** The fields of an object that these tests read. */
interface Stored {
  readonly metadata: { readonly resourceVersion: string; readonly generation: number; readonly ownerReferences?: readonly object[] }
  readonly spec: { readonly ports?: readonly { readonly port: number }[]; readonly holderIdentity?: string }
  readonly status?: {
    readonly conditions?: readonly Condition[]
    readonly addresses?: readonly object[]
    readonly supportedFeatures?: readonly object[]
    readonly parents?: readonly { readonly controllerName: string; readonly conditions: readonly Condition[] }[]
  }
}
interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly observedGeneration: number
  readonly lastTransitionTime: string
}
interface Replica {
  readonly program: Program
  readonly ports: { readonly xds: number; readonly health: number; readonly metrics: number }
}

const namespace = `operator-${Date.now().toString(36)}`
const SYSTEM = 'proxy-system'
const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1'
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/proxy-operator`
const CERTIFICATE = 'proxy-xds-cert'
const PORT = 18_080
const inNamespace = (root: string, plural: string, name = ''): string => `${root}/namespaces/${namespace}/${plural}${name === '' ? '' : `/${name}`}`
const gatewayPath = (name = ''): string => inNamespace(GATEWAY_API, 'gateways', name)
const routePath = (name = ''): string => inNamespace(GATEWAY_API, 'httproutes', name)

let server: ApiServer
let directory: string
const replicas: Replica[] = []

beforeAll(async () => {
  server = await connectWithCrds()
  await install(server, await readGatewayApiCrds())
  directory = await mkdtemp(join(tmpdir(), 'operator-'))
  for (const name of [SYSTEM, namespace]) await server.call('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  // An earlier run may have left an expired Lease.
  await server.call('DELETE', LEASE)
  replicas.push(await startReplica('one'))
})
afterAll(async () => {
  await Promise.all(replicas.map(({ program }) => program.stop()))
  // No garbage collector runs here: the next run would find these Gateways.
  for (const path of [gatewayPath(), routePath(), `/api/v1/namespaces/${namespace}`]) await server.call('DELETE', path)
  server.close()
  await rm(directory, { recursive: true })
})

async function startReplica(name: string, more: Record<string, string> = {}): Promise<Replica> {
  const ports = { PROXY_XDS_SERVICE_PORT: '0', PROXY_HEALTH_PORT: '0', PROXY_METRICS_PORT: '0', PROXY_ADMIN_PORT: '0' }
  const program = startProgram({ name: `operator ${name}`, args: [OPERATOR_MAIN], env: { ...ports, POD_NAME: name, POD_NAMESPACE: SYSTEM, ...more } })
  const line = JSON.parse(await program.waitForLine(/"listening"/, 120_000)) as Replica['ports']
  return { program, ports: line }
}

async function create(path: string, object: object): Promise<void> {
  const { status, causes } = await server.call('POST', path, object)
  if (status >= 400) throw new Error(`POST ${path}: ${JSON.stringify(causes)}`)
}
async function read(path: string): Promise<Stored | undefined> {
  const { status, object } = await server.call('GET', path)
  return status === 200 ? (object as unknown as Stored) : undefined
}
const meta = (name: string) => ({ name, namespace })
const gatewayOf = (name: string, port = PORT, infrastructure?: object) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: meta(name),
  spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port, protocol: 'HTTP' }], ...(infrastructure ? { infrastructure } : {}) },
})
const conditionOf = (object: Stored | undefined, type: string): Condition | undefined => object?.status?.conditions?.find((each) => each.type === type)
const isTrue = (object: Stored | undefined, type: string): boolean => conditionOf(object, type)?.status === 'True'
async function metric(replica: Replica, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${replica.ports.metrics}/metrics`)).text()
  return Number(new RegExp(`^proxy_${name} (\\d+)$`, 'm').exec(text)?.[1])
}
const first = (): Replica => replicas[0] as Replica
const until = async (what: string, condition: () => Promise<boolean>, timeoutMs = 120_000): Promise<void> =>
  waitUntil(what, condition, timeoutMs).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${replicas.map(({ program }) => tailOf(program.lines)).join('\n')}`, { cause: error })
  })

/** Writes the statuses that load balancers and kubelets would write: an address and a ready pod. */
async function setRunning(name: string): Promise<void> {
  const set = async (path: string, status: object): Promise<void> => {
    await until(`${path} exists`, async () => (await read(path)) !== undefined)
    await server.call('PATCH', `${path}/status`, { status }, 'application/merge-patch+json')
  }
  await set(inNamespace('/api/v1', 'services', name), { loadBalancer: { ingress: [{ ip: '192.0.2.10' }] } })
  await set(inNamespace('/apis/apps/v1', 'deployments', name), { replicas: 1, readyReplicas: 1, availableReplicas: 1 })
}

test('the operator creates the GatewayClass proxy, accepts it and lists its supported features', async () => {
  await until('class accepted', async () => isTrue(await read(`${GATEWAY_API}/gatewayclasses/proxy`), 'Accepted'))
  const features = (await read(`${GATEWAY_API}/gatewayclasses/proxy`))?.status?.supportedFeatures
  expect(features).toContainEqual({ name: 'HTTPRoute' })
  await until('ready', async () => (await fetch(`http://127.0.0.1:${first().ports.health}/readyz`)).status === 200)
})

test('a Gateway is accepted and programmed, and owns its objects', async () => {
  await create(gatewayPath(), gatewayOf('gw'))
  await until('Gateway pending', async () => conditionOf(await read(gatewayPath('gw')), 'Programmed')?.reason === 'Pending')
  await setRunning('gw')
  await until('Gateway programmed', async () => isTrue(await read(gatewayPath('gw')), 'Programmed'))
  expect(conditionOf(await read(gatewayPath('gw')), 'Programmed')).toMatchObject({ message: 'Successfully programmed Gateway; 1 of 1 pods are ready' })
  for (const path of [
    inNamespace('/apis/apps/v1', 'deployments', 'gw'),
    ...['services', 'serviceaccounts', 'configmaps'].map((kind) => inNamespace('/api/v1', kind, 'gw')),
  ])
    expect((await read(path))?.metadata.ownerReferences).toMatchObject([{ kind: 'Gateway', name: 'gw', controller: true }])
  expect(await read(inNamespace('/api/v1', 'secrets', 'gw-session-key'))).toBeDefined()
})

test('the address of a Gateway is that of its Service', async () => {
  await until('address', async () => JSON.stringify((await read(gatewayPath('gw')))?.status?.addresses) === '[{"type":"IPAddress","value":"192.0.2.10"}]')
  expect(isTrue(await read(gatewayPath('gw')), 'Programmed')).toBe(true)
})

test('a route is accepted, and the status entry of another controller is preserved', async () => {
  const rule = { filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'example.com', statusCode: 302 } }] }
  const route = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: meta('r'),
    spec: { parentRefs: [{ name: 'gw' }, { name: 'theirs' }], rules: [rule] },
  }
  await create(routePath(), route)
  const own = async () => (await read(routePath('r')))?.status?.parents?.find(({ controllerName }) => controllerName === 'proxy.dev/proxy')
  await until('our entry', async () => (await own())?.conditions.some(({ type, status }) => type === 'Accepted' && status === 'True') ?? false)
  const condition = {
    type: 'Accepted',
    status: 'False',
    reason: 'Pending',
    message: 'theirs',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 1,
  }
  const parentRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'theirs' }
  const foreign = { parentRef, controllerName: 'example.com/other', conditions: [condition] }
  const parents = [...((await read(routePath('r')))?.status?.parents ?? []), foreign]
  await server.call('PATCH', `${routePath('r')}/status`, { status: { parents } }, 'application/merge-patch+json')
  const before = await own()
  await server.call('PATCH', routePath('r'), { spec: { hostnames: ['a.example.com'] } }, 'application/merge-patch+json')
  await until('our entry at generation 2', async () => (await own())?.conditions[0]?.observedGeneration === 2)
  expect((await own())?.conditions[0]?.lastTransitionTime).toBe(before?.conditions[0]?.lastTransitionTime)
  expect((await read(routePath('r')))?.status?.parents).toContainEqual(foreign)
})

test('an overlay creates and removes a PodDisruptionBudget, and objects deleted by hand are created again', async () => {
  const parametersPath = inNamespace('/apis/proxy.dev/v1alpha1', 'proxyparameters')
  const budgetPath = inNamespace('/apis/policy/v1', 'poddisruptionbudgets', 'pdb')
  const spec = { podDisruptionBudget: { spec: { minAvailable: 1 } } }
  await create(parametersPath, { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: meta('p'), spec })
  await create(gatewayPath(), gatewayOf('pdb', 8081, { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p' } }))
  await until('budget', async () => (await read(budgetPath)) !== undefined)
  await server.call('DELETE', inNamespace('/api/v1', 'configmaps', 'pdb'))
  await until('ConfigMap is back', async () => (await read(inNamespace('/api/v1', 'configmaps', 'pdb'))) !== undefined)
  await server.call('PATCH', `${parametersPath}/p`, { spec: { podDisruptionBudget: null } }, 'application/merge-patch+json')
  await until('the deletion of the budget', async () => (await read(budgetPath)) === undefined)
  await setRunning('pdb')
  await until('Gateway programmed', async () => isTrue(await read(gatewayPath('pdb')), 'Programmed'))
  expect(isTrue(await read(gatewayPath('pdb')), 'Programmed')).toBe(true)
})

test('an overlay that the API server rejects is reported in the status until it is corrected', async () => {
  const parametersPath = inNamespace('/apis/proxy.dev/v1alpha1', 'proxyparameters', 'p')
  await server.call('PATCH', parametersPath, { spec: { deployment: { spec: { replicas: -1 } } } }, 'application/merge-patch+json')
  await until('not programmed', async () => conditionOf(await read(gatewayPath('pdb')), 'Programmed')?.reason === 'DeploymentFailed')
  expect(isTrue(await read(gatewayPath('pdb')), 'Accepted')).toBe(true)
  await server.call('PATCH', parametersPath, { spec: { deployment: null } }, 'application/merge-patch+json')
  await until('programmed again', async () => isTrue(await read(gatewayPath('pdb')), 'Programmed'))
})

test('the operator writes nothing if nothing changes', async () => {
  const count = async () => [await metric(first(), 'status_writes_total'), await metric(first(), 'applies_total')]
  let before = await count()
  // Changes of earlier tests may still be in progress.
  await until('two seconds without a write', async () => {
    await sleep(2_000)
    const last = before
    before = await count()
    return isDeepStrictEqual(before, last)
  })
  const versions = async () =>
    Promise.all(
      [gatewayPath('gw'), routePath('r'), inNamespace('/apis/apps/v1', 'deployments', 'gw')].map(async (path) => (await read(path))?.metadata.resourceVersion),
    )
  const seen = await versions()
  await sleep(4_000)
  expect(await count()).toEqual(before)
  expect(await versions()).toEqual(seen)
})

/** Sends a request to the data plane with this `host`, which fetch cannot set. */
const get = (host: string): Promise<{ status: number | undefined; location: string | undefined }> =>
  new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port: PORT, path: '/x', headers: { host } }, (response) => {
      response.resume()
      resolve({ status: response.statusCode, location: response.headers.location })
    })
      .on('error', reject)
      .end()
  })

async function tokenFile(account: string, audience: string): Promise<string> {
  const { object } = await server.call('POST', `${inNamespace('/api/v1', 'serviceaccounts', account)}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], expirationSeconds: 600 },
  })
  const file = join(directory, `${account}-${Buffer.from(audience).toString('hex')}`)
  await writeFile(file, (object['status'] as { token: string }).token)
  return file
}

test('a data plane receives the config of the Gateway whose ServiceAccount it uses', async () => {
  const config = { address: `127.0.0.1:${first().ports.xds}`, namespace, gateway: 'gw' }
  const dataplane = await startDataplane({ config, env: { XDS_TOKEN_FILE: await tokenFile('gw', 'proxy') } })
  try {
    expect(await get('a.example.com')).toEqual({ status: 302, location: expect.stringMatching(/^http:\/\/example\.com[:/]/) })
    expect(await get('b.example.com')).toMatchObject({ status: 404 })
  } finally {
    await dataplane.stop()
  }
})

test('a data plane receives no config with the token of another Gateway, a token for another audience, or no token', async () => {
  const refused = await metric(first(), 'xds_auth_rq_failure_total')
  const accepted = await metric(first(), 'xds_auth_rq_success_total')
  const config = { address: `127.0.0.1:${first().ports.xds}`, namespace, gateway: 'gw' }
  const files = [await tokenFile('pdb', 'proxy'), await tokenFile('gw', 'https://kubernetes.default.svc.cluster.local'), join(directory, 'none')]
  const attempts = files.map((file) => startDataplane({ config, env: { XDS_TOKEN_FILE: file }, timeoutMs: 20_000 }))
  const outcomes = await Promise.allSettled(attempts)
  expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? String(outcome.reason) : 'ready'))).toEqual(
    files.map(() => expect.stringContaining('did not become ready')),
  )
  expect(await metric(first(), 'xds_auth_rq_failure_total')).toBeGreaterThanOrEqual(refused + 3)
  expect(await metric(first(), 'xds_auth_rq_success_total')).toBe(accepted)
})

/** Stores a new self-signed certificate in the operator's Secret; returns the file that data planes must trust. */
async function putCertificate(name: string): Promise<string> {
  const [key, certificate] = [join(directory, `${name}.key`), join(directory, `${name}.crt`)]
  const options = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', `/CN=${name}`]
  execFileSync('openssl', [...options, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const [crt, secret] = await Promise.all([certificate, key].map((file) => readFile(file, 'base64')))
  const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: CERTIFICATE }, data: { 'tls.crt': crt, 'tls.key': secret, 'ca.crt': crt } }
  const path = `/api/v1/namespaces/${SYSTEM}/secrets/${CERTIFICATE}?fieldManager=contract&force=true`
  const { status, causes } = await server.call('PATCH', path, object, 'application/apply-patch+yaml')
  if (status >= 400) throw new Error(JSON.stringify(causes))
  return certificate
}

test('the operator does not start with TLS and without a certificate, and reports the missing Secret', async () => {
  await server.call('DELETE', `/api/v1/namespaces/${SYSTEM}/secrets/${CERTIFICATE}`)
  await expect(startReplica('bare', { PROXY_XDS_MODE: 'tls' })).rejects.toThrow(CERTIFICATE)
})

test('a second replica serves over TLS and uses a new certificate without a restart', async () => {
  const root = await putCertificate('old')
  const second = await startReplica('two', { PROXY_XDS_MODE: 'tls' })
  replicas.push(second)
  const tokens = await tokenFile('gw', 'proxy')
  const config = { address: '', namespace, gateway: 'gw' }
  const start = (authority: string, timeoutMs: number) =>
    startDataplane({ config, timeoutMs, env: { XDS_TOKEN_FILE: tokens, XDS_ADDRESS: `https://127.0.0.1:${second.ports.xds}`, XDS_ROOT_CA: authority } })
  const before = await start(root, 120_000)
  expect(await get('a.example.com')).toMatchObject({ status: 302 })
  await before.stop()
  const renewed = await putCertificate('new')
  await second.program.waitForLine(/certificate of the config stream was replaced/)
  await expect(start(root, 3_000)).rejects.toThrow('did not become ready')
  await (await start(renewed, 120_000)).stop()
})

test('an Event reports a route that turns bad and good, and counts repetitions', async () => {
  const ref = (name: string) => ({ spec: { rules: [{ backendRefs: [{ name, port: 80 }] }] } })
  const events = async (): Promise<string[]> => {
    const { object } = await server.call('GET', inNamespace('/api/v1', 'events'))
    const { items } = object as unknown as {
      items: { type: string; reason: string; message: string; count: number; involvedObject: { kind: string; name: string } }[]
    }
    return items
      .filter(({ involvedObject: { kind, name } }) => kind === 'HTTPRoute' && name === 'evented')
      .map(({ type, reason, count }) => `${type} ${reason} ${count}`)
  }
  const isResolved = async (): Promise<boolean | undefined> =>
    (await read(routePath('evented')))?.status?.parents?.[0]?.conditions.some(({ type, status }) => type === 'ResolvedRefs' && status === 'True')
  const service = { apiVersion: 'v1', kind: 'Service', metadata: meta('evented'), spec: { ports: [{ port: 80 }] } }
  await create(inNamespace('/api/v1', 'services'), service)
  await create(routePath(), {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: meta('evented'),
    spec: { parentRefs: [{ name: 'gw' }], ...ref('gone').spec },
  })
  await until('a Warning', async () => (await events()).includes('Warning BackendNotFound 1'))
  for (const [name, isGood] of [
    ['evented', true],
    ['gone', false],
    ['evented', true],
  ] as const) {
    await server.call('PATCH', routePath('evented'), ref(name), 'application/merge-patch+json')
    await until('the status', async () => (await isResolved()) === isGood)
  }
  await until('counted Events', async () => (await events()).every((text) => text.endsWith(' 2')))
  expect((await events()).toSorted()).toEqual(['Normal ResolvedRefs 2', 'Warning BackendNotFound 2'])
})

test('conditions of an earlier version are removed, and the field manager of statuses is the controller name', async () => {
  const stale = { type: 'StatusSummarized', status: 'True', reason: 'Old', message: 'old', lastTransitionTime: '2026-01-01T00:00:00Z' }
  const path = gatewayPath('gw')
  const conditions = [...((await read(path))?.status?.conditions ?? []), stale]
  await server.call('PATCH', `${path}/status?fieldManager=proxy-operator`, { status: { conditions } }, 'application/merge-patch+json')
  await until('the stale condition is removed', async () => conditionOf(await read(path), 'StatusSummarized') === undefined)
  const { managedFields = [] } = ((await read(path))?.metadata ?? {}) as { managedFields?: { manager: string; subresource?: string }[] }
  expect(managedFields.filter(({ subresource }) => subresource === 'status').map(({ manager }) => manager)).toContain('proxy.dev/proxy')
})

test('the second replica does not write until the leader is killed', async () => {
  const second = replicas[1] as Replica
  await until('second is ready', async () => (await fetch(`http://127.0.0.1:${second.ports.health}/readyz`)).status === 200)
  expect(await metric(second, 'leader')).toBe(0)
  expect((await read(LEASE))?.spec.holderIdentity).toMatch(/^one_/)
  first().program.signal('SIGKILL')
  await create(gatewayPath(), gatewayOf('after', 8082))
  await until('new leader', async () => (await metric(second, 'leader')) === 1)
  await setRunning('after')
  await until('Gateway programmed', async () => isTrue(await read(gatewayPath('after')), 'Programmed'))
  expect((await read(LEASE))?.spec.holderIdentity).toMatch(/^two_/)
})

test('a leader releases the Lease at once when it is terminated', async () => {
  const exit = await (replicas[1] as Replica).program.stop(60_000)
  expect(exit.code).toBe(0)
  expect((await read(LEASE))?.spec.holderIdentity).toBe('')
})
