import { createConfigStore, type ConfigStore } from '../config/store.ts'
import { Binds, type RequestRelay, type SharedPorts } from '../gateway/binds.ts'
import { Gateway } from '../gateway/gateway.ts'
import type { SessionKeys } from '../runtime/seal.ts'
import type { PeerAddress, SessionSharing, WorkerMessages } from '../backend/mcp/session/sharing.ts'
import type { SharedCells } from '../runtime/shared-cells.ts'
import type { Quotas } from '../runtime/quotas.ts'
import type { Shares } from '../runtime/shares.ts'
import type { SharedState } from '../policy/state.ts'
import type { Logging } from '../observe/telemetry/log.ts'
import { createEvictionReport } from '../observe/telemetry/metrics/eviction.ts'
import { createTelemetry, type Telemetry } from '../observe/telemetry/telemetry.ts'
import { issuedSecrets } from '../runtime/issued-secrets.ts'
import { descriptorLimit } from '../runtime/descriptors.ts'
import { connectionLimits, OpenConnections } from '../net/upstream/connections.ts'
import { createPool } from '../net/upstream/pools.ts'
import type { WorkerDrain } from './workers/data.ts'
import { aliveRoutes } from './alive-routes.ts'
import { createServiceLoader, type ServiceLoader, type ServiceLoaderOptions } from './services.ts'

/** Milliseconds between a config change and the cleanup of what it made unused. */
const TIDY_MS = 1000

/** Idle connections to one endpoint, of all workers together. */
const MAX_IDLE = 1024

/** The in-memory parts of a thread that handles traffic. */
export interface Parts {
  readonly logging: Logging
  readonly telemetry: Telemetry
  readonly store: ConfigStore
  readonly services: ServiceLoader
  readonly gateway: Gateway
  readonly binds: Binds
}

export interface PartsOptions {
  readonly logging: Logging
  readonly nodeName: string
  /** Keys that MCP session ids are sealed with. */
  readonly keys: SessionKeys
  readonly version: string
  /** Where this replica takes messages of others that have the same keys; undefined: nowhere. */
  readonly peer?: PeerAddress | undefined
  /** Default: the first of `keys`, else random. */
  readonly loopSecret?: Buffer | undefined
  /** Memory of the counters of budgets that outlive the process; undefined: of the worker, or none. */
  readonly budgetCells?: SharedCells | undefined
  /** Gets shares of budgets that hold for all replicas; undefined: this is the only one. */
  readonly shares?: Shares | undefined
  /** Gets assignments from rate limit quota services. */
  readonly quotas?: Quotas | undefined
  /** Undefined: this thread handles all traffic. */
  readonly worker?: WorkerOptions | undefined
}

/** What a worker shares with the others. */
interface WorkerOptions {
  readonly count: number
  readonly shared: SharedState
  readonly ports: SharedPorts
  readonly sharing: SessionSharing
  readonly relay: RequestRelay
  readonly messages: WorkerMessages
}

/** Creates the parts of a thread that handles traffic. Config goes into `store`. */
export function createParts(options: PartsOptions): Parts {
  for (const key of options.keys) issuedSecrets.add(key.toString('hex'))
  const { logging, nodeName, keys, version, loopSecret = keys[0], worker, budgetCells, shares, quotas } = options
  const telemetry = createTelemetry(logging, { version, isWorker: worker !== undefined })
  const { metrics } = telemetry
  const connectSeconds = { plaintext: metrics.upstreamConnect('plaintext'), tls: metrics.upstreamConnect('tls') }
  const onEviction = createEvictionReport(logging.logger('health'), metrics.registry)
  const services = createServiceLoader({ onEviction, keys, version, sharing: worker?.sharing, messages: worker?.messages, openPeers: openerOf(options) })
  const limits = connectionLimits(descriptorLimit(), worker?.count ?? 1)
  const gateway = new Gateway({
    registry: metrics.registry,
    onEviction,
    nodeName: nodeName || undefined,
    factories: services.factories,
    loopSecret,
    loginKeys: keys,
    connections: new OpenConnections(limits),
    shared: worker?.shared,
    budgetCells,
    shares,
    quotas,
    log: logging.logger('policy'),
    createPool: (kind, transport) =>
      createPool(kind, {
        ...transport,
        ...(worker && transport.keepAlive && { keepAlive: { ...transport.keepAlive, maxIdle: Math.ceil(MAX_IDLE / worker.count) } }),
        onConnected: (seconds) => connectSeconds[transport.tls === undefined ? 'plaintext' : 'tls'].observe(seconds),
      }),
  })
  const binds = new Binds({ gateway, telemetry, ports: worker?.ports, relay: worker?.relay, maxConnections: limits.inbound })
  metrics.registry.onCollect(() => binds.report())
  const parts: Parts = { logging, telemetry, store: createConfigStore(), services, gateway, binds }
  applyConfig(parts, worker?.ports.isReporter ?? true)
  return parts
}

/** Opens the port for other replicas. Without a key they could not be told from others. */
function openerOf({ peer: address, keys, worker, logging }: PartsOptions): ServiceLoaderOptions['openPeers'] {
  if (address === undefined || keys.length === 0) return undefined
  return async () => {
    // Loaded on demand: only MCP uses it.
    const { Peers } = await import('./workers/peers.ts')
    const peers = new Peers({ address, keys, ports: worker?.ports, log: logging.logger('mcp') })
    await peers.listen()
    return peers
  }
}

/** Applies every version of the store to the gateway and the binds. */
function applyConfig({ logging, telemetry, store, services, gateway, binds }: Parts, isReporter: boolean): void {
  const log = logging.logger('config')
  store.onPrepare((next) => services.load(next))
  store.onPrepare((next) => gateway.prepare(next))
  let timer: NodeJS.Timeout | undefined
  store.subscribe((snapshot) => {
    gateway.update(snapshot)
    const errors = gateway.newErrors()
    if (isReporter) for (const error of errors) log.warn('a pattern of a route never matches', { code: 'PX4009', error })
    binds.update(snapshot)
    clearTimeout(timer)
    timer = setTimeout(() => {
      gateway.tidy()
      telemetry.metrics.retainRoutes(aliveRoutes(snapshot))
    }, TIDY_MS).unref()
  })
}

/** As `Binds.drain`, with the requests of other replicas. */
export async function drainParts({ binds, services }: Parts, settings: WorkerDrain): Promise<void> {
  await Promise.all([binds.drain(settings), services.drain(settings)])
}

/** Releases the parts of a thread that has finished its requests. */
export async function closeParts({ telemetry, gateway, services }: Parts): Promise<void> {
  await telemetry.flushExports()
  gateway.close()
  await services.close()
}
