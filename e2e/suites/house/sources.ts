import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './table.ts'

/** Paths of tracked and new files that match the globs, relative to the repository. */
export function listFiles(...globs: readonly string[]): readonly string[] {
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z', ...globs], { cwd: ROOT, encoding: 'utf8' })
  return output.split('\0').filter((path) => path !== '')
}

export const readSource = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
