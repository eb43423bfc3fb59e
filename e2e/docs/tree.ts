import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

/** Directories that .gitignore names, and git's own. */
const IGNORED = new Set(['.git', '.tools', 'coverage', 'dist', 'node_modules'])

/** Paths of the repository's files, relative to its root. */
export function listFiles(directory = ''): string[] {
  return readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (IGNORED.has(entry.name) || /\.(?:log|tmp)$/.test(entry.name)) return []
    return entry.isDirectory() ? listFiles(path) : entry.isFile() ? [path] : []
  })
}

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Line number of an offset, from 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
