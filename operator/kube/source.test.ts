import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LabelSelector } from '../source/gateway-api.ts'
import { systemClock } from '../serve/debounce.ts'
import type { KubeObject } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { watchCluster, type ClusterSource } from './source.ts'
import { collections, startFakeApi, type FakeApi, type StoredObject } from './testing.ts'
import { until } from '../../e2e/harness/wait.ts'

const { gateways, httpRoutes, services, namespaces, secrets, pods, referenceGrants, inferencePools, proxyPolicies } = collections
let api: FakeApi
let source: ClusterSource | undefined
const snapshots: Snapshot[] = []
const statusEvents: KubeObject[] = []
const errors: unknown[] = []

beforeEach(async () => {
  api = await startFakeApi({ install: [gateways, services, namespaces, secrets, proxyPolicies], pageSize: 2 })
  for (const list of [snapshots, statusEvents, errors]) list.length = 0
})
afterEach(async () => {
  source?.close()
  await api.close()
})

function start(namespaceSelectors: LabelSelector[] = [], isInferenceEnabled = false): void {
  source = watchCluster({
    connection: api.connection,
    namespaceSelectors,
    isInferenceEnabled,
    clock: systemClock,
    debounce: { quietMs: 5, maxMs: 50 },
    absentPollMs: 20,
    onSnapshot: (snapshot) => snapshots.push(snapshot),
    onStatus: (object) => statusEvents.push(object),
    onError: (_kind, error) => errors.push(error),
  })
}
const latest = (): Snapshot | undefined => snapshots.at(-1)
const service = (name: string, more: Partial<StoredObject> = {}, namespace = 'default'): StoredObject => ({
  metadata: { name, namespace, managedFields: [{ manager: 'x' }] },
  spec: { ports: [{ port: 80 }] },
  ...more,
})
const namesOf = (kind: 'Service' | 'HTTPRoute'): string[] => (latest()?.list(kind) ?? []).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)

describe('a snapshot', () => {
  test('is empty before everything is listed, then holds all pages, without managedFields', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) api.put(services, service(name))
    start()
    await until(() => snapshots.length === 1)
    expect(namesOf('Service')).toEqual(['default/a', 'default/b', 'default/c', 'default/d', 'default/e'])
    expect(latest()?.get('Service', 'default', 'a')).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'a', namespace: 'default', uid: 'uid-default/a', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { ports: [{ port: 80 }] },
    })
    expect(source?.isSynced()).toBe(true)
  })

  test('keeps the identity of unchanged objects', async () => {
    api.put(services, service('a'))
    start()
    await until(() => snapshots.length === 1)
    const before = latest()?.get('Service', 'default', 'a')
    api.put(services, service('a', { metadata: { name: 'a', namespace: 'default', managedFields: [] } }))
    api.put(services, service('b'))
    await until(() => namesOf('Service').length === 2)
    expect(latest()?.get('Service', 'default', 'a')).toBe(before)
  })

  test('has the defaults that an older bundle of CRDs does not fill in', async () => {
    const listener = { name: 'http', port: 80, protocol: 'HTTP' }
    api.put(gateways, { metadata: { name: 'g', namespace: 'default' }, spec: { gatewayClassName: 'proxy', listeners: [listener] } })
    start()
    await until(() => snapshots.length === 1)
    expect(latest()?.get('Gateway', 'default', 'g')?.spec.listeners[0]?.allowedRoutes.namespaces.from).toBe('Same')
  })

  test('excludes Secrets of helm releases and service account tokens already in the request, and has no kubectl annotations', async () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":"c2VjcmV0"}' }
    api.put(secrets, { metadata: { name: 's', namespace: 'default', annotations }, data: { key: 'c2VjcmV0' } })
    start()
    await until(() => snapshots.length === 1)
    const listed = api.requests.filter((request) => request.includes(secrets)).map((request) => decodeURIComponent(request))
    expect(listed.length).toBeGreaterThan(0)
    for (const request of listed) expect(request).toContain('fieldSelector=type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token')
    expect(latest()?.get('Secret', 'default', 's')?.metadata.annotations).toBeUndefined()
  })
})

