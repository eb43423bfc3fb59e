import { readFileSync } from 'node:fs'

/** How an image runs its program. */
export interface ImageRun {
  /** Options of Node. */
  readonly nodeArgs: readonly string[]
  /** Settings of the allocator. */
  readonly env: Readonly<Record<string, string>>
}

/** What the Dockerfile of a program says, so that what is run beside images is run the same way. */
export function readImageRun(dockerfile: URL): ImageRun {
  const text = readFileSync(dockerfile, 'utf8')
  const [, entrypoint = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(text) ?? []
  const [node, ...args] = entrypoint === '' ? [] : (JSON.parse(entrypoint) as string[])
  if (node !== 'node') throw new Error(`${dockerfile.pathname} has no ENTRYPOINT ["node", ...]`)
  const env = [...text.matchAll(/\b(MALLOC_\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value] as const)
  return { nodeArgs: args.slice(0, -1), env: Object.fromEntries(env) }
}
