import { fileURLToPath } from 'node:url'
import type { BenchOptions, BenchResult, BenchRow } from './bench.ts'
import { fail } from './common.ts'
import { runNode, withModules, type Environment } from './node.ts'

/** Measures a plugin in a process of its own. Rejects with a ToolError if the plugin fails. */
export function runBench(options: BenchOptions, env: Environment): Promise<readonly BenchRow[]> {
  return withModules(async ({ bench }) => {
    let [output, errors] = ['', '']
    const status = await runNode([fileURLToPath(bench)], {
      env,
      input: JSON.stringify(options),
      onOutput: (text) => (output += text),
      onError: (text) => (errors += text),
    })
    if (status !== 0 || output === '') fail(`${options.file}: the plugin ended the process, with status ${status}\n${errors}`.trim())
    const result = JSON.parse(output) as BenchResult
    return 'problem' in result ? fail(result.problem) : result.rows
  })
}
