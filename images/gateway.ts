import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleProgram, checkNode, type BundleOptions } from './bundle.ts'
import { buildConsole } from './console.ts'

/** How the image of the data plane runs Node: its Dockerfile is the one place for that. */
interface NodeRun {
  /** Options for Node. */
  readonly options: readonly string[]
  /** Variables of the allocator: `MALLOC_ARENA_MAX=1`. */
  readonly variables: readonly string[]
}

export async function readNodeRun(): Promise<NodeRun> {
  const text = await readFile(join(import.meta.dirname, '../dataplane/Dockerfile'), 'utf8')
  const [, entrypoint = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(text) ?? []
  const [node, ...args] = entrypoint === '' ? [] : (JSON.parse(entrypoint) as string[])
  if (node !== 'node') throw new Error('dataplane/Dockerfile has no ENTRYPOINT ["node", ...]')
  return { options: args.slice(0, -1), variables: text.match(/\bMALLOC_\w+=\S+/g) ?? [] }
}

/** Name of the file that starts the gateway. */
export const LAUNCHER = 'proxy-service.cjs'

/** CommonJS with the syntax of an old Node, as proxyctl. V8 takes its options later too; `gc` is then missing in the context that exists already. */
const writeLauncher = (options: readonly string[]): string => `#!/usr/bin/env node
${checkNode('proxy-service')}
for (const option of ${JSON.stringify(options)}) require('node:v8').setFlagsFromString(option)
globalThis.gc = require('node:vm').runInNewContext('gc')
import('./main.js')
`

/** Writes the data plane with its console to a directory that needs neither packages nor a container: `node proxy-service.cjs run gateway.yaml`. */
export async function bundleGateway(directory: string, options: BundleOptions = {}): Promise<void> {
  await bundleProgram('dataplane', directory, options)
  await buildConsole(join(directory, 'console'))
  await writeFile(join(directory, LAUNCHER), writeLauncher((await readNodeRun()).options), { mode: 0o755 })
}
