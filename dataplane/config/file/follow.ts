import { compileRoute } from '../../route/compile.ts'
import { Slice } from '../../runtime/cooperative.ts'
import { ConfigFileError, type ConfigFileOptions } from './problem.ts'
import { readConfigFile, type FileMessage, type ReadFile } from './read.ts'
import { watchFiles, type FileWatch } from './watch.ts'
import type { ConfigBatch, ConfigMessage, ConfigStore } from '../store.ts'

export interface FollowConfigFileOptions extends ConfigFileOptions {
  readonly path: string
  readonly store: ConfigStore
  /** Result of the first reading. */
  readonly first: ReadFile
  /** Called after an edit was applied. A changed `config` section needs a restart. */
  readonly onReload?: (file: ReadFile) => void
  /** Called once for each invalid version; the last valid one stays in force. */
  readonly onError?: (error: ConfigFileError) => void
  /** Milliseconds between comparisons of the files without a notification from the system; default 5 s. */
  readonly pollMs?: number
}

/** Applies a `-f` file to the store and follows edits of it and of the certificates it names, until `close`. */
export async function followConfigFile({ first, ...options }: FollowConfigFileOptions): Promise<FileWatch> {
  const { path, store, onReload, onError } = options
  const held = new Map<string, string>()
  const apply = async (messages: readonly FileMessage[]): Promise<void> => void (await store.prepare('file', await differenceTo(held, messages)))()
  await apply(first.messages)
  let latest = first.digests
  return watchFiles(first.digests, options.pollMs ?? 5000, async () => {
    try {
      const file = await readConfigFile(path, options, held)
      latest = file.digests
      await apply(file.messages)
      onReload?.(file)
    } catch (error) {
      const failure = error instanceof ConfigFileError ? error : new ConfigFileError([`${path}: ${String(error)}`], latest)
      latest = failure.digests
      onError?.(failure)
    }
    return latest
  })
}

/** Batch that makes the store hold these messages; unchanged ones keep their identity. Updates `held`. */
async function differenceTo(held: Map<string, string>, messages: readonly FileMessage[]): Promise<ConfigBatch> {
  const removed = new Set(held.keys())
  const upserts: ConfigMessage[] = []
  const slice = new Slice()
  for (const { kind, key, digest, message } of messages) {
    const id = `${kind} ${key}`
    removed.delete(id)
    if (message === undefined) continue
    held.set(id, digest)
    const changed = { kind, message } as ConfigMessage
    upserts.push(changed)
    // Cached by the identity of the message: compiled here, it does not lengthen the pause in which the config is applied.
    if (changed.kind === 'route') compileRoute(changed.message)
    if (slice.isOver) await slice.next()
  }
  for (const id of removed) held.delete(id)
  const removals = [...removed].map((id) => ({ kind: id.slice(0, id.indexOf(' ')) as ConfigMessage['kind'], key: id.slice(id.indexOf(' ') + 1) }))
  return { upserts, removals }
}
