import type { ProcessConfig } from '#gen/config/types.ts'
import type { HostPort } from '../management/admin/listen.ts'
import { redactMessage, redactSecret, writeDump, type ConfigDump } from '../management/admin/dump.ts'
import { workloadsOf } from '../management/admin/workloads.ts'
import { withRealNames } from '../config/real-names.ts'
import type { ConfigStore } from '../config/store.ts'
import type { ConsoleApp } from '../management/console/context.ts'
import type { LiveStats } from '../management/console/live.ts'
import type { VersionHistory } from '../management/console/versions.ts'
import { editTargetOf } from './edit-target.ts'
import type { ProcessSettings } from './settings.ts'
import type { Traffic } from './traffic.ts'

/** Directory of the console's files: that of `make console`, in an image next to the program. */
export const CONSOLE_FILES = new URL(import.meta.url.endsWith('.ts') ? '../../dist/console/' : './console/', import.meta.url)

interface ConsoleOptions {
  /** The `-f` file. */
  readonly file: string | undefined
  /** Address of the management port, and whether it needs a token. */
  readonly admin: HostPort & { readonly hasToken: boolean }
  readonly version: string
  readonly startedAtMs: number
  readonly processConfig: ProcessConfig
  readonly settings: ProcessSettings
  readonly traffic: Traffic
  readonly versions: VersionHistory
  readonly live: LiveStats
  notes(): readonly string[]
}

/** The config in force with the settings of the process. */
export function dumpConfig(store: Pick<ConfigStore, 'snapshot'>, processConfig: ProcessConfig): ConfigDump {
  return { ...store.snapshot(), workloads: workloadsOf(store.snapshot().services.values()), config: processConfig }
}

/** Loads the management API, which most processes never use. */
export async function loadConsole({
  file,
  admin,
  version,
  startedAtMs,
  processConfig,
  settings,
  traffic,
  versions,
  live,
  notes,
}: ConsoleOptions): Promise<ConsoleApp> {
  const { createConsoleApp } = await import('../management/console/app.ts')
  const { store, logging, threads } = traffic
  return createConsoleApp({
    name: settings.podName,
    version,
    startedAtMs,
    workers: settings.workers,
    logging,
    live,
    versions,
    threads,
    edits: editTargetOf({ file, admin, processConfig, settings }),
    ledger: traffic.ledger,
    snapshot: () => store.snapshot(),
    writeConfig: () => writeDump(dumpConfig(store, processConfig)),
    redact: (value) => redactMessage(value, store.snapshot().secrets),
    redactMessage: (kind, message, secrets) =>
      kind === 'secret' ? redactSecret(message) : redactMessage(withRealNames(kind as Parameters<typeof withRealNames>[0], message), secrets),
    failures: () => traffic.failures(),
    notes,
    trace: (filter, timeoutMs, signal) => traffic.trace(filter, timeoutMs, signal),
  })
}

/** Calls a function at the first call and returns its result from then on. */
export function onlyOnce<T>(create: () => T): () => T {
  let created: { readonly value: T } | undefined
  return () => (created ??= { value: create() }).value
}
