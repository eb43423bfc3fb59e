import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Path relative to the repository -> content. */
export type Files = Readonly<Record<string, string>>

/** Difference between the generated files and the disk. */
export interface Difference {
  /** Files to write. */
  stale: string[]
  /** Files that are no longer generated. */
  orphaned: string[]
}

/** Compares `files` with the disk; `owned` are directories in which everything but a README.md is generated. */
export async function findDifference(root: string, files: Files, owned: readonly string[]): Promise<Difference> {
  const stale: string[] = []
  const orphaned: string[] = []
  for (const [path, content] of Object.entries(files)) {
    if ((await readFile(join(root, path), 'utf8').catch(() => undefined)) !== content) stale.push(path)
  }
  for (const directory of owned) {
    const entries = await readdir(join(root, directory), { recursive: true, withFileTypes: true }).catch(() => [])
    const paths = entries
      .filter((entry) => entry.isFile() && entry.name !== 'README.md')
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    orphaned.push(...paths.filter((path) => !(path in files)))
  }
  return { stale, orphaned }
}

/** Writes and removes files. Unchanged files are not touched, so that file watchers do not fire. */
export async function writeDifference(root: string, files: Files, { stale, orphaned }: Difference): Promise<void> {
  for (const path of stale) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), files[path] ?? '')
  }
  for (const path of orphaned) await rm(join(root, path))
}
