import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { start, type Bench, type Case } from '../bench.ts'
import { runH2load, runWrk } from '../load.ts'
import { judge, judgeLimit, type Judged } from '../measure.ts'
import { CERTIFICATE_FILE, KEY_FILE, LARGE_PATH, writeCertificate } from '../nginx.ts'
import { readResidentBytes } from '../proc.ts'
import { runStreams } from '../streams.ts'

const ROUTES_MIB = 130
const ALL_MIB = 150
/** The heap has shrunk until then (`dataplane/runtime/garbage.ts`). */
const QUIET_MS = 30_000
const CHAT = { model: 'gpt-4o', messages: [{ role: 'user', content: 'What is the weather in Paris like today? '.repeat(25) }] }

/** Resident set sizes: with 1,000 routes under 256 connections, and after every kind of load. */
export const memory: Case = {
  name: 'memory',
  run: async (bench) => [await manyRoutes(bench), ...(await allLoads(bench))],
}

/** The highest resident set size with 1,000 routes while 256 connections send requests. */
async function manyRoutes(bench: Bench): Promise<Judged> {
  const ours = await start(bench, bench.ours, { routes: 1000 })
  let highest = 0
  let isDone = false
  const watching = (async () => {
    while (!isDone) {
      highest = Math.max(highest, readResidentBytes(ours.pid))
      await sleep(100)
    }
  })()
  try {
    const load = await runWrk({
      url: `http://127.0.0.1:${ours.spec.port}/route-500/x`,
      connections: 256,
      seconds: bench.seconds * 2,
      cpu: bench.loadCpu,
    })
    if (load.failures > 0) throw new Error(`${load.failures} requests failed`)
  } finally {
    isDone = true
    await watching
    await ours.stop()
  }
  return judgeLimit('RSS, 1,000 routes, 256 connections', highest / 1024 ** 2, ROUTES_MIB, 'MiB')
}

/**
 * The resident set size of one data plane after the loads of `plain`, `https`, `http2`, `http2-tls`, `bodies`, `sse`, `llm` and `llm-streams`, one after the other: at the end of
 * the last one, and without load.
 */
async function allLoads(bench: Bench): Promise<Judged[]> {
  const [port = 0, tlsPort = 0, ssePort = 0, sseUpstream = 0, streamPort = 0, streamUpstream = 0] = await findFreePorts(6)
  const directory = join(bench.directory, 'memory')
  const dataplane = await startAll(bench, directory, { port, tlsPort, ssePort, sseUpstream, streamPort, streamUpstream })
  const script = join(directory, 'chat.lua')
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = [[${JSON.stringify(CHAT)}]]\nwrk.headers["content-type"] = "application/json"\n`)
  const { pid } = dataplane.program
  const common = { connections: 32, seconds: bench.seconds, cpu: bench.loadCpu }
  const at = (path: string) => `http://127.0.0.1:${port}${path}`
  const streams = { streams: 200, pid }
  const loads: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['plain', () => runWrk({ ...common, url: at('/route-5/x') })],
    ['https', () => runWrk({ ...common, url: `https://127.0.0.1:${tlsPort}/x` })],
    ['http2', () => runH2load({ ...common, url: at('/route-5/x'), streams: 32 })],
    ['http2-tls', () => runH2load({ ...common, url: `https://127.0.0.1:${tlsPort}/x`, streams: 32 })],
    ['bodies', () => runWrk({ ...common, url: at(LARGE_PATH) })],
    ['sse', () => runStreams(bench, { program: 'sse-load.ts', ...streams, eventsPerSecond: 25, port: ssePort, upstreamPort: sseUpstream })],
    ['llm', () => runWrk({ ...common, url: at('/v1/chat/completions'), script })],
    ['llm-streams', () => runStreams(bench, { program: 'llm-load.ts', ...streams, eventsPerSecond: 50, port: streamPort, upstreamPort: streamUpstream })],
  ]
  const readMebibytes = () => readResidentBytes(pid) / 1024 ** 2
  const sizes = [`idle ${readMebibytes().toFixed(0)}`]
  try {
    for (const [name, run] of loads) {
      await run()
      sizes.push(`${name} ${readMebibytes().toFixed(0)}`)
    }
    const end = readMebibytes()
    await sleep(QUIET_MS)
    const quiet = readMebibytes()
    bench.log(`  MiB after ${[...sizes, `${QUIET_MS / 1000} s ${quiet.toFixed(0)}`].join(', ')}`)
    const names = 'HTTP/1.1, HTTP/2, TLS, large bodies, SSE and LLM streams'
    return [
      judge({ case: `RSS at the end of ${names}`, ours: end, peer: ALL_MIB, peerName: 'limit', unit: 'MiB' }, {}),
      judgeLimit(`RSS ${QUIET_MS / 1000} s after ${names}`, quiet, ALL_MIB, 'MiB'),
    ]
  } finally {
    await dataplane.stop()
  }
}

/** Ports of `startAll` and of its upstreams. */
export type Ports = Record<'port' | 'tlsPort' | 'ssePort' | 'sseUpstream' | 'streamPort' | 'streamUpstream', number>

/** A data plane with a port of each kind: plain routes and a chat route, the same over TLS, streams of events, streams of chat completions, and MCP if it has a server. */
export function startAll(
  bench: Bench,
  directory: string,
  ports: Ports,
  more: { readonly mcp?: { port: number; server: number }; readonly workers?: number } = {},
): Promise<Dataplane> {
  mkdirSync(directory, { recursive: true })
  writeCertificate(directory)
  const http = (port: number) => ({ host: `127.0.0.1:${port}`, policies: { http: { version: 'HTTP1' } } })
  const chat = (port: number) => ({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port } },
    policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Completions' } } },
  })
  const route = (path: string, backend: object) => ({ matches: [{ path: { type: 'PathPrefix', value: path } }], backends: [backend] })
  const plain = Array.from({ length: 10 }, (_, nth) => route(`/route-${nth}`, http(bench.upstreamPort)))
  const bind = (port: number, routes: readonly object[], tls: object = {}) => ({ port, listeners: [{ name: `on-${port}`, ...tls, routes }] })
  const all = [route('/v1', chat(bench.upstreamPort)), ...plain, route('/', http(bench.upstreamPort))]
  const config = {
    binds: [
      bind(ports.port, all),
      bind(ports.tlsPort, all, { tls: { cert: CERTIFICATE_FILE, key: KEY_FILE } }),
      bind(ports.ssePort, [route('/', http(ports.sseUpstream))]),
      bind(ports.streamPort, [route('/', chat(ports.streamUpstream))]),
      ...(more.mcp ? [bind(more.mcp.port, [route('/', { mcp: { targets: [{ name: 'tools', static: { host: '127.0.0.1', port: more.mcp.server } }] } })])] : []),
    ],
  }
  const file = join(directory, 'config.json')
  writeFileSync(file, JSON.stringify(config))
  const { workers = 1 } = more
  const cpus = workers === 1 ? String(bench.proxyCpu) : `${bench.proxyCpu},${bench.loadCpu}`
  return startDataplane({ config: { file }, entry: bench.bundle, cpus, log: 'warn', env: { WORKERS: String(workers), SESSION_KEY: 'ab'.repeat(32) } })
}
