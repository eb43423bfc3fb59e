import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Case } from '../bench.ts'
import { judge, judgeLimit } from '../measure.ts'
import type { PluginRow } from '../plugins.ts'

const PROGRAM = fileURLToPath(new URL('../plugins.ts', import.meta.url))
const run = promisify(execFile)

/**
 * Time that a plugin adds to a request, in a separate process on one CPU, as for the latency of a chat completion: on two, each message may wake an idle
 * CPU, which depends on the machine. The time on two CPUs is reported.
 */
export const plugins: Case = {
  name: 'plugins',
  async run({ proxyCpu, loadCpu }) {
    const measure = async (cpus: string): Promise<PluginRow[]> => {
      const { stdout } = await run('taskset', ['-c', cpus, process.execPath, PROGRAM, '--json'], { timeout: 300_000 })
      return JSON.parse(stdout) as PluginRow[]
    }
    const both = await measure(`${proxyCpu},${loadCpu}`)
    const rows = await measure(String(proxyCpu))
    return rows.flatMap(({ name, micros, limit }) => {
      const onBoth = both.find((row) => row.name === name)?.micros ?? Number.NaN
      const reported = { case: `plugin: ${name}, one CPU`, ours: micros, peer: onBoth, peerName: 'ours, two CPUs', unit: 'us' }
      return [...(limit === undefined ? [] : [judgeLimit(`plugin: ${name}`, micros, limit, 'us')]), judge(reported, {})]
    })
  },
}
