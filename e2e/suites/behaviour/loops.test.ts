import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { send, type ClientResponse } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'

const OPEN_FILES = 800
/** Of one backend: a quarter, because each request needs a connection of its client, too. */
const BACKEND_LIMIT = OPEN_FILES / 4

describe('a route that leads back to the gateway', () => {
  let directory: string
  let ports: readonly number[] = []
  let dataplane: Dataplane
  const open: Socket[] = []
  const upstream: Server = createServer((request, response) => {
    // Calls of /hang wait for their end.
    if (request.url !== '/hang') response.end('ok')
  })

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'loops-'))
    ports = await findFreePorts(3)
    const [port = 0, tcpPort = 0, upstreamPort = 0] = ports
    await new Promise<void>((resolve) => upstream.listen(upstreamPort, '127.0.0.1', resolve))
    const file = join(directory, 'config.json')
    await writeFile(file, JSON.stringify(config(port, tcpPort, upstreamPort)))
    dataplane = await startDataplane({ config: { file }, openFiles: OPEN_FILES })
  })
  afterEach(() => {
    for (const socket of open.splice(0)) socket.destroy()
  })
  afterAll(async () => {
    await dataplane?.stop()
    upstream.closeAllConnections()
    upstream.close()
    await rm(directory, { recursive: true })
  })

  const ask = (path: string, options: Partial<Parameters<typeof send>[0]> = {}): Promise<ClientResponse> => send({ port: ports[0] ?? 0, path, ...options })
  const expectOk = async (): Promise<void> => expect((await ask('/ok')).status).toBe(200)
  const countFiles = async (): Promise<number> => (await readdir(`/proc/${dataplane.program.pid}/fd`)).length
  const logged = (text: string): readonly string[] => dataplane.program.lines.flatMap((line) => (line.text.includes(text) ? [line.text] : []))

  test.each([
    ['over HTTP/1.1', '/loop1', {}],
    ['over HTTP/2', '/loop2', {}],
    ['from HTTP/2 clients', '/loop2', { protocol: 'http2' }],
    ['with changes of the protocol', '/loop12', {}],
    ['with a mark of the client', '/loop1', { headers: { 'x-proxy-loop': 'AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB' } }],
    ['with an upgrade', '/loop1', { headers: { connection: 'upgrade', upgrade: 'websocket' } }],
  ] as const)('responds 508 after three returns, %s', async (_, path, options) => {
    const before = logged(`http.path=${path}`).length
    const response = await ask(path, options)
    expect([response.status, response.body]).toEqual([508, 'request loop detected'])
    await waitUntil('each pass is logged', () => logged(`http.path=${path}`).length >= before + 5)
    expect(logged(`http.path=${path}`)).toHaveLength(before + 5)
    await expectOk()
  })

  test('responds with an error to gRPC calls', async () => {
    const response = await ask('/loop2', { protocol: 'http2', method: 'POST', headers: { 'content-type': 'application/grpc', te: 'trailers' } })
    expect([response.status, response.headers['grpc-message']]).toEqual([200, 'request%20loop%20detected'])
  })

  test('does not multiply requests that mirrors send back', async () => {
    expect((await ask('/mirror')).status).toBe(200)
    // The request, its two copies, and the two copies of each of them, which are rejected.
    await waitUntil('all passes are logged', () => logged('http.path=/mirror').length >= 7)
    await expectOk()
    expect(logged('http.path=/mirror')).toHaveLength(7)
  })

  test('ends if an authorization service is behind the route that asks it', async () => {
    // The service's response is that of the gateway, too.
    expect((await ask('/authz')).status).toBe(508)
    await waitUntil('all passes are logged', () => logged('http.path=/authz').length >= 5)
    expect(logged('http.path=/authz')).toHaveLength(5)
    expect((await ask('/open')).status).toBe(508)
    await expectOk()
    expect(logged('http.path=/open').length).toBeLessThan(40)
  })

  test('over TCP takes at most half of the descriptors, and the log names the backend', async () => {
    const base = await countFiles()
    let most = 0
    for (let round = 0; round < 3; round++) {
      const socket = connect(ports[1] ?? 0, '127.0.0.1')
      socket.on('error', () => undefined)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      let isClosed = false
      void closed.then(() => (isClosed = true))
      while (!isClosed) {
        most = Math.max(most, await countFiles())
        await expectOk()
      }
    }
    expect(most - base).toBeLessThanOrEqual(OPEN_FILES / 2 + 20)
    expect(logged('the limit of one backend is')[0]).toContain('test/bytes')
  })

  test('or a backend that does not respond leaves connections to others, and further requests get 503', async () => {
    const status = async (socket: Socket): Promise<string> =>
      new Promise((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString().slice(9, 12))))
    const rejected: Promise<string>[] = []
    for (let count = 0; count < BACKEND_LIMIT + 20; count++) {
      const socket = connect(ports[0] ?? 0, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write('GET /hang HTTP/1.1\r\nhost: loop.test\r\n\r\n')
      open.push(socket)
      rejected.push(status(socket))
    }
    let count = 0
    for (const one of rejected) void one.then((code) => (count += code === '503' ? 1 : 0))
    await waitUntil('requests over the limit are rejected', () => count >= 20)
    await expectOk()
    expect(count).toBe(20)
    await waitUntil('the limit is logged', () => logged('http.path=/hang').some((line) => line.includes(`the limit of one backend is ${BACKEND_LIMIT}`)))
  })

  test('or idle clients leave room for new clients', async () => {
    for (let count = 0; count < OPEN_FILES; count++) {
      const socket = connect(ports[0] ?? 0, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write('GET /ok HTTP/1.1\r\nhost: loop.test\r\n\r\n')
      open.push(socket)
      await new Promise((resolve) => socket.once('data', resolve).once('close', resolve))
    }
    await expectOk()
    expect(await countFiles()).toBeLessThan(OPEN_FILES)
    await waitUntil(
      'idle connections are closed',
      () => open.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length >= OPEN_FILES / 2 - 20,
    )
  })
})

