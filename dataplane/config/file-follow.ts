import { setImmediate as yieldToTraffic } from 'node:timers/promises'
import { compileRoute } from '../route/compile.ts'
import { ConfigFileError, type ConfigFileOptions } from './file-problem.ts'
import { readConfigFile, type EncodedFile, type EncodedMessage } from './file-read.ts'
import { watchFiles } from './file-watch.ts'
import type { ConfigBatch, ConfigMessage, ConfigStore } from './store.ts'

export interface FollowConfigFileOptions extends ConfigFileOptions {
  readonly path: string
  readonly store: ConfigStore
  /** The version that was read already. */
  readonly first: EncodedFile
  /** An edit was applied. A changed `config` section needs a restart. */
  readonly onReload?: (file: EncodedFile) => void
  /** An edit cannot be used; the last good version stays. Called once for each bad version. */
  readonly onError?: (error: ConfigFileError) => void
  /** How often files are compared even without a notice from the system; default 5 s. */
  readonly pollMs?: number
}

/** How long messages are decoded without giving way to traffic. */
const SLICE_MS = 5

/** Puts a `-f` file into the store and follows edits of it and of the certificates it names, until `close`. */
export async function followConfigFile(options: FollowConfigFileOptions): Promise<{ close(): void }> {
  const { path, store, first, onReload, onError } = options
  const held = new Map<string, string>()
  store.apply('file', await differenceTo(held, first.messages))
  let latest = first.texts
  return watchFiles(first.texts, options.pollMs ?? 5000, async () => {
    try {
      const file = await readConfigFile(path, options)
      latest = file.texts
      store.apply('file', await differenceTo(held, file.messages))
      onReload?.(file)
    } catch (error) {
      const failure = error instanceof ConfigFileError ? error : new ConfigFileError([`${path}: ${String(error)}`], latest)
      latest = failure.texts
      onError?.(failure)
    }
    return latest
  })
}

/** What must change in the store to hold these messages; unchanged ones keep their identity there. `held` is brought up to date. */
async function differenceTo(held: Map<string, string>, messages: readonly EncodedMessage[]): Promise<ConfigBatch> {
  const gone = new Set(held.keys())
  const upserts: ConfigMessage[] = []
  let sliceEndMs = performance.now() + SLICE_MS
  for (const { kind, key, json } of messages) {
    const id = `${kind} ${key}`
    gone.delete(id)
    if (held.get(id) === json) continue
    held.set(id, json)
    const changed = { kind, message: JSON.parse(json) as unknown } as ConfigMessage
    upserts.push(changed)
    // Cached by the message's identity: done here, it is not part of the pause in which the config changes over.
    if (changed.kind === 'route') compileRoute(changed.message)
    if (performance.now() < sliceEndMs) continue
    await yieldToTraffic()
    sliceEndMs = performance.now() + SLICE_MS
  }
  for (const id of gone) held.delete(id)
  const removals = [...gone].map((id) => ({ kind: id.slice(0, id.indexOf(' ')) as ConfigMessage['kind'], key: id.slice(id.indexOf(' ') + 1) }))
  return { upserts, removals }
}
