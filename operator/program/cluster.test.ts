import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { X509Certificate } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import packageJson from '../../package.json' with { type: 'json' }
import { runClusterMode, type ClusterMode } from './cluster.ts'
import { collections, startFakeApi, type FakeApi, type StoredObject } from '../kube/testing.ts'
import { createLog } from '../runtime/log.ts'
import { readSettings } from './settings.ts'
import { makeCertificate } from '../../e2e/harness/certificates.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { leases, gatewayClasses, gateways, httpRoutes, services, namespaces, proxyPolicies, deployments, secrets } = collections
const OWNED = [deployments, secrets, collections.events, collections.configMaps, collections.serviceAccounts, collections.podDisruptionBudgets]

let api: FakeApi
const modes: ClusterMode[] = []
const lines: string[] = []
const until = (isDone: () => boolean | Promise<boolean>): Promise<void> => untilTrue(isDone, () => lines.join(''))

beforeEach(async () => {
  api = await startFakeApi({ install: [leases, gatewayClasses, gateways, httpRoutes, services, namespaces, ...OWNED] })
  api.put(namespaces, { metadata: { name: 'default' } })
  lines.length = 0
})
afterEach(async () => {
  await Promise.all(modes.splice(0).map((mode) => mode.close()))
  await api.close()
})

async function start(env: Record<string, string> = {}, name = 'pod'): Promise<ClusterMode> {
  const ports = { PROXY_XDS_SERVICE_PORT: '0', PROXY_HEALTH_PORT: '0', PROXY_METRICS_PORT: '0', PROXY_ADMIN_PORT: '0' }
  const mode = await runClusterMode({
    settings: readSettings({ ...ports, POD_NAME: name, ...env }),
    log: createLog('debug', (line) => lines.push(line)),
    // Shared by the replicas of a test, so that none may close it.
    connection: { ...api.connection, close: () => {} },
    host: '127.0.0.1',
    // Only the pauses are short, so that a slow machine does not lose the Lease.
    leaseTimes: { leaseMs: 60_000, renewMs: 40_000, retryMs: 100 },
  })
  modes.push(mode)
  return mode
}
const read = async (port: number, path: string): Promise<{ status: number; text: string }> => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, text: await response.text() }
}
const gateway: StoredObject = {
  metadata: { name: 'gw', namespace: 'default' },
  spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }] },
}
const statusOf = (collection: string, name: string, namespace = 'default'): Record<string, unknown> => ({ ...api.get(collection, namespace, name)?.status })
const isAccepted = (status: Record<string, unknown>): boolean =>
  (status['conditions'] as { type: string; status: string }[] | undefined)?.some((each) => each.type === 'Accepted' && each.status === 'True') ?? false
const writes = (): string[] => api.requests.filter((request) => !request.startsWith('GET') && !request.includes('/leases'))

test('the operator creates its GatewayClass, accepts Gateways, and then writes nothing more', async () => {
  api.put(gateways, gateway)
  const mode = await start()
  await until(() => isAccepted(statusOf(gatewayClasses, 'proxy', '')) && isAccepted(statusOf(gateways, 'gw')))
  expect(statusOf(gatewayClasses, 'proxy', '')['supportedFeatures']).toContainEqual({ name: 'HTTPRoute' })
  await sleep(300)
  const before = writes().length
  await sleep(400)
  expect(writes().slice(before)).toEqual([])
  expect((await read(mode.ports.health, '/readyz')).status).toBe(200)
  const { text } = await read(mode.ports.metrics, '/metrics')
  expect(text).toMatch(/^proxy_leader 1$/m)
  // A write is counted when its response has been read.
  const written = writes().filter((request) => request.includes('/status?')).length
  await until(async () => (await read(mode.ports.metrics, '/metrics')).text.includes(`\nproxy_status_writes_total ${written}\n`))
})

test('failed writes of statuses are counted', async () => {
  api.put(gateways, gateway)
  api.fail('PATCH', gateways, 503)
  const mode = await start()
  const errors = async (): Promise<string> => /^proxy_status_write_errors_total (\d+)$/m.exec((await read(mode.ports.metrics, '/metrics')).text)?.[1] ?? ''
  await until(async () => Number(await errors()) > 0)
  api.fail('PATCH', gateways)
  await until(() => isAccepted(statusOf(gateways, 'gw')))
  expect(Number(await errors())).toBeGreaterThan(0)
})

