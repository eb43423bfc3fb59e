import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  apply,
  crash,
  findLeader,
  gatewayPods,
  get,
  installProxy,
  kubectl,
  localcluster,
  operatorPods,
  read,
  run,
  startQuickstart,
  SYSTEM,
  until,
  untilStatus,
} from './cluster.ts'
import { startLoad } from './load.ts'

const NAMESPACE = 'resilience'
let url: string

beforeAll(async () => {
  await installProxy({ controller: { replicaCount: 2 } })
  url = `http://${await startQuickstart(NAMESPACE)}/`
  const infrastructure = { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'web' } }
  await apply(NAMESPACE, parameters(1))
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=merge', '-p', JSON.stringify({ spec: { infrastructure } }))
  await untilStatus(url, 200)
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

const parameters = (replicas: number) => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyParameters',
  metadata: { name: 'web' },
  spec: { deployment: { spec: { replicas } }, podDisruptionBudget: { spec: { maxUnavailable: 1 } } },
})
async function scaleTo(replicas: number): Promise<void> {
  await apply(NAMESPACE, parameters(replicas))
  await until(`${replicas} pods, all ready`, async () => {
    const pods = await gatewayPods(NAMESPACE, 'web')
    return pods.length === replicas && pods.every(({ status }) => status.containerStatuses?.[0]?.ready === true)
  })
}

let version = 0
/** Changes a header filter of the route; returns a function that waits until the change is in effect. */
async function changeRoute(): Promise<(timeoutMs?: number) => Promise<void>> {
  const value = `v${(version += 1)}`
  const filters = [{ type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-version', value }] } }]
  const patch = { spec: { rules: [{ filters, backendRefs: [{ name: 'echo', port: 80 }] }] } }
  await kubectl('-n', NAMESPACE, 'patch', 'httproute', 'echo', '--type=merge', '-p', JSON.stringify(patch))
  return (timeoutMs = 240_000) => until(`${value} is in force on every pod`, async () => (await seenVersions()).join() === value, timeoutMs)
}
/** Versions in the responses to a few requests on new connections. */
async function seenVersions(): Promise<string[]> {
  const responses = await Promise.all(Array.from({ length: 12 }, () => get(url)))
  return [...new Set(responses.map(({ body }) => (JSON.parse(body) as { headers: Record<string, string> }).headers['x-version'] ?? 'none'))]
}

test('scaling to three replicas and back under load fails no request', async () => {
  const load = startLoad(url)
  await scaleTo(3)
  const atThree = load.responses()
  await sleep(3000)
  expect(load.responses()).toBeGreaterThan(atThree)
  await scaleTo(1)
  const { requests, failures } = await load.stop()
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(100)
})

test('a rolling restart under load fails no request', async () => {
  const load = startLoad(url)
  await kubectl('-n', NAMESPACE, 'rollout', 'restart', 'deployment/web')
  await kubectl('-n', NAMESPACE, 'rollout', 'status', 'deployment/web', '--timeout=600s')
  await until('the old pod is deleted', async () => (await gatewayPods(NAMESPACE, 'web')).length === 1)
  expect((await load.stop()).failures).toEqual([])
})

test('a killed data plane is restarted, and the others keep serving', async () => {
  await scaleTo(2)
  const [victim] = await gatewayPods(NAMESPACE, 'web')
  const load = startLoad(url)
  await crash(NAMESPACE, victim?.metadata.name ?? '')
  await until('it runs again', async () => {
    const pods = await gatewayPods(NAMESPACE, 'web')
    const statuses = pods.map(({ status }) => status.containerStatuses[0] as { ready: boolean; restartCount: number })
    return statuses.every(({ ready }) => ready) && statuses.reduce((sum, { restartCount }) => sum + restartCount, 0) === 1
  })
  // Only requests in progress on that pod, and requests sent to it before Kubernetes removed the endpoint, fail.
  const { requests, failures } = await load.stop()
  expect(requests).toBeGreaterThan(50)
  expect(failures.join('\n')).not.toMatch(/: [1-5]\d\d$|no response/m)
  const after = startLoad(url)
  await sleep(2000)
  expect((await after.stop()).failures).toEqual([])
})

test.each([
  ['is stopped', async (leader: string) => void (await kubectl('-n', SYSTEM, 'delete', 'pod', leader, '--wait=false'))],
  ['is killed', (leader: string) => crash(SYSTEM, leader)],
])('when the leader %s, changes still take effect and another replica takes over', async (_, end) => {
  const before = await findLeader()
  const load = startLoad(url)
  await end(before.split('_')[0] ?? '')
  await (
    await changeRoute()
  )(60_000)
  await until('another process leads', async () => !['', before].includes(await findLeader()))
  await until('the new leader writes', async () => {
    const route = await read('httproute', 'echo', NAMESPACE)
    return (
      route?.status?.parents?.[0]?.conditions?.every((each: { observedGeneration: number }) => each.observedGeneration === route.metadata.generation) === true
    )
  })
  expect((await load.stop()).failures).toEqual([])
})

test('traffic continues while the API server restarts, and the next change takes effect', async () => {
  const load = startLoad(url)
  await localcluster('restart')
  await (
    await changeRoute()
  )()
  expect((await load.stop()).failures).toEqual([])
  await kubectl('-n', SYSTEM, 'rollout', 'status', 'deployment/proxy', '--timeout=300s')
})

test('data planes keep the last config without an operator and after its restart', async () => {
  const load = startLoad(url)
  await kubectl('-n', SYSTEM, 'scale', 'deployment/proxy', '--replicas=0')
  await until('no operator', async () => (await operatorPods()).length === 0)
  const isInForce = await changeRoute()
  const before = await seenVersions()
  await sleep(3000)
  expect(await seenVersions()).toEqual(before)
  await kubectl('-n', SYSTEM, 'scale', 'deployment/proxy', '--replicas=2')
  await isInForce()
  expect((await load.stop()).failures).toEqual([])
})

test('data planes keep the last config while the stream is interrupted for two minutes and receive missed changes afterwards', async () => {
  // Only packets of the stream: other connections may have its port as their source port, by masquerading too.
  const service = await read('service', 'proxy', SYSTEM)
  const addresses = [service?.spec.clusterIP, ...(await operatorPods()).map(({ status }) => status.podIP)].map(String)
  const cut = async (action: '-I' | '-D'): Promise<void> => {
    for (const address of addresses)
      for (const match of [
        ['-d', address, '-p', 'tcp', '--dport', '9978'],
        ['-s', address, '-p', 'tcp', '--sport', '9978'],
      ])
        await run('iptables', ['-w', '-t', 'raw', action, 'PREROUTING', ...match, '-j', 'DROP'])
  }
  const load = startLoad(url, { everyMs: 100 })
  await cut('-I')
  try {
    const before = await seenVersions()
    const isInForce = await changeRoute()
    await sleep(120_000)
    expect(await seenVersions()).toEqual(before)
    await cut('-D')
    await isInForce()
  } finally {
    await cut('-D').catch(() => {})
  }
  expect((await load.stop()).failures).toEqual([])
})
