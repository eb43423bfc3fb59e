import { randomBytes } from 'node:crypto'
import type { MetricsSource } from '../management/admin/stats.ts'
import { runInThread, type CallThreads } from '../management/console/thread.ts'
import { createConfigStore, type ConfigStore } from '../config/store.ts'
import { bodyBudget, SharedHeldBytes } from '../http/budget.ts'
import type { RequestLedger } from '../store/ledger/writer.ts'
import type { SavedCounters } from './counters/saved.ts'
import { SharedCells } from '../runtime/shared-cells.ts'
import type { LogFormat, Logging } from '../observe/telemetry/log.ts'
import { setKnownSecrets } from '../observe/telemetry/redact.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'
import { createTelemetry } from '../observe/telemetry/telemetry.ts'
import type { TraceFilter, TraceReport } from '../observe/trace/tracer.ts'
import { allocateBudgets, allocateMemory } from './workers/data.ts'
import { WorkerPool } from './workers/pool.ts'
import { dialing } from '../net/upstream/dial.ts'
import { aliveRoutes } from './alive-routes.ts'
import type { PartsOptions } from './parts.ts'
import { openPostgres } from './postgres.ts'
import { openRedis } from './redis.ts'
import type { ProcessSettings } from './settings.ts'
import { createQuotas } from './quotas.ts'
import { createShares } from './shares.ts'

/** What handles the traffic of the process: this thread, or workers. */
export interface Traffic {
  /** Receives the config. */
  readonly store: ConfigStore
  /** `setLevel` and `reset` affect all threads. */
  readonly logging: Logging
  readonly metrics: MetricsSource
  /** Metrics of the main thread. */
  readonly registry: Registry
  /** Starts the workers; the management endpoints listen on `ports`. */
  start(ports: readonly number[]): Promise<void>
  /** Resolves when every port is open or has failed once. */
  settled(): Promise<void>
  /** Parts that readiness waits for. */
  pending(): readonly string[]
  /** Errors of ports that could not be opened. */
  failures(): readonly Error[]
  trace(filter: TraceFilter, timeoutMs: number, signal?: AbortSignal): Promise<TraceReport | undefined>
  /** Calls a method of the management API in every thread that handles traffic. */
  readonly threads: CallThreads
  /** Undefined: requests are not recorded. */
  readonly ledger: RequestLedger | undefined
  /** Memory of each worker; undefined without workers. */
  memory?(): Promise<readonly NodeJS.MemoryUsage[]>
  /** Finishes requests in flight. */
  drain(): Promise<void>
  /** Writes buffered log lines. */
  close(): Promise<void>
}

export interface TrafficOptions extends PartsOptions {
  readonly settings: ProcessSettings
  /** Opens the ledger; the registry of the main thread has its metrics. */
  openLedger(registry: Registry): Promise<RequestLedger | undefined>
  /** Restores the counters of budgets in memory, and saves them from then on. */
  openCounters(memory: SharedArrayBuffer): Promise<SavedCounters | undefined>
}

export const createTraffic = (options: TrafficOptions): Promise<Traffic> => (options.settings.workers === 1 ? inThisThread(options) : inWorkers(options))

async function inThisThread({ settings, openLedger, openCounters, ...options }: TrafficOptions): Promise<Traffic> {
  // Loaded on demand: a main thread with workers handles no traffic, and saves the memory of this code.
  const { closeParts, createParts, drainParts } = await import('./parts.ts')
  // Its metrics are those of the parts, which exist later.
  const registry: { current?: Registry } = {}
  const shares = createShares(settings, options.logging, () => registry.current)
  const counterMemory = settings.budgetsFile === undefined ? undefined : allocateBudgets()
  const counters = counterMemory && (await openCounters(counterMemory))
  const budgetCells = counterMemory && new SharedCells(counterMemory, { evicts: true })
  const quotas = createQuotas(options.logging, () => registry.current)
  const parts = createParts({ ...options, shares, quotas, budgetCells })
  const { store, logging, telemetry, binds, gateway } = parts
  registry.current = telemetry.metrics.registry
  shares?.follow(store)
  quotas.follow(store)
  const redis = await openRedis(settings.redis, logging, telemetry.metrics.registry)
  const postgres = await openPostgres(settings.postgres, telemetry.metrics.registry)
  const ledger = await openLedger(telemetry.metrics.registry)
  const recorder =
    ledger &&
    (await import('../store/ledger/recorder.ts')).startRecorder({
      settings: ledger.settings,
      pending: ledger.pending.memory,
      telemetry,
      send: (batch) => ledger.write(batch),
    })
  return {
    store,
    logging,
    metrics: telemetry.metrics.registry,
    registry: telemetry.metrics.registry,
    start: () => Promise.resolve(),
    settled: () => binds.settled(),
    pending: () => binds.pending(),
    failures: () => binds.failures(),
    trace: (filter, timeoutMs, signal) => gateway.tracer.wait(filter, timeoutMs, signal),
    threads: async (method, body) => [await runInThread(parts, method, body)],
    ledger,
    async drain() {
      await drainParts(parts, settings)
      await shares?.close()
      await quotas.close()
      recorder?.close()
      await closeParts(parts)
      await counters?.close()
      await redis?.close()
      await postgres?.close()
      await ledger?.close()
    },
    close: () => telemetry.close(),
  }
}

