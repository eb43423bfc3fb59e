import { hash } from 'node:crypto'
import { ADMIN_TOKEN_ENTRY, adminTokenSecret } from '#api/names.ts'
import { findSecrets } from '#api/secret-fields.ts'
import type { ProcessConfig } from '#gen/config/types.ts'
import { startLiveness, type Liveness } from '../management/admin/liveness.ts'
import { resolveAddresses, resolveLivenessAddress } from '../management/admin/listen.ts'
import type { AdminToken } from '../management/admin/guard.ts'
import { startManagement, type Management } from '../management/admin/management.ts'
import { LiveStats } from '../management/console/live.ts'
import { VersionHistory } from '../management/console/versions.ts'
import { CONSOLE_FILES, dumpConfig, loadConsole, onlyOnce } from './console.ts'
import { explainRoute } from '../config/explain.ts'
import { readConfigFile } from '../config/file/read.ts'
import { indexPolicies } from '../config/merge.ts'
import { indexShadows } from '../config/shadows.ts'
import { readSessionKeys } from '../backend/mcp/session/keys.ts'
import { dialing } from '../net/upstream/dial.ts'
import { notifyManager } from './service-manager.ts'
import { followOperator } from './operator.ts'
import { fileOptionsOf, NO_SOURCE, type DataplaneOptions } from './options.ts'
import { readSettings, SettingError, takeAdminToken, type ProcessSettings } from './settings.ts'
import type { RefusedPlugin } from '../config/stream/stream.ts'
import { startSources, type Sources } from './sources.ts'
import { Rollouts } from './rollouts.ts'
import { createTraffic, type Traffic } from './traffic.ts'
import { describeStore } from '../store/ledger/store.ts'
import type { RequestLedger } from '../store/ledger/writer.ts'
import type { SavedCounters } from './counters/saved.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'
import { createLogging, type Logging } from '../observe/telemetry/log.ts'
import { releaseMemory, releaseMemoryWhenQuiet } from '../runtime/garbage.ts'
import { issuedSecrets } from '../runtime/issued-secrets.ts'
import { countHeldBuffers } from '../runtime/buffer-memory.ts'
import { lowerGarbageCollection } from '../runtime/thread-priority.ts'
import { createWriter } from '../observe/telemetry/writer.ts'

export interface Dataplane {
  /** Reads the config file now, if it has changed. */
  reload(): void
  /** Finishes requests in flight. Accepts new ones until `minDrainMs`; cuts open connections after `maxDrainMs`. */
  drain(cause: string): Promise<void>
}

/** Starts the data plane of one process: config in, binds open, telemetry out. Rejects with a one-line cause if it cannot start. */
export async function runDataplane({ env, file, version }: DataplaneOptions): Promise<Dataplane> {
  countHeldBuffers()
  lowerGarbageCollection()
  const adminToken = takeAdminToken(env)
  const keys = readSessionKeys(env)
  for (const key of keys) issuedSecrets.add(key.toString('hex'))
  const fileOptions = fileOptionsOf(env)
  const first = file === undefined ? undefined : await readConfigFile(file, fileOptions)
  const processConfig: ProcessConfig = first?.process ?? {}
  for (const secret of findSecrets(processConfig)) issuedSecrets.add(secret)
  const settings = readSettings(env, processConfig)
  if (file === undefined && settings.xdsAddress === undefined) throw new Error(NO_SOURCE)
  const { logLevel: level, logFormat: format, sensitiveHeaders } = settings
  const logging = createLogging({ writer: createWriter(1), level, format, sensitiveHeaders })
  const addresses = resolveAddresses(env, processConfig)
  const operator = settings.xdsAddress === undefined ? undefined : followOperator(settings.xdsAddress)
  let management: Management | undefined
  const ports = (): number[] =>
    [...Object.values(management?.addresses ?? addresses), liveness?.address, settings.peer].flatMap((address) => address?.port ?? [])
  dialing.apply(settings, ports, operator)
  const livenessAddress = resolveLivenessAddress(env, settings.isInPod)
  // Before anything that takes time, so that a start that hangs is noticed.
  const liveness = livenessAddress && (await startLiveness(livenessAddress))
  const traffic = await createTraffic({
    settings,
    openLedger: (registry) => openLedger(settings, logging, registry),
    openCounters: (memory) => openCounters(settings, logging, memory),
    logging,
    keys,
    peer: settings.peer,
    version,
    nodeName: settings.nodeName,
  })
  const { store } = traffic
  const versions = new VersionHistory(store)
  const live = new LiveStats((families) => traffic.threads('sample', families))
  let notes = first?.notes ?? []
  const admin = { ...addresses.admin, hasToken: adminToken !== undefined }
  const consoleOptions = { notes: () => notes, file, admin, version, startedAtMs: Date.now(), processConfig, settings, traffic, versions, live }
  let isStarted = false
  let drain: (cause: string) => Promise<void> = () => Promise.resolve()
  const started = await startManagement({
    addresses,
    readiness: () => (isStarted ? [...store.pending(), ...traffic.pending()] : ['start']),
    explainRoute: async (namespace, name) => {
      const snapshot = store.snapshot()
      return explainRoute(snapshot, indexPolicies(snapshot.policies), await indexShadows(snapshot), namespace, name)
    },
    trace: (filter, timeoutMs) => traffic.trace(filter, timeoutMs),
    configDump: () => dumpConfig(store, processConfig),
    loadConsole: onlyOnce(() => loadConsole(consoleOptions)),
    consoleFiles: CONSOLE_FILES,
    token: adminToken === undefined ? undefined : describeToken(adminToken, settings),
    metrics: traffic.metrics,
    ...(traffic.memory && { workerMemory: () => traffic.memory?.() ?? Promise.resolve([]) }),
    logging: traffic.logging,
    isOwn: (socket, isExact) => dialing.isOwn(socket, isExact),
    onQuit: () => void drain('quitquitquit').then(() => process.exit(0)),
  })
  management = started
  process.on('exit', () => logging.writer.flushSync())
  await traffic.start(ports())
  const followed = first && { path: file ?? '', first, ...fileOptions }
  const rollouts = new Rollouts({
    store,
    log: logging.logger('rollouts'),
    path: settings.rolloutsFile,
    sample: (families) => traffic.threads('sample', families),
  })
  const sources = await startSources({
    settings,
    file: followed,
    store: rollouts.store,
    logging,
    registry: traffic.registry,
    onRejected: (rejection) => versions.reject(rejection),
    onNotes: (latest) => (notes = latest),
    refusedPlugins: async () => mergeRefused(await traffic.threads('refusedPlugins', undefined)),
    heldTools: () => listHeldTools(traffic),
    rollouts: () => rollouts.reported(),
  })
  await traffic.settled()
  live.start()
  isStarted = true
  if (settings.workers > 1) releaseMemory()
  releaseMemoryWhenQuiet()
  // In standalone mode a port that cannot be opened ends the process: it was started by hand, and nothing watches its readiness.
  const [failure] = settings.xdsAddress === undefined ? traffic.failures() : []
  if (failure !== undefined) throw failure
  logging.logger('main').info('started', { version, pid: process.pid })
  let draining: Promise<void> | undefined
  const manager = notifyManager(env)
  manager?.ready()
  drain = (cause) => {
    manager?.stopping()
    return (draining ??= shutDown(cause, { traffic, logging, settings, sources, rollouts, management: started, liveness }))
  }
  return { drain, reload: () => sources.reload() }
}

