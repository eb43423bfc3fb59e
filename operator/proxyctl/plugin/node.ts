import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { isSea } from 'node:sea'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ToolError } from './common.ts'
import { placeModules } from './sources.ts'

export type Environment = Readonly<Record<string, string | undefined>>

interface RunOptions {
  readonly env: Environment
  readonly onOutput: (text: string) => void
  readonly onError: (text: string) => void
  /** Standard input; default: none. */
  readonly input?: string
}

/** Gives modules of `placeModules` to `work`, and removes them when it has ended. */
export async function withModules<T>(work: (modules: Awaited<ReturnType<typeof placeModules>>) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'proxyctl-plugin-'))
  try {
    return await work(await placeModules(directory))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Runs Node, that of proxyctl or, for the executable that contains Node, the one of the path. Resolves with its status. Rejects with a ToolError if there is none. */
export function runNode(args: readonly string[], { env, onOutput, onError, input = '' }: RunOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    // A test that runs in a test of Node itself would report to that one.
    const { NODE_TEST_CONTEXT: _, ...rest } = env
    const child = spawn(isSea() ? 'node' : process.execPath, ['--disable-warning=ExperimentalWarning', ...args], { env: rest })
    child.stdout.setEncoding('utf8').on('data', onOutput)
    child.stderr.setEncoding('utf8').on('data', onError)
    // A program may end before it has read its input.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    child.on('error', (error: NodeJS.ErrnoException) =>
      reject(new ToolError('PX6009', error.code === 'ENOENT' ? 'node: no such program; install Node 22.19 or newer' : error.message)),
    )
    child.on('close', (code) => resolve(code ?? 1))
  })
}
