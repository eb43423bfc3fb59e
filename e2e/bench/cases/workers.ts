import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { alternate, type Bench, type Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judge, judgeLimit, median, type Judged } from '../measure.ts'
import { readCpuSeconds, readResidentBytes } from '../proc.ts'

const CONNECTIONS = 64
const STARTS = 20
const RATE = 500
/** Milliseconds after SIGTERM until the client sends no more connections to a data plane, as a load balancer that notices the shutdown late. */
const NOTICE_MS = 500
/** Two to the power of it: the distance between the numbers of the connections of two workers. */
const ID_SPAN = 2 ** 40

interface Running {
  readonly dataplane: Dataplane
  readonly port: number
}

interface Settings {
  readonly workers: number
  readonly routes?: number
  readonly cpus?: string
  readonly log?: string
  readonly env?: Readonly<Record<string, string>>
  readonly port?: number
}

/** Data planes with several workers, compared with one worker. */
export const workers: Case = {
  name: 'workers',
  run: async (bench) => [...(await compareCosts(bench)), await spread(bench), await restart(bench), await compareCores(bench), ...(await compareMemory(bench))],
}

async function startWorkers(
  bench: Bench,
  { workers: count, routes = 10, cpus = String(bench.proxyCpu), log = 'warn', env, ...rest }: Settings,
): Promise<Running> {
  const directory = join(bench.directory, 'workers')
  mkdirSync(directory, { recursive: true })
  const port = rest.port ?? (await findFreePort())
  const file = join(directory, `${port}.json`)
  const upstream = { host: `127.0.0.1:${bench.upstreamPort}`, policies: { http: { version: 'HTTP1' } } }
  const chat = (ai: object) => ({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port: bench.upstreamPort } },
    policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Completions' }, ...ai } },
  })
  const route = (path: string, backend: object) => ({ matches: [{ path: { type: 'PathPrefix', value: path } }], backends: [backend] })
  const guards = { promptGuard: { request: [{ regex: { builtins: ['Email', 'CreditCard', 'Ssn'] } }] } }
  const list = [route('/v1', chat({})), route('/guarded', chat(guards)), ...Array.from({ length: routes }, (_, nth) => route(`/route-${nth}`, upstream))]
  writeFileSync(file, JSON.stringify({ binds: [{ port, listeners: [{ name: 'http', routes: list }] }] }))
  const dataplane = await startDataplane({
    config: { file },
    entry: bench.bundle,
    cpus,
    log,
    env: { ...env, WORKERS: String(count) },
    nodeArgs: bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`],
  })
  return { dataplane, port }
}

const promptOf = (bytes: number): string =>
  JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'What is the weather in Paris like today? '.repeat(bytes / 41) }] })

async function measure(bench: Bench, { dataplane, port }: Running, path: string, body?: string): Promise<Record<'rate' | 'cpuMicros', number>> {
  const script = join(bench.directory, 'workers', 'post.lua')
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = [[${body ?? ''}]]\n`)
  const before = readCpuSeconds(dataplane.program.pid)
  const load = await runWrk({
    url: `http://127.0.0.1:${port}${path}`,
    connections: CONNECTIONS,
    seconds: bench.seconds,
    cpu: bench.loadCpu,
    ...(body !== undefined && { script, headers: { 'content-type': 'application/json' } }),
  })
  if (load.failures > 0) throw new Error(`${load.failures} of ${load.requests} requests failed`)
  return { rate: load.requests / load.seconds, cpuMicros: ((readCpuSeconds(dataplane.program.pid) - before) * 1e6) / load.requests }
}

/** CPU of a request with two workers on one CPU, against one worker on it. */
async function compareCosts(bench: Bench): Promise<Judged[]> {
  const two = await startWorkers(bench, { workers: 2 })
  const one = await startWorkers(bench, { workers: 1 })
  try {
    const results: Judged[] = []
    const kinds = [
      ['plain GET', '/route-5/x', undefined],
      ['chat completion, 1 KB', '/v1/chat/completions', promptOf(1024)],
    ] as const
    for (const [name, path, body] of kinds) {
      // V8 compiles the code of each thread.
      const { a, b, ratio } = await alternate(
        { ...bench, warmUps: 3 },
        () => measure(bench, two, path, body),
        () => measure(bench, one, path, body),
      )
      const result = { case: `${name}, two workers, CPU`, ours: a.cpuMicros, peer: b.cpuMicros, ratio: ratio.cpuMicros, peerName: 'one worker' }
      results.push(judge({ ...result, unit: 'µs CPU/request' }, { atMost: 1.08 }))
    }
    return results
  } finally {
    await two.dataplane.stop()
    await one.dataplane.stop()
  }
}

