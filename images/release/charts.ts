import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ArchiveFile } from './archive.ts'
import type { Target } from './target.ts'

const CHARTS = join(import.meta.dirname, '../../charts')

/** Directories of `charts`. */
export const chartNames = ['proxy-crds', 'proxy'] as const

/** Files of a chart as in the archive of `helm package`, with the version and the registry of the release. */
export async function readChartFiles(name: (typeof chartNames)[number], { version, registry }: Target): Promise<readonly ArchiveFile[]> {
  const directory = join(CHARTS, name)
  const ignored = await readIgnored(directory)
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile() && !ignored.has(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
  return Promise.all(
    paths.toSorted().map(async (path) => {
      const text = await readFile(join(directory, path), 'utf8')
      return { path: `${name}/${path.replaceAll('\\', '/')}`, content: setRelease(path, text) }
    }),
  )

  function setRelease(path: string, text: string): string {
    if (path === 'Chart.yaml') return replaceLine(replaceLine(text, /^version: .*$/gm, `version: ${version}`), /^appVersion: .*$/gm, `appVersion: ${version}`)
    return path === 'values.yaml' ? replaceLine(text, /^ {2}registry: localhost$/gm, `  registry: ${registry}`) : text
  }
}

/** Replaces the one line that matches. */
function replaceLine(text: string, pattern: RegExp, line: string): string {
  const count = text.match(pattern)?.length ?? 0
  if (count !== 1) throw new Error(`${count} lines match ${pattern} where the release changes one`)
  return text.replace(pattern, () => line)
}

/** File names of `.helmignore`, and itself. Patterns are not supported. */
async function readIgnored(directory: string): Promise<ReadonlySet<string>> {
  const text = await readFile(join(directory, '.helmignore'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const names = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const pattern = names.find((name) => /[*?![\]/]/.test(name))
  if (pattern !== undefined) throw new Error(`${directory}/.helmignore: ${pattern} is a pattern; the release supports names of files only`)
  return new Set([...names, '.helmignore'])
}