function config(port: number, tcpPort: number, upstreamPort: number): object {
  const service = (name: string, endpointPort: number, appProtocol?: string): object => ({
    key: `test/${name}`,
    ports: [{ port: 80, endpoints: [{ address: '127.0.0.1', port: endpointPort }], ...(appProtocol && { appProtocol }) }],
  })
  const to = (name: string): object => ({ service: { name: `test/${name}`, port: 80 } })
  const ref = (name: string): object => ({ service: `test/${name}`, port: 80 })
  const route = (path: string, backends: readonly object[], more: object = {}): object => ({
    name: path.slice(1),
    matches: [{ path: { type: 'Exact', value: path } }],
    backends,
    ...more,
  })
  const extAuth = (failureMode: string): object => ({ policies: { extAuth: { backendRef: ref('self'), failureMode, http: {} } } })
  return {
    config: { namespace: 'test' },
    services: [
      service('self', port),
      service('self1', port, 'HTTP11'),
      service('self2', port, 'HTTP2'),
      service('bytes', tcpPort),
      service('other', upstreamPort),
      service('hang', upstreamPort),
    ],
    binds: [
      {
        port,
        listeners: [
          {
            routes: [
              route('/ok', [to('other')]),
              route('/hang', [to('hang')]),
              route('/loop1', [to('self1')]),
              route('/loop2', [to('self2')]),
              route('/loop12', [to('self1'), to('self2')]),
              route('/mirror', [to('other')], { filters: { mirrors: [{ backend: ref('self') }, { backend: ref('self') }] } }),
              route('/authz', [to('other')], extAuth('FailClosed')),
              route('/open', [to('self')], extAuth('FailOpen')),
            ],
          },
        ],
      },
      { port: tcpPort, listeners: [{ protocol: 'TCP', tcpRoutes: [{ name: 'bytes', backends: [to('bytes')] }] }] },
    ],
  }
}
