import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  apply,
  conditionOf,
  get,
  gatewayPods,
  helm,
  installProxy,
  kubectl,
  makeNamespace,
  operatorPods,
  read,
  RELEASE,
  startQuickstart,
  SYSTEM,
  until,
  untilStatus,
} from './cluster.ts'
import { startLoad } from './load.ts'

const NAMESPACE = 'lifecycle'
let url: string

beforeAll(async () => {
  await installProxy()
  url = `http://${await startQuickstart(NAMESPACE)}/`
})
afterAll(async () => {
  await installProxy()
  await kubectl('delete', 'namespace', NAMESPACE, 'selected', '--ignore-not-found', '--wait=false')
})

const podNames = async (): Promise<string[]> => (await gatewayPods(NAMESPACE, 'web')).map(({ metadata }) => metadata.name)
const environmentOf = async (name: string): Promise<string | undefined> => {
  const deployment = await read('deployment', 'proxy', SYSTEM)
  return deployment?.spec.template.spec.containers[0].env.find((each: { name: string }) => each.name === name)?.value
}

test('pods serve traffic and statuses report success after a Gateway and a route are created', async () => {
  await untilStatus(url, 200)
  const pods = new Set<string>()
  // The faster pod gets more requests; both get some.
  await until('both pods have responded', async () => pods.add((JSON.parse((await get(url)).body) as { pod: string }).pod).size === 2)
  expect(conditionOf(await read('httproute', 'echo', NAMESPACE), 'Accepted')).toMatchObject({ status: 'True' })
  expect(await kubectl('-n', NAMESPACE, 'get', 'gateway', 'web')).toMatch(/web\s+proxy\s+10\.199\.\S+\s+True/)
})

test('operator and data plane run without privileges, on a read-only root file system', async () => {
  for (const pod of [...(await operatorPods()), ...(await gatewayPods(NAMESPACE, 'web'))]) {
    const { securityContext } = pod.spec.containers[0]
    expect(securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    })
    expect(pod.status.containerStatuses[0].restartCount).toBe(0)
  }
})

test('an upgrade changes the operator and does not affect data planes and their traffic', async () => {
  const before = await podNames()
  const load = startLoad(url)
  await installProxy({ controller: { replicaCount: 2, logLevel: 'debug', podDisruptionBudget: { minAvailable: 1 } } })
  expect(await environmentOf('PROXY_LOG_LEVEL')).toBe('debug')
  expect((await read('poddisruptionbudget', 'proxy', SYSTEM))?.spec.minAvailable).toBe(1)
  expect((await load.stop()).failures).toEqual([])
  expect(await podNames()).toEqual(before)
})

test('a rollback restores the previous objects, including PodDisruptionBudget and replicas', async () => {
  const before = await podNames()
  await helm('-n', SYSTEM, 'rollback', RELEASE, '--wait', '--timeout', '600s')
  expect(await environmentOf('PROXY_LOG_LEVEL')).toBe('info')
  expect(await read('poddisruptionbudget', 'proxy', SYSTEM)).toBeUndefined()
  await until('one replica is left', async () => (await operatorPods()).length === 1)
  expect(await podNames()).toEqual(before)
})

test('parameters of the GatewayClass that the chart refers to apply to its Gateways', async () => {
  await apply(SYSTEM, { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name: 'defaults' }, spec: { logging: { level: 'warn' } } })
  await installProxy({ gatewayClassParametersRefs: { proxy: { name: 'defaults', namespace: SYSTEM } } })
  await until('the class refers to them', async () => (await read('gatewayclass', 'proxy'))?.spec.parametersRef?.name === 'defaults')
  const level = async () => {
    const environment: { name: string; value?: string }[] = (await read('deployment', 'web', NAMESPACE))?.spec.template.spec.containers[0].env ?? []
    return environment.find(({ name }) => name === 'PROXY_LOG')?.value
  }
  await until('the data plane has them', async () => (await level()) === 'warn')
  await installProxy()
  await until('the parameters are removed', async () => (await level()) === 'info')
  expect((await read('gatewayclass', 'proxy'))?.spec.parametersRef).toBeUndefined()
  await kubectl('-n', NAMESPACE, 'rollout', 'status', 'deployment/web', '--timeout=300s')
})

test('only selected namespaces are served, and a label adds or removes one while the operator runs', async () => {
  await installProxy({ discoveryNamespaceSelectors: [{ matchLabels: { team: 'a' } }, { matchExpressions: [{ key: 'shared', operator: 'Exists' }] }] })
  await makeNamespace('selected')
  const gateway = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: { name: 'gw' } }
  await apply('selected', { ...gateway, spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] } })
  await kubectl('label', 'namespace', NAMESPACE, 'shared=yes')
  await untilStatus(url, 200)
  expect(await read('deployment', 'gw', 'selected')).toBeUndefined()
  expect(conditionOf(await read('gateway', 'gw', 'selected'), 'Accepted')).toMatchObject({ status: 'Unknown' })

  await kubectl('label', 'namespace', 'selected', 'team=a')
  await until('a Deployment in the namespace that was selected', async () => (await read('deployment', 'gw', 'selected')) !== undefined)
  await until('its Gateway is accepted', async () => conditionOf(await read('gateway', 'gw', 'selected'), 'Accepted')?.status === 'True')

  await kubectl('label', 'namespace', NAMESPACE, 'shared-')
  await until('its config and its port are removed', async () =>
    get(url).then(
      () => false,
      () => true,
    ),
  )
  await installProxy()
  await untilStatus(url, 200)
})

test('data planes keep serving without the operator, and a new operator adopts them unchanged', async () => {
  const before = await podNames()
  const load = startLoad(url)
  await helm('-n', SYSTEM, 'uninstall', RELEASE, '--wait')
  expect(await kubectl('get', 'clusterrole,clusterrolebinding', '-l', 'app.kubernetes.io/instance=proxy', '-o', 'name')).toBe('')
  const left = ['-n', SYSTEM, 'get', 'all,serviceaccount,role,rolebinding', '-l', 'app.kubernetes.io/instance=proxy', '-o', 'name']
  await until('nothing of it is left', async () => (await kubectl(...left)) === '')
  await installProxy()
  await kubectl('-n', NAMESPACE, 'patch', 'httproute', 'echo', '--type=json', '-p', '[{"op":"add","path":"/spec/rules/0/name","value":"again"}]')
  await until('the new operator writes the status of the route', async () => {
    const route = await read('httproute', 'echo', NAMESPACE)
    return route?.status?.parents?.[0]?.conditions?.[0]?.observedGeneration === route?.metadata.generation
  })
  expect((await load.stop()).failures).toEqual([])
  expect(await podNames()).toEqual(before)
})
