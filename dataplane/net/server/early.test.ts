import { connect as connectNet, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { letArrive } from '../../testing/turns.ts'
import type { BodySink } from '../../http/body.ts'
import { createHttp1Pool } from '../upstream/http1/pool.ts'
import { readResponse, testRequest } from '../upstream/http1/testing.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { listen } from './http1/testing.ts'
import { forwardTo, openHttp2, request2, startBind, talk, type TestBind } from './testing.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

/** A proxy to an upstream that handles raw connections. */
async function start(onConnection: (socket: Socket) => void): Promise<TestBind> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    open.push(() => socket.destroy())
    onConnection(socket)
  })
  open.push(() => server.close())
  const pool = createHttp1Pool({ host: '127.0.0.1', port: await listen(server), tls: undefined, keepAlive: undefined })
  open.push(() => pool.close())
  const bind = await startBind(forwardTo(pool))
  open.push(() => bind.close())
  return bind
}

describe('a response whose body is broken before anything was sent to the client', () => {
  const bodies = [
    ['a chunk size that is not hexadecimal', 'transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n'],
    ['a first chunk without its CRLF', 'transfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n'],
    ['a second chunk that is broken', 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n-1\r\n'],
  ] as const
  const answer = (text: string) => (socket: Socket) => void socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${text}`))

  test.each(bodies)('is a 503 over HTTP/1.1 for %s', async (_, text) => {
    const { port, finished } = await start(answer(text))
    const received = await talk(port, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    expect([received.split('\r\n')[0], received.split('\r\n\r\n')[1]]).toEqual([
      'HTTP/1.1 503 Service Unavailable',
      'upstream call failed: the response broke off',
    ])
    expect(finished.map(({ error, response }) => [error?.code, response?.status])).toEqual([['UPSTREAM_FAILED', 503]])
  })

  test.each(bodies)('is a 503 over HTTP/2 for %s', async (_, text) => {
    const { port, finished } = await start(answer(text))
    const session = openHttp2(port)
    open.push(() => session.destroy())
    const { status, body } = await request2(session, {})
    expect([status, body]).toEqual([503, 'upstream call failed: the response broke off'])
    await until(() => finished.length === 1)
    expect(finished[0]?.error?.code).toBe('UPSTREAM_FAILED')
  })
})

describe('an upstream that responds to a large upload before it has read it', () => {
  const TOO_LARGE = 'HTTP/1.1 413 Content Too Large\r\ncontent-length: 9\r\nconnection: close\r\n\r\ntoo large'
  const SIZE = 5_000_000

  /** Sends 5 MB and reads only afterwards; returns what was received. */
  async function upload(port: number): Promise<string> {
    const socket = connectNet(port, '127.0.0.1')
    open.push(() => socket.destroy())
    socket.pause()
    let text = ''
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${SIZE}\r\n\r\n`)
    await new Promise((resolve) => socket.write(Buffer.alloc(SIZE), resolve))
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    socket.resume()
    await closed
    return text
  }

  test.each<[string, (socket: Socket) => unknown]>([
    // Unread bytes in the receive buffer turn the close into a reset.
    ['closes the connection', (socket) => socket.end(TOO_LARGE, () => socket.destroy())],
    ['resets the connection', (socket) => socket.write(TOO_LARGE, () => socket.resetAndDestroy())],
  ])('and %s delivers its response to the client', async (_, finish) => {
    const { port, finished } = await start((socket) => {
      socket.once('data', () => {
        socket.pause()
        // The proxy has filled the connection and waits to write.
        void letArrive().then(() => finish(socket))
      })
    })
    const text = await upload(port)
    expect(text).toMatch(/^HTTP\/1\.1 413 [^]*too large$/)
    expect(finished.map(({ error, response }) => [error, response?.status])).toEqual([[undefined, 413]])
  })

  test('and resets the connection while the proxy writes delivers its response to the caller', async () => {
    let sink: BodySink | undefined
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write(TOO_LARGE)
        socket.resetAndDestroy()
        // The write fails before the response can be read.
        sink?.onData(Buffer.alloc(100_000))
      })
    })
    open.push(() => server.close())
    const pool = createHttp1Pool({ host: '127.0.0.1', port: await listen(server), tls: undefined, keepAlive: undefined })
    open.push(() => pool.close())
    const body = { length: SIZE, start: (to: BodySink) => (sink = to).onData(Buffer.from('x')), pause() {}, resume() {}, cancel() {} }
    const response = await pool.call(testRequest({ method: 'POST', body }), { connectMs: 20_000 }).response
    expect(await readResponse(response)).toEqual({ text: '413 too large', error: undefined })
  })

  test('a connection that is reset without a response is still a 503', async () => {
    const { port } = await start((socket) => {
      socket.once('data', () => {
        socket.pause()
        void letArrive().then(() => socket.resetAndDestroy())
      })
    })
    expect(await upload(port)).toMatch(/^HTTP\/1\.1 503 /)
  })
})
