import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import type { Bench, Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judgeLimit, type Judged } from '../measure.ts'
import { startProbeProcess, type ProbeProcess } from '../probe-process.ts'

const LIMIT_MS = 50
/** Connections that send the body back to back. */
const CONNECTIONS = 2
const SIZES = [10_000, 200_000, 1_900_000]

const repeat = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
const chat = (content: string): string => JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })

/** Numbers that are all valid and all different, so that each is judged. */
function phoneNumbers(length: number): string {
  const numbers: string[] = []
  for (let nth = 0; nth * 16 < length; nth++) numbers.push(`(${201 + (nth % 780)}) 253-${1000 + (Math.floor(nth / 780) % 9000)}, `)
  return numbers.join('').slice(0, length)
}

/** Digits without an order, each a word. */
function digits(length: number): string {
  const text: string[] = []
  for (let seed = 1; text.length * 2 < length;) text.push(String((seed = (seed * 48_271) % 2_147_483_647) % 10))
  return text.join(' ').slice(0, length)
}

const LOG_LINE = '10.1.2.3 - - [22/Nov/2026:23:14:01 +0000] "GET /api/v1/items/12345?page=1 HTTP/1.1" 200 5321 "-" "Mozilla/5.0 (X11; Linux x86_64)" 0.003\n'

interface Attack {
  readonly name: string
  /** Path of the route. */
  readonly route: string
  readonly body: string
}

const guards: Readonly<Record<string, object>> = {
  ...Object.fromEntries(['PhoneNumber', 'CreditCard', 'Ssn', 'Email', 'CaSin'].map((builtin) => [builtin, { regex: { builtins: [builtin] } }])),
  pattern: { regex: { matches: ['a.*b|a'] } },
}

/** The worst text of each guard. */
const texts: readonly (readonly [guard: string, name: string, make: (length: number) => string, sizes: readonly number[]])[] = [
  ['PhoneNumber', 'different numbers', phoneNumbers, SIZES],
  ['PhoneNumber', 'random digits', digits, SIZES],
  ['PhoneNumber', '`1 `', (length) => repeat('1 ', length), [2000, ...SIZES]],
  ['PhoneNumber', 'access log', (length) => repeat(LOG_LINE, length), [180_000]],
  ['CreditCard', '`4111 `', (length) => repeat('4111 ', length), SIZES],
  ['Ssn', '`123-45-6789 `', (length) => repeat('123-45-6789 ', length), SIZES],
  ['Email', '`a@b.c `', (length) => repeat('a@b.c ', length), SIZES],
  ['CaSin', '`123 456 789 `', (length) => repeat('123 456 789 ', length), SIZES],
  ['pattern', '`a.*b|a` in `a`', (length) => repeat('a', length), SIZES],
]

function listAttacks(): readonly Attack[] {
  const keys = `{${Array.from({ length: 140_000 }, (_, nth) => `"k${nth}":1`).join(',')}}`
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  }
  return [
    ...texts.flatMap(([guard, name, make, sizes]) =>
      sizes.map((size): Attack => ({ name: `${guard}, ${size / 1000} KB of ${name}`, route: guard, body: chat(make(size)) })),
    ),
    { name: 'LLM body, 900,000 nested lists', route: 'llm', body: chat('x').replace('{', `{"x":${'['.repeat(900_000)}${']'.repeat(900_000)},`) },
    { name: 'LLM body, 140,000 keys', route: 'llm', body: chat('x').replace('{', `{"x":${keys},`) },
    {
      name: 'LLM body, 60,000 parts, guard',
      route: 'Ssn',
      body: chat('x').replace('"x"', `[${repeat('{"type":"text","text":"a"},', 60_000 * 26).slice(0, -1)}]`),
    },
    { name: 'json() of 900,000 nested lists', route: 'json', body: '['.repeat(900_000) + ']'.repeat(900_000) },
    { name: 'json() of 200,000 nested objects', route: 'json', body: `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}` },
    { name: 'MCP initialize, 140,000 keys', route: 'mcp', body: JSON.stringify(initialize).replace('"capabilities":{}', `"capabilities":${keys}`) },
  ]
}

