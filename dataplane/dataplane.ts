import type { ProcessConfig } from '#gen/config/types.ts'
import { resolveAddresses } from './admin/listen.ts'
import { startManagement } from './admin/management.ts'
import { Binds } from './binds.ts'
import { followConfigFile, loadConfigFile, type FollowedConfigFile } from './config/file.ts'
import { createConfigStore, type ConfigSnapshot, type ConfigStore } from './config/store.ts'
import type { ConfigStream } from './config/stream.ts'
import { Gateway } from './gateway.ts'
import { readSettings, type ProcessSettings } from './settings.ts'
import { createLogging, type Logging } from './telemetry/log.ts'
import { createTelemetry, type Telemetry } from './telemetry/telemetry.ts'
import { createWriter } from './telemetry/writer.ts'
import { createPool } from './upstream/pools.ts'

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

/** Reads edits of the `-f` file beside the traffic; in a bundle it lies next to it. */
const FILE_WORKER = new URL(import.meta.url.endsWith('.ts') ? './config/file-worker.ts' : './file-worker.js', import.meta.url)

/** How long after a config change what it left behind is cleared away. */
const TIDY_MS = 1000

const nothingToDo = 'neither -f nor XDS_ADDRESS is given: name a config file, or the address of an operator'

/** Wires the data plane of one process: config in, binds open, telemetry out. Rejects with a one-line cause when it cannot start. */
export async function runDataplane({ env, file, version }: DataplaneOptions): Promise<Dataplane> {
  // Read once for the settings: logging must stand before the store tells anybody anything.
  const processConfig: ProcessConfig = file === undefined ? {} : (await loadConfigFile(file)).process
  const settings = readSettings(env, processConfig)
  if (file === undefined && settings.xdsAddress === undefined) throw new Error(nothingToDo)
  const logging = createLogging({ writer: createWriter(1), level: settings.logLevel, format: settings.logFormat })
  const log = logging.logger('main')
  const telemetry = createTelemetry(logging, { version })
  const store = createConfigStore()
  const connects = { plaintext: telemetry.metrics.upstreamConnect('plaintext'), tls: telemetry.metrics.upstreamConnect('tls') }
  const gateway = new Gateway({
    createPool: (kind, transport) =>
      createPool(kind, { ...transport, onConnected: (seconds) => connects[transport.tls === undefined ? 'plaintext' : 'tls'].observe(seconds) }),
  })
  const binds = new Binds({ gateway, telemetry })

  let isStarted = false
  let drain: (cause: string) => Promise<void> = () => Promise.resolve()
  const management = await startManagement({
    addresses: resolveAddresses(env, processConfig),
    readiness: () => (isStarted ? [...store.pending(), ...binds.pending()] : ['start']),
    configDump: () => ({ ...store.snapshot(), config: processConfig }),
    metrics: telemetry.metrics.registry,
    logging,
    onQuit: () => void drain('quitquitquit').then(() => process.exit(0)),
  })
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
  const sources = await startSources(settings, file, store, logging)
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
      gateway.close()
      await management.close()
      log.info('stopped')
      await telemetry.close()
    })())
  return { drain }
}

/** Metrics of routes that are gone. */
function forgetSeries({ metrics }: Telemetry, { routes, tcpRoutes }: ConfigSnapshot): void {
  const alive = new Set([...routes.values(), ...tcpRoutes.values()].map(({ route }) => `${route.namespace}/${route.name}`))
  metrics.retainRoutes((route) => alive.has(route))
}

/** Starts what config comes from: the `-f` file, the config stream, or both. */
async function startSources(settings: ProcessSettings, file: string | undefined, store: ConfigStore, logging: Logging): Promise<{ close(): Promise<void> }> {
  const log = logging.logger('config')
  const { namespace, gateway } = settings
  let stream: ConfigStream | undefined
  // The stream first: what it will bring is then pending before the file's part makes the process look complete.
  if (settings.xdsAddress !== undefined) {
    // gRPC takes 40 MiB that a process without a stream does without.
    const { startConfigStream } = await import('./config/stream.ts')
    stream = startConfigStream({
      address: settings.xdsAddress,
      node: { namespace, gateway, podName: settings.podName, podIps: settings.podIp, nodeName: settings.nodeName },
      store,
      ...(settings.xdsTokenFile === undefined ? {} : { tokenFile: settings.xdsTokenFile }),
      ...(settings.xdsRootCa === undefined ? {} : { rootCaFile: settings.xdsRootCa }),
      onEvent(event) {
        if (event.type === 'disconnected') log.warn('config stream disconnected; the last good config stays', { cause: event.cause, retryMs: event.retryMs })
        else if (event.type === 'connected') log.info('config stream connected', { address: settings.xdsAddress })
        else if (event.type === 'applied') log.info('config applied', { version: store.snapshot().version, updated: event.updated, removed: event.removed })
        else for (const { key, error } of event.resources) log.warn('part of the config refused; its last good version stays', { key, error })
      },
    })
  }
  let followed: FollowedConfigFile | undefined
  if (file !== undefined) {
    followed = await followConfigFile({
      path: file,
      store,
      worker: FILE_WORKER,
      ...(settings.xdsAddress === undefined ? {} : { namespace, gateway }),
      onReload: () => log.info('config file reloaded', { file, version: store.snapshot().version }),
      onError: (error) => log.error('config file not usable; its last good version stays', { error: error.message }),
    })
  }
  return {
    async close() {
      followed?.close()
      await stream?.close()
    },
  }
}
