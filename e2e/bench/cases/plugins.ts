import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Case } from '../bench.ts'
import { judgeLimit } from '../measure.ts'
import type { PluginRow } from '../plugins.ts'

const PROGRAM = fileURLToPath(new URL('../plugins.ts', import.meta.url))
const run = promisify(execFile)

/** Time that a plugin adds to a request, in a separate process. It has both CPUs, because worker threads run beside the thread that handles requests. */
export const plugins: Case = {
  name: 'plugins',
  async run({ proxyCpu, loadCpu }) {
    const { stdout } = await run('taskset', ['-c', `${proxyCpu},${loadCpu}`, process.execPath, PROGRAM, '--json'], { timeout: 300_000 })
    const rows = JSON.parse(stdout) as PluginRow[]
    return rows.flatMap(({ name, micros, limit }) => (limit === undefined ? [] : [judgeLimit(`plugin: ${name}`, micros, limit, 'us')]))
  },
}
