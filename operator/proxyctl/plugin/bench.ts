import { json } from 'node:stream/consumers'
import type { Plugin } from '#gen/config/types.ts'
import { compose, type Chain } from '../../../dataplane/request/exchange/compose.ts'
import { Exchange, type Connection } from '../../../dataplane/request/exchange/exchange.ts'
import { HeaderList } from '../../../dataplane/http/headers.ts'
import { endPlugins } from '../../../dataplane/policy/plugins/host.ts'
import { compilePlugins } from '../../../dataplane/policy/plugins/index.ts'
import { createPolicyState } from '../../../dataplane/policy/state.ts'

/** The plugin failed. */
class BenchError extends Error {}

export interface BenchOptions {
  /** Source of the plugin, one module. */
  readonly code: string
  readonly file: string
  readonly config: Readonly<Record<string, unknown>> | undefined
  readonly method: string
  /** A flat list: name, value. */
  readonly headers: readonly string[]
  /** Time for each kind of isolation. */
  readonly seconds: number
}

export interface BenchRow {
  readonly isolation: 'InProcess' | 'Worker'
  /** Time that the plugin adds to a request: the median of rounds, in microseconds. */
  readonly micros: number
  /** Time of the slowest twentieth of the rounds. */
  readonly p95: number
  readonly requests: number
  /** Of the last response. */
  readonly status: number
}

export type BenchResult = { readonly rows: readonly BenchRow[] } | { readonly problem: string }

/** Requests of a round, one after the other. */
const BATCH = { InProcess: 500, Worker: 50 } as const
const WARM_UP_ROUNDS = 10

const connection: Connection = {
  id: 1,
  bind: '80',
  localAddress: '127.0.0.1',
  localPort: 80,
  remoteAddress: '127.0.0.1',
  remotePort: 40_000,
  tls: undefined,
  listener: undefined,
}

const respond = (exchange: Exchange): Promise<void> => {
  exchange.response = { status: 200, headers: new HeaderList(['content-type', 'text/plain', 'content-length', '0']), body: undefined, upgraded: undefined }
  return Promise.resolve()
}

/** Sends requests through the plugin in this process, without sockets, in both kinds of isolation. Rejects with a BenchError if the plugin fails. */
async function benchPlugin(options: BenchOptions): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const isolation of ['InProcess', 'Worker'] as const) rows.push(await benchIn(isolation, options))
  return rows
}

async function benchIn(isolation: BenchRow['isolation'], { code, file, config, method, headers, seconds }: BenchOptions): Promise<BenchRow> {
  const problems: string[] = []
  const note = (_: string, fields: Readonly<Record<string, unknown>>): void => {
    const { error, message = '' } = fields
    problems.push(typeof error === 'string' ? error : typeof message === 'string' ? message : JSON.stringify(message))
  }
  const check = (): void => {
    const [problem] = problems
    if (problem !== undefined) throw new BenchError(`${isolation}: ${problem}`)
  }
  const ignore = (): void => undefined
  const log = { error: note, warn: ignore, info: ignore, debug: ignore, trace: ignore, isEnabled: () => true }
  const state = createPolicyState({ permitsInProcess: true, log })
  const source = { configMapRef: { code, file, owner: 'bench/plugin' } }
  const plugin: Plugin = { name: 'bench', source, isolation, limits: { timeout: '10s' }, ...(config !== undefined && { config }) }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  const full = compose(policy === undefined ? [] : [policy], respond)
  const bare = compose([], respond)
  const count = BATCH[isolation]
  let status = 0
  const measure = async (chain: Chain): Promise<number> => {
    const start = process.hrtime.bigint()
    for (let at = 0; at < count; at++) {
      const exchange = new Exchange(connection, newRequest(method, headers), 0)
      await chain(exchange)
      status = exchange.response?.status ?? 0
    }
    return Number(process.hrtime.bigint() - start) / 1000 / count
  }
  try {
    await measure(full)
    check()
    for (let round = 1; round < WARM_UP_ROUNDS; round++) await measure(full)
    const added: number[] = []
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const without = await measure(bare)
      added.push((await measure(full)) - without)
    }
    check()
    added.sort((one, other) => one - other)
    const at = (share: number): number => Math.max(0, added[Math.min(added.length - 1, Math.floor(added.length * share))] ?? 0)
    return { isolation, micros: at(0.5), p95: at(0.95), requests: added.length * count, status }
  } finally {
    endPlugins(state.registry)
  }
}

const newRequest = (method: string, headers: readonly string[]) => ({
  method,
  target: '/',
  scheme: 'http' as const,
  authority: 'example.com',
  version: 'HTTP/1.1' as const,
  headers: new HeaderList(headers.slice()),
  body: undefined,
  upgrade: undefined,
  acceptsTrailers: false,
})

// A program of its own: a plugin in process has the rights of the process, and cannot be unloaded. Reads options from standard input, writes the result to standard output.
const options = (await json(process.stdin)) as BenchOptions
let result: BenchResult
try {
  result = { rows: await benchPlugin(options) }
} catch (error) {
  if (!(error instanceof BenchError)) throw error
  result = { problem: error.message }
}
process.stdout.write(JSON.stringify(result), () => process.exit())
