import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { XDS_AUDIENCE } from '#api/names.ts'
import { send } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { waitUntil } from '../../harness/wait.ts'
import { judgeLimit, median, quantile, type Judged } from '../measure.ts'
import type { ApiServer } from './api-server.ts'
import { LISTENER_PORT, NAMESPACE, route, service, serviceName, type Manifest } from './objects.ts'
import { STREAM_ADDRESS } from './operator.ts'

/** The tests of the public gateway-api-bench (attached routes, probe, route change), on one Gateway of the fleet. Its fourth, route scale, is the fleet. */
interface Settings {
  readonly api: ApiServer
  /** Bundle of the data plane. */
  readonly dataplane: string
  readonly directory: string
  readonly rounds: number
}

const LIMITS = { attachedMs: 5000, probeMs: 500 }
/** Address of the network namespace of the API server: EndpointSlices may not name loopback. */
const HOST = '10.199.0.1'
const ATTACHED = 500
const PROBES = 50
const CHANGES = 20
const CLIENTS = 4

interface GatewayWithStatus {
  readonly status?: { readonly listeners?: readonly { readonly attachedRoutes?: number }[] }
}

/** Routes of one Gateway are created and deleted all at once: time until its status has the right count after the last of them. */
export async function measureAttachedRoutes({ api, rounds }: Settings, gateway: string): Promise<Judged[]> {
  const object: Manifest = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: { name: gateway, namespace: NAMESPACE } }
  const readCount = async (): Promise<number> => (await api.read<GatewayWithStatus>(object)).status?.listeners?.[0]?.attachedRoutes ?? -1
  const routes = Array.from({ length: ATTACHED }, (_, index) =>
    route({ name: `attached-${index}`, gateway, hostname: `attached-${index}.example.com`, service: serviceName(0) }),
  )
  const before = await readCount()
  const delays: number[] = []
  const waitFor = async (count: number): Promise<void> => {
    const startedAt = performance.now()
    await waitUntil(`${gateway} has ${count} attached routes`, async () => (await readCount()) === count, 120_000)
    delays.push(performance.now() - startedAt)
  }
  for (let round = 1; round <= rounds; round++) {
    await api.createAll(routes)
    await waitFor(before + ATTACHED)
    await api.deleteAll(routes)
    await waitFor(before)
  }
  return [judgeLimit(`gateway-api-bench, attached routes: ${ATTACHED} routes, last one to right count`, median(delays), LIMITS.attachedMs, 'ms')]
}

/** A route is created: time until a data plane serves it. From then on no request may fail. */
export async function measureProbe(settings: Settings, gateway: string): Promise<Judged[]> {
  const { api, rounds } = settings
  const site = await startSite(settings, gateway)
  const delays: number[] = []
  let failures = 0
  try {
    for (let round = 1; round <= rounds; round++) {
      const created: Manifest[] = []
      for (let index = 0; index < PROBES; index++) {
        const hostname = `probe-${round}-${index}.example.com`
        const manifest = route({ name: `probe-${index}`, gateway, hostname, service: site.services[0] })
        await api.create(manifest)
        created.push(manifest)
        const startedAt = performance.now()
        await waitUntil(`${hostname} is served`, async () => (await site.send(hostname)) !== undefined, 30_000)
        delays.push(performance.now() - startedAt)
        for (let again = 0; again < 20; again++) if ((await site.send(hostname)) === undefined) failures += 1
      }
      await api.deleteAll(created)
    }
  } finally {
    await site.stop()
  }
  return [
    judgeLimit('gateway-api-bench, probe: route created to served, p99', quantile(delays, 0.99), LIMITS.probeMs, 'ms'),
    judgeLimit('gateway-api-bench, probe: requests that fail later', failures, 0, 'requests'),
  ]
}

/** The backend of a route changes again and again under load: no request may fail, and each change must take effect. */
export async function measureRouteChange(settings: Settings, gateway: string): Promise<Judged[]> {
  const { api } = settings
  const site = await startSite(settings, gateway)
  const hostname = 'change.example.com'
  const manifest = route({ name: 'change', gateway, hostname, service: site.services[0] })
  let isDone = false
  let failures = 0
  let requests = 0
  let latest: string | undefined
  try {
    await api.create(manifest)
    await waitUntil(`${hostname} is served`, async () => (await site.send(hostname)) !== undefined)
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!isDone) {
        latest = await site.send(hostname)
        requests += 1
        if (latest === undefined) failures += 1
        // Leaves CPU to the programs that are measured.
        await sleep(1)
      }
    })
    for (let change = 1; change <= CHANGES; change++) {
      const target = site.services[change % 2] ?? ''
      const { spec } = route({ name: 'change', gateway, hostname, service: target }) as Manifest & { readonly spec: object }
      await api.patch(manifest, { spec })
      await waitUntil(`${hostname} is served by ${target}`, () => latest === target, 30_000)
    }
    isDone = true
    await Promise.all(clients)
    await api.deleteAll([manifest])
  } finally {
    isDone = true
    await site.stop()
  }
  return [judgeLimit(`gateway-api-bench, route change: requests of ${requests} that fail`, failures, 0, 'requests')]
}

/** A data plane of a Gateway, and two Services with upstreams. */
interface Site {
  readonly services: readonly [string, string]
  /** Sends a request through the data plane; resolves with the Service that responded, or undefined after a failure. */
  send(hostname: string): Promise<string | undefined>
  stop(): Promise<void>
}

async function startSite({ api, dataplane: entry, directory }: Settings, gateway: string): Promise<Site> {
  const services = ['site-a', 'site-b'] as const
  const upstreams: Server[] = []
  const manifests: Manifest[] = []
  for (const name of services) {
    const server = createServer((_, response) => response.end(name)).listen(0, HOST)
    await once(server, 'listening')
    const address = server.address()
    upstreams.push(server)
    manifests.push(...service(name, HOST, typeof address === 'object' && address !== null ? address.port : 0))
  }
  await api.createAll(manifests)
  mkdirSync(directory, { recursive: true })
  const tokenFile = join(directory, 'xds-token')
  writeFileSync(tokenFile, await api.requestToken(gateway, XDS_AUDIENCE), { mode: 0o600 })
  const config = { address: STREAM_ADDRESS, namespace: NAMESPACE, gateway }
  const dataplane: Dataplane = await startDataplane({ config, entry, log: 'warn', env: { XDS_TOKEN_FILE: tokenFile } })
  return {
    services,
    async send(hostname) {
      const response = await send({ port: LISTENER_PORT, host: hostname, timeoutMs: 10_000 }).catch(() => undefined)
      return response?.status === 200 ? response.body : undefined
    },
    async stop() {
      await dataplane.stop()
      for (const server of upstreams) {
        server.closeAllConnections()
        server.close()
      }
      await api.deleteAll(manifests)
    },
  }
}