describe('a watch of the API server', () => {
  test('resumes after a disconnect without a list', async () => {
    start()
    await until(() => snapshots.length === 1)
    await until(() => api.requests.some((request) => request.startsWith(`GET ${services}?watch`)))
    api.cutWatches()
    api.put(services, service('a'))
    await until(() => namesOf('Service').length === 1)
    expect(api.requests.filter((request) => request.startsWith(`GET ${services}?limit`))).toHaveLength(1)
  })

  test('lists again when its version is too old, and drops deleted objects', async () => {
    api.put(services, service('a'))
    api.put(services, service('b'))
    start()
    await until(() => snapshots.length === 1)
    const kept = latest()?.get('Service', 'default', 'b')
    await until(() => api.requests.some((request) => request.startsWith(`GET ${services}?watch`)))
    api.compact()
    api.cutWatches()
    api.drop(services, 'default', 'a')
    api.compact()
    await until(() => namesOf('Service').length === 1)
    expect(latest()?.get('Service', 'default', 'b')).toBe(kept)
  })

  test('retries after errors and keeps the last state', async () => {
    api.fail('GET', services, 503)
    start()
    await until(() => errors.length > 1 && source?.missing().join() === 'Service')
    expect(snapshots).toHaveLength(0)
    api.fail('GET', services)
    await until(() => snapshots.length === 1)
  })

  test('treats a kind without CRD as empty, and finds one that is installed later', async () => {
    start()
    await until(() => snapshots.length === 1)
    expect(latest()?.list('HTTPRoute')).toEqual([])
    expect(source?.collectionOf('HTTPRoute')).toBeUndefined()
    api.install(httpRoutes)
    api.put(httpRoutes, { metadata: { name: 'r', namespace: 'default' }, spec: {} })
    await until(() => namesOf('HTTPRoute').length === 1)
    expect(source?.collectionOf('HTTPRoute')).toBe(httpRoutes)
  })
})

describe('a change of a status only', () => {
  test('makes no snapshot and is passed to the status writer', async () => {
    api.put(gateways, { metadata: { name: 'g', namespace: 'default' }, spec: { gatewayClassName: 'proxy', listeners: [] } })
    start()
    await until(() => snapshots.length === 1)
    const stored = api.get(gateways, 'default', 'g') as StoredObject
    api.put(gateways, { ...stored, status: { conditions: [] } })
    await until(() => statusEvents.length === 1)
    await sleep(80)
    expect(snapshots).toHaveLength(1)
    expect(source?.find('Gateway', 'default', 'g')?.object).toMatchObject({ status: { conditions: [] } })
  })

  test('is in the next snapshot, with the identity of the spec, so that nothing is translated again', async () => {
    api.put(gateways, { metadata: { name: 'g', namespace: 'default' }, spec: { gatewayClassName: 'proxy', listeners: [] } })
    start()
    await until(() => snapshots.length === 1)
    const before = latest()?.get('Gateway', 'default', 'g')
    api.put(gateways, { ...(api.get(gateways, 'default', 'g') as StoredObject), status: { conditions: [] } })
    await until(() => statusEvents.length === 1)
    api.put(services, { metadata: { name: 's', namespace: 'default' }, spec: {} })
    await until(() => snapshots.length === 2)
    const after = latest()?.get('Gateway', 'default', 'g')
    expect(after).toMatchObject({ status: { conditions: [] } })
    expect(after?.spec).toBe(before?.spec)
    expect(after?.metadata).toBe(before?.metadata)
  })

  test('makes a snapshot if another controller is added to the ancestors of a policy, which leaves fewer entries for ours', async () => {
    api.put(proxyPolicies, { metadata: { name: 'p', namespace: 'default' }, spec: {} })
    start()
    await until(() => snapshots.length === 1)
    const stored = api.get(proxyPolicies, 'default', 'p') as StoredObject
    api.put(proxyPolicies, { ...stored, status: { ancestors: [{ controllerName: 'example.com/other' }] } })
    await until(() => snapshots.length > 1)
    expect(statusEvents).toEqual([])
  })
})

