import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { Provisioner } from './provision.ts'
import { metadataOf, testGatewayClass, testSettings } from './testing.ts'
import { collections, startFakeApi, type FakeApi, type StoredObject } from '../kube/testing.ts'
import { createReconcileMetrics } from '../runtime/metrics.ts'
import { systemClock } from '../serve/debounce.ts'
import type { KubeObject } from '../source/objects.ts'
import { createSnapshot } from '../source/snapshot.ts'
import { translate } from '../translate/translate.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { deployments, podDisruptionBudgets, secrets, services, configMaps } = collections
const KEY = 'ab'.repeat(32)

let api: FakeApi
let provisioner: Provisioner
let isLeader = true
const errors: string[] = []
const until = (ask: () => boolean): Promise<void> => untilTrue(ask, () => errors.join('\n'))

beforeEach(async () => {
  api = await startFakeApi({ install: [deployments, podDisruptionBudgets, secrets, services, configMaps, collections.serviceAccounts] })
  isLeader = true
  errors.length = 0
  provisioner = new Provisioner({
    connection: api.connection,
    clock: systemClock,
    settings: testSettings,
    xdsSecret: () => undefined,
    isLeader: () => isLeader,
    metrics: createReconcileMetrics(() => performance.now()).of('gateway'),
    onChange: () => {},
    onNote: () => {},
    onError: (what, error) => errors.push(`${what}: ${String(error)}`),
  })
})
afterEach(async () => {
  provisioner.close()
  await api.close()
})

/** One Gateway `gw` with a listener for each port; `parameters` is the spec of its ProxyParameters. */
function publish(generation: number, ports: readonly number[], parameters?: object, ...others: object[]): void {
  const allowedRoutes = { namespaces: { from: 'Same' } }
  const infrastructure = parameters ? { infrastructure: { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p' } } } : {}
  const gateway = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: metadataOf('gw', 'default', generation),
    spec: { gatewayClassName: 'proxy', listeners: ports.map((port) => ({ name: `p${port}`, port, protocol: 'HTTP', allowedRoutes })), ...infrastructure },
  }
  const ofGateway = { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: metadataOf('p', 'default', generation), spec: parameters ?? {} }
  const snapshot = createSnapshot([testGatewayClass, gateway, ...(parameters ? [ofGateway] : []), ...others] as unknown as KubeObject[])
  provisioner.publish(snapshot, translate(snapshot))
}
const isDone = (): boolean => provisioner.deployedOf('default/gw')?.outcome.ok === true
const portsOf = (): number[] => (api.get(services, 'default', 'gw')?.spec as { ports: { port: number }[] } | undefined)?.ports.map(({ port }) => port) ?? []
const writes = (): string[] => api.requests.filter((request) => !request.startsWith('GET'))
const entryOf = (name: string, entry: string): string =>
  Buffer.from((api.get(secrets, 'default', name) as { data?: Record<string, string> } | undefined)?.data?.[entry] ?? '', 'base64').toString()
const sessionKey = (): string => entryOf('gw-session-key', 'key')
const adminToken = (): string => entryOf('gw-admin-token', 'token')

test('every object is applied once, with our field manager', async () => {
  publish(1, [80])
  await until(isDone)
  await sleep(200)
  publish(1, [80])
  provisioner.reconcileAll()
  await sleep(200)
  expect(writes().map((request) => request.replace('?fieldManager=proxy.dev%2Fproxy&force=true', ''))).toEqual([
    'PATCH /api/v1/namespaces/default/secrets/gw-session-key',
    'PATCH /api/v1/namespaces/default/secrets/gw-admin-token',
    'PATCH /api/v1/namespaces/default/serviceaccounts/gw',
    'PATCH /api/v1/namespaces/default/configmaps/gw',
    'PATCH /api/v1/namespaces/default/services/gw',
    'PATCH /apis/apps/v1/namespaces/default/deployments/gw',
  ])
  expect(writes()[0]).toContain('?fieldManager=proxy.dev%2Fproxy&force=true')
  expect(provisioner.applies()).toBe(6)
})

test('a changed listener changes the Service and no other object', async () => {
  publish(1, [80])
  await until(isDone)
  const before = writes().length
  publish(2, [8080, 80])
  await until(() => portsOf().join() === '80,8080')
  await sleep(100)
  expect(writes().slice(before)).toEqual([expect.stringContaining('/services/gw')])
})

test('the trust domain is that of the mesh, as it changes, if no parameters set it', async () => {
  const settings = (mesh: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: metadataOf('istio', 'istio-system', 1), data: { mesh } })
  const trustDomain = (): unknown => {
    const { spec } = (api.get(deployments, 'default', 'gw') ?? {}) as {
      spec?: { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } }
    }
    return spec?.template.spec.containers[0]?.env.find(({ name }) => name === 'TRUST_DOMAIN')?.value
  }
  publish(1, [80], { mesh: {} }, settings('trustDomain: corp.example'))
  await until(() => trustDomain() === 'corp.example')
  publish(1, [80], { mesh: {} }, settings('trustDomain: other.example'))
  await until(() => trustDomain() === 'other.example')
  publish(2, [80], { mesh: { trustDomain: 'own.example' } }, settings('trustDomain: other.example'))
  await until(() => trustDomain() === 'own.example')
  expect(writes().every((request) => !request.includes('istio'))).toBe(true)
})

