import { followConfigFile } from '../config/file/follow.ts'
import type { ReadFile } from '../config/file/read.ts'
import type { ConfigStore } from '../config/store.ts'
import type { ConfigStream } from '../config/stream/stream.ts'
import type { ProcessSettings } from './settings.ts'
import type { Logging } from '../telemetry/log.ts'

export interface SourceOptions {
  readonly settings: ProcessSettings
  /** The `-f` file and the result of its first reading. */
  readonly file: { readonly path: string; readonly first: ReadFile } | undefined
}

/** Starts the config sources: the `-f` file, the config stream, or both. */
export async function startSources({ settings, file }: SourceOptions, store: ConfigStore, logging: Logging): Promise<{ close(): Promise<void> }> {
  const { namespace, gateway } = settings
  // The stream first, so that readiness waits for it before the file alone makes the config look complete.
  const stream = settings.xdsAddress === undefined ? undefined : await followStream(settings.xdsAddress, settings, store, logging)
  const log = logging.logger('config')
  const warn = ({ warnings }: ReadFile): void => {
    for (const problem of warnings) log.warn('part of the config file cannot work', { problem })
  }
  if (file !== undefined) warn(file.first)
  const path = file?.path
  const followed =
    file &&
    (await followConfigFile({
      ...file,
      store,
      ...(settings.xdsAddress === undefined ? {} : { namespace, gateway }),
      onReload(read) {
        log.info('config file reloaded', { file: path, version: store.snapshot().version })
        warn(read)
      },
      onError: (error) => log.error('config file not usable; its last good version stays', { error: error.message }),
    }))
  return {
    async close() {
      followed?.close()
      await stream?.close()
    },
  }
}

async function followStream(address: string, settings: ProcessSettings, store: ConfigStore, logging: Logging): Promise<ConfigStream> {
  // Loaded on demand: gRPC uses 40 MiB, which a process without a stream saves.
  const { startConfigStream } = await import('../config/stream/stream.ts')
  const log = logging.logger('config')
  const { namespace, gateway, podName, podIp, nodeName, xdsTokenFile, xdsRootCa } = settings
  return startConfigStream({
    address,
    node: { namespace, gateway, podName, podIps: podIp, nodeName },
    store,
    ...(xdsTokenFile === undefined ? {} : { tokenFile: xdsTokenFile }),
    ...(xdsRootCa === undefined ? {} : { rootCaFile: xdsRootCa }),
    onEvent(event) {
      if (event.type === 'disconnected')
        log.warn('config stream disconnected; the last good config stays', { cause: event.cause, retryMs: Math.round(event.retryMs) })
      else if (event.type === 'connected') log.info('config stream connected', { address })
      else if (event.type === 'applied') log.info('config applied', { version: store.snapshot().version, updated: event.updated, removed: event.removed })
      else for (const { key, error } of event.resources) log.warn('part of the config refused; its last good version stays', { key, error })
    },
  })
}