function makeConfig(port: number, upstreamPort: number): object {
  const plain = { host: `127.0.0.1:${upstreamPort}`, policies: { http: { version: 'HTTP1' } } }
  const llm = (ai: object) => ({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port: upstreamPort } },
    policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Completions' }, ...ai } },
  })
  const route = (name: string, backend: object, policies: object = {}) => ({
    name,
    matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
    policies,
    backends: [backend],
  })
  const routes = [
    ...Object.entries(guards).map(([name, guard]) => route(name, llm({ promptGuard: { request: [guard] } }))),
    route('llm', llm({})),
    route('json', plain, { authorization: { policy: { matchExpressions: ['json(request.body).x == 1'] } } }),
    route('mcp', { mcp: { targets: [{ name: 't', static: { host: '127.0.0.1', port: upstreamPort } }] } }),
    route('plain', plain),
  ]
  return { binds: [{ port, listeners: [{ name: 'http', routes }] }] }
}

/** Hostile bodies after one small request to each route, sent back to back: the longest wait of another client's GET, and of the readiness probe. */
export const stall: Case = {
  name: 'stall',
  async run(bench) {
    const directory = join(bench.directory, 'stall')
    mkdirSync(directory, { recursive: true })
    const port = await findFreePort()
    const file = join(directory, 'config.json')
    writeFileSync(file, JSON.stringify(makeConfig(port, bench.upstreamPort)))
    const dataplane = await startDataplane({
      config: { file },
      entry: bench.bundle,
      cpus: String(bench.proxyCpu),
      log: 'warn',
      env: { SESSION_KEY: 'ab'.repeat(32) },
      nodeArgs: bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`],
    })
    const probes = [await startProbeProcess(port, '/plain'), await startProbeProcess(dataplane.ports.readiness, '/healthz/ready')]
    try {
      // LLMs and MCP are loaded, and guards compiled, by the first request that needs them.
      for (const route of [...Object.keys(guards), 'llm', 'json', 'mcp'])
        await (await fetch(`http://127.0.0.1:${port}/${route}`, { method: 'POST', body: chat('1') })).text()
      await sleep(1000)
      const results: Judged[] = []
      for (const attack of listAttacks()) results.push(await measure(bench, port, attack, probes))
      const failures = (await Promise.all(probes.map((probe) => probe.failures()))).reduce((sum, count) => sum + count, 0)
      return [...results, judgeLimit('hostile bodies: failed GETs of others', failures, 0, 'requests')]
    } finally {
      for (const probe of probes) probe.stop()
      await dataplane.stop(1000)
    }
  },
}

async function measure(bench: Bench, port: number, { name, route, body }: Attack, probes: readonly ProbeProcess[]): Promise<Judged> {
  const bodyFile = join(bench.directory, 'stall', 'body')
  const script = join(bench.directory, 'stall', 'post.lua')
  writeFileSync(bodyFile, body)
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = io.open(${JSON.stringify(bodyFile)}, "rb"):read("*a")\n`)
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const url = `http://127.0.0.1:${port}/${route}`
  for (const probe of probes) await probe.takeLongestPauseMs()
  const load = await runWrk({ url, connections: CONNECTIONS, seconds: bench.seconds, cpu: bench.loadCpu, script, headers, niceness: 19 })
  const waits = await Promise.all(probes.map((probe) => probe.takeLongestPauseMs()))
  // The work for the last requests ends, because their clients disconnected.
  await waitUntil('the end of the attack', async () => (await Promise.all(probes.map((probe) => probe.isIdle()))).every(Boolean), 60_000)
  bench.log(`  ${name}: ${load.requests} requests; longest wait of a GET ${waits[0]?.toFixed(1)} ms, of /healthz/ready ${waits[1]?.toFixed(1)} ms`)
  return judgeLimit(`${name}: longest wait`, Math.max(...waits), LIMIT_MS, 'ms')
}
