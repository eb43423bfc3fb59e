import { parseArgs } from 'node:util'
import type { Plugin } from '#gen/config/types.ts'
import { compose, type Chain } from '../../dataplane/request/exchange/compose.ts'
import { Exchange, type Connection } from '../../dataplane/request/exchange/exchange.ts'
import { HeaderList } from '../../dataplane/http/headers.ts'
import type { RequestHead } from '../../dataplane/http/message.ts'
import { compilePlugins } from '../../dataplane/policy/plugins/index.ts'
import { createPolicyState } from '../../dataplane/policy/state.ts'

// Sends requests through a chain with one plugin and through an empty chain, alternately, in one thread without sockets. Run it: node e2e/bench/plugins.ts

/** Microseconds that a plugin adds to a request, and their limit. `--json` prints a list of them. */
export interface PluginRow {
  readonly name: string
  readonly micros: number
  /** Undefined: for information. */
  readonly limit?: number
}

const headers = ['user-agent', 'bench/1.0', 'accept', 'application/json', 'x-tenant', 'a', 'x-request-id', '0d3f1b1e', 'cookie', 'a=b', 'x-user', 'bob']
interface PluginCase {
  readonly name: string
  readonly body: string
  readonly isolation: NonNullable<Plugin['isolation']>
  /** Requests that are sent at the same time; default 1. */
  readonly inFlight?: number
  readonly limit?: number
}
const cases: readonly PluginCase[] = [
  { name: 'InProcess, empty hook', body: 'await next()', isolation: 'InProcess', limit: 1 },
  {
    name: 'InProcess, reads a header and writes one',
    body: `const tenant = c.req.header('x-tenant'); await next(); c.header('x-tenant', tenant)`,
    isolation: 'InProcess',
    limit: 3,
  },
  { name: 'InProcess, edits c.req.raw', body: `c.req.raw.headers.set('x-tenant', 'b'); await next()`, isolation: 'InProcess' },
  { name: 'InProcess, edits c.res', body: `await next(); c.res.headers.set('x-tenant', 'b')`, isolation: 'InProcess' },
  { name: 'Worker, empty hook', body: 'await next()', isolation: 'Worker', limit: 40 },
  { name: 'Worker, empty hook, 32 in flight', body: 'await next()', isolation: 'Worker', inFlight: 32 },
  { name: 'Process, empty hook', body: 'await next()', isolation: 'Process' },
  { name: 'Process, empty hook, 32 in flight', body: 'await next()', isolation: 'Process', inFlight: 32 },
]
const ROUNDS = 100
const REQUESTS: Readonly<Record<string, number>> = { InProcess: 3000, Worker: 320, Process: 320 }

const respond = (exchange: Exchange): Promise<void> => {
  exchange.response = { status: 200, headers: new HeaderList(['content-type', 'text/plain', 'content-length', '0']), body: undefined, upgraded: undefined }
  return Promise.resolve()
}

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
const newRequest = (): RequestHead => ({
  method: 'GET',
  target: '/a?b=1',
  scheme: 'http',
  authority: 'example.com',
  version: 'HTTP/1.1',
  headers: new HeaderList(headers.slice()),
  body: undefined,
  upgrade: undefined,
  acceptsTrailers: false,
})

const state = createPolicyState({ permitsInProcess: true })
function chainOf(name: string, body: string, isolation: NonNullable<Plugin['isolation']>): Chain {
  const code = `export default { setup: () => ({ async request(c, next) { ${body} } }) }`
  const source = { configMapRef: { code, file: 'bench/index.ts', owner: 'bench/policy' } }
  const policy = compilePlugins([{ name, source, isolation, limits: { timeout: '10s' } }], 'AfterAuthorization', state)
  if (policy === undefined) throw new Error('no plugin')
  return compose([policy], respond)
}

/** Microseconds per request. Each of `inFlight` clients sends one after the other. */
async function measure(chain: Chain, requests: number, inFlight: number): Promise<number> {
  const start = process.hrtime.bigint()
  let left = requests
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const exchange = new Exchange(connection, newRequest(), 0)
      await chain(exchange)
      if (exchange.response?.status !== 200) throw new Error(`status ${exchange.response?.status}`)
    }
  }
  if (inFlight === 1) await client()
  else await Promise.all(Array.from({ length: inFlight }, client))
  return Number(process.hrtime.bigint() - start) / 1000 / requests
}

const { values } = parseArgs({ options: { json: { type: 'boolean' } } })
const empty = compose([], respond)
const rows: PluginRow[] = []
for (const { name, body, isolation, inFlight = 1, limit } of cases) {
  const chain = chainOf(name.replaceAll(/[^a-z0-9]/gi, '').toLowerCase(), body, isolation)
  const requests = REQUESTS[isolation] ?? 1
  let [bare, full] = [Infinity, Infinity]
  for (let round = 0; round < ROUNDS; round++) {
    bare = Math.min(bare, await measure(empty, requests, inFlight))
    full = Math.min(full, await measure(chain, requests, inFlight))
  }
  rows.push({ name, micros: full - bare, ...(limit !== undefined && { limit }) })
}
if (values.json === true) process.stdout.write(JSON.stringify(rows))
else
  for (const { name, micros, limit } of rows)
    console.log(`${name.padEnd(44)} ${micros.toFixed(2).padStart(7)} us${limit === undefined ? '' : `, at most ${limit}`}`)
process.exit()
