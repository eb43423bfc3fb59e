import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Root of the repository. */
export const root = join(import.meta.dirname, '../../..')

/** Paths of tracked and new files that match the globs, default all, relative to the root. Ignored files are left out. */
export function listFiles(...globs: readonly string[]): readonly string[] {
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z', ...globs], { cwd: root, encoding: 'utf8' })
  // git lists a deleted file until the deletion is staged.
  return output.split('\0').filter((path) => path !== '' && existsSync(join(root, path)))
}

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Line number of an offset, from 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
