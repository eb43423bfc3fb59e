import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import type { Bench, Case } from '../bench.ts'
import { runH2load, runWrk, type Load } from '../load.ts'
import { judge, judgeLimit, type Judged } from '../measure.ts'
import { LARGE_PATH } from '../nginx.ts'
import { readCpuSeconds, readResidentBytes, readResidentParts } from '../proc.ts'
import { runStreams } from '../streams.ts'
import { startAll, type Ports } from './memory.ts'

const WORKERS = 2
const END_MIB = 300
const QUIET_MIB = 220
const QUIET_MS = 30_000
/** Each round opens new connections. */
const ROUND_SECONDS = 20
const MIB = 1024 ** 2
const MCP_LOAD = fileURLToPath(new URL('../mcp-load.ts', import.meta.url))
const CHAT = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'What is the weather in Paris like today? '.repeat(25) }] })
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'tool_1',
    arguments: { text: 'something to do' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})
const JSON_HEADERS = { 'content-type': 'application/json' }
const CALL_HEADERS = {
  ...JSON_HEADERS,
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'tool_1',
}

type SoakPorts = Ports & { readonly mcpPort: number }

/** The resident set of a data plane with two workers under every kind of load at once, for `SECONDS`, and without load. */
export const soak: Case = {
  name: 'soak',
  async run(bench) {
    const [port = 0, tlsPort = 0, ssePort = 0, sseUpstream = 0, streamPort = 0, streamUpstream = 0, mcpPort = 0, mcpServer = 0, other = 0] =
      await findFreePorts(9)
    const ports = { port, tlsPort, ssePort, sseUpstream, streamPort, streamUpstream, mcpPort }
    const directory = join(bench.directory, 'soak')
    const server = ['-c', String(bench.loadCpu), process.execPath, MCP_LOAD, '50', String(mcpServer), String(other)]
    const mcp = startProgram({ name: 'mcp servers', command: 'taskset', args: server })
    await mcp.waitForLine(/ready/)
    const dataplane = await startAll(bench, directory, ports, { mcp: { port: mcpPort, server: mcpServer }, workers: WORKERS })
    try {
      return await measure(bench, dataplane, ports)
    } finally {
      await dataplane.stop(100)
      await mcp.stop(100)
    }
  },
}

async function measure(bench: Bench, dataplane: Dataplane, ports: SoakPorts): Promise<Judged[]> {
  const { pid } = dataplane.program
  const cpuBefore = readCpuSeconds(pid)
  let highest = 0
  let requests = 0
  const report = async (when: string): Promise<number> => {
    const resident = readResidentBytes(pid) / MIB
    const parts = Object.entries(readResidentParts(pid)).map(([name, bytes]) => `${name} ${(bytes / MIB).toFixed(0)}`)
    const { heapUsed, heapTotal, external, workers = [] } = (await (await dataplane.admin('/memory')).json()) as Memory
    const heaps = [{ heapUsed, heapTotal, external }, ...workers].map((one) =>
      [one.heapUsed, one.heapTotal, one.external].map((bytes) => (bytes / MIB).toFixed(0)).join('/'),
    )
    bench.log(`  ${when}: ${resident.toFixed(0)} MiB: ${parts.join(', ')}; heaps used/total/external: ${heaps.join(' ')}`)
    return resident
  }
  await report('idle')
  // By the clock: streams open one after another, so that a round takes longer than its loads.
  const startedAtMs = performance.now()
  const elapsed = () => (performance.now() - startedAtMs) / 1000
  for (let left = bench.seconds; left > 0; left = Math.ceil(bench.seconds - elapsed())) {
    requests += await runRound({ ...bench, seconds: Math.min(left, ROUND_SECONDS) }, ports)
    highest = Math.max(highest, await report(`${elapsed().toFixed(0)} s`))
  }
  const end = readResidentBytes(pid) / MIB
  bench.log(`  ${requests} requests, ${(((readCpuSeconds(pid) - cpuBefore) * 1e6) / requests).toFixed(1)} µs of CPU each`)
  await sleep(QUIET_MS)
  const quiet = await report(`${QUIET_MS / 1000} s without load`)
  return [
    judge({ case: 'mixed load, two workers, highest RSS', ours: highest, peer: END_MIB, peerName: 'limit at the end', unit: 'MiB' }, {}),
    judgeLimit('mixed load, two workers, RSS at the end', end, END_MIB, 'MiB'),
    judgeLimit(`mixed load, two workers, RSS ${QUIET_MS / 1000} s later`, quiet, QUIET_MIB, 'MiB'),
  ]
}

type Heap = Record<'heapUsed' | 'heapTotal' | 'external', number>
type Memory = Heap & { readonly workers?: readonly Heap[] }

/** All loads at once. Returns the number of requests; throws if one failed. */
async function runRound(bench: Bench, ports: SoakPorts): Promise<number> {
  const common = { seconds: bench.seconds, cpu: bench.loadCpu }
  const at = (path: string) => `http://127.0.0.1:${ports.port}${path}`
  const tls = (path: string) => `https://127.0.0.1:${ports.tlsPort}${path}`
  const script = (name: string, body: string) => {
    const file = join(bench.directory, 'soak', `${name}.lua`)
    writeFileSync(file, `wrk.method = "POST"\nwrk.body = ${body}\n`)
    return file
  }
  const upload = script('upload', `string.rep("x", ${MIB})`)
  const chat = { script: script('chat', `[[${CHAT}]]`), headers: JSON_HEADERS }
  const loads: Promise<Load>[] = [
    runWrk({ ...common, connections: 16, url: at('/route-5/x') }),
    runWrk({ ...common, connections: 16, url: tls('/x') }),
    runH2load({ ...common, connections: 8, streams: 16, url: at('/route-5/x') }),
    runH2load({ ...common, connections: 8, streams: 16, url: tls('/x') }),
    runWrk({ ...common, connections: 4, url: at(LARGE_PATH) }),
    runWrk({ ...common, connections: 4, url: tls(LARGE_PATH) }),
    runH2load({ ...common, connections: 2, streams: 4, url: tls(LARGE_PATH) }),
    runWrk({ ...common, connections: 4, url: at('/upload'), script: upload }),
    runWrk({ ...common, connections: 4, url: tls('/upload'), script: upload }),
    runWrk({ ...common, connections: 16, url: at('/v1/chat/completions'), ...chat }),
    runWrk({ ...common, connections: 16, url: tls('/v1/chat/completions'), ...chat }),
    runWrk({ ...common, connections: 16, url: `http://127.0.0.1:${ports.mcpPort}/mcp`, script: script('call', `[[${CALL}]]`), headers: CALL_HEADERS }),
  ]
  const streams = [
    runStreams(bench, { program: 'sse-load.ts', streams: 50, eventsPerSecond: 10, port: ports.ssePort, upstreamPort: ports.sseUpstream }),
    runStreams(bench, { program: 'llm-load.ts', streams: 50, eventsPerSecond: 10, port: ports.streamPort, upstreamPort: ports.streamUpstream }),
  ]
  const [done] = await Promise.all([Promise.all(loads), ...streams])
  const failures = done.map((load) => load.failures)
  if (failures.some((count) => count > 0)) throw new Error(`requests failed, by load: ${failures.join(' ')}`)
  return done.reduce((sum, load) => sum + load.requests, 0)
}
