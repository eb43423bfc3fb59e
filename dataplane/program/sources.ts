import { followConfigFile } from '../config/file/follow.ts'
import type { ConfigFileOptions } from '../config/file/problem.ts'
import type { ReadFile } from '../config/file/read.ts'
import { METRIC_PREFIX } from '#api/names.ts'
import type { RolloutSample } from '#api/rollout/samples.ts'
import type { ConfigStore } from '../config/store.ts'
import type { ConfigStream, RefusedPlugin } from '../config/stream/stream.ts'
import { createFileReport } from './file-report.ts'
import type { Rejection } from '../management/console/versions.ts'
import type { ProcessSettings } from './settings.ts'
import type { Logging } from '../observe/telemetry/log.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'

/** Time between two reports to the operator. */
const REPORT_MS = 1000

export interface SourceOptions {
  readonly store: ConfigStore
  readonly logging: Logging
  readonly registry: Registry
  readonly settings: ProcessSettings
  /** Called with each part of the config that was not applied. */
  onRejected(rejection: Rejection): void
  /** Plugins that threads which handle traffic could not load. */
  refusedPlugins(): Promise<readonly RefusedPlugin[]>
  /** MCP targets with tools that are held: `<namespace>/<backend>/<target>`. */
  heldTools(): Promise<readonly string[]>
  /** What the threads measured in the current steps of rollouts that the operator decides. */
  rollouts(): Promise<readonly RolloutSample[]>
  /** Called with the ports that anyone can use, when they may have changed. */
  onNotes(notes: readonly string[]): void
  /** The `-f` file and the result of its first reading. */
  readonly file: (ConfigFileOptions & { readonly path: string; readonly first: ReadFile }) | undefined
}

/** The running sources of the config. */
export interface Sources {
  /** Reads the `-f` file now, if it has changed. */
  reload(): void
  close(): Promise<void>
}

/** Starts the config sources: the `-f` file, the config stream, or both. */
export async function startSources(options: SourceOptions): Promise<Sources> {
  const { settings, file, store, logging } = options
  const { namespace, gateway } = settings
  // The stream first, so that readiness waits for it before the file alone makes the config look complete.
  const stream = settings.xdsAddress === undefined ? undefined : await followStream(settings.xdsAddress, options)
  const log = logging.logger('config')
  const report = createFileReport(log, file?.path)
  if (file !== undefined) report.warn(file.first)
  const reports = stream === undefined ? undefined : setInterval(() => void reportFindings(options, stream), REPORT_MS).unref()
  const followed =
    file &&
    (await followConfigFile({
      ...file,
      store,
      ...(settings.xdsAddress === undefined ? {} : { namespace, gateway }),
      onReload(read) {
        report.reloaded(read, store.snapshot().version)
        options.onNotes(read.notes)
      },
      onError(error) {
        report.failed(error)
        for (const message of error.problems) options.onRejected({ source: 'file', code: 'PX4004', key: null, message })
      },
    }))
  return {
    reload: () => followed?.check(),
    async close() {
      clearInterval(reports)
      followed?.close()
      await stream?.close()
    },
  }
}

/** Reports to the operator which plugins cannot be loaded, which MCP targets have tools that are held, and what rollouts measured. Threads are asked only if the config has such parts. */
async function reportFindings({ store, refusedPlugins, heldTools, rollouts }: SourceOptions, stream: ConfigStream): Promise<void> {
  const snapshot = store.snapshot()
  const hasPlugins = [...snapshot.policies.values()].some(({ traffic }) => traffic?.plugins !== undefined)
  const holdsTools = snapshot.backends.values().some(({ mcp }) => mcp?.toolPins !== undefined && mcp.toolPins.action !== 'Audit')
  const [plugins, held, samples] = await Promise.all([hasPlugins ? refusedPlugins() : [], holdsTools ? heldTools() : [], rollouts()])
  stream.reportFindings({ plugins, heldTools: held, rollouts: samples })
}

async function followStream(address: string, { settings, store, logging, registry, onRejected }: SourceOptions): Promise<ConfigStream> {
  // Loaded on demand: gRPC uses 40 MiB, which a process without a stream saves.
  const { startConfigStream } = await import('../config/stream/stream.ts')
  const log = logging.logger('config')
  const connected = registry.gauge(`${METRIC_PREFIX}config_stream_connected`, 'Whether the config stream is connected to an operator.').series()
  const appliedAt = registry
    .gauge(`${METRIC_PREFIX}config_applied_timestamp_seconds`, 'When config of the stream was last applied, Unix time; 0: never.')
    .series()
  const { namespace, gateway, podName, podIp, nodeName, xdsTokenFile, xdsRootCa } = settings
  return startConfigStream({
    address,
    node: { namespace, gateway, podName, podIps: podIp, nodeName },
    store,
    ...(xdsTokenFile === undefined ? {} : { tokenFile: xdsTokenFile }),
    ...(xdsRootCa === undefined ? {} : { rootCaFile: xdsRootCa }),
    onEvent(event) {
      if (event.type === 'connected') connected.value = 1
      else if (event.type === 'disconnected') connected.value = 0
      else if (event.type === 'applied') appliedAt.value = Date.now() / 1000
      if (event.type === 'disconnected')
        log.warn('config stream disconnected; the last good config stays', { code: 'PX4005', cause: event.cause, retryMs: Math.round(event.retryMs) })
      else if (event.type === 'connected') log.info('config stream connected', { address })
      else if (event.type === 'applied') log.info('config applied', { version: store.snapshot().version, updated: event.updated, removed: event.removed })
      else
        for (const { key, error } of event.resources) {
          log.warn('part of the config rejected; its last good version stays', { code: 'PX4006', key, error })
          onRejected({ source: 'stream', code: 'PX4006', key, message: error })
        }
    },
  })
}
