import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bundleDataplane } from '../../images/bundle.ts'
import { DATAPLANE_MAIN } from '../harness/program/dataplane.ts'
import { findFreePort } from '../harness/program/ports.ts'
import type { Bench, Case } from './bench.ts'
import { callouts } from './cases/callouts.ts'
import { cel } from './cases/cel.ts'
import { consoleCost } from './cases/console.ts'
import { pluginFaults } from './cases/plugin-faults.ts'
import { plugins } from './cases/plugins.ts'
import { fleet } from './cases/fleet.ts'
import { llm, llmBudgets, llmLedger, llmStreams } from './cases/llm.ts'
import { mcp } from './cases/mcp.ts'
import { memory } from './cases/memory.ts'
import { policies } from './cases/policies.ts'
import { reload, reloadStream } from './cases/reload.ts'
import { soak } from './cases/soak.ts'
import { sse } from './cases/sse.ts'
import { stall } from './cases/stall.ts'
import { telemetry } from './cases/telemetry.ts'
import { bodies, http2, http2Tls, https, plain, routes } from './cases/throughput.ts'
import { wasm } from './cases/wasm.ts'
import { workers } from './cases/workers.ts'
import { drawChart, format } from './chart.ts'
import type { Bar, Judged, Result } from './measure.ts'
import { startUpstream } from './nginx.ts'
import { measurePeers } from './peers/run.ts'
import { summarizeProfiles } from './profile.ts'
import { pin } from './proc.ts'
import type { ProxyName } from './proxies.ts'

const CASES: readonly Case[] = [
  plain,
  https,
  bodies,
  http2,
  http2Tls,
  sse,
  routes,
  telemetry,
  policies,
  callouts,
  cel,
  plugins,
  pluginFaults,
  reload,
  reloadStream,
  mcp,
  llm,
  llmStreams,
  llmBudgets,
  llmLedger,
  stall,
  memory,
  consoleCost,
  workers,
  fleet,
]
/** Cases that run only if they are named. */
const OTHERS: readonly Case[] = [soak, wasm]
const OUT = fileURLToPath(new URL('./out/', import.meta.url))
const PROXY_CPU = 0
const LOAD_CPU = 1

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      case: { type: 'string' },
      seconds: { type: 'string', default: '5' },
      rounds: { type: 'string', default: '3' },
      ours: { type: 'string', default: 'ours' },
      profile: { type: 'boolean', default: false },
      peers: { type: 'boolean', default: false },
    },
  })
  const chosen = values.case === undefined ? CASES : [...CASES, ...OTHERS].filter((one) => values.case?.split(',').includes(one.name))
  if (chosen.length === 0) fail(`no case "${values.case}"; there are: ${[...CASES, ...OTHERS].map((one) => one.name).join(', ')}`)
  if (values.ours !== 'ours' && values.ours !== 'nginx') fail(`--ours is "${values.ours}"; allowed: ours, nginx`)
  const seconds = readNumber('--seconds', values.seconds)
  const rounds = readNumber('--rounds', values.rounds)
  requireTools()
  const ours: ProxyName = values.ours
  if (ours === 'ours' && !existsSync(DATAPLANE_MAIN)) fail('dataplane/main.ts does not exist')

  const directory = await mkdtemp(join(tmpdir(), 'bench-'))
  // Keep this process off the proxy's CPU.
  pin(process.pid, LOAD_CPU)
  const upstreamPort = await findFreePort()
  const upstream = await startUpstream(directory, upstreamPort, LOAD_CPU)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
  try {
    const bundle = ours === 'ours' ? await bundleDataplane(join(directory, 'bundle')) : ''
    const profiles = values.profile ? join(directory, 'profiles') : undefined
    const log = (text: string) => console.log(text)
    const bench: Bench = { directory, bundle, upstreamPort, proxyCpu: PROXY_CPU, loadCpu: LOAD_CPU, seconds, rounds, ours, profiles, log }
    if (values.peers) return await measurePeers(bench, OUT)
    const results: Judged[] = []
    const broken: string[] = []
    for (const one of chosen) {
      console.log(`${one.name}:`)
      await one.run(bench).then(
        (judged) => results.push(...judged),
        (error: Error) => broken.push(`${one.name}: ${error.message}`),
      )
    }
    const footnote = `proxy on CPU ${PROXY_CPU}, load and upstream on CPU ${LOAD_CPU} of ${cpus()[0]?.model ?? 'unknown'}; ${rounds} rounds of ${seconds} s, medians`
    printTable(results, footnote)
    if (profiles !== undefined) console.log(await summarizeProfiles(profiles))
    for (const text of broken) console.error(`could not be measured: ${text}`)
    // Only complete runs of the data plane without profiling are recorded.
    if (chosen === CASES && ours === 'ours' && profiles === undefined) await write(results, footnote)
    if (broken.length > 0) process.exitCode = 1
  } finally {
    await upstream.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function write(results: readonly Judged[], footnote: string): Promise<void> {
  await mkdir(OUT, { recursive: true })
  const rows: Result[] = results.map(({ bar: _bar, passed: _passed, ...result }) => result)
  await writeFile(join(OUT, 'results.json'), `${JSON.stringify(rows, undefined, 2)}\n`)
  await writeFile(join(OUT, 'results.svg'), drawChart(results, footnote))
  console.log(`written: e2e/bench/out/results.json, results.svg`)
}

function printTable(results: readonly Judged[], footnote: string): void {
  const rows = results.map((one) => [
    one.case,
    format(one.ours),
    format(one.peer),
    one.peerName,
    format(one.ratio),
    describeBar(one.bar),
    verdict(one),
    one.unit,
  ])
  const table = [['case', 'ours', 'peer', 'peer is', 'ratio', 'limit', '', 'unit'], ...rows]
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)))
  console.log(`\n${table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')}\n${footnote}`)
}

function describeBar({ atLeast, atMost }: Bar): string {
  if (atLeast !== undefined) return `>= ${atLeast}`
  return atMost === undefined ? '' : `<= ${atMost}`
}

function verdict({ bar, passed }: Judged): string {
  if (bar.atLeast === undefined && bar.atMost === undefined) return ''
  return passed ? 'pass' : 'FAIL'
}

function requireTools(): void {
  if (process.platform !== 'linux' || cpus().length < 2) fail('needs Linux and two CPUs: one for the proxy, one for load and upstream')
  const packages = { wrk: 'wrk', h2load: 'nghttp2-client', nginx: 'nginx', taskset: 'util-linux' }
  const missing = Object.entries(packages).filter(([tool]) => !(process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, tool))))
  if (missing.length === 0) return
  fail(`missing: ${missing.map(([tool]) => tool).join(', ')}; on Debian: apt-get install -y ${missing.map(([, name]) => name).join(' ')}`)
}

function readNumber(option: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 480) fail(`${option} is "${text}"; allowed: a whole number from 1 to 480`)
  return value
}

function fail(message: string): never {
  console.error(`error: ${message}`)
  process.exit(1)
}

await main()
