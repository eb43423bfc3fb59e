import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import { BufferBody, type Body, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead } from '../../../http/message.ts'
import { listen } from '../../server/http1/testing.ts'
import { createHttp1Pool } from './pool.ts'
import { readResponse, startRawUpstream, testRequest, type RawUpstream } from './testing.ts'
import { UpstreamError } from '../types.ts'
import { letArrive } from '../../../testing/turns.ts'
import { until as expectSoon } from '../../../../e2e/harness/wait.ts'

let upstream: RawUpstream
afterEach(() => upstream?.close())

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const connectMs = 20_000
const call = (change: Partial<RequestHead> = {}): Promise<string> =>
  upstream.pool.call(testRequest(change), { connectMs }).response.then(async (response) => (await readResponse(response)).text)
const failureOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no failure',
    (error: unknown) => (error instanceof UpstreamError ? error.failure : String(error)),
  )

/** A body whose chunks the test pushes. */
class ManualBody implements Body {
  readonly length: number | undefined
  sink: BodySink | undefined
  isCancelled = false
  constructor(length?: number) {
    this.length = length
  }
  start(sink: BodySink): void {
    this.sink = sink
  }
  pause(): void {}
  resume(): void {}
  cancel(): void {
    this.isCancelled = true
  }
}

describe('serialized HTTP/1.1 requests', () => {
  const chunked = 'transfer-encoding: chunked\r\n\r\n'
  const rows: [string, Partial<RequestHead>, string][] = [
    [
      'Host comes first and names are lower case',
      {
        headers: HeaderList.from([
          ['X-A', 'b'],
          ['Accept', '*/*'],
        ]),
      },
      'GET / HTTP/1.1\r\nhost: a\r\nx-a: b\r\naccept: */*\r\n\r\n',
    ],
    ['te is added for a client that accepts trailers', { acceptsTrailers: true }, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: te\r\nte: trailers\r\n\r\n'],
    ['a body of known length', { method: 'POST', body: new BufferBody('hello') }, 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello'],
    [
      'a wrong content-length is corrected',
      { method: 'POST', headers: new HeaderList(['content-length', '9']), body: new BufferBody('hello') },
      'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello',
    ],
    [
      'a body of unknown length, with trailers',
      { method: 'PUT', body: pushing(['he', 'llo'], new HeaderList(['x-sum', '1'])) },
      `PUT / HTTP/1.1\r\nhost: a\r\n${chunked}2\r\nhe\r\n3\r\nllo\r\n0\r\nx-sum: 1\r\n\r\n`,
    ],
    ['POST without a body has content-length 0', { method: 'POST' }, 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n'],
    [
      'hop-by-hop fields of a policy are not written',
      { headers: new HeaderList(['connection', 'close', 'te', 'gzip', 'host', 'b', 'a', 'b']) },
      'GET / HTTP/1.1\r\nhost: a\r\na: b\r\n\r\n',
    ],
    ['an upgrade', { upgrade: 'websocket' }, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'],
    ['OPTIONS *', { method: 'OPTIONS', target: '*' }, 'OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n'],
  ]
  test.each(rows)('%s', async (_, request, expected) => {
    upstream = await startRawUpstream((socket) => setTimeout(() => socket.write(ok), 10))
    expect(await call(request)).toBe('200 ok')
    expect(upstream.received).toEqual([expected])
  })

  const injections: [string, Partial<RequestHead>][] = [
    ['CR LF in a value', { headers: new HeaderList(['a', 'b\r\nevil: 1']) }],
    ['LF in a value', { headers: new HeaderList(['a', 'b\nevil: 1']) }],
    ['NUL in a value', { headers: new HeaderList(['a', 'b\0c']) }],
    ['a character that Latin-1 cuts to LF', { headers: new HeaderList(['a', 'b\u010aevil: 1']) }],
    ['CR LF in a name', { headers: new HeaderList(['a: b\r\nevil', '1']) }],
    ['CR LF in the authority', { authority: 'a\r\nevil: 1' }],
    ['CR LF in the target', { target: '/ HTTP/1.1\r\nevil: 1\r\n\r\n' }],
    ['a space in the target', { target: '/ HTTP/1.1' }],
    ['a target in absolute form', { target: 'http://evil/' }],
    ['a space in the method', { method: 'GET /evil' }],
    ['CR LF in the upgrade', { upgrade: 'websocket\r\nevil: 1' }],
  ]
  test.each(injections)('%s is rejected and nothing is sent', async (_, request) => {
    upstream = await startRawUpstream((socket) => socket.write(ok))
    expect(await failureOf(call(request))).toMatch(/^UnwritableHeadError/)
    expect(await call()).toBe('200 ok')
    expect(upstream.received).toEqual(['GET / HTTP/1.1\r\nhost: a\r\n\r\n'])
  })

  test.each([
    ['longer', 'too long'],
    ['shorter', 'x'],
  ])('a request body %s than its length closes the connection', async (_, text) => {
    upstream = await startRawUpstream(() => undefined)
    const body = pushing([text])
    Object.defineProperty(body, 'length', { value: 5 })
    expect(await failureOf(call({ method: 'POST', body }))).toBe('cancelled')
    expect(upstream.pool.size).toBe(0)
  })
})

function pushing(parts: string[], trailers?: HeaderList): Body {
  const body = new ManualBody()
  body.start = (sink) => {
    for (const part of parts) sink.onData(Buffer.from(part))
    sink.onEnd(trailers)
  }
  return body
}

describe('HTTP/1.1 upstream connections', () => {
  test('the most recently used connection is reused first', async () => {
    let answerSlow: (() => void) | undefined
    upstream = await startRawUpstream((socket, _, text) => {
      if (text.includes('/slow')) answerSlow = () => void socket.write(ok)
      else socket.write(ok)
    })
    const slow = call({ target: '/slow' })
    await call()
    await expectSoon(() => answerSlow !== undefined)
    answerSlow?.()
    await slow
    expect(upstream.received.length).toBe(2)
    await call({ target: '/last' })
    expect(upstream.received.filter((text) => text.includes('/last') && text.includes('/slow'))).toHaveLength(1)
    expect(upstream.pool.size).toBe(2)
  })

  test.each([
    ['idle connections are closed after idleMs', { keepAlive: { idleMs: 40 } }, ok],
    [
      'idle connections are closed before the upstream does',
      { keepAlive: { idleMs: 60_000 } },
      ok.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=1, max=5\r\n\r\n'),
    ],
    ['without keep-alive every call uses a new connection', { keepAlive: undefined }, ok],
  ])('%s', async (_, transport, response) => {
    upstream = await startRawUpstream((socket) => socket.write(response), transport)
    await call()
    await expectSoon(() => upstream.pool.size === 0)
    expect(await call()).toBe('200 ok')
    expect(upstream.received.length).toBe(2)
    if (transport.keepAlive === undefined) expect(upstream.received[0]).toContain('connection: close\r\n')
  })

  test('an idle connection beyond maxIdle is closed', async () => {
    const answers: (() => void)[] = []
    upstream = await startRawUpstream((socket) => void answers.push(() => socket.write(ok)), { keepAlive: { idleMs: 60_000, maxIdle: 2 } })
    const calls = [call(), call(), call()]
    await expectSoon(() => answers.length === 3)
    for (const answer of answers) answer()
    expect(await Promise.all(calls)).toEqual(['200 ok', '200 ok', '200 ok'])
    expect(upstream.pool.size).toBe(2)
  })

  test('closing a pool closes idle connections now and busy ones after their call', async () => {
    let answerLast: (() => void) | undefined
    upstream = await startRawUpstream((socket, nth) => {
      if (nth === 0) socket.write(ok)
      else answerLast = () => void socket.write(ok)
    })
    await call()
    const pending = call()
    await expectSoon(() => answerLast !== undefined)
    upstream.pool.close()
    expect(upstream.pool.size).toBe(1)
    answerLast?.()
    expect(await pending).toBe('200 ok')
    expect(upstream.pool.size).toBe(0)
  })

  const races: [string, Partial<RequestHead>, string][] = [
    ['GET', {}, '200 ok'],
    ['PUT with a body in memory', { method: 'PUT', body: new BufferBody('hello') }, '200 ok'],
    ['PUT with a consumed body', { method: 'PUT', body: pushing(['hello']) }, 'reset'],
    ['POST', { method: 'POST' }, 'reset'],
  ]
  test.each(races)('after an idle connection closes before any byte, %s', async (_, request, expected) => {
    upstream = await startRawUpstream((socket, nth) => (nth === 0 ? socket.write(ok) : socket.destroy()))
    await call()
    expect(await call(request).catch((error: UpstreamError) => error.failure)).toBe(expected)
    expect(upstream.received).toHaveLength(expected === 'reset' ? 1 : 2)
  })

  test('a lost request is sent again only once', async () => {
    let calls = 0
    upstream = await startRawUpstream((socket) => (calls++ === 0 ? socket.write(ok) : socket.destroy()))
    await call()
    expect(await failureOf(call())).toBe('reset')
    expect(calls).toBe(3)
  })

  test('a call on a new connection that closes is not sent again', async () => {
    upstream = await startRawUpstream((socket) => socket.destroy())
    expect(await failureOf(call())).toBe('reset')
    expect(upstream.received).toHaveLength(1)
  })

  test('refused, unknown and silent endpoints have different failures', async () => {
    // Nobody listens on port 1 of a machine that runs tests.
    const fail = (host: string, waitMs: number, tls = false): Promise<string> => {
      const insecure = {
        servername: undefined,
        ca: undefined,
        cert: undefined,
        key: undefined,
        subjectAltNames: undefined,
        verify: 'none',
        alpn: undefined,
      } as const
      const pool = createHttp1Pool({ host, port: tls ? silentPort : 1, tls: tls ? insecure : undefined, keepAlive: undefined })
      return failureOf(pool.call(testRequest(), { connectMs: waitMs }).response)
    }
    // A server that never answers the TLS hello.
    const silent = createServer((socket) => socket.on('error', () => undefined))
    const silentPort = await listen(silent)
    expect(await fail('127.0.0.1', connectMs)).toBe('connect')
    expect(['dns', 'connect-timeout']).toContain(await fail('no-such-host.invalid', 50))
    expect(await fail('127.0.0.1', 50, true)).toBe('connect-timeout')
    silent.close()
  })
})

describe('HTTP/1.1 bodies in flight', () => {
  test('a response that arrives while the request is sent is delivered at once', async () => {
    upstream = await startRawUpstream((socket, nth) =>
      nth === 0 ? socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n') : socket.write('0\r\n\r\n'),
    )
    const body = new ManualBody()
    const response = await upstream.pool.call(testRequest({ method: 'POST', body }), { connectMs }).response
    const text = readResponse(response)
    body.sink?.onData(Buffer.from('hello'))
    body.sink?.onEnd(undefined)
    expect(await text).toEqual({ text: '200 hi', error: undefined })
    expect(upstream.pool.size).toBe(1)
  })

  test('a response that ends before the request does cancels the rest and the connection', async () => {
    upstream = await startRawUpstream((socket) => socket.write(ok))
    const body = new ManualBody()
    expect(await call({ method: 'POST', body })).toBe('200 ok')
    expect(body.isCancelled).toBe(true)
    expect(upstream.pool.size).toBe(0)
  })

  test('an unread body is held by back-pressure and complete after resume', async () => {
    const size = 50_000_000
    let sent = 0
    upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
      const push = (): void => {
        while (sent < size && socket.write(Buffer.alloc(1_000_000))) sent += 1_000_000
        if (sent < size) socket.once('drain', () => ((sent += 1_000_000), push()))
      }
      push()
    })
    const { body } = await upstream.pool.call(testRequest(), { connectMs }).response
    await sleep(100)
    expect(sent).toBeLessThan(20_000_000)
    let received = 0
    await new Promise<void>((resolve, reject) => {
      body?.start({
        onData: (chunk) => {
          received += chunk.length
          body.pause()
          setImmediate(() => body.resume())
        },
        onEnd: () => resolve(),
        onError: reject,
      })
    })
    expect(received).toBe(size)
  })

  test('a body that ends with the connection is complete even if it is read late', async () => {
    upstream = await startRawUpstream((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'))
    const response = await upstream.pool.call(testRequest(), { connectMs }).response
    await letArrive()
    expect(await readResponse(response)).toEqual({ text: '200 hello', error: undefined })
  })

  test('a connection that closed before its response was read is not reused', async () => {
    upstream = await startRawUpstream((socket) => socket.end(ok))
    const response = await upstream.pool.call(testRequest({ method: 'POST' }), { connectMs }).response
    await letArrive()
    expect(await readResponse(response)).toEqual({ text: '200 ok', error: undefined })
    expect(await call({ method: 'POST' })).toBe('200 ok')
    expect(upstream.received).toHaveLength(2)
  })

  test.each([
    ['before it is connected', false],
    ['before the response', true],
  ])('cancelling %s rejects and closes the connection', async (_, isSent) => {
    upstream = await startRawUpstream(() => undefined)
    const started = upstream.pool.call(testRequest(), { connectMs })
    const failure = failureOf(started.response)
    if (isSent) await expectSoon(() => upstream.received.join('') !== '')
    started.cancel(new Error('no more'))
    started.cancel(new Error('again'))
    expect(await failure).toBe('cancelled')
    expect(upstream.pool.size).toBe(0)
  })

  test('cancelling during the response fails its body', async () => {
    upstream = await startRawUpstream((socket) => socket.write(ok.replace(': 2', ': 9')))
    const started = upstream.pool.call(testRequest(), { connectMs })
    const read = readResponse(await started.response)
    await letArrive()
    started.cancel(new Error('no more'))
    expect(await read).toMatchObject({ text: '200 ok', error: { failure: 'cancelled' } })
    expect(upstream.pool.size).toBe(0)
  })

  test('cancelling a short body keeps the connection, cancelling a long one closes it', async () => {
    upstream = await startRawUpstream((socket, _, text) => socket.write(text.includes('/long') ? ok.replace(': 2', ': 200000') : ok))
    const giveUp = async (target: string): Promise<void> => (await upstream.pool.call(testRequest({ target }), { connectMs }).response).body?.cancel()
    await giveUp('/short')
    expect(await call()).toBe('200 ok')
    expect(upstream.received).toHaveLength(1)
    await giveUp('/long')
    expect(upstream.pool.size).toBe(0)
  })
})

test('cancelling a short body whose rest does not arrive closes the connection', async () => {
  upstream = await startRawUpstream((socket) => socket.write(ok.replace(': 2', ': 9')))
  const { body } = await upstream.pool.call(testRequest(), { connectMs }).response
  body?.cancel()
  expect(upstream.pool.size).toBe(1)
  await expectSoon(() => upstream.pool.size === 0)
})

describe('HTTP/1.1 upgrades', () => {
  const switching = (protocol: string): string => `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: ${protocol}\r\nA: b\r\n\r\nearly`

  test('101 returns the connection and the bytes after the head', async () => {
    upstream = await startRawUpstream((socket, nth, text) => (nth === 0 ? socket.write(switching('WebSocket')) : socket.write(`echo ${text}`)))
    const { status, headers, upgraded } = await upstream.pool.call(testRequest({ upgrade: 'websocket' }), { connectMs }).response
    expect({ status, headers: [...headers], early: upgraded?.head.toString() }).toEqual({
      status: 101,
      headers: [
        ['a', 'b'],
        ['upgrade', 'WebSocket'],
      ],
      early: 'early',
    })
    await letArrive()
    const echo = new Promise((resolve) => upgraded?.socket.once('data', (chunk: Buffer) => resolve(chunk.toString())))
    upgraded?.socket.resume().write('hi')
    expect(await echo).toBe('echo hi')
    upgraded?.socket.destroy()
    await expectSoon(() => upstream.pool.size === 0)
  })

  test('101 to another protocol is rejected', async () => {
    upstream = await startRawUpstream((socket) => socket.write(switching('h2c')))
    expect(await failureOf(call({ upgrade: 'websocket' }))).toBe('upgrade')
  })

  test('a refused upgrade is an ordinary response', async () => {
    upstream = await startRawUpstream((socket) => socket.write(ok.replace('200 OK', '403 Forbidden')))
    expect(await call({ upgrade: 'websocket' })).toBe('403 ok')
  })
})
