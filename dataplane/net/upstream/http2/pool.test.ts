import type { ServerHttp2Stream } from 'node:http2'
import { createServer as createNetServer, type AddressInfo } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { BufferBody, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { createHttp2Pool } from './pool.ts'
import { readResponse, testRequest } from '../http1/testing.ts'
import { UpstreamError, type UpstreamPool } from '../types.ts'
import { letArrive } from '../../../testing/turns.ts'
import { until } from '../../../../e2e/harness/wait.ts'
import { call, failureOf, open, start, timeouts, type Answer } from './testing.ts'

const echo: Answer = (stream, headers) => {
  const chunks: Buffer[] = []
  let trailers = ''
  stream.on('trailers', (fields) => (trailers = JSON.stringify(fields)))
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.on('end', () => {
    stream.respond({ ':status': 200 })
    stream.end(JSON.stringify({ ...headers, body: Buffer.concat(chunks).toString(), trailers }))
  })
}

/** A body whose chunks arrive later. */
const laterBody = (pieces: string[], trailers?: HeaderList, length?: number): BufferBody => {
  const body = {
    length,
    start(sink: BodySink) {
      let delay = 0
      for (const piece of pieces) setTimeout(() => sink.onData(Buffer.from(piece)), (delay += 10))
      setTimeout(() => sink.onEnd(trailers), delay + 10)
    },
    pause: () => undefined,
    resume: () => undefined,
    cancel: () => undefined,
  }
  return body as unknown as BufferBody
}

describe('HTTP/2 upstream requests', () => {
  test.each<[string, Parameters<typeof testRequest>[0], object]>([
    ['a GET', { target: '/a?b' }, { ':method': 'GET', ':path': '/a?b', ':scheme': 'http', ':authority': 'a', body: '' }],
    ['te: trailers if the client accepts them', { acceptsTrailers: true }, { te: 'trailers' }],
    [
      'hop-by-hop fields that a policy added are dropped',
      { headers: new HeaderList(['connection', 'x', 'host', 'b', 'x-a', '1']) },
      { 'x-a': '1', ':authority': 'a' },
    ],
    ['a body of known length', { method: 'POST', body: new BufferBody('hello') }, { body: 'hello', 'content-length': '5' }],
    [
      'a length that a policy left behind is corrected',
      { method: 'POST', headers: new HeaderList(['content-length', '9']), body: new BufferBody('hello') },
      { 'content-length': '5' },
    ],
    ['an empty body', { method: 'POST', headers: new HeaderList(['content-length', '0']) }, { 'content-length': '0', body: '' }],
    [
      'a body in pieces, with trailers',
      { method: 'POST', body: laterBody(['a', 'b'], new HeaderList(['x-end', 'yes'])) },
      { body: 'ab', trailers: '{"x-end":"yes"}' },
    ],
    [
      'trailers of a body in memory',
      { method: 'POST', body: new BufferBody('c', new HeaderList(['x-end', 'yes'])) },
      { body: 'c', trailers: '{"x-end":"yes"}' },
    ],
  ])('%s', async (_, change, expected) => {
    const { pool } = await start(echo)
    const text = await call(pool, change)
    expect(JSON.parse(text.slice(4))).toMatchObject(expected)
  })

  test.each<[string, Parameters<typeof testRequest>[0]]>([
    ['a line break in a value', { headers: new HeaderList(['x-a', 'a\r\nb: c']) }],
    ['a space in the target', { target: '/a b' }],
    ['user information in the authority', { authority: 'a@b' }],
    ['CONNECT', { method: 'CONNECT', target: '' }],
  ])('%s is not sent', async (_, change) => {
    const { pool, sessions } = await start(echo)
    expect(await failureOf(pool, change)).toBe('protocol')
    expect(sessions).toHaveLength(0)
  })
})

describe('HTTP/2 upstream responses', () => {
  test('have status, repeated fields, body and trailers', async () => {
    const { pool } = await start((stream) => {
      stream.respond({ ':status': 201, 'set-cookie': ['a', 'b'], 'x-a': '1' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.write('one')
      setTimeout(() => stream.end('two'), 20)
    })
    const response = await pool.call(testRequest(), timeouts).response
    expect([...response.headers].filter(([name]) => name !== 'date')).toEqual([
      ['set-cookie', 'a'],
      ['set-cookie', 'b'],
      ['x-a', '1'],
    ])
    expect((await readResponse(response)).text).toBe('201 onetwo grpc-status: 0')
  })

  test('interim responses are skipped; a head that ends the stream has no body', async () => {
    const { pool } = await start((stream) => {
      stream.additionalHeaders({ ':status': 103, link: 'x' })
      stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true })
    })
    const response = await pool.call(testRequest(), timeouts).response
    expect([response.status, response.headers.get('grpc-status'), response.body]).toEqual([200, '5', undefined])
  })

  test.each<[string, Answer, string]>([
    ['reset before the head', (stream) => stream.close(2), 'reset'],
    ['refused', (stream) => stream.close(7), 'connect'],
    ['a protocol error', (stream) => stream.close(1), 'protocol'],
    ['HTTP/1.1 required', (stream) => stream.close(13), 'protocol'],
    ['the connection is cut', (stream) => stream.session?.destroy(), 'reset'],
  ])('%s', async (_, answer, failure) => {
    const { pool } = await start(answer)
    expect(await failureOf(pool)).toBe(failure)
  })

  test.each<[string, object, (stream: ServerHttp2Stream) => void]>([
    ['a reset', {}, (stream) => stream.destroy(new Error('broken'))],
    ['a lost connection', {}, (stream) => stream.session?.destroy()],
    ['less than the content-length', { 'content-length': '9' }, (stream) => stream.end()],
  ])('%s fails the body instead of ending it', async (_, headers, breakOff) => {
    let answered: ServerHttp2Stream | undefined
    const { pool } = await start((stream) => {
      answered = stream
      stream.respond({ ':status': 200, ...headers })
      stream.write('part')
    })
    const read = readResponse(await pool.call(testRequest(), timeouts).response)
    await letArrive()
    if (answered !== undefined) breakOff(answered)
    const { text, error } = await read
    expect([text, error instanceof UpstreamError || error instanceof Error]).toEqual(['200 part', true])
  })
})

describe('HTTP/2 upstream connections', () => {
  test('calls share one connection up to the stream limit of the upstream', async () => {
    const waiting: ServerHttp2Stream[] = []
    const answerAll = (): void => {
      for (const stream of waiting.splice(0)) {
        stream.respond({ ':status': 200 })
        stream.end('ok')
      }
    }
    const { pool, sessions } = await start((stream) => void waiting.push(stream), { settings: { maxConcurrentStreams: 4 } })
    const first = call(pool)
    await until(() => waiting.length === 1)
    answerAll()
    await first
    const calls = Promise.all(Array.from({ length: 10 }, () => call(pool)))
    await until(() => waiting.length === 10)
    answerAll()
    const all = await calls
    expect(all).toEqual(Array.from({ length: 10 }, () => '200 ok'))
    expect(sessions).toHaveLength(3)
    expect(pool.size).toBe(3)
  })

  test('after GOAWAY open streams finish and new calls open a new connection', async () => {
    const { pool, sessions } = await start((stream, _headers, nth) => {
      stream.session?.close()
      setTimeout(() => (stream.respond({ ':status': 200 }), stream.end(String(nth))), 60)
    })
    const first = call(pool)
    await until(() => sessions.length === 1)
    await letArrive()
    expect(await Promise.all([first, call(pool)])).toEqual(['200 0', '200 1'])
    expect(sessions).toHaveLength(2)
  })

  test('a call that races with the close of an idle connection is sent again', async () => {
    const { pool, sessions } = await start((stream) => (stream.respond({ ':status': 200 }), stream.end('ok')))
    expect(await call(pool)).toBe('200 ok')
    const [session] = sessions
    // Both in one turn: the call is made before the client can notice.
    session?.destroy()
    expect(await call(pool)).toBe('200 ok')
    expect(sessions).toHaveLength(2)
  })

  test('a refused POST is sent again only if its body is replayable', async () => {
    let refusals = 0
    const { pool } = await start((stream, headers, nth) => {
      if (nth === 0) return echo(stream, headers, nth)
      refusals++
      stream.session?.goaway(0, 1)
      stream.close(7)
    })
    await call(pool)
    expect(await failureOf(pool, { method: 'POST', body: laterBody(['a']) })).toBe('connect')
    expect(refusals).toBe(1)
  })

  test('idle connections are closed, and all of them with the pool', async () => {
    const { pool, sessions } = await start((stream) => (stream.respond({ ':status': 200 }), stream.end('ok')), { transport: { keepAlive: { idleMs: 50 } } })
    await call(pool)
    expect(pool.size).toBe(1)
    await until(() => pool.size === 0 && sessions[0]?.destroyed === true)
    await call(pool)
    pool.close()
    await until(() => pool.size === 0 && sessions[1]?.destroyed === true)
  })

  test('an idle connection beyond maxIdle is closed', async () => {
    const waiting: ServerHttp2Stream[] = []
    const transport = { keepAlive: { idleMs: 60_000, maxIdle: 2 } }
    const { pool, sessions } = await start((stream) => void waiting.push(stream), { settings: { maxConcurrentStreams: 1 }, transport })
    const answerAll = (): void => {
      for (const stream of waiting.splice(0)) {
        stream.respond({ ':status': 200 })
        stream.end('ok')
      }
    }
    // The pool learns the limit of streams.
    const first = call(pool)
    await until(() => waiting.length === 1)
    answerAll()
    await first
    const calls = Promise.all(Array.from({ length: 4 }, () => call(pool)))
    await until(() => waiting.length === 4)
    answerAll()
    expect(await calls).toEqual(Array.from({ length: 4 }, () => '200 ok'))
    await until(() => sessions.filter(({ destroyed }) => !destroyed).length === 2)
    expect(pool.size).toBe(2)
  })

  test('a closing pool finishes its calls', async () => {
    const { pool, sessions } = await start((stream) => void setTimeout(() => (stream.respond({ ':status': 200 }), stream.end('ok')), 50))
    const pending = call(pool)
    await until(() => sessions.length === 1)
    pool.close()
    expect(await pending).toBe('200 ok')
    await until(() => pool.size === 0)
  })

  test('refused, silent and non-HTTP/2 endpoints have different failures', async () => {
    const at = (port: number): UpstreamPool => createHttp2Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: undefined })
    expect(await failureOf(at(1))).toBe('connect')
    const server = createNetServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => server.close())
    expect(await failureOf(at((server.address() as AddressInfo).port))).toBe('connect')
  })

  test('a cancelled call resets its stream without ending the request', async () => {
    const events: string[] = []
    const { pool } = await start((stream) => {
      stream.on('data', () => events.push('data'))
      stream.on('end', () => events.push(`end ${stream.rstCode}`))
      stream.on('close', () => events.push(`close ${stream.rstCode}`))
    })
    const started = pool.call(testRequest({ method: 'POST', body: laterBody(['a', ...Array.from({ length: 50 }, () => 'b')]) }), timeouts)
    await until(() => events.length > 0)
    started.cancel(new Error('client is gone'))
    await expect(started.response).rejects.toMatchObject({ failure: 'cancelled' })
    await until(() => events.at(-1)?.startsWith('close') === true)
    // Node ends the readable side of a reset stream too; END_STREAM would show as code 0.
    expect(events.filter((event) => event !== 'data')).toEqual(['end 8', 'close 8'])
  })

  test('a cancelled body frees its stream', async () => {
    const codes: number[] = []
    const { pool } = await start((stream) => {
      stream.on('close', () => codes.push(stream.rstCode))
      stream.respond({ ':status': 200 })
      stream.write('part')
    })
    const response = await pool.call(testRequest(), timeouts).response
    response.body?.cancel()
    await until(() => codes.length === 1)
    expect(codes).toEqual([8])
  })

  test('a paused body applies back-pressure to its own stream only', async () => {
    let written = 0
    const { pool } = await start((stream, headers) => {
      stream.respond({ ':status': 200 })
      if (headers[':path'] !== '/big') return void stream.end('small')
      const chunk = Buffer.alloc(65_536)
      const more = (): void => {
        while (written < 64 * 1024 * 1024) {
          written += chunk.length
          if (!stream.write(chunk)) return void stream.once('drain', more)
        }
        stream.end()
      }
      more()
    })
    const { body } = await pool.call(testRequest({ target: '/big' }), timeouts).response
    let received = 0
    let isOver = false
    body?.start({ onData: (chunk) => (received += chunk.length), onEnd: () => (isOver = true), onError: () => undefined })
    body?.pause()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(written).toBeLessThan(2 * 1024 * 1024)
    expect(await call(pool)).toBe('200 small')
    body?.resume()
    await until(() => isOver)
    expect(received).toBe(64 * 1024 * 1024)
  })
})
