import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fail } from './common.ts'
import { runNode, withModules, type Environment } from './node.ts'

const TEST_FILE = /\.test\.[cm]?[jt]s$/

interface TestOutput {
  readonly write: (text: string) => void
  readonly note: (text: string) => void
}

/**
 * Runs test files of `node:test`, in which `@proxy/plugin` and `@proxy/plugin/testing` can be imported. A directory stands for its files `*.test.ts` and the
 * like. Resolves with the status of Node. Rejects with a ToolError.
 *
 * @param output gets the report on standard output, and what Node and the tests write to standard error there
 */
export async function runTests(paths: readonly string[], { write, note }: TestOutput, env: Environment): Promise<number> {
  const files: string[] = []
  for (const path of paths) files.push(...(await findTests(path)))
  if (files.length === 0) fail(`${paths.join(', ')}: no file *.test.ts`, 'PX6009')
  return withModules(async ({ index, testing }) => {
    const modules = JSON.stringify({ '@proxy/plugin': index, '@proxy/plugin/testing': testing })
    const hook = `import { registerHooks } from 'node:module'
const modules = ${modules}
registerHooks({ resolve: (name, context, next) => (Object.hasOwn(modules, name) ? { url: modules[name], shortCircuit: true } : next(name, context)) })`
    const status = await runNode(['--import', `data:text/javascript,${encodeURIComponent(hook)}`, '--test', ...files], { env, onOutput: write, onError: note })
    return status === 0 ? 0 : 1
  })
}

async function findTests(path: string): Promise<string[]> {
  const found = await stat(path).catch((error: Error) => fail(error.message, 'PX6009'))
  if (!found.isDirectory()) return [path]
  const names = await readdir(path, { recursive: true })
  return names.filter((name) => TEST_FILE.test(name) && !/(^|[/\\])node_modules[/\\]/.test(name)).map((name) => join(path, name))
}
