import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { XDS_AUDIENCE } from '#api/names.ts'
import { judge, judgeLimit, median, quantile, type Judged } from '../measure.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ApiServer, inParallel, pathOf } from './api-server.ts'
import { measureAttachedRoutes, measureProbe, measureRouteChange } from './gateway-api-bench.ts'
import { gateway, gatewayName, namespace, NAMESPACE, route, routeName, service, serviceName, SHARED_SERVICE, type Manifest } from './objects.ts'
import { OperatorProcess, STREAM_ADDRESS } from './operator.ts'
import { Streams } from './streams.ts'

/**
 * The scenario of case `fleet`, run where the API server of KUBECONFIG is reachable. Prints `{"log": text}` for progress and
 * `{"rows": [...]}` at the end.
 */
const GATEWAYS = 200
const STREAMS_PER_GATEWAY = 5
const FEW_ROUTES = 1000
const ROUTES = 10_000
const SERVICES = 1000
/** An address that nothing listens on. */
const ENDPOINT = '10.199.0.99'
const EDITS_PER_SECOND = 20

const LIMITS = { startSeconds: 60, editMs: 2000, rssMiB: 1024, cpuRatio: 1.25, statusesPerSecond: 300 }
const STREAMS = GATEWAYS * STREAMS_PER_GATEWAY

const log = (text: string): void => console.log(JSON.stringify({ log: text }))
const now = (): number => performance.timeOrigin + performance.now()

const fleetRoute = (index: number, hostname = `route-${index}.example.com`): Manifest =>
  route({ name: routeName(index), gateway: gatewayName(index % GATEWAYS), hostname, service: serviceName(index % SERVICES) })

const fleetRoutes = (from: number, to: number): Manifest[] => Array.from({ length: to - from }, (_, offset) => fleetRoute(from + offset))

interface Run {
  readonly api: ApiServer
  readonly entry: string
  readonly dataplane: string
  readonly directory: string
  readonly profiles: string | undefined
  readonly seconds: number
  readonly rounds: number
}

interface Edits {
  /** CPU of the operator for one edit, in ms. */
  readonly cpuMs: number
  /** Time until each stream of the Gateway had the edit. */
  readonly delaysMs: readonly number[]
}

let marker = 0

/** Edits one route after another, each of another Gateway, and waits until all streams of its Gateway have it. */
async function measureEdits({ api, seconds }: Run, operator: OperatorProcess, streams: Streams, routes: number): Promise<Edits> {
  const count = seconds * EDITS_PER_SECOND
  const delaysMs: number[] = []
  await operator.settled()
  const before = operator.cpuSeconds()
  for (let edit = 0; edit < count; edit++) {
    const index = (edit * 997) % routes
    marker += 1
    const startedAt = now()
    await api.patch(fleetRoute(index), { spec: { hostnames: [`marker-${marker}.example.com`] } })
    for (const at of await streams.seen(marker, STREAMS_PER_GATEWAY)) delaysMs.push(at - startedAt)
  }
  // The last statuses are written within this time.
  await sleep(500)
  return { cpuMs: ((operator.cpuSeconds() - before) * 1000) / count, delaysMs }
}

async function measureRounds(run: Run, operator: OperatorProcess, streams: Streams, routes: number): Promise<Edits> {
  const rounds: Edits[] = []
  for (let round = 0; round <= run.rounds; round++) {
    const edits = await measureEdits(run, operator, streams, routes)
    const p99 = quantile(edits.delaysMs, 0.99).toFixed(0)
    log(`${routes} routes, ${round === 0 ? 'warm-up' : `round ${round}`}: an edit costs ${edits.cpuMs.toFixed(1)} ms of CPU, p99 ${p99} ms`)
    if (round > 0) rounds.push(edits)
  }
  return { cpuMs: median(rounds.map(({ cpuMs }) => cpuMs)), delaysMs: rounds.flatMap(({ delaysMs }) => delaysMs) }
}

/** Time from the start of the operator until every stream is served. */
async function measureStart(run: Run, streams: Streams, stopped: OperatorProcess): Promise<{ operator: OperatorProcess; seconds: number }> {
  await stopped.stop()
  streams.reset()
  const operator = new OperatorProcess(run.entry, run.profiles)
  const seconds = ((await streams.served(STREAMS, 180_000)) - operator.startedAt) / 1000
  log(`start: ${STREAMS} streams are served after ${seconds.toFixed(1)} s`)
  return { operator, seconds }
}

/** Statuses per second while a Service that every route refers to disappears or comes back. */
async function measureStatuses({ api }: Run, operator: OperatorProcess): Promise<number> {
  const shared = service(SHARED_SERVICE, ENDPOINT, 8080).slice(0, 1)
  const rates: number[] = []
  for (const change of [() => api.deleteAll(shared), () => api.createAll(shared)]) {
    await operator.settled()
    const before = await operator.statusWrites()
    const startedAt = now()
    await change()
    await operator.wrote(before + ROUTES)
    const rate = ROUTES / ((now() - startedAt) / 1000)
    log(`statuses: ${rate.toFixed(0)} per second`)
    rates.push(rate)
  }
  return median(rates)
}

