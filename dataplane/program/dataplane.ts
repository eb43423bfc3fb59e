import type { ProcessConfig } from '#gen/config/types.ts'
import { startLiveness, type Liveness } from '../admin/liveness.ts'
import { resolveAddresses, resolveLivenessAddress } from '../admin/listen.ts'
import { startManagement, type Management } from '../admin/management.ts'
import { workloadsOf } from '../admin/workloads.ts'
import { Binds } from '../gateway/binds.ts'
import { explainRoute } from '../config/explain.ts'
import { readConfigFile } from '../config/file/read.ts'
import { indexPolicies } from '../config/merge.ts'
import { createConfigStore, type ConfigSnapshot, type ConfigStore } from '../config/store.ts'
import { Gateway } from '../gateway/gateway.ts'
import { readSessionKeys } from '../mcp/session/codec.ts'
import type { OwnProcess } from '../destination/reach.ts'
import { followOperator } from './operator.ts'
import { fileOptionsOf, NO_SOURCE, type DataplaneOptions } from './options.ts'
import { createServiceLoader, type ServiceLoader, type ServiceLoaderOptions } from './services.ts'
import { readSettings, type ProcessSettings } from './settings.ts'
import { startSources } from './sources.ts'
import { createEvictionReport } from '../telemetry/metrics/eviction.ts'
import { createLogging, type Logging } from '../telemetry/log.ts'
import { lowerGarbageCollection } from '../runtime/thread-priority.ts'
import { createTelemetry, type Telemetry } from '../telemetry/telemetry.ts'
import { createWriter } from '../telemetry/writer.ts'
import { createPool } from '../upstream/pools.ts'

export interface Dataplane {
  /** Finishes requests in flight. Accepts new ones until `minDrainMs`; cuts open connections after `maxDrainMs`. */
  drain(cause: string): Promise<void>
}

/** Milliseconds between a config change and the cleanup of what it made unused. */
const TIDY_MS = 1000

/** Starts the data plane of one process: config in, binds open, telemetry out. Rejects with a one-line cause if it cannot start. */
export async function runDataplane({ env, file, version }: DataplaneOptions): Promise<Dataplane> {
  lowerGarbageCollection()
  const fileOptions = fileOptionsOf(env)
  const first = file === undefined ? undefined : await readConfigFile(file, fileOptions)
  const processConfig: ProcessConfig = first?.process ?? {}
  const settings = readSettings(env, processConfig)
  if (file === undefined && settings.xdsAddress === undefined) throw new Error(NO_SOURCE)
  const logging = createLogging({ writer: createWriter(1), level: settings.logLevel, format: settings.logFormat })
  const addresses = resolveAddresses(env, processConfig)
  const operator = settings.xdsAddress === undefined ? undefined : followOperator(settings.xdsAddress)
  let management: Management | undefined
  const own: OwnProcess = {
    // Kubernetes sets it in every pod.
    isInPod: env['KUBERNETES_SERVICE_HOST'] !== undefined,
    operator: () => operator?.(),
    ports: () => [...Object.values(management?.addresses ?? addresses), liveness?.address].flatMap((address) => address?.port ?? []),
  }
  const livenessAddress = resolveLivenessAddress(env, own.isInPod)
  // Before anything that takes time, so that a start that hangs is noticed.
  const liveness = livenessAddress && (await startLiveness(livenessAddress))
  const parts = wire(settings, logging, own, { keys: readSessionKeys(env), version })
  const { store, binds, gateway } = parts
  let isStarted = false
  let drain: (cause: string) => Promise<void> = () => Promise.resolve()
  const started = await startManagement({
    addresses,
    readiness: () => (isStarted ? [...store.pending(), ...binds.pending()] : ['start']),
    explainRoute: (namespace, name) => explainRoute(store.snapshot(), indexPolicies(store.snapshot().policies), namespace, name),
    trace: (filter, timeoutMs) => gateway.tracer.wait(filter, timeoutMs),
    configDump: () => ({ ...store.snapshot(), workloads: workloadsOf(store.snapshot().services.values()), config: processConfig }),
    metrics: parts.telemetry.metrics.registry,
    logging,
    onQuit: () => void drain('quitquitquit').then(() => process.exit(0)),
  })
  management = started
  applyConfig(parts)
  process.on('exit', () => logging.writer.flushSync())
  const followed = first && { path: file ?? '', first, ...fileOptions }
  const sources = await startSources({ settings, file: followed, store, logging, registry: parts.telemetry.metrics.registry })
  await binds.settled()
  isStarted = true
  // In standalone mode a port that cannot be opened ends the process: it was started by hand, and nothing watches its readiness.
  const [failure] = settings.xdsAddress === undefined ? binds.failures() : []
  if (failure !== undefined) throw failure
  logging.logger('main').info('started', { version, pid: process.pid })
  let draining: Promise<void> | undefined
  drain = (cause) => (draining ??= shutDown(cause, parts, settings, { sources, management: started, liveness }))
  return { drain }
}