test('objects that a user edits or deletes are restored, and a deleted key is replaced by a new one', async () => {
  publish(1, [80])
  await until(isDone)
  const before = sessionKey()
  expect(before).toMatch(/^[0-9a-f]{64}$/)
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), spec: { ports: [{ port: 1 }] } })
  await until(() => portsOf().join() === '80')
  const { ownerReferences, ...disowned } = (api.get(services, 'default', 'gw') as StoredObject).metadata
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), metadata: disowned })
  await until(() => isDeepStrictEqual(api.get(services, 'default', 'gw')?.metadata['ownerReferences'], ownerReferences))
  api.drop(configMaps, 'default', 'gw')
  await until(() => api.get(configMaps, 'default', 'gw') !== undefined)
  expect(sessionKey()).toBe(before)
  api.drop(secrets, 'default', 'gw-session-key')
  await until(() => sessionKey() !== '' && sessionKey() !== before)
  const token = adminToken()
  expect(token).toMatch(/^[0-9a-f]{64}$/)
  expect(token).not.toBe(sessionKey())
  api.drop(secrets, 'default', 'gw-admin-token')
  await until(() => adminToken() !== '' && adminToken() !== token)
})

test('an existing session key is kept, and an invalid one fails the Gateway', async () => {
  api.put(secrets, { metadata: { name: 'gw-session-key', namespace: 'default' }, data: { key: Buffer.from(KEY).toString('base64') } })
  publish(1, [80])
  await until(isDone)
  expect(sessionKey()).toBe(KEY)
  const before = writes().length
  api.put(secrets, { metadata: { name: 'gw-session-key', namespace: 'default' }, data: { key: Buffer.from('abc').toString('base64') } })
  await until(() => provisioner.deployedOf('default/gw')?.outcome.ok === false)
  publish(2, [81])
  await sleep(200)
  expect(provisioner.deployedOf('default/gw')?.outcome).toMatchObject({ condition: 'Accepted', reason: 'InvalidParameters' })
  expect(writes()).toHaveLength(before)
  expect(sessionKey()).toBe('abc')
})

test('a PodDisruptionBudget is created and deleted with its overlay, even if that changes its labels; one of a user stays', async () => {
  const labels = { 'gateway.networking.k8s.io/gateway-name': 'gw' }
  api.put(podDisruptionBudgets, { metadata: { name: 'of-user', namespace: 'default', labels }, spec: {} })
  publish(1, [80], { podDisruptionBudget: { metadata: { labels: { 'gateway.networking.k8s.io/gateway-name': 'other' } }, spec: { minAvailable: 1 } } })
  await until(() => api.get(podDisruptionBudgets, 'default', 'gw') !== undefined)
  publish(2, [80], {})
  await until(() => api.get(podDisruptionBudgets, 'default', 'gw') === undefined)
  expect(api.get(podDisruptionBudgets, 'default', 'of-user')).toBeDefined()
})

test('an object of another Gateway is not overwritten, and the status names it', async () => {
  const owner = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', name: 'other', uid: 'uid-other', controller: true }
  const labels = { 'gateway.networking.k8s.io/gateway-name': 'other' }
  api.put(configMaps, {
    metadata: { name: 'gw', namespace: 'default', labels, ownerReferences: [owner] },
    data: { 'ca.crt': 'theirs' },
  })
  publish(1, [80])
  await until(() => provisioner.deployedOf('default/gw')?.outcome !== undefined)
  expect(provisioner.deployedOf('default/gw')?.outcome).toMatchObject({
    condition: 'Programmed',
    reason: 'DeploymentFailed',
    message: expect.stringContaining('belongs to Gateway other'),
  })
  expect(api.get(configMaps, 'default', 'gw')).toMatchObject({ data: { 'ca.crt': 'theirs' }, metadata: { ownerReferences: [owner] } })
})

test('an object of a user with the same name is not overwritten until it is deleted, and the status names it', async () => {
  api.put(services, { metadata: { name: 'gw', namespace: 'default' }, spec: { selector: { app: 'theirs' } } })
  publish(1, [80])
  await until(() => provisioner.deployedOf('default/gw')?.outcome !== undefined)
  expect(provisioner.deployedOf('default/gw')?.outcome).toMatchObject({
    reason: 'DeploymentFailed',
    message: expect.stringContaining('Service gw is there already'),
  })
  expect(api.get(services, 'default', 'gw')?.spec).toEqual({ selector: { app: 'theirs' } })
  api.drop(services, 'default', 'gw')
  await until(isDone)
  expect(portsOf()).toEqual([80])
})

test('a replica that does not lead applies nothing', async () => {
  isLeader = false
  publish(1, [80])
  await sleep(150)
  expect(writes()).toEqual([])
  isLeader = true
  provisioner.reconcileAll()
  await until(isDone)
})

test('the outcome holds the error of a rejected object, but not of a Secret', async () => {
  api.fail('PATCH', secrets, 422)
  publish(1, [80])
  await until(() => provisioner.deployedOf('default/gw')?.outcome.ok === false)
  expect(provisioner.deployedOf('default/gw')?.outcome).toEqual({
    ok: false,
    condition: 'Programmed',
    reason: 'DeploymentFailed',
    message: 'Secret gw-session-key: Injected [PX1027]',
    warnings: [],
  })
  api.fail('PATCH', secrets)
  await until(isDone)
})

test('pods keep their session key while another object is rejected repeatedly', async () => {
  api.fail('PATCH', podDisruptionBudgets, 422)
  publish(1, [80], { podDisruptionBudget: {} })
  const attempts = (collection: string): number => writes().filter((request) => request.includes(`/${collection}/`)).length
  await until(() => attempts('poddisruptionbudgets') >= 2)
  expect(provisioner.deployedOf('default/gw')?.outcome).toMatchObject({ condition: 'Programmed', reason: 'DeploymentFailed' })
  expect(sessionKey()).toMatch(/^[0-9a-f]{64}$/)
  expect(attempts('deployments')).toBe(1)
  api.fail('PATCH', podDisruptionBudgets)
  await until(isDone)
})
