import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Case } from '../bench.ts'
import type { CelRow } from '../cel.ts'
import { judge } from '../measure.ts'

const PROGRAM = fileURLToPath(new URL('../cel.ts', import.meta.url))
const run = promisify(execFile)

/** Evaluation of expressions, in a separate process on the proxy's CPU. */
export const cel: Case = {
  name: 'cel',
  async run(bench) {
    const { stdout } = await run('taskset', ['-c', String(bench.proxyCpu), process.execPath, PROGRAM, '--json'], { timeout: 300_000 })
    const rows = JSON.parse(stdout) as CelRow[]
    return rows.map(({ name, engine, ours, rival, least }) =>
      judge({ case: `CEL: ${name}`, ours, peer: rival, peerName: engine, unit: 'ns' }, { atMost: 1 / least }),
    )
  },
}