/** The in-memory parts of a data plane. */
interface Parts {
  readonly logging: Logging
  readonly telemetry: Telemetry
  readonly store: ConfigStore
  readonly services: ServiceLoader
  readonly gateway: Gateway
  readonly binds: Binds
}

function wire(settings: ProcessSettings, logging: Logging, own: OwnProcess, options: Omit<ServiceLoaderOptions, 'onEviction'>): Parts {
  const telemetry = createTelemetry(logging, options)
  const { metrics } = telemetry
  const connectSeconds = { plaintext: metrics.upstreamConnect('plaintext'), tls: metrics.upstreamConnect('tls') }
  const onEviction = createEvictionReport(logging.logger('health'), metrics.registry)
  const services = createServiceLoader({ onEviction, ...options })
  const gateway = new Gateway({
    registry: metrics.registry,
    onEviction,
    nodeName: settings.nodeName || undefined,
    factories: services.factories,
    own,
    loopSecret: options.keys[0],
    createPool: (kind, transport) =>
      createPool(kind, { ...transport, onConnected: (seconds) => connectSeconds[transport.tls === undefined ? 'plaintext' : 'tls'].observe(seconds) }),
  })
  const binds = new Binds({ gateway, telemetry })
  metrics.registry.onCollect(() => binds.report())
  return { logging, telemetry, store: createConfigStore(), services, gateway, binds }
}

/** Applies every version of the store to the gateway and the binds. */
function applyConfig({ logging, telemetry, store, services, gateway, binds }: Parts): void {
  const log = logging.logger('config')
  store.onPrepare((next) => services.load(next))
  store.onPrepare((next) => gateway.prepare(next))
  let timer: NodeJS.Timeout | undefined
  store.subscribe((snapshot) => {
    gateway.update(snapshot)
    for (const error of gateway.newErrors()) log.warn('a pattern of a route never matches', { code: 'PX4009', error })
    binds.update(snapshot)
    clearTimeout(timer)
    timer = setTimeout(() => {
      gateway.tidy()
      retainSeries(telemetry, snapshot)
    }, TIDY_MS).unref()
  })
}

interface RunningServers {
  readonly sources: { close(): Promise<void> }
  readonly management: Management
  readonly liveness: Liveness | undefined
}

async function shutDown(cause: string, parts: Parts, settings: ProcessSettings, { sources, management, liveness }: RunningServers): Promise<void> {
  const log = parts.logging.logger('main')
  log.info('draining', { cause, minMs: settings.minDrainMs, maxMs: settings.maxDrainMs })
  await sources.close()
  await parts.binds.drain(settings)
  await parts.telemetry.flushExports()
  parts.gateway.close()
  await management.close()
  await liveness?.close()
  log.info('stopped')
  await parts.telemetry.close()
}

/** Removes the metrics of deleted routes. */
function retainSeries({ metrics }: Telemetry, { routes, tcpRoutes }: ConfigSnapshot): void {
  const alive = new Set([...routes.values(), ...tcpRoutes.values()].map(({ route }) => `${route.namespace}/${route.name}`))
  metrics.retainRoutes((route) => alive.has(route))
}
