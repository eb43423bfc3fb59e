import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { ServerProvisioner } from './servers.ts'
import { metadataOf, testGatewayClass, testSettings } from './testing.ts'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import { createReconcileMetrics } from '../runtime/metrics.ts'
import { systemClock } from '../serve/debounce.ts'
import type { KubeObject } from '../source/objects.ts'
import { createSnapshot } from '../source/snapshot.ts'
import { translate } from '../translate/translate.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { deployments, services, serviceAccounts } = collections
const KINDS = [serviceAccounts, services, deployments]
const BACKEND = 'default/tools'

let api: FakeApi
let provisioner: ServerProvisioner
let isLeader = true
let reconciles: ReturnType<typeof createReconcileMetrics>
const errors: string[] = []
const until = (ask: () => boolean): Promise<void> => untilTrue(ask, () => errors.join('\n'))

const start = (): ServerProvisioner =>
  new ServerProvisioner({
    connection: api.connection,
    clock: systemClock,
    settings: testSettings,
    isLeader: () => isLeader,
    metrics: reconciles.of('mcpserver'),
    onChange: () => {},
    onError: (what, error) => errors.push(`${what}: ${String(error)}`),
  })
beforeEach(async () => {
  api = await startFakeApi({ install: KINDS })
  isLeader = true
  errors.length = 0
  reconciles = createReconcileMetrics(() => performance.now())
  provisioner = start()
})
afterEach(async () => {
  provisioner.close()
  await api.close()
})

const target = (name: string, image = 'localhost/server:v1') => ({ name, image, command: ['server'] })

/** ProxyBackend `tools` with these targets, a Gateway that uses it, and the `mcp` of its ProxyParameters. */
function publish(generation: number, targets: readonly object[], mcp: object = { images: ['localhost'] }, isDeleted = false): void {
  const parametersRef = { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p' }
  const objects = [
    testGatewayClass,
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: metadataOf('gw', 'default', 1),
      spec: {
        gatewayClassName: 'proxy',
        infrastructure: { parametersRef },
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }],
      },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: metadataOf('route', 'default', 1),
      spec: {
        parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }],
        rules: [{ matches: [], backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name: 'tools', weight: 1 }] }],
      },
    },
    { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: metadataOf('p', 'default', generation), spec: { mcp } },
    ...(isDeleted
      ? []
      : [{ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: metadataOf('tools', 'default', generation), spec: { mcp: { targets } } }]),
  ]
  const snapshot = createSnapshot(objects as unknown as KubeObject[])
  provisioner.publish(snapshot, translate(snapshot))
}
const namesOf = (collection: string): string[] =>
  api
    .list(collection)
    .map(({ metadata: { name } }) => name.replace(/-[0-9a-f]{8}$/, ''))
    .toSorted()
const all = (...names: string[]) => KINDS.map(() => names.map((name) => `mcp-tools-${name}`))
const stored = () => KINDS.map(namesOf)
const untilStored = (...names: string[]): Promise<void> => until(() => JSON.stringify(stored()) === JSON.stringify(all(...names)))
const imageOf = (name: string): string | undefined =>
  (
    api.list(deployments).find((each) => each.metadata.name.startsWith(`mcp-tools-${name}-`)) as
      | { spec?: { template: { spec: { containers: { image: string }[] } } } }
      | undefined
  )?.spec?.template.spec.containers[0]?.image
const writes = (): string[] => api.requests.filter((request) => !request.startsWith('GET'))

