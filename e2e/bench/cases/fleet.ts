import { execFile } from 'node:child_process'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bundleProgram } from '../../../images/bundle.ts'
import { startProgram, tailOf } from '../../harness/program/program.ts'
import type { Case } from '../bench.ts'
import type { Judged } from '../measure.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const CLUSTER = join(root, 'e2e/cluster/localcluster')
const env = { ...process.env, LOCALCLUSTER_NAME: 'fleet' }
/** The programs of this case share all CPUs, although the benchmark itself is pinned. */
const allCpus = ['-c', `0-${cpus().length - 1}`]

/** The control plane at scale, against a real API server (e2e/bench/fleet): 200 Gateways, 10,000 HTTPRoutes, 1,000 config streams. */
export const fleet: Case = {
  name: 'fleet',
  async run(bench) {
    const operator = await bundleProgram('operator', join(bench.directory, 'operator'))
    try {
      await cluster('up')
      await cluster('gateway-api')
      await cluster('kubectl', 'apply', '--server-side', '-f', join(root, 'charts/proxy-crds/templates'))
      return await runScenario(
        ['--operator', operator, '--dataplane', bench.bundle, '--directory', join(bench.directory, 'fleet')],
        ['--seconds', String(bench.seconds), '--rounds', String(bench.rounds)],
        bench.profiles === undefined ? [] : ['--profiles', bench.profiles],
        bench.log,
      )
    } finally {
      await cluster('down')
    }
  },
}

/** Runs a command of the cluster of this case. Rejects with what it printed. */
async function cluster(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('taskset', [...allCpus, CLUSTER, '--apiserver-only', ...args], { env, maxBuffer: 64 * 1024 ** 2, timeout: 1_200_000 })
}

async function runScenario(files: readonly string[], measured: readonly string[], more: readonly string[], log: (text: string) => void): Promise<Judged[]> {
  const program = startProgram({
    name: 'fleet',
    command: 'taskset',
    args: [...allCpus, CLUSTER, '--apiserver-only', 'run', process.execPath, join(root, 'e2e/bench/fleet/run.ts'), ...files, ...measured, ...more],
    env,
  })
  let rows: Judged[] | undefined
  program.onLine(({ stream, text }) => {
    if (stream !== 'stdout' || !text.startsWith('{')) return
    const line = JSON.parse(text) as { readonly log?: string; readonly rows?: Judged[] }
    if (line.log !== undefined) log(`  ${line.log}`)
    rows ??= line.rows
  })
  await program.exited
  if (rows === undefined) throw new Error(`the scenario ended without results\n${tailOf(program.lines)}`)
  return rows
}