async function inWorkers({ settings, openLedger, openCounters, logging, version, keys, peer }: TrafficOptions): Promise<Traffic> {
  const { workers: count, nodeName, logFormat, sensitiveHeaders, xdsAddress } = settings
  const memory = allocateMemory(count)
  bodyBudget.share(new SharedHeldBytes(memory.held, 0))
  dialing.share(memory.dialed)
  const telemetry = createTelemetry(logging, { version })
  const { registry } = telemetry.metrics
  const ledger = await openLedger(registry)
  const counters = await openCounters(memory.budgetCells)
  const shares = createShares(settings, logging, () => registry, memory.budgetCells)
  const quotas = createQuotas(logging, () => registry, memory.budgetCells)
  const loopSecret = keys[0] ?? randomBytes(32)
  const relaySecret = randomBytes(32).toString('hex')
  let lastNumber = 0
  let managementPorts: readonly number[] = []
  const pool = new WorkerPool({
    count,
    file: new URL(import.meta.url.endsWith('.ts') ? './traffic-worker.ts' : './traffic-worker.js', import.meta.url),
    memory,
    log: logging.logger('workers'),
    writer: logging.writer,
    registry,
    ledger,
    shares,
    quotas,
    dataOf: (index) => ({
      index,
      number: ++lastNumber,
      count,
      memory,
      version,
      log: { level: logging.level, format: logFormat satisfies LogFormat, sensitiveHeaders },
      nodeName,
      keys,
      peer,
      loopSecret,
      relaySecret,
      isInPod: settings.isInPod,
      upstreams: settings.upstreams,
      xdsAddress,
      managementPorts,
      ledger: ledger && { settings: ledger.settings, pending: ledger.pending.memory },
      redis: settings.redis,
      postgres: settings.postgres,
    }),
  })
  const store = createConfigStore()
  store.subscribe(setKnownSecrets)
  followStore(store, pool)
  shares?.follow(store)
  quotas.follow(store)
  return {
    store,
    logging: forAllThreads(logging, pool),
    metrics: () => pool.collect(),
    registry,
    async start(ports) {
      managementPorts = ports
      await pool.start()
    },
    settled: () => Promise.resolve(),
    pending: () => pool.pending(),
    failures: () => pool.failures(),
    trace: (filter, timeoutMs, signal) => pool.trace(filter, timeoutMs, signal),
    threads: pool.callThreads,
    ledger,
    memory: () => pool.memory(),
    async drain() {
      await pool.drain(settings)
      await shares?.close()
      await quotas.close()
      await counters?.close()
      await ledger?.close()
    },
    close: () => telemetry.close(),
  }
}

/** Sends each version to the workers before it counts as applied, so that sources acknowledge what all workers have. */
function followStore(store: ConfigStore, pool: WorkerPool): void {
  let pushed = store.snapshot()
  store.onPrepare(async (next) => {
    await pool.push(next)
    pushed = next
  })
  store.subscribe((snapshot) => {
    // Both sources changed the config at the same time: the version became another one after it was prepared.
    if (snapshot !== pushed) void pool.push(snapshot).then(() => (pushed = snapshot))
    pool.retainRoutes(aliveRoutes(snapshot))
  })
}

function forAllThreads(logging: Logging, pool: WorkerPool): Logging {
  const setLevel = (spec: string): void => {
    logging.setLevel(spec)
    pool.setLevel(spec)
  }
  return {
    format: logging.format,
    writer: logging.writer,
    get level() {
      return logging.level
    },
    logger: (scope) => logging.logger(scope),
    setLevel,
    reset() {
      logging.reset()
      pool.setLevel(logging.level)
    },
  }
}
