import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import { alternate, inSeconds, type Bench, type Case } from '../bench.ts'
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
const TOOL = { name: 'tool_1', arguments: { text: 'something to do' } }
const CALL = message('tools/call', TOOL)

/** Requests of revision 2026-07-28. */
const MODERN = '2026-07-28'
const PREFIX = 'io.modelcontextprotocol/'
const META = { [`${PREFIX}protocolVersion`]: MODERN, [`${PREFIX}clientInfo`]: { name: 'bench', version: '1' }, [`${PREFIX}clientCapabilities`]: {} }
const MODERN_CALL = message('tools/call', { ...TOOL, _meta: META })
const MODERN_CALL_HEADERS = { ...HEADERS, 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': TOOL.name }
const LISTEN = message('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: META })
const LISTEN_HEADERS = { ...HEADERS, 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' }

/** MCP: a tool call against a plain POST of the same bytes, a list of many targets, and open streams. */
export const mcp: Case = {
  name: 'mcp',
  async run(bench) {
    const [plainPort = 0, onePort = 0, manyPort = 0, newPort = 0, modernServer = 0, ...upstreams] = await findFreePorts(5 + TARGETS)
    const servers = startProgram({
      name: 'mcp servers',
      command: 'taskset',
      args: ['-c', String(bench.loadCpu), process.execPath, LOAD, String(TOOLS), String(modernServer), ...upstreams.map(String)],
    })
    await servers.waitForLine(/ready/)
    const target = (port: number, index: number) => ({ name: `t${index}`, static: { host: '127.0.0.1', port } })
    const bind = (port: number, backend: object) => ({ port, listeners: [{ name: `on-${port}`, routes: [{ name: `to-${port}`, backends: [backend] }] }] })
    const binds = [
      bind(plainPort, { host: `127.0.0.1:${upstreams[0]}` }),
      bind(onePort, { mcp: { targets: upstreams.slice(0, 1).map(target) } }),
      bind(manyPort, { mcp: { targets: upstreams.map(target) } }),
      bind(newPort, { mcp: { targets: [target(modernServer, 0)] } }),
    ]
    const file = join(bench.directory, 'mcp.json')
    await writeFile(file, JSON.stringify({ binds }))
    const dataplane = await startDataplane({
      config: { file },
      entry: bench.bundle,
      cpus: String(bench.proxyCpu),
      log: 'warn',
      nodeArgs: bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`],
      env: { SESSION_KEY: 'ab'.repeat(32) },
    })
    try {
      return [
        await compareCalls(bench, dataplane, plainPort, onePort),
        ...(await compareRevisions(bench, dataplane, onePort, newPort)),
        await compareLists(bench, upstreams, manyPort),
        await measureStreams(dataplane, 'GET', await getStream(onePort)),
        await measureStreams(dataplane, 'subscriptions/listen', { port: newPort, method: 'POST', headers: LISTEN_HEADERS, body: LISTEN }),
      ]
    } finally {
      await dataplane.stop(bench.profiles === undefined ? 100 : 10_000)
      await servers.stop(100)
    }
  },
}

/** Calls of a tool in a loop. */
interface Calls {
  readonly port: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns a function that measures the CPU of the data plane for each call, and the calls per second. */
async function prepareCalls(
  bench: Bench,
  { program }: Dataplane,
  name: string,
  { port, body, headers }: Calls,
): Promise<() => Promise<{ cpu: number; rate: number }>> {
  const script = join(bench.directory, `${name}.lua`)
  await writeFile(script, `wrk.method = "POST"\nwrk.body = [[${body}]]\n`)
  return async () => {
    // Errors of calls have status 200 too.
    const { text } = await post(port, body, headers)
    if (!text.includes('Forty characters')) throw new Error(`${name}: the call returned ${text}`)
    const before = readCpuSeconds(program.pid)
    const load = await runWrk({ url: `http://127.0.0.1:${port}/mcp`, connections: 32, seconds: bench.seconds, cpu: bench.loadCpu, script, headers })
    if (load.failures > 0) throw new Error(`${load.failures} requests failed`)
    return { cpu: ((readCpuSeconds(program.pid) - before) / load.requests) * 1e6, rate: load.requests / load.seconds }
  }
}

const callsInSession = async (port: number): Promise<Calls> => ({ port, body: CALL, headers: { ...HEADERS, 'mcp-session-id': await beginSession(port) } })

async function compareCalls(bench: Bench, dataplane: Dataplane, plainPort: number, onePort: number): Promise<Judged> {
  const calls = await callsInSession(onePort)
  const ours = await prepareCalls(bench, dataplane, 'old', calls)
  const { a, b } = await alternate(bench, ours, await prepareCalls(bench, dataplane, 'plain', { ...calls, port: plainPort }))
  return judge({ case: 'MCP tools/call, CPU per request', ours: a.cpu, peer: b.cpu, peerName: 'plain POST', unit: 'us' }, { atMost: 2.5 })
}

/** Calls with client and server of both forms of the protocol, against calls in sessions with a server that has sessions. */
async function compareRevisions(whole: Bench, dataplane: Dataplane, onePort: number, newPort: number): Promise<Judged[]> {
  const bench = inSeconds(whole)
  const old = await prepareCalls(bench, dataplane, 'old', await callsInSession(onePort))
  const others: Record<string, Calls> = {
    'new client and server': { port: newPort, body: MODERN_CALL, headers: MODERN_CALL_HEADERS },
    'new client, old server': { port: onePort, body: MODERN_CALL, headers: MODERN_CALL_HEADERS },
    'old client, new server': await callsInSession(newPort),
  }
  const results: Judged[] = []
  for (const [name, calls] of Object.entries(others)) {
    const { a, b, ratio } = await alternate(bench, await prepareCalls(bench, dataplane, name.replaceAll(/\W+/g, '-'), calls), old)
    const compared = { case: `MCP tools/call, ${name}, CPU per request`, ours: a.cpu, peer: b.cpu, peerName: 'old ones', ratio: ratio.cpu, unit: 'us' }
    results.push(judge(compared, { atMost: 1.1 }))
  }
  return results
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

/** How a client opens a stream of notifications. */
interface StreamRequest {
  readonly port: number
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

async function getStream(port: number): Promise<StreamRequest> {
  return { port, method: 'GET', headers: { accept: 'text/event-stream', 'mcp-session-id': await beginSession(port) } }
}

async function measureStreams({ program }: Dataplane, name: string, stream: StreamRequest): Promise<Judged> {
  await sleep(1000)
  const idle = readResidentBytes(program.pid)
  const agent = new Agent({ keepAlive: false, maxSockets: STREAMS })
  let ended = 0
  const opened = await Promise.all(Array.from({ length: STREAMS }, () => openStream(stream, agent, () => ended++)))
  await sleep(2000)
  const grown = (readResidentBytes(program.pid) - idle) / 1024 ** 2
  if (ended > 0) throw new Error(`${ended} of ${STREAMS} streams ended`)
  for (const close of opened) close()
  agent.destroy()
  return judgeLimit(`MCP, ${STREAMS} open streams of ${name}, RSS over idle`, grown, 120, 'MiB')
}

function openStream({ port, method, headers, body }: StreamRequest, agent: Agent, onEnd: () => void): Promise<() => void> {
  return new Promise((resolve, reject) => {
    let isClosing = false
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method, agent, headers }, (response) => {
      response.resume()
      response.on('error', () => undefined)
      response.on('close', () => isClosing || onEnd())
      const close = (): void => {
        isClosing = true
        sent.destroy()
      }
      if (response.statusCode === 200) resolve(close)
      else reject(new Error(`a stream got status ${response.statusCode}`))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function beginSession(port: number): Promise<string> {
  const { session } = await post(port, INITIALIZE, HEADERS)
  if (session === '') throw new Error('the gateway returned no session')
  return session
}

function post(
  port: number,
  body: string,
  headers: Readonly<Record<string, string>>,
  agent?: Agent,
): Promise<{ readonly session: string; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, ...(agent && { agent }) }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += String(chunk)))
      response.on('end', () =>
        response.statusCode === 200
          ? resolve({ session: String(response.headers['mcp-session-id'] ?? ''), text })
          : reject(new Error(`status ${response.statusCode}: ${text}`)),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