test('a deleted or changed GatewayClass is restored, and one of another controller is not touched', async () => {
  await start({ PROXY_GATEWAY_CLASS_PARAMETERS_REFS: '{"proxy":{"name":"p","namespace":"s"}}' })
  const find = (): StoredObject | undefined => api.get(gatewayClasses, '', 'proxy')
  await until(() => find() !== undefined)
  expect(find()?.spec).toMatchObject({
    controllerName: 'proxy.dev/proxy',
    parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p', namespace: 's' },
  })
  api.drop(gatewayClasses, '', 'proxy')
  await until(() => find() !== undefined)
  api.drop(gatewayClasses, '', 'proxy')
  api.put(gatewayClasses, { metadata: { name: 'proxy' }, spec: { controllerName: 'example.com/other' } })
  await until(() => lines.some((line) => line.includes('belongs to controller example.com/other')))
  expect(find()?.spec).toEqual({ controllerName: 'example.com/other' })
})

test('the operator is not ready before all kinds are listed, and names the missing ones', async () => {
  api.fail('GET', httpRoutes, 503)
  const mode = await start()
  await until(async () => (await read(mode.ports.health, '/readyz')).text.includes('HTTPRoute, translation'))
  expect(await read(mode.ports.health, '/readyz')).toEqual({ status: 503, text: 'not ready, waiting for: HTTPRoute, translation\n' })
  api.fail('GET', httpRoutes)
  await until(async () => (await read(mode.ports.health, '/readyz')).status === 200)
})

test('kinds without a CRD are logged', async () => {
  api.install(proxyPolicies)
  await start()
  const logged = (): string | undefined => lines.find((line) => line.includes('no CRD for'))
  await until(() => logged() !== undefined)
  expect(logged()).toMatch(/"level":"warn".*GRPCRoute/)
  expect(logged()).not.toContain('ProxyPolicy')
})

test('the objects of a Gateway are created, and its status shows the address of its Service', async () => {
  api.put(gateways, gateway)
  await start()
  await until(() => isAccepted(statusOf(gateways, 'gw')))
  expect(statusOf(gateways, 'gw')['addresses']).toEqual([])
  expect(api.get(deployments, 'default', 'gw')?.metadata).toMatchObject({ ownerReferences: [{ kind: 'Gateway', name: 'gw', controller: true }] })
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } } })
  await until(() => JSON.stringify(statusOf(gateways, 'gw')['addresses']) === '[{"type":"IPAddress","value":"192.0.2.7"}]')
})

test('an object that the API server rejects is named in the status and retried', async () => {
  api.put(gateways, gateway)
  api.fail('PATCH', deployments, 403)
  await start()
  const programmed = () =>
    (statusOf(gateways, 'gw')['conditions'] as { type: string; status: string; reason: string }[] | undefined)?.find(({ type }) => type === 'Programmed')
  await until(() => programmed()?.status === 'False')
  expect(programmed()).toMatchObject({ reason: 'DeploymentFailed', message: expect.stringContaining('deployments/gw') })
  expect(isAccepted(statusOf(gateways, 'gw'))).toBe(true)
  api.fail('PATCH', deployments)
  await until(() => programmed()?.reason === 'Pending')
})

test('a Gateway is programmed once it has an address and a ready pod, and its message counts the pods', async () => {
  api.put(gateways, gateway)
  await start()
  const programmed = () => {
    const conditions = statusOf(gateways, 'gw')['conditions'] as { type: string; status: string; reason: string; message: string }[] | undefined
    const { status = '', reason = '', message = '' } = conditions?.find(({ type }) => type === 'Programmed') ?? {}
    return `${status} ${reason}: ${message}`
  }
  const setPods = (status: object): void =>
    void api.put(deployments, { ...(api.get(deployments, 'default', 'gw') as StoredObject), spec: { replicas: 3 }, status })
  await until(() => programmed() === 'False Pending: Gateway is not ready: its Service has no address yet; 0 of 1 pods are ready [PX1025]')
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } } })
  await until(() => programmed() === 'False Pending: Gateway is not ready: 0 of 1 pods are ready [PX1025]')
  setPods({ conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' }] })
  await until(() => programmed() === 'False Pending: Gateway is not ready: 0 of 3 pods are ready: no pod can be created: exceeded quota [PX1025]')
  setPods({ readyReplicas: 2 })
  await until(() => programmed() === 'True Programmed: Successfully programmed Gateway; 2 of 3 pods are ready')
  setPods({ readyReplicas: 0 })
  await until(() => programmed().startsWith('False'))
  expect(programmed()).toBe('False Pending: Gateway is not ready: 0 of 3 pods are ready [PX1025]')
})

