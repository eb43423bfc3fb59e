import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type ApiServer } from '../contract/api-server.ts'
import { apply, gatewayPods, get, installProxy, kubectl, list, operatorPods, startQuickstart, until } from './cluster.ts'

const NAMESPACE = 'scale'
const NAMESPACES = 50
const ROUTES = 1000
/** Limits: seconds from the creation of the last route until all are accepted and in effect, and memory of the operator in MiB. */
const MAX_SECONDS = 60
const MAX_MIB = 400

let server: ApiServer
let address: string
const namespaceOf = (n: number): string => `${NAMESPACE}-${n % NAMESPACES}`
const hostOf = (n: number): string => `r${n}.example`

beforeAll(async () => {
  server = await connect()
  await installProxy()
  address = await startQuickstart(NAMESPACE)
  const listeners = [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } }]
  await kubectl('-n', NAMESPACE, 'patch', 'gateway', 'web', '--type=merge', '-p', JSON.stringify({ spec: { listeners } }))
  const pods = (await list('pods', NAMESPACE, 'app=echo')).map(({ status }) => status.podIP as string)
  const objects = Array.from({ length: NAMESPACES }, (_, n) => namespaceOf(n)).flatMap((namespace) => [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'echo', namespace }, spec: { ports: [{ name: 'http', port: 80 }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'echo', namespace, labels: { 'kubernetes.io/service-name': 'echo' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: pods.map((ip) => ({ addresses: [ip], conditions: { ready: true } })),
    },
  ])
  await apply('', ...objects)
})
afterAll(async () => {
  server.close()
  await kubectl('delete', 'namespace', NAMESPACE, ...Array.from({ length: NAMESPACES }, (_, n) => namespaceOf(n)), '--ignore-not-found', '--wait=false')
})

/** Runs `work` for 0..count-1, with `atOnce` concurrent calls. */
async function forEach(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** CPU seconds and memory (MiB) of the operator's pod, from the kubelet. */
async function measureOperator(): Promise<{ cpuSeconds: number; mib: number }> {
  const [pod] = await operatorPods()
  const text = await kubectl('get', '--raw', `/api/v1/nodes/${pod?.spec.nodeName}/proxy/metrics/resource`)
  const read = (metric: string): number => Number(new RegExp(`^${metric}\\{[^}]*pod="${pod?.metadata.name}"\\} (\\S+)`, 'm').exec(text)?.[1])
  return { cpuSeconds: read('pod_cpu_usage_seconds_total'), mib: read('pod_memory_working_set_bytes') / 2 ** 20 }
}

async function readMetrics(): Promise<Record<string, number>> {
  const [pod] = await operatorPods()
  const text = (await get(`http://${pod?.status.podIP}:9092/metrics`)).body
  return Object.fromEntries(
    [...text.matchAll(/^proxy_(status_writes_total|applies_total|translations_total) (\d+)$/gm)].map(([, name, value]) => [name, Number(value)]),
  )
}

test(`${ROUTES} routes over ${NAMESPACES} namespaces are accepted and in effect within ${MAX_SECONDS} s, and nothing is written afterwards`, async () => {
  const before = await measureOperator()
  const startedAt = Date.now()
  const seconds = (): number => (Date.now() - startedAt) / 1000
  await forEach(ROUTES, 8, async (n) => {
    const { status, causes } = await server.call('POST', `/apis/gateway.networking.k8s.io/v1/namespaces/${namespaceOf(n)}/httproutes`, {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: `r${n}` },
      spec: { parentRefs: [{ name: 'web', namespace: NAMESPACE }], hostnames: [hostOf(n)], rules: [{ backendRefs: [{ name: 'echo', port: 80 }] }] },
    })
    // 409: created by the first attempt of this test.
    if (status !== 201 && status !== 409) throw new Error(JSON.stringify(causes))
  })
  const created = seconds()
  const countAccepted = async (): Promise<number> => {
    const { object } = await server.call('GET', '/apis/gateway.networking.k8s.io/v1/httproutes')
    const { items } = object as { items: { metadata: { namespace: string }; status?: { parents?: { conditions: { type: string; status: string }[] }[] } }[] }
    const isAccepted = (conditions: { type: string; status: string }[]): boolean =>
      conditions.some(({ type, status }) => type === 'Accepted' && status === 'True')
    return items.filter(({ metadata, status }) => metadata.namespace.startsWith(`${NAMESPACE}-`) && isAccepted(status?.parents?.[0]?.conditions ?? [])).length
  }
  await until('every route is accepted', async () => (await countAccepted()) === ROUTES)
  const accepted = seconds()
  const proxies = (await gatewayPods(NAMESPACE, 'web')).map(({ status }) => `http://${status.podIP}/`)
  // Routes arrive in several updates and in no order, so a pod that has one of them may lack others.
  let missing = proxies.flatMap((url) => Array.from({ length: ROUTES }, (_, n) => ({ url, host: hostOf(n) })))
  await until('every pod serves every route', async () => {
    const batch = missing
    missing = []
    await forEach(batch.length, 16, async (n) => {
      const one = batch[n]
      if (one !== undefined && (await get(one.url, { host: one.host })).status !== 200) missing.push(one)
    })
    return missing.length === 0
  })
  const effective = seconds()
  const refused: string[] = []
  await forEach(ROUTES, 16, async (n) => {
    if ((await get(`http://${address}/`, { host: hostOf(n) })).status !== 200) refused.push(hostOf(n))
  })
  expect(refused).toEqual([])

  // Deletions of earlier files are processed with a delay; wait until nothing changes for half a minute.
  let quiet = await readMetrics()
  await until(
    'half a minute without a translation or a write',
    async () => {
      const last = quiet
      await sleep(30_000)
      quiet = await readMetrics()
      return JSON.stringify(quiet) === JSON.stringify(last)
    },
    480_000,
  )

  const after = await measureOperator()
  const figures = [
    `created ${created.toFixed(1)} s, accepted ${accepted.toFixed(1)} s, in force ${effective.toFixed(1)} s`,
    `operator ${(after.cpuSeconds - before.cpuSeconds).toFixed(1)} s CPU, ${after.mib.toFixed(0)} MiB (${before.mib.toFixed(0)} before), ${JSON.stringify(quiet)}`,
  ]
  process.stdout.write(`${ROUTES} routes: ${figures.join('; ')}\n`)
  expect(Math.max(accepted, effective) - created).toBeLessThan(MAX_SECONDS)
  expect(after.mib).toBeLessThan(MAX_MIB)
}, 1_200_000)
