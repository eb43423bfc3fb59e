import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import { alternate, type Bench, type Case } from '../bench.ts'
import { runAtRate } from '../load.ts'
import { judgeLimit, type Judged } from '../measure.ts'
import { measureReloads, replaceFile } from './reload.ts'

const LIMIT_MS = 2
/** Requests per second of the client that is measured, and of the load on the route of the plugin. */
const RATE = 250
const HOSTILE_RATE = 200
const CONNECTIONS = 8
const RATE_LOAD = fileURLToPath(new URL('../rate-load.ts', import.meta.url))

interface Fault {
  readonly name: string
  /** Body of the hook. */
  readonly hook: string
  /** Responses to its requests. */
  readonly statuses: readonly number[]
}

const faults: readonly Fault[] = [
  { name: 'loops for ever', hook: 'for (;;);', statuses: [504] },
  { name: 'allocates without end', hook: 'const all = []; for (;;) all.push(new Array(1000).fill(all.length))', statuses: [500, 504] },
  { name: 'throws', hook: `throw new Error('fault')`, statuses: [500] },
  { name: 'never answers', hook: 'await new Promise(() => {})', statuses: [504] },
  { name: 'answers twice', hook: 'await next(); await next()', statuses: [500] },
]

const codeOf = (hook: string): string => `export default { setup: () => ({ async request(c, next) { ${hook} } }) }\n`
const versionOf = (version: string): string => codeOf(`await next(); c.header('x-version', '${version}')`)

/** Plugins in worker threads: what faulty ones cost another route, and how long an edit takes under load. */
export const pluginFaults: Case = {
  name: 'plugin-faults',
  async run(bench) {
    const directory = join(bench.directory, 'plugin-faults')
    mkdirSync(directory, { recursive: true })
    const backends = [{ host: `127.0.0.1:${bench.upstreamPort}`, policies: { http: { version: 'HTTP1' } } }]
    const route = (path: string, policies: object): object => ({
      name: path,
      matches: [{ path: { type: 'PathPrefix', value: `/${path}` } }],
      policies,
      backends,
    })
    const withPlugin = (path: string, code: string, limits: object): object => {
      writeFileSync(join(directory, `${path}.js`), code)
      return route(path, { plugins: [{ name: path, source: { file: `${path}.js` }, limits }] })
    }
    const port = await findFreePort()
    const routes = [
      route('plain', {}),
      withPlugin('edited', versionOf('0'), { timeout: '10s' }),
      ...faults.map(({ hook }, nth) => withPlugin(`fault-${nth}`, codeOf(hook), { timeout: '100ms' })),
    ]
    const file = join(directory, 'config.json')
    writeFileSync(file, JSON.stringify({ binds: [{ port, listeners: [{ name: 'http', routes }] }] }))
    // Both CPUs: threads of plugins run beside the one that handles requests.
    const dataplane = await startDataplane({ config: { file }, entry: bench.bundle, cpus: `${bench.proxyCpu},${bench.loadCpu}`, log: 'error' })
    try {
      const results: Judged[] = []
      for (const [nth, fault] of faults.entries()) results.push(...(await measureFault(bench, port, fault, `/fault-${nth}`)))
      const edit = (version: number): void => replaceFile(join(directory, 'edited.js'), versionOf(String(version)))
      return [...results, ...(await measureReloads(bench, 'edit of a plugin', port, '/edited', edit, { pauseMs: 1000, effectiveMs: 1000 }))]
    } finally {
      await dataplane.stop(1000)
    }
  },
}

async function measureFault(bench: Bench, port: number, { name, statuses }: Fault, path: string): Promise<Judged[]> {
  const origin = `http://127.0.0.1:${port}`
  const { status } = await fetch(`${origin}${path}`)
  if (!statuses.includes(status)) throw new Error(`a plugin that ${name}: status ${status} instead of ${statuses.join(' or ')}`)
  let failures = 0
  const measure = async (): Promise<Record<'p50' | 'p99', number>> => {
    const others = await sendAtRate(bench, port)
    failures += others.failures
    return { p50: others.p50, p99: others.p99 }
  }
  const { a, b } = await alternate(
    bench,
    async () => {
      const load = runAtRate({ url: `${origin}${path}`, connections: CONNECTIONS, seconds: bench.seconds + 1, cpu: bench.loadCpu, rate: HOSTILE_RATE })
      const values = await measure()
      await load
      return values
    },
    measure,
  )
  return [
    judgeLimit(`a plugin that ${name}: p99 of another route, added`, a.p99 - b.p99, LIMIT_MS, 'ms'),
    judgeLimit(`a plugin that ${name}: failed requests of another route`, failures, 0, 'requests'),
  ]
}

/** Latency in ms of GETs at a fixed rate to the route without a plugin. */
async function sendAtRate(bench: Bench, port: number): Promise<Record<'failures' | 'p50' | 'p99', number>> {
  const args = ['-c', String(bench.loadCpu), process.execPath, RATE_LOAD, String(port), '/plain', String(bench.seconds), String(RATE)]
  const program = startProgram({ name: 'rate-load', command: 'taskset', args })
  try {
    return JSON.parse(await program.waitForLine(/^\{/, (bench.seconds + 60) * 1000)) as Record<'failures' | 'p50' | 'p99', number>
  } finally {
    await program.stop(100)
  }
}
