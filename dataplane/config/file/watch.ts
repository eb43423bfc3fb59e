import { watch, type FSWatcher } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { digestOf, type FileDigests } from './problem.ts'

export interface FileWatch {
  close(): void
}

/** Editors write in several steps: wait for the last, but not forever in a directory where others write too. */
const QUIET_MS = 30
const MAX_QUIET_MS = 500

/**
 * Calls `reload` when one of the files differs from its digest; it gives the files to watch from then on.
 * Directories are watched rather than files, because editors and Kubernetes volumes replace files; where the system
 * gives no notice (network file systems), the files are compared every `pollMs`.
 */
export function watchFiles(digests: FileDigests, pollMs: number, reload: () => Promise<FileDigests>): FileWatch {
  let known = digests
  let isClosed = false
  let isBusy = false
  let isAsked = false
  let noticedAt: number | undefined
  let timer: NodeJS.Timeout | undefined
  const watchers = new Map<string, FSWatcher>()
  let names = new Set<string>()

  const ask = (delayMs: number): void => {
    if (isClosed) return
    clearTimeout(timer)
    timer = setTimeout(() => void look(), delayMs).unref()
  }
  const notice = (): void => {
    noticedAt ??= performance.now()
    ask(Math.max(0, Math.min(QUIET_MS, noticedAt + MAX_QUIET_MS - performance.now())))
  }
  const look = async (): Promise<void> => {
    noticedAt = undefined
    if (isBusy) {
      isAsked = true
      return
    }
    isBusy = true
    try {
      if (await hasChanged(known)) {
        known = await reload()
        arm()
      }
    } finally {
      isBusy = false
      ask(isAsked ? QUIET_MS : pollMs)
      isAsked = false
    }
  }
  const arm = (): void => {
    if (isClosed) return
    const directories = new Set([...known.keys()].map((path) => dirname(path)))
    names = new Set([...known.keys()].map((path) => basename(path)))
    for (const [directory, watcher] of watchers) {
      if (directories.has(directory)) continue
      watcher.close()
      watchers.delete(directory)
    }
    for (const directory of directories) {
      if (watchers.has(directory)) continue
      try {
        const watcher = watch(directory, { persistent: false }, (event, name) => {
          // Bytes written to a file that is not ours, such as an access log beside it, change nothing; replacements may (a Kubernetes volume swaps a link).
          if (event === 'rename' || name === null || names.has(name)) notice()
        })
        // A directory that went away is watched again once it is back; until then polling finds the files.
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(directory)
        })
        watchers.set(directory, watcher)
      } catch {
        // Not there yet: polling finds the files.
      }
    }
  }
  arm()
  // What changed between the first reading and the first watch.
  ask(QUIET_MS)

  return {
    close() {
      isClosed = true
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

async function hasChanged(digests: FileDigests): Promise<boolean> {
  for (const [path, digest] of digests) if ((await readFile(path).then(digestOf, () => undefined)) !== digest) return true
  return false
}
