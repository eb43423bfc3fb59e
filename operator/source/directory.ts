import { TreeWatcher } from './tree-watcher.ts'
import { createReader, type Load } from './reader.ts'

export type { Load } from './reader.ts'

/** A directory of manifests that is being watched. */
export interface DirectorySource {
  /** The state at the last load. */
  current(): Load
  close(): void
}

export interface WatchOptions {
  /** Quiet time after a change before the directory is read again: half of a file may be valid YAML. Default 200. */
  readonly debounceMs?: number
  /** Time between looks that do not depend on file events, which some file systems do not send. */
  readonly pollMs?: number
  /** How long the content of a deleted or emptied file stays in force, because editors replace files in two steps. */
  readonly graceMs?: number
  /** Called once when the directory itself can no longer be read; the last state stays. */
  readonly onError?: (error: unknown) => void
}

/** Reads a directory tree (or a single file) once. Throws when it does not exist. */
export async function loadDirectory(path: string, defaultNamespace?: string): Promise<Load> {
  return createReader(path, defaultNamespace).load()
}

/**
 * Reads a directory tree and calls `onChange` for each later state that differs in objects or problems.
 * Throws when the directory does not exist.
 */
export async function watchDirectory(path: string, onChange: (load: Load) => void, options: WatchOptions = {}): Promise<DirectorySource> {
  const { debounceMs = 200, pollMs = 2000, graceMs = 250, onError = () => {} } = options
  const reader = createReader(path)
  let current = await reader.load()
  let seen = await reader.fingerprint()
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  let isUnreadable = false
  // Every poll fails while the directory is missing; it is reported once.
  const fail = (error: unknown): void => {
    if (!isUnreadable) onError(error)
    isUnreadable = true
  }

  const refresh = (isSecondLook: boolean): void => {
    running = running.then(async () => {
      if (isClosed) return
      try {
        const before = await reader.fingerprint()
        const load = await reader.load({ isSecondLook })
        seen = before
        await watcher.update()
        isUnreadable = false
        if (isClosed) return
        if (load.pending.length > 0) schedule(graceMs, true)
        if (isSame(current, load)) return
        current = load
        onChange(load)
      } catch (error) {
        fail(error)
      }
    })
  }
  const schedule = (delayMs: number, isSecondLook: boolean): void => {
    clearTimeout(timer)
    timer = setTimeout(refresh, delayMs, isSecondLook)
  }
  const watcher = new TreeWatcher(path, () => schedule(debounceMs, false))
  await watcher.update()
  const poll = setInterval(() => {
    reader.fingerprint().then((now) => {
      if ((now !== seen || isUnreadable) && !isClosed) schedule(debounceMs, false)
    }, fail)
  }, pollMs)
  poll.unref()

  return {
    current: () => current,
    close() {
      isClosed = true
      clearTimeout(timer)
      clearInterval(poll)
      watcher.close()
    },
  }
}

function isSame(a: Load, b: Load): boolean {
  return (
    a.objects.length === b.objects.length &&
    a.objects.every((object, index) => object === b.objects[index]) &&
    a.problems.length === b.problems.length &&
    a.problems.every((problem, index) => problem.text === b.problems[index]?.text)
  )
}