test('servers are created with an owner, and updated and deleted with their targets', async () => {
  publish(1, [target('a'), target('b')])
  await untilStored('a', 'b')
  for (const collection of KINDS)
    expect(api.list(collection).map((each) => each.metadata['ownerReferences'])).toEqual([
      [{ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', name: 'tools', uid: 'uid-tools', controller: true }],
      [{ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', name: 'tools', uid: 'uid-tools', controller: true }],
    ])
  publish(2, [target('a', 'localhost/server:v2')])
  await untilStored('a')
  await until(() => imageOf('a') === 'localhost/server:v2')
})

test('servers are deleted when the permission is withdrawn, and stay when only the backend is gone', async () => {
  publish(1, [target('a')])
  await untilStored('a')
  publish(2, [target('a')], {})
  await untilStored()
  publish(3, [target('a')])
  await untilStored('a')
  // Kubernetes collects the objects of a deleted backend.
  publish(4, [], {}, true)
  await until(() => provisioner.serversOf(BACKEND).length === 0)
  expect(stored()).toEqual(all('a'))
})

test('a replica that starts deletes servers that lost their target while none ran', async () => {
  publish(1, [target('a')])
  await untilStored('a')
  provisioner.close()
  provisioner = start()
  publish(2, [])
  await untilStored()
  expect(stored()).toEqual(all())
})

test('a replica that does not lead writes nothing', async () => {
  isLeader = false
  publish(1, [target('a')])
  provisioner.reconcileAll()
  await until(() => api.requests.filter((request) => request.includes('watch=1')).length >= KINDS.length)
  expect(writes()).toEqual([])
  isLeader = true
  provisioner.reconcileAll()
  await untilStored('a')
})

test('objects that were edited or deleted are restored', async () => {
  publish(1, [target('a')])
  await untilStored('a')
  const [service] = api.list(services)
  api.drop(services, 'default', service?.metadata.name ?? '')
  await untilStored('a')
  const [deployment] = api.list(deployments)
  if (deployment) api.put(deployments, { ...deployment, spec: { ...deployment.spec, template: { spec: { containers: [{ image: 'other' }] } } } })
  await until(() => imageOf('a') === 'localhost/server:v1')
  expect(stored()).toEqual(all('a'))
})

test('an object of a user with the name of a server is not taken over, and other servers run', async () => {
  publish(1, [target('a')])
  await untilStored('a')
  const [mine] = api.list(services)
  publish(2, [])
  await untilStored()
  api.put(services, { metadata: { name: mine?.metadata.name ?? '', namespace: 'default' }, spec: { selector: { mine: 'yes' } } })
  publish(3, [target('a'), target('b')])
  await until(() => provisioner.serversOf(BACKEND).length === 2)
  const [a, b] = provisioner.serversOf(BACKEND)
  expect(a?.outcome).toMatchObject({ ok: false, reason: 'DeploymentFailed', message: expect.stringMatching(/belongs to no ProxyBackend; .*\[PX1360\]$/) })
  expect(b?.outcome).toEqual({ ok: true, warnings: [] })
  expect(api.get(services, 'default', mine?.metadata.name ?? '')?.spec).toEqual({ selector: { mine: 'yes' } })
})

test('invalid overlays are reported, and the server stays', async () => {
  publish(1, [target('a')])
  await untilStored('a')
  publish(2, [target('a')], { images: ['localhost'], deployment: { spec: { replicas: 'two' } } })
  await until(() => provisioner.serversOf(BACKEND)[0]?.outcome.ok === false)
  expect(provisioner.serversOf(BACKEND)[0]?.outcome).toMatchObject({ reason: 'InvalidParameters', message: expect.stringContaining('mcp.deployment') })
  expect(stored()).toEqual(all('a'))
})

test('ready pods are reported', async () => {
  publish(1, [target('a')])
  await until(() => provisioner.serversOf(BACKEND)[0]?.rollout?.ready === 0)
  const [deployment] = api.list(deployments)
  if (deployment) api.put(deployments, { ...deployment, status: { readyReplicas: 1 } })
  await until(() => provisioner.serversOf(BACKEND)[0]?.rollout?.ready === 1)
  expect(provisioner.serversOf(BACKEND)).toHaveLength(1)
})

test('reconciles are counted for each backend, and forgotten with it', async () => {
  const isCounted = (): boolean => reconciles.render().includes('controller="mcpserver",name="tools",namespace="default",result="success"')
  publish(1, [target('a')])
  await until(isCounted)
  // Without servers, but it still exists.
  publish(2, [])
  await untilStored()
  expect(isCounted()).toBe(true)
  publish(3, [], {}, true)
  expect(isCounted()).toBe(false)
})

test('a reconcile that ends after its backend was deleted is not counted', async () => {
  publish(1, [target('a')])
  await until(() => writes().length > 0)
  publish(2, [], {}, true)
  const total = (): number => Number(/reconcile_duration_seconds_count\{controller="mcpserver"\} (\d+)/.exec(reconciles.render())?.[1])
  await until(() => total() > 0)
  await until(() => !reconciles.render().includes('name="tools"'))
  expect(reconciles.render()).toContain('reconciliations_running{controller="mcpserver"} 0')
})