test('an unknown field of an overlay is in the status of the Gateway, and the other fields are applied', async () => {
  api.install(collections.proxyParameters)
  const infrastructure = { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p' } }
  const deployment = { spec: { replicaz: 3, minReadySeconds: 7 } }
  api.put(collections.proxyParameters, { metadata: { name: 'p', namespace: 'default' }, spec: { deployment } })
  api.put(gateways, { ...gateway, spec: { ...gateway.spec, infrastructure } })
  await start()
  const partial = () => (statusOf(gateways, 'gw')['conditions'] as { type: string }[] | undefined)?.find(({ type }) => type === 'PartiallyInvalid')
  await until(() => partial() !== undefined)
  expect(partial()).toMatchObject({
    status: 'True',
    reason: 'InvalidParameters',
    message: 'deployment overlay of the Gateway: spec.replicaz: unknown field, ignored; did you mean replicas? [PX1023]',
  })
  expect(isAccepted(statusOf(gateways, 'gw'))).toBe(true)
  await until(() => api.list(collections.events).length === 2)
  const about = api.list(collections.events).map(({ involvedObject }) => (involvedObject as { kind: string; name: string }).kind)
  expect(about.toSorted()).toEqual(['Gateway', 'ProxyParameters'])
  expect(api.get(deployments, 'default', 'gw')?.spec).toMatchObject({ minReadySeconds: 7 })
  api.put(collections.proxyParameters, { metadata: { name: 'p', namespace: 'default' }, spec: { deployment: { spec: { replicas: 3 } } } })
  await until(() => partial() === undefined)
})

test('Events report the conditions of a Gateway that turn bad or good, and count repeated ones', async () => {
  api.put(gateways, gateway)
  api.fail('PATCH', deployments, 403)
  await start()
  const events = (): string[] =>
    api.list(collections.events).map(({ type, reason, message, count }) => `${String(type)} ${String(reason)} ${String(count)}: ${String(message)}`)
  await until(() => events().length === 1)
  expect(events()[0]).toMatch(/^Warning DeploymentFailed 1: Programmed is False: .*deployments\/gw/)
  expect(api.list(collections.events)[0]).toMatchObject({ involvedObject: { kind: 'Gateway', namespace: 'default', name: 'gw', uid: 'uid-default/gw' } })
  api.fail('PATCH', deployments)
  await until(() => api.get(deployments, 'default', 'gw') !== undefined)
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } } })
  const setReady = (readyReplicas: number): void =>
    void api.put(deployments, { ...(api.get(deployments, 'default', 'gw') as StoredObject), status: { readyReplicas } })
  setReady(1)
  const good = (count: number): string => `Normal Programmed ${count}: Programmed is True: Successfully programmed Gateway; 1 of 1 pods are ready`
  await until(() => events().includes(good(1)))
  setReady(0)
  await until(() => events().includes('Warning Pending 1: Programmed is False: Gateway is not ready: 0 of 1 pods are ready [PX1025]'))
  setReady(1)
  await until(() => events().includes(good(2)))
})

test('addresses and pods are found by owner if an overlay changes the label of the Gateway', async () => {
  api.install(collections.proxyParameters)
  const infrastructure = { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'p' } }
  const overlay = { metadata: { labels: { 'gateway.networking.k8s.io/gateway-name': 'other' } } }
  api.put(collections.proxyParameters, { metadata: { name: 'p', namespace: 'default' }, spec: { deployment: overlay, service: overlay } })
  api.put(gateways, { ...gateway, spec: { ...gateway.spec, infrastructure } })
  await start()
  await until(() => isAccepted(statusOf(gateways, 'gw')))
  api.put(services, { ...(api.get(services, 'default', 'gw') as StoredObject), status: { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } } })
  api.put(deployments, { ...(api.get(deployments, 'default', 'gw') as StoredObject), status: { readyReplicas: 1 } })
  await until(() => JSON.stringify(statusOf(gateways, 'gw')).includes('1 of 1 pods are ready'))
  expect(statusOf(gateways, 'gw')['addresses']).toEqual([{ type: 'IPAddress', value: '192.0.2.7' }])
})

