import { watch, type FSWatcher } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The poll of the source notices changes in further directories. */
const MAX_WATCHED = 1000

/**
 * Calls back on changes in a directory tree, or of a file. File events only make changes show sooner than the poll would, so a directory that cannot be watched
 * is left out. Not `watch` with `recursive`: on Linux that throws an uncaught error for a symbolic link to itself.
 */
export class TreeWatcher {
  readonly #root: string
  readonly #onEvent: () => void
  readonly #watchers = new Map<string, FSWatcher>()
  #isClosed = false

  constructor(root: string, onEvent: () => void) {
    this.#root = root
    this.#onEvent = onEvent
  }

  /** Watches new directories of the tree, and no longer those that are gone. Links are not followed. */
  async update(): Promise<void> {
    const found = new Set([this.#root])
    for (const directory of found) {
      const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
      for (const entry of entries) if (entry.isDirectory() && found.size < MAX_WATCHED) found.add(join(directory, entry.name))
    }
    for (const [directory, watcher] of this.#watchers) if (!found.has(directory)) this.#drop(directory, watcher)
    for (const directory of found) if (!this.#watchers.has(directory) && !this.#isClosed) this.#add(directory)
  }

  close(): void {
    this.#isClosed = true
    for (const [directory, watcher] of this.#watchers) this.#drop(directory, watcher)
  }

  #add(directory: string): void {
    try {
      const watcher = watch(directory, this.#onEvent)
      this.#watchers.set(directory, watcher)
      watcher.on('error', () => this.#drop(directory, watcher))
    } catch {
      // Polled.
    }
  }

  #drop(directory: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory)
  }
}
