import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort, findFreePorts } from '../../harness/program/ports.ts'
import type { Bench, Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judge, median, type Judged } from '../measure.ts'
import { envoyFilterConfig } from '../peers/config.ts'
import { install, launch } from '../peers/programs.ts'
import { readCpuSeconds } from '../proc.ts'

const CONNECTIONS = 32
/** Does what `peers/wasm` does: reads a header of the request, and writes it to the response. */
const PLUGIN = `export default { setup: () => ({ async request(c, next) { const tenant = c.req.header('x-tenant'); await next(); c.header('x-tenant', tenant) } }) }\n`
const ISOLATIONS = ['InProcess', 'Worker', 'Process'] as const

/** What one kind of filter costs: its address, and that of the same program without it. */
interface Contestant {
  readonly name: string
  readonly pid: number
  readonly url: string
  readonly plain: string
}

interface Sample {
  readonly cpuMicros: number
  readonly rate: number
}

/**
 * A filter of headers as a plugin, and as WASM in Envoy, each against the same program without it; for information. Not part of a full run: it needs Envoy and a
 * compiler for WASM.
 */
export const wasm: Case = {
  name: 'wasm',
  async run(bench) {
    const stops: (() => Promise<unknown>)[] = []
    try {
      const contestants = [...(await startOurs(bench, stops)), await startEnvoy(bench, stops)]
      for (const { name, url } of contestants) {
        const value = (await fetch(url, { headers: { 'x-tenant': 'a' } })).headers.get('x-tenant')
        if (value !== 'a') throw new Error(`${name}: the response has x-tenant ${value}`)
      }
      const added = await measure(bench, contestants)
      const peer = added.get('Envoy, WASM') ?? Number.NaN
      return ISOLATIONS.map((name): Judged => {
        const ours = added.get(name) ?? Number.NaN
        return judge({ case: `header filter, CPU added: plugin ${name}`, ours, peer, peerName: 'WASM in Envoy', unit: 'µs' }, {})
      })
    } finally {
      for (const stop of stops.toReversed()) await stop()
    }
  },
}

async function startOurs(bench: Bench, stops: (() => Promise<unknown>)[]): Promise<Contestant[]> {
  const directory = join(bench.directory, 'wasm')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'plugin.js'), PLUGIN)
  const backends = [{ host: `127.0.0.1:${bench.upstreamPort}`, policies: { http: { version: 'HTTP1' } } }]
  const route = (name: string, policies: object): object => ({ name, matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }], policies, backends })
  const routes = ISOLATIONS.map((isolation) => route(isolation, { plugins: [{ name: isolation.toLowerCase(), source: { file: 'plugin.js' }, isolation }] }))
  const port = await findFreePort()
  const file = join(directory, 'config.json')
  writeFileSync(
    file,
    JSON.stringify({ config: { plugins: { inProcess: true } }, binds: [{ port, listeners: [{ name: 'http', routes: [...routes, route('plain', {})] }] }] }),
  )
  const dataplane = await startDataplane({ config: { file }, entry: bench.bundle, cpus: String(bench.proxyCpu), log: 'warn' })
  stops.push(() => dataplane.stop())
  const origin = `http://127.0.0.1:${port}`
  return ISOLATIONS.map((name) => ({ name, pid: dataplane.program.pid, url: `${origin}/${name}`, plain: `${origin}/plain` }))
}

async function startEnvoy(bench: Bench, stops: (() => Promise<unknown>)[]): Promise<Contestant> {
  const [command, filter] = [await install('envoy'), await install('wasm')]
  const [plain = 0, filtered = 0] = await findFreePorts(2)
  const file = join(bench.directory, 'envoy-wasm.json')
  writeFileSync(file, JSON.stringify(envoyFilterConfig({ plain, filtered, upstreamPort: bench.upstreamPort, filter })))
  const program = await launch(bench, 'envoy', command, ['-c', file, '--concurrency', '1', '--log-level', 'error', '--disable-hot-restart'], filtered)
  stops.push(() => program.stop(1000))
  return { name: 'Envoy, WASM', pid: program.pid, url: `http://127.0.0.1:${filtered}/`, plain: `http://127.0.0.1:${plain}/` }
}

/** CPU in microseconds that each filter adds to a request: the median of the differences of the rounds. */
async function measure(bench: Bench, contestants: readonly Contestant[]): Promise<Map<string, number>> {
  const load = async (pid: number, url: string): Promise<Sample> => {
    const before = readCpuSeconds(pid)
    const { requests, seconds, failures } = await runWrk({
      url,
      connections: CONNECTIONS,
      seconds: bench.seconds,
      cpu: bench.loadCpu,
      headers: { 'x-tenant': 'a' },
    })
    if (failures > 0 || requests === 0) throw new Error(`${url}: ${failures} of ${requests} requests failed`)
    return { cpuMicros: ((readCpuSeconds(pid) - before) * 1e6) / requests, rate: requests / seconds }
  }
  const added = new Map<string, number[]>(contestants.map(({ name }) => [name, []]))
  for (let round = 0; round <= bench.rounds; round++) {
    for (const { name, pid, url, plain } of contestants) {
      const isPlainFirst = round % 2 === 0
      const first = await load(pid, isPlainFirst ? plain : url)
      const second = await load(pid, isPlainFirst ? url : plain)
      const [without, filtered] = isPlainFirst ? [first, second] : [second, first]
      // The first round is a warm-up.
      if (round > 0) added.get(name)?.push(filtered.cpuMicros - without.cpuMicros)
      const describe = ({ cpuMicros, rate }: Sample): string => `${cpuMicros.toFixed(1)} µs, ${rate.toFixed(0)}/s`
      bench.log(`  ${round === 0 ? 'warm-up' : `round ${round}`}: ${name}: ${describe(filtered)} | ${describe(without)}`)
    }
  }
  return new Map([...added].map(([name, values]) => [name, median(values)]))
}
