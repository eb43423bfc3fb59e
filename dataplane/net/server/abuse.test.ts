import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { describeRequest, openHttp2, request2, respondWith, startBind, talk, type TestBind } from './testing.ts'
import type { ConnectionSettings } from './program.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
async function start(settings: ConnectionSettings = {}): Promise<TestBind> {
  const server = await startBind(describeRequest, { settings })
  open.push(server)
  return server
}
const GET = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
const MIB = 1024 * 1024

/** A client that sends up to `bytes` as fast as the server reads. Returns the received text and the number of bytes sent. */
function pour(port: number, head: string, piece: string, bytes: number): Promise<{ text: string; taken: number }> {
  return new Promise((resolve) => {
    let text = ''
    let taken = 0
    const chunk = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)))
    const socket = connect(port, '127.0.0.1')
    open.push({ close: () => socket.destroy() })
    const pump = (): void => {
      while (taken < bytes && !socket.destroyed) {
        taken += chunk.length
        if (!socket.write(chunk)) return
      }
    }
    socket.on('data', (data: Buffer) => (text += data.toString('latin1')))
    socket.on('drain', pump)
    socket.on('error', () => undefined)
    socket.on('close', () => resolve({ text, taken }))
    socket.write(head)
    pump()
  })
}

describe('floods of request bytes', () => {
  test.each<[string, string, string, RegExp]>([
    ['endless header lines get 431', 'GET / HTTP/1.1\r\n', 'x-a: b\r\n', /^HTTP\/1\.1 431 /],
    ['an endless header line gets 431', 'GET / HTTP/1.1\r\nx-a: ', 'b', /^HTTP\/1\.1 431 /],
    ['an endless target gets 414', 'GET /', 'a', /^HTTP\/1\.1 414 /],
    ['endless empty lines get 400', '', '\r\n', /^(?:HTTP\/1\.1 400 [^]*)?$/],
    [
      'endless chunk extensions close the connection',
      'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;',
      'x',
      /^(?:HTTP\/1\.1 4\d\d [^]*)?$/,
    ],
    [
      'endless trailers close the connection',
      'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n',
      'x-t: y\r\n',
      /^(?:HTTP\/1\.1 4\d\d [^]*)?$/,
    ],
  ])('%s, reading stops, and other clients are served', async (_, head, piece, expected) => {
    const { port, bind } = await start()
    const flood = pour(port, head, piece, 256 * MIB)
    expect(await talk(port, GET)).toContain(' 200 OK')
    const { text, taken } = await flood
    expect(text).toMatch(expected)
    // Most of it is in buffers of the kernel.
    expect(taken).toBeLessThan(64 * MIB)
    await until(() => bind.size === 0)
  })
})

test('two hundred clients that send single bytes slowly get 408 each, while other clients are served', async () => {
  const { port, bind } = await start({ http1: { timeouts: { headMs: 5000 } } })
  const sockets: Socket[] = []
  const slow = Array.from({ length: 200 }, () => talk(port, 'G', (socket) => sockets.push(socket)))
  const drip = setInterval(() => sockets.forEach((socket) => socket.destroyed || socket.write('x')), 40)
  await until(() => sockets.length === 200)
  expect(await talk(port, GET)).toContain(' 200 OK')
  const answers = await Promise.all(slow)
  clearInterval(drip)
  // A byte that arrives after the response may cause a reset.
  expect(answers.filter((text) => /^(?:HTTP\/1\.1 408 |reset)/.test(text) || text === '').length).toBe(200)
  expect(answers.filter((text) => text.startsWith('HTTP/1.1 408')).length).toBeGreaterThan(150)
  await until(() => bind.size === 0)
})

test('clients that connect and send nothing are closed after the handshake timeout', async () => {
  const { port, bind, dropped } = await start({ handshakeMs: 2000 })
  const silent = Array.from({ length: 200 }, () => talk(port, ''))
  await until(() => bind.size > 20)
  expect(await talk(port, GET)).toContain(' 200 OK')
  await Promise.all(silent)
  expect(dropped.filter((reason) => reason === 'no protocol or handshake in time')).toHaveLength(200)
})

test('an HTTP/2 client that opens all its streams and reads nothing occupies no more than its windows', async () => {
  const large = Buffer.alloc(4 * MIB)
  const server = await startBind((exchange) => {
    if (exchange.request.target !== '/large') return respondWith(exchange, 'ok')
    exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(large), upgraded: undefined }
  })
  open.push(server)
  const greedy = openHttp2(server.port)
  open.push({ close: () => greedy.destroy() })
  const streams = Array.from({ length: 100 }, () => greedy.request({ ':path': '/large', ':authority': 'a' }))
  for (const stream of streams) stream.on('error', () => undefined).pause()
  await until(() => server.bind.size === 1)
  const before = process.memoryUsage().rss
  const other = openHttp2(server.port)
  open.push({ close: () => other.destroy() })
  expect((await request2(other, {})).body).toBe('ok')
  // 400 MiB are asked for; windows are 64 KiB and 256 KiB, and the rest of the bound is for what else the process does.
  expect(process.memoryUsage().rss - before).toBeLessThan(250 * MIB)
  greedy.destroy()
  await until(() => server.finished.length === 101)
  expect(server.finished.filter(({ cutBy }) => cutBy === 'client')).toHaveLength(100)
})
