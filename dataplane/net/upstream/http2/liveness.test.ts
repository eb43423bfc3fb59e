import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { Deadlines } from '../../../http/deadlines.ts'
import { createHttp2Pool } from './pool.ts'
import { readResponse, testRequest } from '../http1/testing.ts'
import { letArrive } from '../../../testing/turns.ts'
import { until } from '../../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

/** An upstream behind a relay that can drop all bytes, and a pool to it. */
async function start(answer: (stream: ServerHttp2Stream) => void, liveness = { silenceMs: 50, answerMs: 1500, restMs: 60_000 }) {
  const server = createServer()
  const sessions: ServerHttp2Session[] = []
  let pings = 0
  server.on('session', (session: ServerHttp2Session) => {
    sessions.push(session)
    session.on('error', () => undefined)
    session.on('ping', () => pings++)
  })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    answer(stream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pipes: [Socket, Socket][] = []
  const relay = createTcpServer((client) => {
    const upstream = connect((server.address() as AddressInfo).port, '127.0.0.1')
    pipes.push([client, upstream])
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
    client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const transport = { host: '127.0.0.1', port: (relay.address() as AddressInfo).port, tls: undefined, keepAlive: { idleMs: 60_000 } }
  const pool = createHttp2Pool(transport, { deadlines: new Deadlines(10), liveness })
  open.push(() => {
    pool.close()
    for (const pair of pipes) for (const socket of pair) socket.destroy()
    for (const session of sessions) session.destroy()
    relay.close()
    server.close()
  })
  /** Stops the relay: its connections are neither read nor closed any more. */
  const swallow = (): void => {
    for (const [client, upstream] of pipes) {
      client.unpipe().pause()
      upstream.unpipe().pause()
    }
  }
  const call = async (method: string): Promise<string> =>
    readResponse(await pool.call(testRequest({ method }), { connectMs: 20_000 }).response).then(
      ({ text, error }) => error?.message ?? text,
      (error: Error) => error.message,
    )
  return { pool, call: (method = 'GET') => call(method).catch((error: Error) => error.message), swallow, connections: () => pipes.length, pings: () => pings }
}

const answerOnce = (stream: ServerHttp2Stream): void => {
  stream.respond({ ':status': 200 })
  stream.end('here')
}

test('a call on a dead connection fails, and the next call opens a new connection', async () => {
  const { call, swallow, connections } = await start(answerOnce)
  expect(await call('POST')).toBe('200 here')
  swallow()
  expect(await call('POST')).toMatch(/^127\.0\.0\.1:\d+: upstream does not answer any more$/)
  expect([await call('POST'), connections()]).toEqual(['200 here', 2])
})

test('an idempotent call on a dead connection is sent again', async () => {
  const { call, swallow, connections } = await start(answerOnce)
  expect(await call()).toBe('200 here')
  // Only a connection that has carried a whole call is one that may have been closed under the next.
  await letArrive()
  swallow()
  expect([await call(), connections()]).toEqual(['200 here', 2])
})

test('a body on a dead connection fails', async () => {
  const { pool, swallow } = await start((stream) => void (stream.respond({ ':status': 200 }), stream.write('part')))
  const response = await pool.call(testRequest(), { connectMs: 20_000 }).response
  swallow()
  expect((await readResponse(response)).error?.message).toMatch(/upstream does not answer any more$/)
})

test('a slow upstream receives one PING and keeps its connection', async () => {
  let held: ServerHttp2Stream | undefined
  const { call, pings, connections } = await start((stream) => void (held = stream), { silenceMs: 50, answerMs: 60_000, restMs: 60_000 })
  const answered = call()
  await until(() => pings() === 1)
  await new Promise((resolve) => setTimeout(resolve, 400))
  expect(pings()).toBe(1)
  if (held !== undefined) answerOnce(held)
  expect([await answered, connections()]).toEqual(['200 here', 1])
})

test('a dead connection is given up although every call times out before', async () => {
  const { pool, call, swallow, connections } = await start(answerOnce)
  expect(await call('POST')).toBe('200 here')
  swallow()
  const failures: string[] = []
  while (connections() === 1) {
    const short = pool.call(testRequest({ method: 'POST' }), { connectMs: 20_000 })
    setTimeout(() => short.cancel(new Error('timed out')), 20)
    failures.push(
      await short.response.then(
        () => 'response',
        (error: Error) => error.message,
      ),
    )
  }
  expect(failures.slice(0, -1)).not.toContain('response')
  expect(failures.length).toBeGreaterThan(2)
  expect(await call('POST')).toBe('200 here')
})

test('a call that times out on a slow connection leaves it open', async () => {
  let isSlow = true
  let received = 0
  const { pool, call, pings, connections } = await start((stream) => {
    received++
    if (!isSlow) answerOnce(stream)
  })
  const short = pool.call(testRequest(), { connectMs: 20_000 })
  const failure = short.response.catch((error: unknown) => error)
  // A call that is cancelled before the connection is open says nothing about it.
  await until(() => received === 1)
  setTimeout(() => short.cancel(new Error('timed out')), 20)
  expect(String(await failure)).toContain('cancelled')
  await until(() => pings() === 1)
  isSlow = false
  expect([await call('POST'), connections()]).toEqual(['200 here', 1])
})

test('a connection without calls receives no PING', async () => {
  const { call, pings } = await start(answerOnce)
  expect(await call()).toBe('200 here')
  // A call that takes long may have been asked about.
  await letArrive()
  const before = pings()
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(pings()).toBe(before)
})
