import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  apply,
  conditionOf,
  gatewayPods,
  get,
  installProxy,
  kubectl,
  list,
  read,
  startQuickstart,
  until,
  untilStatus,
  waitForGateway,
  type Stored,
} from './cluster.ts'
import { startLoad } from './load.ts'

const NAMESPACE = 'provisioning'
let url: string

beforeAll(async () => {
  await installProxy()
  url = `http://${await startQuickstart(NAMESPACE)}/`
  await apply(NAMESPACE, parameters({}))
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=merge', '-p', JSON.stringify({ spec: { infrastructure } }))
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

const infrastructure = { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'web' } }
/** Parameters for server-side apply, which removes the fields of earlier tests. A spec without fields would become null, which is rejected. */
const parameters = (spec: object) => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyParameters',
  metadata: { name: 'web' },
  spec: { logging: { level: 'info' }, ...spec },
})
const deployment = async (): Promise<Stored['spec']> => (await read('deployment', 'web', NAMESPACE))?.spec
const container = async () => {
  const containers: { name: string; resources?: object; env: { name: string }[]; securityContext?: object }[] = (await deployment()).template.spec.containers
  return containers.find(({ name }) => name === 'proxy')
}
/** Applies parameters and waits until the Deployment has them and its pods are rolled out. */
async function applyParameters(spec: object, isThere: () => Promise<boolean>): Promise<void> {
  await apply(NAMESPACE, parameters(spec))
  await until(`objects match ${JSON.stringify(spec)}`, isThere)
  await kubectl('-n', NAMESPACE, 'rollout', 'status', 'deployment/web', '--timeout=600s')
}

test('resources and log level of the typed fields are applied to the pods without a failed request', async () => {
  const load = startLoad(url)
  await applyParameters(
    { resources: { limits: { memory: '512Mi' } }, logging: { level: 'debug' } },
    async () => JSON.stringify((await container())?.resources) === '{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}}',
  )
  const { requests, failures } = await load.stop()
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(100)
})

test('a container in the overlay is added as a sidecar, and the container of the proxy is unchanged', async () => {
  await applyParameters({}, async () => !JSON.stringify((await container())?.resources).includes('limits'))
  const before = await container()
  const { image } = before as unknown as { image: string }
  const sidecar = { name: 'sidecar', image, command: ['node', '-e', 'setInterval(() => {}, 1000)'] }
  const containers = async (): Promise<{ name: string }[]> => (await deployment()).template.spec.containers
  await applyParameters({ deployment: { spec: { template: { spec: { containers: [sidecar] } } } } }, async () => (await containers()).length === 2)
  expect(await container()).toEqual(before)
  await until('both run', async () => {
    const pods = await gatewayPods(NAMESPACE, 'web')
    return pods.length === 1 && pods[0]?.status.containerStatuses.filter(({ ready }: { ready: boolean }) => ready).length === 2
  })
  await untilStatus(url, 200)
})

test('a node selector without a matching node keeps new pods pending and old pods serving', async () => {
  const select = (value: string): object => ({ deployment: { spec: { template: { spec: { nodeSelector: { 'kubernetes.io/os': value } } } } } })
  await apply(NAMESPACE, parameters(select('beos')))
  await until('a pod that has no place', async () => (await gatewayPods(NAMESPACE, 'web')).some(({ status }) => status.phase === 'Pending'))
  expect((await get(url)).status).toBe(200)
  await applyParameters(select('linux'), async () => (await deployment()).template.spec.nodeSelector?.['kubernetes.io/os'] === 'linux')
})

test.each([
  ['$patch: delete', { $patch: 'delete' }],
  ['null', null],
])('%s removes a field of the generated pod', async (_, securityContext) => {
  const isGone = async (): Promise<boolean> => Object.keys((await deployment()).template.spec.securityContext ?? {}).length === 0
  // Without the sysctl of the pod, port 80 needs a privileged user, so the Gateway listens on another port.
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=json', '-p', '[{"op":"replace","path":"/spec/listeners/0/port","value":8080}]')
  await applyParameters({ deployment: { spec: { template: { spec: { securityContext } } } } }, isGone)
  await untilStatus(url.replace(/\/$/, ':8080/'), 200)
  await applyParameters({}, async () => !(await isGone()))
  expect((await deployment()).template.spec.securityContext.sysctls).toHaveLength(1)
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=json', '-p', '[{"op":"replace","path":"/spec/listeners/0/port","value":80}]')
  await untilStatus(url, 200)
})