function describeToken(value: string, { isInPod, namespace, gateway }: ProcessSettings): AdminToken {
  const secret = adminTokenSecret(gateway, (text) => hash('sha256', text))
  const command = `kubectl get secret -n ${namespace} ${secret} -o go-template='{{.data.${ADMIN_TOKEN_ENTRY}|base64decode}}'`
  return { value, hint: isInPod ? `proxyctl does so, and this prints it: ${command}` : 'it is the value of ADMIN_TOKEN at the start of this process' }
}

/** Each problem once: usually all threads have the same. */
function mergeRefused(lists: readonly (readonly RefusedPlugin[])[]): RefusedPlugin[] {
  return [...new Map(lists.flat().map((refused) => [`${refused.plugin} ${refused.problem}`, refused])).values()]
}

/** MCP targets whose tools are held: `<namespace>/<backend>/<target>`. */
async function listHeldTools({ threads, store }: Traffic): Promise<string[]> {
  // Loaded on demand: most configs hold no tools.
  const { findHeldTools, HELD_TOOLS_FAMILIES } = await import('../management/console/mcp/held-tools.ts')
  return findHeldTools(await threads('sample', HELD_TOOLS_FAMILIES), store.snapshot()).map(({ backend, server }) => `${backend}/${server}`)
}

/** Opens the ledger of the settings. Throws a SettingError if its file cannot be used. */
async function openLedger({ ledger: settings }: ProcessSettings, logging: Logging, registry: Registry): Promise<RequestLedger | undefined> {
  if (settings === undefined) return undefined
  // Loaded on demand: it starts a thread, and most processes have no ledger.
  const { RequestLedger } = await import('../store/ledger/writer.ts')
  try {
    return await RequestLedger.open({ settings, log: logging.logger('ledger'), registry })
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new SettingError(
      `config.ledger.sqlite.path is ${JSON.stringify(describeStore(settings.store))}: ${cause}; name a file in a directory that this process may write`,
      {
        cause: error,
      },
    )
  }
}

/** Opens the file with the counters of budgets. Throws a SettingError if it cannot be used: budgets would start anew. */
async function openCounters({ budgetsFile: path }: ProcessSettings, logging: Logging, memory: SharedArrayBuffer): Promise<SavedCounters | undefined> {
  if (path === undefined) return undefined
  // Loaded on demand: it starts a thread, and most processes have no such file.
  const { SavedCounters } = await import('./counters/saved.ts')
  try {
    return await SavedCounters.open({ path, memory, log: logging.logger('budgets') })
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new SettingError(`config.budgets.sqlite.path is ${JSON.stringify(path)}: ${cause}; name a file in a directory that this process alone may write`, {
      cause: error,
    })
  }
}

interface RunningParts {
  readonly traffic: Traffic
  readonly logging: Logging
  readonly settings: ProcessSettings
  readonly sources: Pick<Sources, 'close'>
  readonly rollouts: Pick<Rollouts, 'close'>
  readonly management: Management
  readonly liveness: Liveness | undefined
}

async function shutDown(cause: string, { traffic, logging, settings, sources, rollouts, management, liveness }: RunningParts): Promise<void> {
  const log = logging.logger('main')
  log.info('draining', { cause, minMs: settings.minDrainMs, maxMs: settings.maxDrainMs })
  await sources.close()
  await rollouts.close()
  await traffic.drain()
  await management.close()
  await liveness?.close()
  log.info('stopped')
  await traffic.close()
}