/** Share of the busiest of two workers, of the connections of a new client. */
async function spread(bench: Bench): Promise<Judged> {
  const running = await startWorkers(bench, { workers: 2, log: 'warn,request=debug' })
  try {
    const shares: number[] = []
    for (let start = 0; start < STARTS; start++) {
      const path = `/route-5/start-${start}`
      const statuses = await Promise.all(Array.from({ length: CONNECTIONS }, () => sendOnce(running.port, path)))
      if (statuses.some((status) => status !== '200')) throw new Error(`a request failed: ${statuses.join(' ')}`)
      const ids = () =>
        running.dataplane.program.lines.flatMap(({ text }) => (text.includes(` http.path=${path} `) ? (/connection\.id=(\d+)/.exec(text)?.[1] ?? []) : []))
      await waitUntil('the access log', () => ids().length === CONNECTIONS)
      const counts = new Map<number, number>()
      for (const id of ids()) {
        const worker = Math.floor(Number(id) / ID_SPAN)
        counts.set(worker, (counts.get(worker) ?? 0) + 1)
      }
      shares.push(Math.max(...counts.values()) / (CONNECTIONS / 2))
    }
    return judgeLimit(`busiest of two workers, ${CONNECTIONS} connections, share`, median(shares), 1.2, 'of its share')
  } finally {
    await running.dataplane.stop()
  }
}

/** One GET on a new connection. The status, or why there was none. */
function sendOnce(port: number, path: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`))
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => (text ||= error.code ?? error.message))
    socket.on('close', () => resolve(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? (text === '' ? 'closed' : text)))
  })
}

/** New connections at a constant rate to two data planes, each of which is restarted twice: lost requests. */
async function restart(bench: Bench): Promise<Judged> {
  const env = { CONNECTION_MIN_TERMINATION_DEADLINE: '2s' }
  const settings = { workers: 2, env }
  const planes = [await startWorkers(bench, settings), await startWorkers(bench, settings)]
  let active = planes.map(({ port }) => port)
  const failures: string[] = []
  const open: Promise<void>[] = []
  let sent = 0
  const startedAtMs = performance.now()
  const timer = setInterval(() => {
    for (; sent < ((performance.now() - startedAtMs) * RATE) / 1000; sent++)
      open.push(sendOnce(active[sent % active.length] ?? 0, '/route-5/x').then((status) => void (status === '200' || failures.push(status))))
  }, 2)
  try {
    for (let round = 0; round < 2; round++)
      for (const [nth, { dataplane, port }] of [...planes].entries()) {
        dataplane.program.signal('SIGTERM')
        await sleep(NOTICE_MS)
        active = active.filter((each) => each !== port)
        await dataplane.program.exited
        planes[nth] = await startWorkers(bench, { ...settings, port })
        active = [...active, port]
        await sleep(NOTICE_MS)
      }
  } finally {
    clearInterval(timer)
    await Promise.all(open)
    for (const { dataplane } of planes) await dataplane.stop(500)
  }
  bench.log(`  rolling restart: ${sent} connections, lost: ${failures.join(' ') || 'none'}`)
  return judgeLimit(`rolling restart, ${RATE} new connections/s: lost requests`, failures.length, 0, 'requests')
}

/** Requests/s of two workers on both CPUs, against one worker on them: a prompt of 64 KB under a guard, so that the load generator needs little. */
async function compareCores(bench: Bench): Promise<Judged> {
  const cpus = `${bench.proxyCpu},${bench.loadCpu}`
  const two = await startWorkers(bench, { workers: 2, cpus })
  const one = await startWorkers(bench, { workers: 1, cpus })
  try {
    const body = promptOf(65_536)
    const { a, b, ratio } = await alternate(
      bench,
      () => measure(bench, two, '/guarded', body),
      () => measure(bench, one, '/guarded', body),
    )
    const result = { case: 'prompt of 64 KB under a guard, two cores', ours: a.rate, peer: b.rate, ratio: ratio.rate, peerName: 'one worker' }
    return judge({ ...result, unit: 'requests/s' }, { atLeast: 1.7 })
  } finally {
    await two.dataplane.stop()
    await one.dataplane.stop()
  }
}

/** Resident set of each further worker, idle, with 1,000 routes. */
async function compareMemory(bench: Bench): Promise<Judged[]> {
  const sizes: number[] = []
  for (const count of [1, 2, 3]) {
    const { dataplane } = await startWorkers(bench, { workers: count, routes: 1000 })
    await sleep(2000)
    sizes.push(readResidentBytes(dataplane.program.pid) / 1024 ** 2)
    await dataplane.stop()
  }
  const [one = 0, two = 0, three = 0] = sizes
  return [judgeLimit('second worker, 1,000 routes, RSS', two - one, 35, 'MiB'), judgeLimit('third worker, 1,000 routes, RSS', three - two, 35, 'MiB')]
}
