import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Paths of the repository's files, relative to its root: those in git and those not yet added, without ignored and deleted ones. */
export function listFiles(): string[] {
  const output = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
  return [...new Set(output.split('\0'))].filter((path) => path !== '' && existsSync(join(root, path)))
}

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Line number of an offset, from 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
