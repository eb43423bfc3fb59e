import { createServer, type IncomingMessage } from 'node:http'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, expect, test } from '@jest/globals'
import { createHttp1Pool } from '../../upstream/http1/pool.ts'
import { forwardTo, openHttp2, startBind, type TestBind } from '../testing.ts'
import { until } from '../../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

const accepts =
  'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\nsec-websocket-protocol: chat\r\n\r\n'

/** An upstream that answers upgrades, and a gateway before it. */
async function start(
  onUpgrade: (socket: Duplex, request: IncomingMessage) => void,
  settings = {},
): Promise<{ server: TestBind; client: ClientHttp2Session; closed(): boolean }> {
  let isClosed = false
  const upstream = createServer((_, response) => response.end('no upgrade'))
  upstream.on('upgrade', (request, socket: Duplex) => {
    socket.on('error', () => undefined)
    socket.on('end', () => socket.end())
    socket.on('close', () => (isClosed = true))
    onUpgrade(socket, request)
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const pool = createHttp1Pool({ host: '127.0.0.1', port: (upstream.address() as AddressInfo).port, tls: undefined, keepAlive: undefined })
  const server = await startBind(forwardTo(pool), { settings: { http2: settings } })
  const client = openHttp2(server.port)
  open.push(
    () => (upstream.closeAllConnections(), upstream.close()),
    () => server.close(),
    () => client.destroy(),
  )
  await new Promise((resolve) => client.on('remoteSettings', resolve))
  return { server, client, closed: () => isClosed }
}

function connect(client: ClientHttp2Session, protocol = 'websocket'): ClientHttp2Stream {
  const stream = client.request(
    { ':method': 'CONNECT', ':protocol': protocol, ':scheme': 'http', ':path': '/chat', ':authority': 'test', 'sec-websocket-version': '13' },
    { endStream: false },
  )
  stream.on('error', () => undefined)
  return stream
}
const headOf = (stream: ClientHttp2Stream): Promise<Record<string, unknown>> =>
  new Promise((resolve) => stream.on('response', (fields) => resolve({ ...fields })))

test('extended CONNECT is announced and relays bytes in both directions', async () => {
  let request: IncomingMessage | undefined
  const { server, client } = await start((socket, received) => {
    request = received
    socket.write(`${accepts}hello `)
    socket.pipe(socket)
  })
  expect(client.remoteSettings).toMatchObject({ enableConnectProtocol: true })
  const stream = connect(client)
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  // Sent before the upstream has accepted.
  stream.write('early ')
  const head = await headOf(stream)
  expect(head).toMatchObject({ ':status': 200, 'sec-websocket-protocol': 'chat' })
  expect(head).not.toHaveProperty('sec-websocket-accept')
  stream.write('late')
  await until(() => text === 'hello early late')
  expect([request?.method, request?.url, request?.headers.upgrade, Buffer.from(String(request?.headers['sec-websocket-key']), 'base64').length]).toEqual([
    'GET',
    '/chat',
    'websocket',
    16,
  ])
  stream.end()
  await until(() => server.finished.length === 1)
  expect(server.finished[0]).toMatchObject({ cutBy: undefined, requestBytes: 10, responseBytes: 16, response: { status: 101 } })
})

test('two MiB pass a tunnel in each direction', async () => {
  const { client } = await start((socket) => {
    socket.write(accepts)
    socket.pipe(socket)
  })
  const stream = connect(client)
  let received = 0
  stream.on('data', (chunk: Buffer) => (received += chunk.length))
  await headOf(stream)
  stream.end(Buffer.alloc(2 << 20))
  await new Promise((resolve) => stream.on('end', resolve))
  expect(received).toBe(2 << 20)
})

test('a client that resets the stream closes the upstream connection', async () => {
  const { server, client, closed } = await start((socket) => void socket.resume().write(accepts))
  const stream = connect(client)
  await headOf(stream)
  stream.close(8)
  await until(() => closed() && server.finished.length === 1)
  expect(server.finished[0]?.cutBy).toBe('client')
})

test('an upstream that breaks off resets the stream', async () => {
  let upstream: Socket | undefined
  const { server, client } = await start((socket) => {
    upstream = socket as Socket
    socket.write(accepts)
  })
  const stream = connect(client)
  await headOf(stream)
  upstream?.resetAndDestroy()
  await new Promise((resolve) => stream.on('close', resolve))
  await until(() => server.finished.length === 1)
  expect(server.finished[0]?.cutBy).toBe('upstream')
})

test('a tunnel without traffic is closed', async () => {
  const { server, client, closed } = await start((socket) => void socket.resume().write(accepts), { tunnelIdleMs: 100 })
  const stream = connect(client)
  await headOf(stream)
  await until(() => closed() && server.finished.length === 1)
  expect(server.finished[0]?.cutBy).toBe('timeout')
})

test('an upstream that does not upgrade answers as usual', async () => {
  const { client } = await start((socket) => void socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno'))
  const stream = connect(client)
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  expect(await headOf(stream)).toMatchObject({ ':status': 403 })
  await new Promise((resolve) => stream.on('close', resolve))
  expect(text).toBe('no')
})

test('another protocol gets 501', async () => {
  const { client } = await start(() => undefined)
  expect(await headOf(connect(client, 'connect-udp'))).toMatchObject({ ':status': 501 })
})