/** Status writes per second of the API server alone, by the request that the operator sends, or by server-side apply. */
async function measureApiServer({ api, seconds }: Run, isApplied: boolean): Promise<number> {
  const parents = (text: string): object[] => [
    {
      controllerName: 'bench.example/limit',
      parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: gatewayName(0) },
      conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted', message: text, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 }],
    },
  ]
  const routes = fleetRoutes(0, Math.min(ROUTES, seconds * 1000))
  const startedAt = now()
  await inParallel(routes, (one) => {
    const { apiVersion, kind, metadata } = one
    const status = { parents: parents(`written ${startedAt} ${isApplied}`) }
    return isApplied
      ? api.connection.request('PATCH', `${pathOf(one)}/status?fieldManager=bench&force=true`, {
          body: { apiVersion, kind, metadata, status },
          contentType: 'application/apply-patch+yaml',
        })
      : api.connection.request('PATCH', `${pathOf(one)}/status`, { body: { status }, contentType: 'application/merge-patch+json' })
  })
  const rate = routes.length / ((now() - startedAt) / 1000)
  log(`the API server alone writes ${rate.toFixed(0)} statuses per second by ${isApplied ? 'server-side apply' : 'merge patch'}`)
  return rate
}

async function openStreams({ api }: Run): Promise<Streams> {
  const tokens = new Map<string, string>()
  const gateways = Array.from({ length: GATEWAYS }, (_, index) => gatewayName(index))
  await inParallel(gateways, async (name) => {
    const request = async (): Promise<boolean> => {
      tokens.set(name, await api.requestToken(name, XDS_AUDIENCE))
      return true
    }
    await waitUntil(`ServiceAccount ${name} exists`, request, 180_000)
  })
  const all = gateways.flatMap((name) => Array.from({ length: STREAMS_PER_GATEWAY }, () => ({ role: `${NAMESPACE}~${name}`, token: tokens.get(name) ?? '' })))
  return new Streams(STREAM_ADDRESS, all)
}

async function measure(run: Run): Promise<Judged[]> {
  const { api } = run
  await api.create(namespace)
  await api.createAll(Array.from({ length: GATEWAYS }, (_, index) => gateway(index)))
  const services = [SHARED_SERVICE, ...Array.from({ length: SERVICES }, (_, index) => serviceName(index))]
  await api.createAll(services.flatMap((name) => service(name, ENDPOINT, 8080)))
  await api.createAll(fleetRoutes(0, FEW_ROUTES))
  log(`${GATEWAYS} Gateways, ${services.length} Services and ${FEW_ROUTES} HTTPRoutes exist`)

  let operator = new OperatorProcess(run.entry, run.profiles)
  let streams: Streams | undefined
  try {
    streams = await openStreams(run)
    await streams.served(STREAMS, 180_000)
    await operator.settled()
    log(`${STREAMS} streams are open`)
    const few = await measureRounds(run, operator, streams, FEW_ROUTES)
    const rows = [
      ...(await measureAttachedRoutes(run, gatewayName(1))),
      ...(await measureProbe(run, gatewayName(0))),
      ...(await measureRouteChange(run, gatewayName(0))),
    ]
    for (const row of rows) log(`${row.case}: ${row.ours.toFixed(0)} ${row.unit}`)
    const createdAt = now()
    await api.createAll(fleetRoutes(FEW_ROUTES, ROUTES))
    log(`${ROUTES - FEW_ROUTES} HTTPRoutes created in ${((now() - createdAt) / 1000).toFixed(0)} s`)
    await operator.settled()
    const many = await measureRounds(run, operator, streams, ROUTES)
    const rates: number[] = []
    for (let round = 1; round <= run.rounds; round++) rates.push(await measureStatuses(run, operator))
    const peaks = [operator.peakBytes()]
    const starts: number[] = []
    for (let round = 1; round <= run.rounds; round++) {
      const started = await measureStart(run, streams, operator)
      operator = started.operator
      starts.push(started.seconds)
      await operator.settled()
      peaks.push(operator.peakBytes())
    }
    await operator.stop()
    const merged = await measureApiServer(run, false)
    const applied = await measureApiServer(run, true)
    const rate = median(rates)
    return [
      judgeLimit(`fleet: start to ${STREAMS} streams served, ${ROUTES} routes`, median(starts), LIMITS.startSeconds, 's'),
      judgeLimit('fleet: an edit reaches all its streams, p99', quantile(many.delaysMs, 0.99), LIMITS.editMs, 'ms'),
      judgeLimit('fleet: RSS of the operator, peak', Math.max(...peaks) / 1024 ** 2, LIMITS.rssMiB, 'MiB'),
      judge(
        { case: `fleet: CPU of an edit, ${ROUTES} routes`, ours: many.cpuMs, peer: few.cpuMs, peerName: `${FEW_ROUTES} routes`, unit: 'ms' },
        { atMost: LIMITS.cpuRatio },
      ),
      judge({ case: 'fleet: statuses written', ours: rate, peer: LIMITS.statusesPerSecond, peerName: 'limit', unit: '1/s' }, { atLeast: 1 }),
      judge({ case: 'fleet: statuses written, API server alone', ours: rate, peer: merged, peerName: 'merge patch', unit: '1/s' }, {}),
      judge({ case: 'fleet: statuses written, API server alone', ours: rate, peer: applied, peerName: 'server-side apply', unit: '1/s' }, {}),
      ...rows,
    ]
  } finally {
    streams?.stop()
    await operator.stop()
  }
}

const { values } = parseArgs({
  options: {
    operator: { type: 'string', default: '' },
    dataplane: { type: 'string', default: '' },
    directory: { type: 'string', default: '' },
    profiles: { type: 'string' },
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '1' },
  },
})
const rows = await measure({
  api: new ApiServer(),
  entry: values.operator,
  dataplane: values.dataplane,
  directory: values.directory,
  profiles: values.profiles,
  seconds: Number(values.seconds),
  rounds: Number(values.rounds),
})
console.log(JSON.stringify({ rows }))
process.exit(0)
