import type { ProcessConfig } from '#gen/config/types.ts'
import { resolveAddresses } from '../admin/listen.ts'
import { startManagement } from '../admin/management.ts'
import { workloadsOf } from '../admin/workloads.ts'
import { Binds } from '../gateway/binds.ts'
import { explainRoute } from '../config/explain.ts'
import type { ConfigFileOptions } from '../config/file/problem.ts'
import { readConfigFile } from '../config/file/read.ts'
import { indexPolicies } from '../config/merge.ts'
import { createConfigStore, type ConfigSnapshot } from '../config/store.ts'
import { Gateway } from '../gateway/gateway.ts'
import { readSessionKeys } from '../mcp/session/codec.ts'
import { createRooms } from './services.ts'
import { readSettings } from './settings.ts'
import { startSources } from './sources.ts'
import { createEvictionReport } from '../telemetry/metrics/eviction.ts'
import { createLogging } from '../telemetry/log.ts'
import { createTelemetry, type Telemetry } from '../telemetry/telemetry.ts'
import { createWriter } from '../telemetry/writer.ts'
import { createPool } from '../upstream/pools.ts'

export interface DataplaneOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Path of the `-f` file. */
  readonly file: string | undefined
  readonly version: string
}

export interface Dataplane {
  /** Finishes what is in flight, accepts new requests until the minimum deadline, cuts what is left at the maximum. */
  drain(cause: string): Promise<void>
}

/** How long after a config change what it left behind is cleared away. */
const TIDY_MS = 1000

const nothingToDo = 'neither -f nor XDS_ADDRESS is given: name a config file, or the address of an operator'

/** Wires the data plane of one process: config in, binds open, telemetry out. Rejects with a one-line cause when it cannot start. */
export async function runDataplane({ env, file, version }: DataplaneOptions): Promise<Dataplane> {
  const first = file === undefined ? undefined : await readConfigFile(file, gatewayOf(env))
  const processConfig: ProcessConfig = first?.process ?? {}
  const settings = readSettings(env, processConfig)
  if (file === undefined && settings.xdsAddress === undefined) throw new Error(nothingToDo)
  const logging = createLogging({ writer: createWriter(1), level: settings.logLevel, format: settings.logFormat })
  const log = logging.logger('main')
  const telemetry = createTelemetry(logging, { version })
  const store = createConfigStore()
  const connects = { plaintext: telemetry.metrics.upstreamConnect('plaintext'), tls: telemetry.metrics.upstreamConnect('tls') }
  const onEviction = createEvictionReport(logging.logger('health'), telemetry.metrics.registry)
  const rooms = createRooms({ onEviction, keys: readSessionKeys(env), version })
  const gateway = new Gateway({
    registry: telemetry.metrics.registry,
    onEviction,
    nodeName: settings.nodeName || undefined,
    factories: rooms.factories,
    createPool: (kind, transport) =>
      createPool(kind, { ...transport, onConnected: (seconds) => connects[transport.tls === undefined ? 'plaintext' : 'tls'].observe(seconds) }),
  })
  const binds = new Binds({ gateway, telemetry })

  let isStarted = false
  let drain: (cause: string) => Promise<void> = () => Promise.resolve()
  const management = await startManagement({
    addresses: resolveAddresses(env, processConfig),
    readiness: () => (isStarted ? [...store.pending(), ...binds.pending()] : ['start']),
    explainRoute: (namespace, name) => explainRoute(store.snapshot(), indexPolicies(store.snapshot().policies), namespace, name),
    trace: (filter, timeoutMs) => gateway.tracer.wait(filter, timeoutMs),
    configDump: () => ({ ...store.snapshot(), workloads: workloadsOf(store.snapshot().services.values()), config: processConfig }),
    metrics: telemetry.metrics.registry,
    logging,
    onQuit: () => void drain('quitquitquit').then(() => process.exit(0)),
  })
  store.onPrepare((next) => rooms.load(next))
  store.onPrepare((next) => gateway.prepare(next))
  let tidying: NodeJS.Timeout | undefined
  store.subscribe((snapshot) => {
    gateway.update(snapshot)
    for (const error of gateway.takeErrors()) logging.logger('config').warn('a pattern of a route never matches', { error })
    binds.update(snapshot)
    clearTimeout(tidying)
    tidying = setTimeout(() => {
      gateway.tidy()
      forgetSeries(telemetry, snapshot)
    }, TIDY_MS).unref()
  })
  process.on('exit', () => logging.writer.flushSync())
  telemetry.metrics.registry.onCollect(() => binds.report())
  const sources = await startSources({ settings, file: first && { path: file ?? '', first } }, store, logging)
  await binds.settled()
  isStarted = true
  // Without an operator nobody would read readiness: who typed the command is told at once.
  const [failure] = settings.xdsAddress === undefined ? binds.failures() : []
  if (failure !== undefined) throw failure
  log.info('started', { version, pid: process.pid })

  let draining: Promise<void> | undefined
  drain = (cause) =>
    (draining ??= (async () => {
      log.info('draining', { cause, minMs: settings.minDrainMs, maxMs: settings.maxDrainMs })
      await sources.close()
      await binds.drain(settings)
      await telemetry.flushExports()
      gateway.close()
      await management.close()
      log.info('stopped')
      await telemetry.close()
    })())
  return { drain }
}

/** With a config stream, the file's listeners belong to the Gateway that the stream is for. */
function gatewayOf(env: DataplaneOptions['env']): ConfigFileOptions {
  return env['XDS_ADDRESS'] === undefined ? {} : { namespace: env['NAMESPACE'], gateway: env['GATEWAY'] }
}

/** Metrics of routes that are gone. */
function forgetSeries({ metrics }: Telemetry, { routes, tcpRoutes }: ConfigSnapshot): void {
  const alive = new Set([...routes.values(), ...tcpRoutes.values()].map(({ route }) => `${route.namespace}/${route.name}`))
  metrics.retainRoutes((route) => alive.has(route))
}
