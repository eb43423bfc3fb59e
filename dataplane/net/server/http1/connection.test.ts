import { connect } from 'node:net'
import { duplexPair } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange, OnRequest } from '../../../request/exchange/exchange.ts'
import { BufferBody, readBody, type Body, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import type { Http1Options } from './connection.ts'
import { sendRaw, startHttp1Server, withoutDate, type TestServer } from './testing.ts'
import { until as expectSoon } from '../../../../e2e/harness/wait.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function start(onRequest: OnRequest, options: Partial<Http1Options> = {}): Promise<TestServer> {
  server = await startHttp1Server(onRequest, options)
  return server
}

function answer(body: string | Body | undefined, headers: string[] = [], status = 200): ResponseHead {
  return { status, headers: new HeaderList(headers), body: typeof body === 'string' ? new BufferBody(body) : body, upgraded: undefined }
}

/** A body whose chunks the test pushes. */
class ManualBody implements Body {
  readonly length: number | undefined
  sink: BodySink | undefined
  isPaused = false
  cancelled: Error | true | undefined
  constructor(length?: number) {
    this.length = length
  }
  start(sink: BodySink): void {
    this.sink = sink
  }
  pause(): void {
    this.isPaused = true
  }
  resume(): void {
    this.isPaused = false
  }
  cancel(error?: Error): void {
    this.cancelled = error ?? true
  }
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

describe('HTTP/1.1 responses', () => {
  const rows: [string, string, () => ResponseHead, string][] = [
    ['a body of known length gets its content-length', get, () => answer('hi'), 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'],
    ['a wrong content-length is corrected', get, () => answer('hi', ['content-length', '7']), 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'],
    ['no body is content-length 0', get, () => answer(undefined, [], 404), 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'],
    ['204 has no length', get, () => answer(undefined, ['content-length', '0'], 204), 'HTTP/1.1 204 No Content\r\n\r\n'],
    [
      '304 keeps the length of the representation',
      get,
      () => answer(undefined, ['content-length', '7'], 304),
      'HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n',
    ],
    ['HEAD keeps the length and sends no body', get.replace('GET', 'HEAD'), () => answer('hi'), 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'],
    [
      'an unknown length is chunked',
      get,
      () => answer(flowing('he', 'llo')),
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n',
    ],
    [
      'an unknown length ends with the connection for HTTP/1.0',
      get.replace('1.1', '1.0'),
      () => answer(flowing('hi')),
      'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhi',
    ],
    [
      'trailers reach a client that takes them',
      get.replace('Host', 'TE: trailers\r\nHost'),
      () => answer(flowing('hi', new HeaderList(['x-sum', '1']))),
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n',
    ],
    [
      'trailers are dropped for any other',
      get,
      () => answer(flowing('hi', new HeaderList(['x-sum', '1']))),
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
    ],
    [
      'hop-by-hop fields of a policy are not written',
      get,
      () => answer('', ['connection', 'x', 'transfer-encoding', 'gzip', 'a', 'b']),
      'HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 0\r\n\r\n',
    ],
    [
      'a request without authority is told so in the words of the error table',
      get.replace('Host: a\r\n', ''),
      () => answer('hi'),
      'HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 15\r\nconnection: close\r\n\r\ninvalid request',
    ],
    [
      'a value with CR LF is an internal error',
      get,
      () => answer('hi', ['a', 'b\r\nevil: 1']),
      'HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\ninternal error',
    ],
    [
      'a value that would become LF in Latin-1 is an internal error',
      get,
      () => answer('hi', ['a', 'b\u010aevil: 1']),
      'HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\ninternal error',
    ],
    [
      'a name with a colon is an internal error',
      get,
      () => answer('hi', ['a: b\r\nc', 'd']),
      'HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\ninternal error',
    ],
    [
      '101 without an upgraded connection is an internal error',
      get,
      () => answer(undefined, [], 101),
      'HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\ninternal error',
    ],
  ]
  test.each(rows)('%s', async (_, request, respond, expected) => {
    const { port } = await start((exchange) => {
      exchange.response = respond()
    })
    expect(withoutDate((await sendRaw(port, [request], 120)).text)).toBe(expected)
  })

  test('date is added if it is missing, and the upstream date is kept', async () => {
    const { port } = await start((exchange) => {
      exchange.response = answer(undefined, exchange.request.target === '/' ? [] : ['date', 'then'])
    })
    expect((await sendRaw(port, [get], 120)).text.match(/^date: .* GMT\r$/gm)).toHaveLength(1)
    expect((await sendRaw(port, [get.replace('/ ', '/kept ')], 120)).text.match(/^date: .*$/gm)).toEqual(['date: then'])
  })

  test.each([
    ['longer', 'too long'],
    ['shorter', 'x'],
  ])('a body %s than its length is a 503 if nothing was sent yet', async (_, text) => {
    const { port, finished } = await start((exchange) => {
      const body = flowing(text)
      Object.defineProperty(body, 'length', { value: 5 })
      exchange.response = answer(body)
    })
    const { text: received } = await sendRaw(port, [get + get.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')])
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 503', 'HTTP/1.1 503'])
    expect(finished.map(({ error }) => error?.code)).toEqual(['UPSTREAM_FAILED', 'UPSTREAM_FAILED'])
  })

  test.each([
    ['the upstream for a plain error', new Error('gone'), 'UPSTREAM_FAILED'],
    ['the code of a ProxyError', new ProxyError('EXT_PROC'), 'EXT_PROC'],
  ])('a body that fails is attributed to %s', async (_, error, code) => {
    const body = new ManualBody()
    const { port, finished } = await start((exchange) => void (exchange.response = answer(body)))
    const received = sendRaw(port, [get])
    await expectSoon(() => body.sink !== undefined)
    body.sink?.onError(error)
    await received
    await expectSoon(() => finished[0]?.error?.code === code)
  })

  test('a body that fails closes the connection without the last chunk', async () => {
    const body = new ManualBody()
    const { port, finished } = await start((exchange) => {
      exchange.response = answer(body)
    })
    const received = sendRaw(port, [get])
    await expectSoon(() => body.sink !== undefined)
    body.sink?.onData(Buffer.from('hi'))
    await sleep(20)
    body.sink?.onError(new Error('gone'))
    const { text, isClosed } = await received
    expect(isClosed).toBe(true)
    expect(text).toMatch(/2\r\nhi\r\n$/)
    expect(finished[0]).toMatchObject({ cutBy: 'upstream', responseBytes: 2 })
  })
})

test('an HTTP/1.0 client is reset if a body fails', async () => {
  const body = new ManualBody()
  const { port } = await start((exchange) => {
    exchange.response = answer(body)
  })
  const client = connect(port, '127.0.0.1')
  const failed = new Promise<NodeJS.ErrnoException>((resolve) => client.on('error', resolve))
  client.resume().write(get.replace('1.1', '1.0'))
  await expectSoon(() => body.sink !== undefined)
  body.sink?.onData(Buffer.from('hi'))
  body.sink?.onError(new Error('gone'))
  expect((await failed).code).toBe('ECONNRESET')
})

/** A body that delivers its chunks and trailers synchronously. */
function flowing(...parts: (string | HeaderList)[]): Body {
  const body = new ManualBody()
  body.start = (sink) => {
    for (const part of parts) if (typeof part === 'string') sink.onData(Buffer.from(part))
    sink.onEnd(parts.find((part) => part instanceof HeaderList))
  }
  return body
}

describe('HTTP/1.1 connections', () => {
  test('requests of a connection are served one after another, in order', async () => {
    let inFlight = 0
    const { port, finished } = await start(async (exchange) => {
      expect(++inFlight).toBe(1)
      await sleep(5)
      inFlight--
      exchange.response = answer(exchange.request.target)
    })
    const { text, isClosed } = await sendRaw(port, [['/1', '/2', '/3'].map((target) => get.replace('/', target)).join('')], 120)
    expect(text.match(/^\/[0-9]/gm)).toEqual(['/1', '/2', '/3'])
    expect(isClosed).toBe(false)
    expect(finished).toHaveLength(3)
  })

  test('a pipeline of thousands of requests is served without a deep stack', async () => {
    const { port, finished } = await start((exchange) => {
      exchange.response = answer(undefined)
    })
    await sendRaw(port, [get.repeat(5000)], 1000)
    expect(finished).toHaveLength(5000)
  })

  test('a client that pipelines requests and reads no responses is not served endlessly', async () => {
    const { port, finished } = await start((exchange) => {
      exchange.response = answer(undefined, ['a', 'x'.repeat(10_000)])
    })
    const client = connect(port, '127.0.0.1')
    client.pause()
    client.write(get.repeat(5000))
    await sleep(200)
    expect(finished.length).toBeLessThan(2000)
    client.resume()
    await expectSoon(() => finished.length === 5000)
    client.destroy()
  })

  test('bytes read by protocol detection are parsed first', async () => {
    const { serveHttp1 } = await import('./connection.ts')
    const { testConnection } = await import('../../../testing/exchange.ts')
    const [client, socket] = duplexPair()
    const seen: string[] = []
    serveHttp1(socket, {
      connection: testConnection,
      initial: Buffer.from(get.slice(0, 10)),
      onRequest: (exchange) => {
        seen.push(exchange.request.target)
        exchange.response = answer(undefined)
      },
      onFinish: () => undefined,
    })
    client.write(get.slice(10))
    await expectSoon(() => seen.length === 1)
    client.destroy()
    socket.destroy()
  })

  test.each([
    ['a head that stops gets 408', ['GET / HTTP/1.1\r\n'], { headMs: 30 }, /^HTTP\/1\.1 408 /],
    ['a head that arrives byte by byte gets 408', Array.from(get), { headMs: 60 }, /^HTTP\/1\.1 408 /],
    ['a connection without any byte is closed without a response', [], { headMs: 30 }, /^$/],
    ['an idle connection is closed without a response', [get], { idleMs: 30 }, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/],
    ['a body that stops gets 408', [get.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nhe')], { bodyMs: 30 }, /^HTTP\/1\.1 408 /],
  ])('%s', async (_, pieces, timeouts, expected) => {
    const { port } = await start(
      async (exchange) => {
        await readBody(exchange.request.body, 100).catch(() => undefined)
        exchange.response = answer(undefined)
      },
      { timeouts },
    )
    const { text, isClosed } = await sendRaw(port, pieces)
    expect(text).toMatch(expected)
    expect(isClosed).toBe(true)
  })

  test('draining lets the request in flight finish with connection: close and closes idle connections', async () => {
    let release = (): void => undefined
    const started = await start(async (exchange) => {
      if (exchange.request.target === '/slow') await new Promise<void>((resolve) => (release = resolve))
      exchange.response = answer('done')
    })
    const idle = sendRaw(started.port, [get])
    const busy = sendRaw(started.port, [get.replace('/', '/slow')])
    await expectSoon(() => started.finished.length === 1 && [...started.connections].some((connection) => !connection.isIdle))
    for (const connection of started.connections) connection.drain()
    expect((await idle).isClosed).toBe(true)
    release()
    const { text, isClosed } = await busy
    expect(text).toMatch(/connection: close\r\n\r\ndone$/)
    expect(isClosed).toBe(true)
  })

  test('a client that disconnects aborts its exchange, which finishes once', async () => {
    const body = new ManualBody()
    let aborted: Error | undefined
    const { port, finished } = await start((exchange) => {
      exchange.onAbort((error) => (aborted = error))
      exchange.response = answer(body)
    })
    const client = connect(port, '127.0.0.1')
    client.write(get)
    await expectSoon(() => body.sink !== undefined)
    client.destroy()
    await expectSoon(() => finished.length === 1)
    expect(aborted).toHaveProperty('message')
    expect(body.cancelled).toHaveProperty('message')
    expect(finished[0]?.cutBy).toBe('client')
  })

  test('an exchange whose client disconnects during the handler finishes when the handler returns', async () => {
    const handled = Promise.withResolvers<void>()
    const body = new ManualBody()
    const { port, finished } = await start(async (exchange) => {
      exchange.onAbort(() => handled.resolve())
      await handled.promise
      await sleep(10)
      expect(finished).toHaveLength(0)
      exchange.response = answer(body)
    })
    const client = connect(port, '127.0.0.1')
    client.end(get)
    await expectSoon(() => finished.length === 1)
    expect(body.cancelled).toBe(true)
    expect(finished[0]?.cutBy).toBe('client')
  })
})

describe('HTTP/1.1 request bodies', () => {
  const expecting = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'
  const read: OnRequest = async (exchange: Exchange) => {
    const { bytes } = await readBody(exchange.request.body, 1e7)
    exchange.response = answer(String(bytes.length))
  }

  test('100 Continue is sent when the body is read', async () => {
    const { port } = await start(read)
    const { text, isClosed } = await sendRaw(port, [expecting, /100 Continue/, 'hello'], 120)
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n5$/)
    expect(isClosed).toBe(false)
  })

  test('100 Continue is not sent to a client that did not wait', async () => {
    const { port } = await start(read)
    expect((await sendRaw(port, [`${expecting}hello`], 120)).text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  })

  test('a client that waits for 100 gets the response and is disconnected if the body is not read', async () => {
    const { port } = await start((exchange) => {
      exchange.response = answer('no', [], 401)
    })
    const { text, isClosed } = await sendRaw(port, [expecting])
    expect(text).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n[^]*connection: close/)
    expect(isClosed).toBe(true)
  })

  test.each([
    ['a short unread body is skipped and the connection stays open', 'Content-Length: 5', 'hello', false],
    ['a short unread chunked body is skipped and the connection stays open', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n', false],
    ['a long unread body closes the connection', 'Content-Length: 1000000', 'x'.repeat(1_000_000), true],
    ['an endless unread chunked body closes the connection', 'Transfer-Encoding: chunked', 'f0000\r\n'.padEnd(200_000, 'x'), true],
  ])('%s', async (_, header, body, isCut) => {
    const { port, finished } = await start((exchange) => {
      exchange.response = answer('early')
    })
    const { text, isClosed } = await sendRaw(port, [`POST / HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n`, body, get], isCut ? undefined : 100)
    expect(isClosed).toBe(isCut)
    expect(text.match(/early/g)).toHaveLength(isCut ? 1 : 2)
    expect(finished).toHaveLength(isCut ? 1 : 2)
  })

  test('a response during a long upload has connection: close', async () => {
    const { port } = await start((exchange) => {
      exchange.request.body?.start({ onData: () => undefined, onEnd: () => undefined, onError: () => undefined })
      exchange.response = answer('early')
    })
    const { text } = await sendRaw(port, ['POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n', 'hello'], 120)
    expect(text).toMatch(/connection: close\r\n\r\nearly$/)
  })

  test('a paused reader stops the client and receives every byte after resume', async () => {
    let sink: BodySink & { bytes: number } = { bytes: 0, onData: () => undefined, onEnd: () => undefined, onError: () => undefined }
    let body: Body | undefined
    const ended = Promise.withResolvers<void>()
    const { port } = await start(async (exchange) => {
      body = exchange.request.body
      sink = { bytes: 0, onData: (chunk) => ((sink.bytes += chunk.length), body?.pause()), onEnd: () => ended.resolve(), onError: ended.reject }
      body?.start(sink)
      await ended.promise
      exchange.response = answer(String(sink.bytes))
    })
    const size = 30_000_000
    const client = connect(port, '127.0.0.1')
    let text = ''
    client.on('data', (chunk) => (text += chunk.toString()))
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`)
    client.write(Buffer.alloc(size))
    await sleep(100)
    expect(sink.bytes).toBeLessThan(200_000)
    sink.onData = (chunk) => (sink.bytes += chunk.length)
    body?.resume()
    await expectSoon(() => text.endsWith(String(size)))
    client.destroy()
  })

  test('a client that does not read pauses the response body', async () => {
    const body = new ManualBody()
    const { port } = await start((exchange) => {
      exchange.response = answer(body)
    })
    const client = connect(port, '127.0.0.1')
    client.pause()
    client.write(get)
    await expectSoon(() => body.sink !== undefined)
    for (let i = 0; i < 1000 && !body.isPaused; i++) {
      body.sink?.onData(Buffer.alloc(65_536))
      await sleep(0)
    }
    expect(body.isPaused).toBe(true)
    client.resume()
    await expectSoon(() => !body.isPaused)
    client.destroy()
  })

  test('bytes of both directions are counted without framing', async () => {
    const { port, finished } = await start(read)
    await sendRaw(port, ['POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n'], 120)
    expect(finished[0]).toMatchObject({ requestBytes: 5, responseBytes: 1 })
  })
})
