import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { tailOf } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'

const LIMIT_BYTES = 16 * 1024 * 1024
const CLIENTS = 300
const SENT_BYTES = 2_000_000
const DECLARED_BYTES = 2_097_000
/** Threads of the data plane under test; each has a heap and buffers of its own. */
const WORKERS = Number(process.env['WORKERS'] ?? 1)
/** Without a limit, the bodies alone are 600 MB. */
const MOST_RESIDENT_BYTES = (300 + 70 * (WORKERS - 1)) * 1024 * 1024

describe('maxHeldBytes', () => {
  let directory: string
  let port = 0
  let dataplane: Dataplane
  const upstream = createServer((request, response) => request.resume().on('end', () => response.end('ok')))

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'held-'))
    let upstreamPort = 0
    ;[port = 0, upstreamPort = 0] = await findFreePorts(2)
    await new Promise<void>((resolve) => upstream.listen(upstreamPort, '127.0.0.1', resolve))
    const file = join(directory, 'config.json')
    await writeFile(file, JSON.stringify(config(port, upstreamPort)))
    dataplane = await startDataplane({ config: { file }, nodeArgs: ['--max-old-space-size=64'], log: 'warn' })
  })
  afterAll(async () => {
    await dataplane?.stop()
    upstream.close()
    await rm(directory, { recursive: true })
  })

  const heldBytes = () => sample(dataplane, 'proxy_held_bytes')
  const post = (path: string, bytes: number) => send({ port, path, method: 'POST', headers: { host: 'held.test' }, body: 'x'.repeat(bytes) })

  test('limits the bodies of 300 clients together, and is free again when they disconnect', async () => {
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => SlowClient.connect(port)))
    let highest = 0
    let resident = 0
    await waitUntil('every body is held or rejected', async () => {
      highest = Math.max(highest, await heldBytes())
      resident = Math.max(resident, await residentBytes(dataplane))
      // Bytes of all clients that were not rejected are either buffered or still on their way.
      return clients.filter(({ isOver }) => !isOver).length * SENT_BYTES === (await heldBytes())
    }).catch(async (error: Error) => {
      const open = clients.filter(({ isOver }) => !isOver).length
      const state = dataplane.program.hasExited()
        ? 'the data plane has exited'
        : `${await heldBytes()} bytes are held of ${open} open clients with ${SENT_BYTES} each`
      throw new Error(`${error.message}; ${state}\n${tailOf(dataplane.program.lines)}`)
    })
    const rejected = clients.filter(({ isOver }) => isOver)
    expect(CLIENTS - rejected.length).toBeLessThanOrEqual(LIMIT_BYTES / SENT_BYTES)
    expect(highest).toBeLessThanOrEqual(LIMIT_BYTES)
    expect(resident).toBeLessThan(MOST_RESIDENT_BYTES)
    const answers = rejected.map(({ received }) => received).filter((text) => text !== '')
    expect(answers.length).toBeGreaterThan(0)
    for (const text of answers) expect(text).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*too many bytes of bodies are buffered, retry later$/)
    expect(await sample(dataplane, 'proxy_held_bytes_rejected_total')).toBeGreaterThanOrEqual(rejected.length)

    // Bodies that only stream are not limited.
    expect((await post('/streamed', LIMIT_BYTES + 1)).status).toBe(200)

    for (const client of clients) client.close()
    await waitUntil('all bytes are released', async () => (await heldBytes()) === 0)
    expect((await post('/buffered', SENT_BYTES)).status).toBe(200)
    await waitUntil('the bytes of a complete request are released', async () => (await heldBytes()) === 0)
  })
})

/** A client that sends most of a body and then waits. */
class SlowClient {
  readonly #socket: Socket
  received = ''
  isOver = false

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.received += text
      this.isOver = true
    })
    socket.on('error', () => undefined)
    socket.on('close', () => (this.isOver = true))
    socket.write(`POST /buffered HTTP/1.1\r\nhost: held.test\r\ncontent-length: ${DECLARED_BYTES}\r\n\r\n`)
    socket.write(Buffer.alloc(SENT_BYTES, 'x'))
  }

  static async connect(port: number): Promise<SlowClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new SlowClient(socket)
  }

  close(): void {
    this.#socket.destroy()
  }
}

async function sample({ metrics }: Dataplane, name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await metrics())?.[1])
}

async function residentBytes({ program }: Dataplane): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${program.pid}/status`, 'utf8'))?.[1]) * 1024
}

function config(port: number, upstreamPort: number): unknown {
  const backends = [{ host: `127.0.0.1:${upstreamPort}` }]
  return {
    config: { namespace: 'test', gateway: 'held' },
    policies: [
      {
        key: 'frontend/test/held:0',
        policy: { kind: 'ProxyPolicy', namespace: 'test', name: 'held' },
        target: { kind: 'Gateway', namespace: 'test', name: 'held' },
        frontend: { http: { maxHeldBytes: LIMIT_BYTES } },
      },
    ],
    binds: [
      {
        port,
        listeners: [
          {
            routes: [
              {
                matches: [{ path: { type: 'PathPrefix', value: '/buffered' } }],
                policies: { transformation: { request: { set: [{ name: 'x-size', value: 'string(size(request.body))' }] } } },
                backends,
              },
              { matches: [{ path: { type: 'PathPrefix', value: '/streamed' } }], backends },
            ],
          },
        ],
      },
    ],
  }
}
