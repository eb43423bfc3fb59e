import { readFileSync } from 'node:fs'

/** The command line and environment with which an image runs Node. */
export interface ImageRun {
  /** Options for Node. */
  readonly nodeArgs: readonly string[]
  /** Environment variables of the allocator (`MALLOC_*`). */
  readonly env: Readonly<Record<string, string>>
}

/** Reads ENTRYPOINT and ENV of a Dockerfile, so that tests and benchmarks run the program with the options of its image. */
export function readImageRun(dockerfile: URL): ImageRun {
  const text = readFileSync(dockerfile, 'utf8')
  const [, entrypoint = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(text) ?? []
  const [node, ...args] = entrypoint === '' ? [] : (JSON.parse(entrypoint) as string[])
  if (node !== 'node') throw new Error(`${dockerfile.pathname} has no ENTRYPOINT ["node", ...]`)
  const env = [...text.matchAll(/\b(MALLOC_\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value] as const)
  return { nodeArgs: args.slice(0, -1), env: Object.fromEntries(env) }
}
