import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import { alternate, type Bench, type Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judge, judgeLimit, median, type Judged } from '../measure.ts'
import { readCpuSeconds, readResidentBytes } from '../proc.ts'

const LOAD = fileURLToPath(new URL('../mcp-load.ts', import.meta.url))
const TARGETS = 10
const TOOLS = 50
const STREAMS = 1000
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

const message = (method: string, params: object = {}): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const INITIALIZE = message('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } })
const CALL = message('tools/call', { name: 'tool_1', arguments: { text: 'something to do' } })

/** MCP: a tool call against a plain POST of the same bytes, a list of many targets, and open streams. */
export const mcp: Case = {
  name: 'mcp',
  async run(bench) {
    const [plainPort = 0, onePort = 0, manyPort = 0, ...upstreams] = await findFreePorts(3 + TARGETS)
    const servers = startProgram({
      name: 'mcp servers',
      command: 'taskset',
      args: ['-c', String(bench.loadCpu), process.execPath, LOAD, String(TOOLS), ...upstreams.map(String)],
    })
    await servers.waitForLine(/ready/)
    const target = (port: number, index: number) => ({ name: `t${index}`, static: { host: '127.0.0.1', port } })
    const bind = (port: number, backend: object) => ({ port, listeners: [{ name: `on-${port}`, routes: [{ name: `to-${port}`, backends: [backend] }] }] })
    const binds = [
      bind(plainPort, { host: `127.0.0.1:${upstreams[0]}` }),
      bind(onePort, { mcp: { targets: upstreams.slice(0, 1).map(target) } }),
      bind(manyPort, { mcp: { targets: upstreams.map(target) } }),
    ]
    const file = join(bench.directory, 'mcp.json')
    await writeFile(file, JSON.stringify({ binds }))
    const dataplane = await startDataplane({
      config: { file },
      entry: bench.bundle,
      cpus: String(bench.proxyCpu),
      log: 'warn',
      env: { SESSION_KEY: 'ab'.repeat(32) },
    })
    try {
      return [
        await compareCalls(bench, dataplane, plainPort, onePort),
        await compareLists(bench, upstreams, manyPort),
        await measureStreams(dataplane, onePort),
      ]
    } finally {
      await dataplane.stop(100)
      await servers.stop(100)
    }
  },
}

async function compareCalls(bench: Bench, { program }: Dataplane, plainPort: number, onePort: number): Promise<Judged> {
  const session = await beginSession(onePort)
  const script = join(bench.directory, 'post.lua')
  await writeFile(script, `wrk.method = "POST"\nwrk.body = [[${CALL}]]\n`)
  const microseconds = async (port: number) => {
    const before = readCpuSeconds(program.pid)
    const load = await runWrk({
      url: `http://127.0.0.1:${port}/mcp`,
      connections: 32,
      seconds: bench.seconds,
      cpu: bench.loadCpu,
      script,
      headers: { ...HEADERS, 'mcp-session-id': session },
    })
    if (load.failures > 0) throw new Error(`${load.failures} requests failed`)
    return { cpu: ((readCpuSeconds(program.pid) - before) / load.requests) * 1e6, rate: load.requests / load.seconds }
  }
  const { a, b } = await alternate(
    bench,
    () => microseconds(onePort),
    () => microseconds(plainPort),
  )
  return judge({ case: 'MCP tools/call, CPU per request', ours: a.cpu, peer: b.cpu, peerName: 'plain POST', unit: 'us' }, { atMost: 2.5 })
}

async function compareLists(bench: Bench, upstreams: readonly number[], manyPort: number): Promise<Judged> {
  const session = await beginSession(manyPort)
  const list = message('tools/list')
  const agent = new Agent({ keepAlive: true })
  const p50 = async (port: number) => {
    const times: number[] = []
    for (let count = 0; count < 40 * bench.seconds; count++) {
      const startedAtMs = performance.now()
      await post(port, list, { ...HEADERS, 'mcp-session-id': session }, agent)
      times.push(performance.now() - startedAtMs)
    }
    return median(times)
  }
  // All servers are one process, so the slowest responds when all have responded.
  const together = async () => {
    const times: number[] = []
    for (let count = 0; count < 40 * bench.seconds; count++) {
      const startedAtMs = performance.now()
      await Promise.all(upstreams.map((port) => post(port, list, HEADERS, agent)))
      times.push(performance.now() - startedAtMs)
    }
    return median(times)
  }
  const { a, b } = await alternate(
    bench,
    async () => ({ p50: await p50(manyPort) }),
    async () => ({ p50: await together() }),
  )
  agent.destroy()
  return judgeLimit(`MCP tools/list, ${TARGETS} targets of ${TOOLS} tools, p50`, a.p50, 1.3 * b.p50 + 2, 'ms')
}

async function measureStreams({ program }: Dataplane, port: number): Promise<Judged> {
  const session = await beginSession(port)
  await sleep(1000)
  const idle = readResidentBytes(program.pid)
  const agent = new Agent({ keepAlive: false, maxSockets: STREAMS })
  const opened = await Promise.all(Array.from({ length: STREAMS }, () => openStream(port, session, agent)))
  await sleep(2000)
  const grown = (readResidentBytes(program.pid) - idle) / 1024 ** 2
  for (const close of opened) close()
  agent.destroy()
  return judgeLimit(`MCP, ${STREAMS} open streams, RSS over idle`, grown, 120, 'MiB')
}

function openStream(port: number, session: string, agent: Agent): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', agent, headers: { accept: 'text/event-stream', 'mcp-session-id': session } }, (response) => {
      response.resume()
      response.on('error', () => undefined)
      if (response.statusCode === 200) resolve(() => sent.destroy())
      else reject(new Error(`a stream got status ${response.statusCode}`))
    })
    sent.on('error', reject)
    sent.end()
  })
}

async function beginSession(port: number): Promise<string> {
  const { session } = await post(port, INITIALIZE, HEADERS)
  if (session === '') throw new Error('the gateway returned no session')
  return session
}

function post(port: number, body: string, headers: Readonly<Record<string, string>>, agent?: Agent): Promise<{ session: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, ...(agent && { agent }) }, (response) => {
      response.resume()
      response.on('end', () =>
        response.statusCode === 200
          ? resolve({ session: String(response.headers['mcp-session-id'] ?? '') })
          : reject(new Error(`status ${response.statusCode}`)),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
