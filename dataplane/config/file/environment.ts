import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { digestOf, describeReadError } from './problem.ts'
import type { Placeholder } from './placeholders.ts'
import type { Resolve } from './substitute.ts'

/** Largest file that a placeholder can name. */
const MAX_FILE_BYTES = 1024 * 1024
const USAGE = 'write ${NAME}, ${NAME:-default} or ${file:path}; for the text ${ write $${'

/** Sources of the placeholders of a file. */
export interface Surroundings {
  /** Path of the config file: the names of other files are relative to its directory. */
  readonly path: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Receives the digests of the files that placeholders name, so that changes of them are noticed. */
  readonly digests: Map<string, string | undefined>
}

/**
 * Resolves placeholders from environment variables and files. As in a shell, the default of a variable also replaces an empty value. One line feed at the end
 * of a file is removed.
 */
export function createResolve({ path, env, digests }: Surroundings): Resolve {
  const readText = (name: string): string | undefined => {
    const absolute = resolve(dirname(path), name)
    try {
      const stats = statSync(absolute)
      if (stats.isFile() && stats.size > MAX_FILE_BYTES) throw new Error(`is larger than ${MAX_FILE_BYTES} bytes`)
      // Reading a device or a pipe might never end.
      if (!stats.isFile() && !stats.isDirectory()) throw new Error('is not a regular file')
      const bytes = readFileSync(absolute)
      digests.set(absolute, digestOf(bytes))
      return bytes.toString().replace(/\r?\n$/, '')
    } catch (error) {
      digests.set(absolute, undefined)
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }
  return ({ text, source }: Placeholder) => {
    if (source.kind === 'invalid') throw new Error(`${text} is not a placeholder; ${USAGE}`)
    if (source.kind === 'variable') {
      const value = env[source.name]
      if (source.fallback !== undefined) return value === undefined || value === '' ? source.fallback : value
      if (value === undefined) throw new Error(`the environment variable ${source.name} is not set; set it, or write \${${source.name}:-default}`)
      return value
    }
    let content: string | undefined
    try {
      content = readText(source.name)
    } catch (error) {
      throw new Error(`${text}: ${describeReadError(error)}`, { cause: error })
    }
    const value = content ?? source.fallback
    if (value === undefined) throw new Error(`${text}: no such file`)
    return value
  }
}