test('the status of a policy names the field of an expression that does not parse', async () => {
  api.install(proxyPolicies)
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }]
  const traffic = { authorization: { policy: { matchExpressions: ['request.path ==='] } } }
  api.put(gateways, gateway)
  api.put(proxyPolicies, { metadata: { name: 'p', namespace: 'default' }, spec: { targetRefs, traffic } })
  await start()
  const conditions = () => (statusOf(proxyPolicies, 'p')['ancestors'] as { conditions: { reason: string; message: string }[] }[] | undefined)?.[0]?.conditions
  await until(() => conditions() !== undefined)
  expect(conditions()?.[0]).toMatchObject({ reason: 'PartiallyValid', message: expect.stringContaining('traffic.authorization') })
})

test('Gateways are served once a label selects their namespace', async () => {
  api.put(gateways, gateway)
  await start({ PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[{"matchLabels":{"team":"a"}}]' })
  await until(() => isAccepted(statusOf(gatewayClasses, 'proxy', '')))
  await sleep(100)
  expect(statusOf(gateways, 'gw')).toEqual({})
  api.put(namespaces, { metadata: { name: 'default', labels: { team: 'a' } } })
  await until(() => isAccepted(statusOf(gateways, 'gw')))
})

test('one of two replicas writes, and the other takes over when it ends', async () => {
  const first = await start({}, 'one')
  await until(() => isAccepted(statusOf(gatewayClasses, 'proxy', '')))
  const second = await start({}, 'two')
  await until(async () => (await read(second.ports.health, '/readyz')).status === 200)
  expect((await read(second.ports.metrics, '/metrics')).text).toMatch(/^proxy_leader 0$/m)
  modes.splice(modes.indexOf(first), 1)
  await first.close()
  api.put(gateways, gateway)
  await until(() => isAccepted(statusOf(gateways, 'gw')))
  expect(api.get(leases, 'proxy-system', 'proxy-operator')?.spec).toMatchObject({ holderIdentity: expect.stringMatching(/^two_/) })
})

test('the admin endpoints dump names, show the version and change the log level', async () => {
  api.put(gateways, gateway)
  const { ports } = await start()
  await until(() => isAccepted(statusOf(gateways, 'gw')))
  const dump = JSON.parse((await read(ports.admin, '/snapshot?pretty')).text) as { gateways: Record<string, string[]> }
  expect(dump.gateways['default/gw']).toEqual(['bind/80/default/gw', 'listener/default/gw.http'])
  expect(JSON.parse((await read(ports.admin, '/snapshots/krt')).text)).toMatchObject({ gateways: dump.gateways })
  expect(JSON.parse((await read(ports.admin, '/version')).text)).toEqual({ version: packageJson.version })
  expect((await read(ports.admin, '/logging')).status).toBe(405)
  const post = async (query: string) => (await fetch(`http://127.0.0.1:${ports.admin}/logging?${query}`, { method: 'POST' })).status
  expect([await post('level=warn'), await post('level=chatty'), await post('xds=debug')]).toEqual([200, 400, 400])
})

test('the operator exports when the certificate of the config stream expires', async () => {
  const { certificate, privateKey } = makeCertificate({ name: 'proxy', validDays: 10 })
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  const data = { 'tls.crt': encode(certificate), 'tls.key': encode(privateKey), 'ca.crt': encode(certificate) }
  api.put(secrets, { metadata: { name: 'proxy-xds-cert', namespace: 'proxy-system' }, data })
  const mode = await start({ PROXY_XDS_MODE: 'tls' })
  const expiry = new X509Certificate(certificate).validToDate.getTime() / 1000
  expect((await read(mode.ports.metrics, '/metrics')).text).toContain(`\nproxy_certificate_expiry_timestamp_seconds ${expiry}\n`)
})

test('the operator does not start in TLS mode without a certificate', async () => {
  api.install(secrets)
  await expect(start({ PROXY_XDS_MODE: 'tls' })).rejects.toThrow('proxy-xds-cert')
})