describe('namespace selectors', () => {
  const labelled = (name: string, team: string): StoredObject => ({ metadata: { name, labels: { team } } })

  test('select the objects of matching namespaces, also after a label changed', async () => {
    api.put(namespaces, labelled('a', 'red'))
    api.put(namespaces, labelled('b', 'blue'))
    for (const namespace of ['a', 'b', 'unknown']) api.put(services, service('s', {}, namespace))
    start([{ matchLabels: { team: 'red' } }, { matchExpressions: [{ key: 'open', operator: 'Exists' }] }])
    await until(() => snapshots.length === 1)
    expect(namesOf('Service')).toEqual(['a/s'])
    expect(latest()?.list('Namespace')).toHaveLength(2)
    api.put(namespaces, labelled('b', 'red'))
    await until(() => namesOf('Service').length === 2)
    api.put(namespaces, labelled('a', 'blue'))
    await until(() => namesOf('Service').join() === 'b/s')
  })

  test('do not apply to ReferenceGrants, so that a reference to another namespace is not found rather than not permitted', async () => {
    api.install(referenceGrants)
    api.put(namespaces, labelled('b', 'blue'))
    api.put(services, service('s', {}, 'b'))
    api.put(referenceGrants, { metadata: { name: 'g', namespace: 'b' }, spec: { from: [], to: [] } })
    start([{ matchLabels: { team: 'red' } }])
    await until(() => snapshots.length === 1)
    expect(namesOf('Service')).toEqual([])
    expect(latest()?.get('ReferenceGrant', 'b', 'g')).toBeDefined()
  })
})

describe('InferencePools and their pods', () => {
  const status = (ready: string, more: object = {}): object => ({
    phase: 'Running',
    podIP: '10.0.0.1',
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Ready', status: ready, lastProbeTime: null },
    ],
    ...more,
  })
  const pod = (own: object): StoredObject => ({
    metadata: { name: 'p', namespace: 'default', labels: { app: 'model' } },
    spec: { nodeName: 'n', containers: [{ name: 'c' }] },
    status: own,
  })
  const ready = (): unknown => latest()?.get('Pod', 'default', 'p')
  beforeEach(() => {
    for (const collection of [pods, inferencePools]) api.install(collection)
    api.put(pods, pod(status('True')))
    api.put(inferencePools, {
      metadata: { name: 'models', namespace: 'default' },
      spec: { selector: { matchLabels: { app: 'model' } }, targetPorts: [{ number: 80 }] },
    })
  })

  test('are not listed if the inference extension is disabled', async () => {
    start()
    await until(() => snapshots.length === 1)
    expect([ready(), latest()?.list('InferencePool')]).toEqual([undefined, []])
    expect(api.requests.filter((line) => line.includes(pods) || line.includes(inferencePools))).toEqual([])
  })

  test('keep only the fields of an endpoint, so that a heartbeat makes no snapshot', async () => {
    start([], true)
    await until(() => snapshots.length === 1)
    const before = ready()
    expect(before).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z', labels: { app: 'model' } },
      spec: { nodeName: 'n' },
      status: { podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
    })
    expect(latest()?.get('InferencePool', 'default', 'models')?.spec.appProtocol).toBe('http')
    api.put(pods, pod(status('True', { containerStatuses: [] })))
    api.put(services, service('a'))
    await until(() => namesOf('Service').length === 1)
    expect(ready()).toBe(before)
    api.put(pods, pod(status('False')))
    await until(() => ready() !== before)
    expect(ready()).toMatchObject({ status: { conditions: [{ status: 'False' }] } })
  })
})
