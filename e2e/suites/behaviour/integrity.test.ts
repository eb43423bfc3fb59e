import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request as requestPlain, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { request as requestTls } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { makeCertificate } from '../../harness/certificates.ts'
import { startServices } from '../../harness/example/services.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { BodyCheck, pathOf, startNumberedBodies, type BodyFraming } from './numbered-bodies.ts'

const MIB = 1024 * 1024
const PARALLEL = 40
const FRAMINGS: readonly BodyFraming[] = ['length', 'chunked', 'close']
/** Around the sizes of joined writes, of read buffers and of their high-water marks. */
const SIZES = [1, 2000, 4096, 4097, 20_000, 65_535, 65_536, 65_700, 131_072, 200_000, 262_144, 262_145, 700_000, MIB]
const LARGE = [3 * MIB, 6 * MIB]

type Client = 'http' | 'https' | 'http2'
interface Row {
  readonly client: Client
  readonly route: string
  readonly framing: BodyFraming
  readonly size: number
  readonly seed: number
  /** The client stops reading after the first bytes until this resolves. */
  readonly until?: Promise<unknown>
}

// Responses are read into buffers that are reused (docs/adr/0007): no byte may be overwritten before it was written to the client.
describe('the bytes of responses', () => {
  let directory: string
  let ports: { readonly http: number; readonly https: number }
  let dataplane: Dataplane
  let session: ClientHttp2Session
  const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL * 2 })
  const closing: (() => unknown)[] = []

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'integrity-'))
    const [http = 0, https = 0, upstream = 0, mirror = 0] = await findFreePorts(4)
    ports = { http, https }
    const services = await startServices({ name: 'services' })
    closing.push(() => services.close())
    for (const port of [upstream, mirror]) {
      const bodies = await startNumberedBodies(port)
      closing.push(() => bodies.close())
    }
    const { certificate, privateKey } = makeCertificate({ name: 'localhost' })
    await writeFile(join(directory, 'secure.crt'), certificate)
    await writeFile(join(directory, 'secure.key'), privateKey)
    const file = join(directory, 'config.json')
    await writeFile(file, JSON.stringify(config({ http, https, upstream, mirror, processor: services.port })))
    dataplane = await startDataplane({ config: { file }, log: 'warn' })
    closing.push(() => dataplane.stop())
    session = connectHttp2(`http://127.0.0.1:${http}`, { settings: { initialWindowSize: 300_000 } })
    closing.push(() => session.destroy())
  })
  afterAll(async () => {
    agent.destroy()
    for (const close of closing.toReversed()) await close()
    await rm(directory, { recursive: true })
  })

  async function open({ client, route, framing, size, seed }: Row): Promise<Readable> {
    const path = pathOf(route, framing, size, seed)
    if (client === 'http2') return session.request({ ':path': path })
    const request = client === 'http' ? requestPlain({ port: ports.http, path, agent }) : requestTls({ port: ports.https, path, rejectUnauthorized: false })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    return response
  }

  /** Reads a response; returns the row with what was read. */
  async function read(row: Row): Promise<string> {
    const check = new BodyCheck(row.seed)
    const stream = await open(row)
    let isFirst = true
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      check.push(chunk)
      if (isFirst) await row.until
      isFirst = false
    }
    return `${row.client} ${pathOf(row.route, row.framing, row.size, row.seed)}: ${check.result}`
  }
  const expected = ({ client, route, framing, size, seed }: Row): string => `${client} ${pathOf(route, framing, size, seed)}: ${size} right`

  let seed = 0
  const rowsOf = (client: Client, route: string, sizes: readonly number[]): Row[] =>
    FRAMINGS.flatMap((framing) => sizes.map((size) => ({ client, route, framing, size, seed: ++seed })))

  test('are unchanged for 40 clients at once, while slow clients hold back theirs', async () => {
    const rows = [
      ...['plain', 'timeout', 'twice', 'mirrored', 'processed'].flatMap((route) => rowsOf('http', route, SIZES)),
      ...['plain', 'timeout', 'mirrored'].flatMap((route) => rowsOf('http', route, LARGE)),
      ...(['https', 'http2'] as const).flatMap((client) => rowsOf(client, 'plain', [...SIZES, ...LARGE])),
    ]
    // An order that mixes clients, routes and sizes, and is the same in every run.
    rows.sort((a, b) => ((a.seed * 7919) % 1009) - ((b.seed * 7919) % 1009))
    let finish: (value?: unknown) => void = () => undefined
    const until = new Promise((resolve) => (finish = resolve))
    const slow = (['http', 'https', 'http2'] as const).flatMap((client) => rowsOf(client, 'timeout', [6 * MIB, 6 * MIB])).map((row) => ({ ...row, until }))
    const held = slow.map(read)
    // Each response fits into the buffer that all connections share; together they exceed what the kernel buffers for the client.
    const short = Array.from({ length: 150 }, () => 60_000)
    const pipelined = Promise.all([6000, 7000].map((first) => readPipelined(short, first, until)))

    const results: string[] = []
    const queue = [...rows]
    const work = async (): Promise<void> => {
      for (let row = queue.pop(); row !== undefined; row = queue.pop()) results.push(await read(row))
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    expect(results.toSorted()).toEqual(rows.map(expected).toSorted())
    finish()
    expect(await Promise.all(held)).toEqual(slow.map(expected))
    for (const seen of await pipelined) expect(seen).toEqual(short.map((size) => `${size} right`))
  }, 300_000)

  test('are unchanged for pipelined requests', async () => {
    const sizes = [500, 300_000, 1, 70_000, 4097, 900_000, 65_536, 20]
    expect(await readPipelined(sizes, 5000)).toEqual(sizes.map((size) => `${size} right`))
  })

  /** Sends requests on one connection without waiting, then reads the responses, which have the numbers from `firstSeed` on. */
  async function readPipelined(sizes: readonly number[], firstSeed: number, until?: Promise<unknown>): Promise<string[]> {
    const socket = connect(ports.http, '127.0.0.1')
    socket.write(sizes.map((size, nth) => `GET ${pathOf('plain', 'length', size, firstSeed + nth)} HTTP/1.1\r\nhost: a\r\n\r\n`).join(''))
    await until
    const results: string[] = []
    let head = ''
    let check: BodyCheck | undefined
    let left = 0
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      for (let rest = chunk; rest.length > 0;) {
        if (check === undefined) {
          const from = head.length
          head += rest.toString('latin1')
          const end = head.indexOf('\r\n\r\n')
          if (end === -1) break
          rest = rest.subarray(end + 4 - from)
          left = Number(/content-length: (\d+)/.exec(head)?.[1])
          head = ''
          check = new BodyCheck(firstSeed + results.length)
        }
        const part = rest.subarray(0, left)
        check.push(part)
        left -= part.length
        rest = rest.subarray(part.length)
        if (left > 0) continue
        results.push(check.result)
        check = undefined
      }
      if (results.length === sizes.length) socket.end()
    }
    return results
  }
})

function config(port: Record<'http' | 'https' | 'upstream' | 'mirror' | 'processor', number>): unknown {
  const policies = { http: { version: 'HTTP1' } }
  const backends = [{ host: `127.0.0.1:${port.upstream}`, policies }]
  const route = (name: string, change: object) => ({ matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }], backends, ...change })
  const routes = [
    route('plain', {}),
    route('timeout', { timeouts: { requestMs: 280_000 } }),
    route('twice', { retry: { codes: [503], attempts: 2 } }),
    route('mirrored', { filters: { mirrors: [{ backend: { address: `127.0.0.1:${port.mirror}` } }] } }),
    route('processed', { policies: { extProc: { backendRef: { address: `127.0.0.1:${port.processor}` } } } }),
  ]
  return {
    binds: [
      { port: port.http, listeners: [{ name: 'http', routes }] },
      { port: port.https, listeners: [{ name: 'https', protocol: 'HTTPS', tls: { cert: 'secure.crt', key: 'secure.key' }, routes: routes.slice(0, 2) }] },
    ],
  }
}
