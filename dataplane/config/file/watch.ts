import { watch, type FSWatcher } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { digestOf, type FileDigests } from './problem.ts'

/** A running watch; `close` ends it. */
export interface FileWatch {
  /** Compares the files now. */
  check(): void
  close(): void
}

/** Editors write in several steps: wait for the last one, but not forever in a directory where others write too. */
const QUIET_MS = 30
const MAX_QUIET_MS = 500

/**
 * Calls `reload` when one of the files differs from its digest; `reload` returns the files to watch from then on.
 * Watches directories rather than files, because editors and Kubernetes volumes replace files. Where the system sends no
 * notifications (network file systems), compares the files every `pollMs`.
 */
export function watchFiles(digests: FileDigests, pollMs: number, reload: () => Promise<FileDigests>): FileWatch {
  const running = new DigestWatch(digests, pollMs, reload)
  return { check: () => running.check(), close: () => running.close() }
}

class DigestWatch {
  readonly #pollMs: number
  readonly #reload: () => Promise<FileDigests>
  readonly #directories: DirectoryWatchers
  #digests: FileDigests
  #isClosed = false
  #isChecking = false
  /** A change was noticed during the current check. */
  #isDirty = false
  /** `performance.now()` of the first notification since the last check. */
  #noticedAtMs: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(digests: FileDigests, pollMs: number, reload: () => Promise<FileDigests>) {
    this.#digests = digests
    this.#pollMs = pollMs
    this.#reload = reload
    this.#directories = new DirectoryWatchers(() => this.#notice())
    this.#directories.update(digests.keys())
    // Catches changes between the first reading and the first watch.
    this.#schedule(QUIET_MS)
  }

  check(): void {
    this.#schedule(0)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#directories.close()
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#check(), delayMs).unref()
  }

  #notice(): void {
    this.#noticedAtMs ??= performance.now()
    this.#schedule(Math.max(0, Math.min(QUIET_MS, this.#noticedAtMs + MAX_QUIET_MS - performance.now())))
  }

  async #check(): Promise<void> {
    this.#noticedAtMs = undefined
    if (this.#isChecking) {
      this.#isDirty = true
      return
    }
    this.#isChecking = true
    try {
      if (await hasChanged(this.#digests)) {
        this.#digests = await this.#reload()
        if (!this.#isClosed) this.#directories.update(this.#digests.keys())
      }
    } finally {
      this.#isChecking = false
      this.#schedule(this.#isDirty ? QUIET_MS : this.#pollMs)
      this.#isDirty = false
    }
  }
}

/** Watches the directories of a set of files. */
class DirectoryWatchers {
  readonly #onChange: () => void
  readonly #watchers = new Map<string, FSWatcher>()
  #names = new Set<string>()

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** Watches the directories of `paths`, and no others. */
  update(paths: Iterable<string>): void {
    const files = [...paths]
    this.#names = new Set(files.map((path) => basename(path)))
    const directories = new Set(files.map((path) => dirname(path)))
    for (const directory of this.#watchers.keys()) if (!directories.has(directory)) this.#remove(directory)
    for (const directory of directories) if (!this.#watchers.has(directory)) this.#add(directory)
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close()
  }

  #add(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        // Writes to other files, such as an access log in the same directory, are ignored; renames are not (a Kubernetes volume swaps a link).
        if (event === 'rename' || name === null || this.#names.has(name)) this.#onChange()
      })
      // A deleted directory is watched again once it is back; until then polling finds the files.
      watcher.on('error', () => this.#remove(directory))
      this.#watchers.set(directory, watcher)
    } catch {
      // The directory does not exist yet: polling finds the files.
    }
  }

  #remove(directory: string): void {
    this.#watchers.get(directory)?.close()
    this.#watchers.delete(directory)
  }
}

async function hasChanged(digests: FileDigests): Promise<boolean> {
  for (const [path, digest] of digests) if ((await readFile(path).then(digestOf, () => undefined)) !== digest) return true
  return false
}