test('PodDisruptionBudget and autoscaler exist while an overlay configures them', async () => {
  const both = async (): Promise<[Stored | undefined, Stored | undefined]> => [await read('pdb', 'web', NAMESPACE), await read('hpa', 'web', NAMESPACE)]
  const spec = {
    podDisruptionBudget: { metadata: { labels: { team: 'a' } }, spec: { minAvailable: 1 } },
    horizontalPodAutoscaler: { spec: { minReplicas: 2, maxReplicas: 3 } },
  }
  await applyParameters(spec, async () => (await both()).every((object) => object !== undefined))
  const [budget, autoscaler] = await both()
  expect(budget?.metadata.labels).toMatchObject({ team: 'a', 'gateway.networking.k8s.io/gateway-name': 'web' })
  expect(budget?.spec.selector.matchLabels).toEqual((await deployment()).selector.matchLabels)
  expect(autoscaler?.spec.scaleTargetRef).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' })
  await until('the autoscaler scales', async () => (await deployment()).replicas === 2)
  await kubectl('-n', NAMESPACE, 'delete', 'pdb', 'web')
  await until('a budget that was deleted by hand is back', async () => (await both())[0] !== undefined)
  await applyParameters({}, async () => (await both()).every((object) => object === undefined))
  await kubectl('-n', NAMESPACE, 'scale', 'deployment/web', '--replicas=1')
})

test('the overlay sets type, annotations and ports of the Service', async () => {
  const service = async (): Promise<Stored | undefined> => read('service', 'web', NAMESPACE)
  const overlay = {
    metadata: { annotations: { 'example.com/a': 'b' } },
    spec: { type: 'ClusterIP', ports: [{ $patch: 'replace' }, { name: 'web', port: 8088, targetPort: 80 }] },
  }
  await applyParameters({ service: overlay }, async () => (await service())?.spec.type === 'ClusterIP')
  const changed = await service()
  expect(changed?.metadata.annotations).toMatchObject({ 'example.com/a': 'b' })
  expect(changed?.spec.ports.map(({ port }: { port: number }) => port)).toEqual([8088])
  await untilStatus(`http://${changed?.spec.clusterIP}:8088/`, 200)
  await until(
    'the address of the Gateway follows',
    async () => (await read('gateway', 'web', NAMESPACE))?.status?.addresses?.[0]?.value === changed?.spec.clusterIP,
  )
  await applyParameters({}, async () => (await service())?.spec.type === 'LoadBalancer')
  url = `http://${await waitForGateway(NAMESPACE, 'web')}/`
  await untilStatus(url, 200)
})

test('an overlay of the wrong type is reported in the status and does not affect running objects', async () => {
  const { resourceVersion } = (await read('deployment', 'web', NAMESPACE))?.metadata ?? {}
  await apply(NAMESPACE, parameters({ deployment: { spec: { replicas: 'many' } } }))
  const accepted = async () => conditionOf(await read('gateway', 'web', NAMESPACE), 'Accepted')
  await until('the Gateway reports it', async () => (await accepted())?.status === 'False')
  expect(await accepted()).toMatchObject({ reason: 'InvalidParameters', message: expect.stringMatching(/replicas/) })
  expect((await read('deployment', 'web', NAMESPACE))?.metadata.resourceVersion).toBe(resourceVersion)
  expect((await get(url)).status).toBe(200)
  await apply(NAMESPACE, parameters({}))
  await until('all is well again', async () => (await accepted())?.status === 'True')
})

test('deleted objects are created again, and pods are replaced only for a new session key', async () => {
  await until('one pod', async () => (await gatewayPods(NAMESPACE, 'web')).length === 1)
  const [pod] = await gatewayPods(NAMESPACE, 'web')
  await kubectl('-n', NAMESPACE, 'delete', 'configmap', 'web')
  await until('the ConfigMap', async () => (await read('configmap', 'web', NAMESPACE)) !== undefined)
  expect((await gatewayPods(NAMESPACE, 'web')).map(({ metadata }) => metadata.name)).toEqual([pod?.metadata.name])
  const load = startLoad(url)
  await kubectl('-n', NAMESPACE, 'delete', 'secret', 'web-session-key')
  await until('the Secret', async () => (await read('secret', 'web-session-key', NAMESPACE)) !== undefined)
  await until('another pod', async () => (await gatewayPods(NAMESPACE, 'web')).every(({ metadata }) => metadata.name !== pod?.metadata.name))
  expect((await load.stop()).failures).toEqual([])
})

test('a Gateway with a name of 253 characters is served, and its objects have shortened names', async () => {
  const name = `${'long-name-'.repeat(25)}end`
  expect(name).toHaveLength(253)
  const http = { name: 'http', port: 80, protocol: 'HTTP' }
  await apply(
    NAMESPACE,
    { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: { name }, spec: { gatewayClassName: 'proxy', listeners: [http] } },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'long' },
      spec: { parentRefs: [{ name }], rules: [{ backendRefs: [{ name: 'echo', port: 80 }] }] },
    },
  )
  const deploymentOf = async (): Promise<Stored | undefined> =>
    (await list('deployments', NAMESPACE)).find(({ metadata }) => metadata.name.startsWith('long-name-'))
  await until('a Deployment for it', async () => (await deploymentOf()) !== undefined)
  const own = (await deploymentOf())?.metadata.name ?? ''
  expect(own).toMatch(/^[a-z0-9-]{1,50}-[0-9a-f]{12}$/)
  await untilStatus(`http://${await waitForGateway(NAMESPACE, name, own)}/`, 200)
})
