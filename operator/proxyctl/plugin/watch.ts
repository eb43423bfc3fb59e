import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname, resolve, sep } from 'node:path'
import { buildModule, replaceFile } from './build.ts'
import { ToolError } from './common.ts'
import type { Environment } from './node.ts'

/** Time in which changes become one: editors write a file in several steps. */
const QUIET_MS = 50

/** What was built, or why it was not. */
export type Build = { readonly bytes: number; readonly ms: number } | { readonly problem: string }

export interface WatchOptions {
  readonly file: string
  readonly out: string
  /** Environment for the compiler; undefined: types are not checked. */
  readonly types?: Environment | undefined
  /** The content of `out` for a source. */
  readonly render: (code: string) => string
  readonly report: (build: Build) => void
  readonly signal: AbortSignal
}

/**
 * Builds a plugin, and again whenever its source or a module that it imports changes, packages of npm excluded. A source with an error leaves `out` as it is. Resolves when `signal` is aborted;
 * rejects only with errors that are no ToolError.
 */
export async function watchPlugin({ file, out, types, render, report, signal }: WatchOptions): Promise<void> {
  const watchers = new Map<string, FSWatcher>()
  const ignored = basename(out)
  let written: string | undefined
  let notify: (() => void) | undefined
  let isChanged = true
  const onChange = (_: string, name: string | null): void => {
    if (name === ignored || name?.startsWith('.') === true) return
    isChanged = true
    notify?.()
  }
  const follow = (inputs: readonly string[]): void => {
    for (const directory of new Set(inputs.map((input) => dirname(resolve(input))))) {
      if (watchers.has(directory) || directory.includes(`${sep}node_modules${sep}`)) continue
      // A directory that is removed is not watched any more; the next build reports what is missing.
      watchers.set(
        directory,
        watch(directory, onChange).on('error', () => undefined),
      )
    }
  }
  const stop = (): void => notify?.()
  signal.addEventListener('abort', stop)
  try {
    follow([file])
    while (!signal.aborted) {
      if (!isChanged) await new Promise<void>((wake) => (notify = wake))
      notify = undefined
      if (signal.aborted) return
      await new Promise((wake) => setTimeout(wake, QUIET_MS))
      isChanged = false
      const start = performance.now()
      try {
        const { code, inputs } = await buildModule(file, types)
        follow(inputs)
        if (code === written) continue
        await replaceFile(out, render(code))
        written = code
        report({ bytes: Buffer.byteLength(code), ms: Math.round(performance.now() - start) })
      } catch (error) {
        if (!(error instanceof ToolError)) throw error
        written = undefined
        report({ problem: error.message })
      }
    }
  } finally {
    signal.removeEventListener('abort', stop)
    for (const watcher of watchers.values()) watcher.close()
  }
}
