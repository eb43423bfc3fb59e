import { connect as connectNet } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { describeRequest, openHttp2, request2, respondWith, startBind, talk, type TestBind } from '../testing.ts'
import { until } from '../../../../e2e/harness/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
const start = async (...options: Parameters<typeof startBind>): Promise<TestBind> => {
  const server = await startBind(...options)
  open.push(server)
  return server
}
const session = (port: number): ReturnType<typeof openHttp2> => {
  const opened = openHttp2(port)
  open.push({ close: () => opened.destroy() })
  return opened
}

const manyFields = (length: number): Record<string, string> => Object.fromEntries(Array.from({ length }, (_, index) => [`x-${index}`, '1']))

describe('HTTP/2 requests', () => {
  test.each<[string, Record<string, string | string[]>, string | undefined, object]>([
    [
      'a plain GET',
      { ':path': '/a?b=c' },
      undefined,
      { method: 'GET', target: '/a?b=c', authority: 'test', version: 'HTTP/2', scheme: 'http', acceptsTrailers: false, body: '' },
    ],
    ['a body without length', { ':method': 'POST' }, 'hello', { method: 'POST', body: 'hello' }],
    ['cookie crumbs are joined', { cookie: ['a=1', 'b=2'] }, undefined, { headers: { cookie: 'a=1; b=2' } }],
    ['te is kept apart, trailer is dropped', { te: 'trailers', trailer: 'x' }, undefined, { acceptsTrailers: true, headers: {} }],
    ['host equal to :authority is dropped', { host: 'TEST' }, undefined, { authority: 'test', headers: {} }],
    ['Latin-1 values come as they are', { 'x-a': 'caf\u00e9' }, undefined, { headers: { 'x-a': 'caf\u00e9' } }],
    ['more fields than HTTP/1.1 may have', manyFields(300), undefined, { headers: { 'x-299': '1' } }],
    ['OPTIONS *', { ':method': 'OPTIONS', ':path': '*' }, undefined, { target: '*' }],
  ])('%s', async (_, headers, body, expected) => {
    const { port, finished } = await start(describeRequest)
    const answer = await request2(session(port), headers, body)
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject(expected)
    await until(() => finished.length === 1)
    expect(finished[0]).toMatchObject({ requestBytes: body?.length ?? 0, responseBytes: Buffer.byteLength(answer.body), cutBy: undefined })
  })

  test.each<[string, Record<string, string>, number, string]>([
    ['host differs from :authority', { host: 'other' }, 400, 'host differs from :authority'],
    ['a header section above 16 KiB', { big: 'x'.repeat(17_000) }, 431, 'request header section exceeds 16384 bytes'],
    ['a path with a fragment', { ':path': '/a#b' }, 400, 'invalid :path'],
    ['more fields than fit into the header section', manyFields(600), 431, 'request header section exceeds 16384 bytes'],
    ['an authority with user information', { ':authority': 'a@b' }, 400, 'invalid :authority'],
    ['a path that is not a path', { ':path': '*' }, 400, ':path * is for OPTIONS only'],
    ['a space in :path', { ':path': '/a b' }, 400, 'invalid :path'],
    ['another expectation', { expect: 'magic' }, 417, 'unknown expectation'],
  ])('rejects %s and keeps the connection', async (_, headers, status, body) => {
    const { port, finished, refused } = await start(describeRequest)
    const client = session(port)
    expect(await request2(client, headers)).toMatchObject({ status, body, error: undefined })
    expect(refused).toHaveLength(1)
    expect(finished).toHaveLength(0)
    expect((await request2(client, {})).status).toBe(200)
  })

  test('a body that exceeds its content-length is never complete and resets the stream', async () => {
    let body = ''
    const { port, finished } = await start(async (exchange) => {
      await describeRequest(exchange)
      body = 'whole'
    })
    const client = session(port)
    const answer = await request2(client, { ':method': 'POST', 'content-length': '2' }, 'longer')
    expect(answer).toMatchObject({ status: 0, error: 'Stream closed with error code NGHTTP2_PROTOCOL_ERROR' })
    await until(() => finished.length === 1)
    expect([body, finished[0]?.cutBy]).toEqual(['', 'client'])
    expect((await request2(client, {})).status).toBe(200)
  })

  test('trailers pass in both directions', async () => {
    const { port } = await start(async (exchange) => {
      await describeRequest(exchange)
      const body = exchange.response?.body as BufferBody
      respondWith(exchange, body.bytes.toString(), new HeaderList(['x-sum', '1', 'x-sum', '2', 'connection', 'close']))
    })
    const stream = session(port).request({ ':method': 'POST', ':path': '/', te: 'trailers' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }))
    stream.end('body')
    const chunks: Buffer[] = []
    const trailers = new Promise((resolve) => stream.on('trailers', (fields) => resolve(Object.fromEntries(Object.entries(fields)))))
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    expect(await trailers).toEqual({ 'x-sum': '1, 2' })
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ body: 'body', trailers: { 'x-end': 'yes' } })
  })

  test('100 Continue is sent when the body is read', async () => {
    const { port } = await start(describeRequest)
    const stream = session(port).request({ ':method': 'POST', ':path': '/', expect: '100-continue' })
    const events: string[] = []
    stream.on('continue', () => {
      events.push('continue')
      stream.end('late')
    })
    stream.on('response', () => events.push('response'))
    stream.resume()
    await new Promise((resolve) => stream.on('close', resolve))
    expect(events).toEqual(['continue', 'response'])
  })

  test('an empty body that ended before it was read still ends', async () => {
    let release: () => void = () => undefined
    const later = new Promise<void>((resolve) => (release = resolve))
    const { port } = await start(async (exchange) => {
      if (exchange.request.target === '/later') release()
      // Frames of one connection arrive in order: at the second request the first one's body has ended.
      else await later
      await new Promise((resolve) => setTimeout(resolve, 10))
      return describeRequest(exchange)
    })
    const client = session(port)
    const [empty] = await Promise.all([request2(client, { ':method': 'POST' }, ''), request2(client, { ':path': '/later' })])
    expect(JSON.parse(empty.body)).toMatchObject({ method: 'POST', body: '' })
  })

  test('CONNECT reaches the handler like any request and leaves no stream open', async () => {
    const { port, finished } = await start((exchange) => {
      exchange.response = { status: 405, headers: new HeaderList(), body: undefined, upgraded: undefined }
    })
    const client = session(port)
    const stream = client.request({ ':method': 'CONNECT', ':authority': 'a:1' })
    const status = await new Promise((resolve) => stream.on('response', (fields) => resolve(fields[':status'])))
    stream.resume()
    stream.on('error', () => undefined)
    await new Promise((resolve) => stream.on('close', resolve))
    expect(status).toBe(405)
    await until(() => finished.length === 1)
    expect(finished[0]?.request).toMatchObject({ method: 'CONNECT', target: '', authority: 'a:1' })
  })
})

describe('HTTP/2 responses', () => {
  const answer =
    (headers: string[], body: string | undefined, status = 200) =>
    (exchange: Exchange) => {
      exchange.response = { status, headers: new HeaderList(headers), body: body === undefined ? undefined : new BufferBody(body), upgraded: undefined }
    }

  test.each<[string, Parameters<typeof answer>, string, object]>([
    ['hop-by-hop fields of a policy are dropped', [['connection', 'x', 'x-a', '1', 'x-a', '2'], 'b'], 'GET', { 'x-a': '1, 2', 'content-length': '1' }],
    ['a stale content-length is corrected', [['content-length', '99'], 'ab'], 'GET', { 'content-length': '2' }],
    ['HEAD keeps the length that GET would have', [['content-length', '99'], undefined], 'HEAD', { 'content-length': '99' }],
    ['304 keeps it too', [['content-length', '99'], undefined, 304], 'GET', { ':status': 304, 'content-length': '99' }],
    ['204 has none', [['content-length', '0'], undefined, 204], 'GET', { ':status': 204 }],
    ['a value that would end a line becomes 500', [['x-a', 'a\r\nb: c'], 'b'], 'GET', { ':status': 500 }],
    ['several set-cookie stay apart', [['set-cookie', 'a', 'set-cookie', 'b'], ''], 'GET', { 'set-cookie': ['a', 'b'] }],
    ['the upstream date is kept', [['date', 'Thu, 01 Jan 1970 00:00:00 GMT'], ''], 'GET', { date: 'Thu, 01 Jan 1970 00:00:00 GMT' }],
  ])('%s', async (_, options, method, expected) => {
    const { port } = await start(answer(...options))
    const { headers, error } = await request2(session(port), { ':method': method })
    expect(error).toBeUndefined()
    expect(headers).toMatchObject(expected)
    if (options[2] === 204) expect(headers).not.toHaveProperty('content-length')
  })

  test.each([
    ['', {}, undefined],
    [' of a gRPC call', { 'content-type': 'application/grpc' }, '13'],
  ])('a body%s that fails resets the stream instead of ending it', async (_, headers, grpcStatus) => {
    const { port, finished } = await start((exchange) => {
      let sink: BodySink | undefined
      const body = { length: undefined, start: (to: BodySink) => (sink = to).onData(Buffer.from('part')), pause() {}, resume() {}, cancel() {} }
      exchange.response = { status: 200, headers: new HeaderList(), body, upgraded: undefined }
      setTimeout(() => sink?.onError(new Error('upstream is gone')), 30)
    })
    const stream = session(port).request({ ':path': '/', ...headers })
    const events: string[] = []
    stream.on('data', (chunk: Buffer) => events.push(chunk.toString()))
    stream.on('end', () => events.push('end'))
    stream.on('error', (error) => events.push(error.message))
    await new Promise((resolve) => stream.on('close', resolve))
    expect(events).toEqual(['part', 'Stream closed with error code NGHTTP2_INTERNAL_ERROR'])
    await until(() => finished.length === 1)
    expect(finished[0]).toMatchObject({ cutBy: 'upstream', responseBytes: 4, grpcStatus })
  })

  test('an early response, trailers included, ends an upload without an error', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'too large', new HeaderList(['x-t', '1'])))
    const stream = session(port).request({ ':method': 'POST', ':path': '/' })
    let sent = 0
    stream.on('error', () => undefined)
    const timer = setInterval(() => stream.writable && stream.write(Buffer.alloc(4096)) && (sent += 4096), 1)
    let trailers: object = {}
    stream.on('trailers', (fields) => (trailers = Object.fromEntries(Object.entries(fields))))
    const text = await new Promise<string>((resolve) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('close', () => resolve(Buffer.concat(chunks).toString()))
    })
    clearInterval(timer)
    expect([text, trailers, stream.rstCode, sent < 1_000_000]).toEqual(['too large', { 'x-t': '1' }, 0, true])
  })

  test('a response that does not need the request body waits for a short one, with a limit', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'no'))
    const client = session(port)
    const post = (sendsBody: boolean): Promise<object> => {
      const stream = client.request({ ':method': 'POST', 'content-length': '4' })
      const seen = { status: 0, isReset: false }
      stream.on('response', (headers) => (seen.status = Number(headers[':status'])))
      stream.on('aborted', () => (seen.isReset = true)).resume()
      if (sendsBody) setImmediate(() => stream.end('body'))
      return new Promise((resolve) => stream.on('close', () => resolve(seen)))
    }
    // On a stalled machine one may arrive too late, but not all.
    expect(await Promise.all(Array.from({ length: 5 }, () => post(true)))).toContainEqual({ status: 200, isReset: false })
    expect(await post(false)).toEqual({ status: 200, isReset: true })
  })
})

describe('HTTP/2 connections', () => {
  test('a client that resets its stream aborts the exchange', async () => {
    let aborted: string | undefined
    const { port, finished } = await start((exchange) => {
      aborted = ''
      return new Promise((resolve) => exchange.onAbort((error) => ((aborted = error.message), resolve())))
    })
    const stream = session(port).request({ ':path': '/' })
    stream.on('error', () => undefined)
    await until(() => aborted === '')
    stream.close(8)
    await until(() => finished.length === 1)
    expect([aborted, finished[0]?.cutBy]).toEqual(['client closed the stream (code 8)', 'client'])
  })

  test('a connection that is lost aborts every exchange', async () => {
    let begun = 0
    const { port, finished } = await start((exchange) => (begun++, new Promise((resolve) => exchange.onAbort(() => resolve()))))
    const client = session(port)
    for (let i = 0; i < 3; i++) client.request({ ':path': '/' }).on('error', () => undefined)
    await until(() => begun === 3)
    client.destroy()
    await until(() => finished.length === 3)
    expect(finished.map(({ cutBy }) => cutBy)).toEqual(['client', 'client', 'client'])
  })

  test('drain serves requests in transit, sends GOAWAY, and closes', async () => {
    let begun = 0
    const release = Promise.withResolvers<void>()
    const { port, bind } = await start(async (exchange) => {
      begun++
      await release.promise
      respondWith(exchange, 'done')
    })
    const client = session(port)
    const first = request2(client, {})
    await until(() => begun === 1)
    let goaways = 0
    client.on('goaway', () => goaways++)
    bind.drain()
    await until(() => goaways > 0)
    release.resolve()
    expect((await first).body).toBe('done')
    await until(() => client.closed && bind.size === 0)
    // New connections are served and drained as well.
    const late = session(port)
    expect((await request2(late, {})).body).toBe('done')
    await until(() => late.destroyed)
  })

  test('an idle connection is closed, a busy one is not', async () => {
    const { port, bind } = await start(
      async (exchange) => {
        await new Promise((resolve) => setTimeout(resolve, 1200))
        respondWith(exchange, 'ok')
      },
      { settings: { http2: { idleMs: 800 } } },
    )
    const client = session(port)
    expect((await request2(client, {})).body).toBe('ok')
    await until(() => bind.size === 0)
    expect(client.destroyed).toBe(true)
  })

  test('a client that does not acknowledge pings is closed', async () => {
    const { port, bind } = await start(describeRequest, { settings: { http2: { keepAliveMs: 20, keepAliveTimeoutMs: 50 } } })
    // Preface and an empty SETTINGS frame, then silence.
    await talk(port, Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.from('000000040000000000', 'hex')]))
    await until(() => bind.size === 0)
    expect(bind.size).toBe(0)
  })

  test('a client that acknowledges pings stays connected', async () => {
    const { port } = await start(describeRequest, { settings: { http2: { keepAliveMs: 20, keepAliveTimeoutMs: 20_000 } } })
    const alive = session(port)
    let pings = 0
    alive.on('ping', () => pings++)
    await until(() => pings > 2)
    expect((await request2(alive, {})).status).toBe(200)
  })

  test('limits are announced in SETTINGS', async () => {
    const { port } = await start(describeRequest)
    const client = session(port)
    const settings = await new Promise((resolve) => client.on('remoteSettings', resolve))
    expect(settings).toMatchObject({ maxConcurrentStreams: 128, maxHeaderListSize: 16_384, initialWindowSize: 262_144, maxFrameSize: 16_384 })
  })

  const frame = (type: number, flags: number, stream: number, payload: string): Buffer => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length / 2, 0, 3)
    head.writeUInt8(type, 3)
    head.writeUInt8(flags, 4)
    head.writeUInt32BE(stream, 5)
    return Buffer.concat([head, Buffer.from(payload, 'hex')])
  }
  const start2 = [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, '')]
  // GET http / with :authority a, all from HPACK's static table but the last.
  const head = '828684410161'

  test.each<[string, number, (index: number) => Buffer]>([
    ['requests that are reset at once', 3000, (index) => Buffer.concat([frame(1, 5, index * 2 + 1, head), frame(3, 0, index * 2 + 1, '00000008')])],
    ['pings whose answers are not read', 500_000, () => frame(6, 0, 0, '0102030405060708')],
    ['settings whose answers are not read', 1_000_000, () => frame(4, 0, 0, '')],
    ['streams beyond the limit', 2000, (index) => frame(1, 5, index * 2 + 1, head)],
    ['CONTINUATION frames', 3000, (index) => (index === 0 ? frame(1, 1, 1, head) : frame(9, 0, 1, '00016100'))],
  ])('a flood of %s closes the connection', async (_, count, make) => {
    const { port, bind } = await start(async (exchange) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      respondWith(exchange, 'ok')
    })
    const socket = connectNet(port, '127.0.0.1')
    open.push({ close: () => socket.destroy() })
    socket.on('error', () => undefined)
    socket.pause()
    socket.write(Buffer.concat(start2))
    await until(() => bind.size === 1)
    const first = make(0)
    // Frames without an identity are made once.
    const same = make(1).equals(make(2)) ? make(1) : undefined
    const rest = same === undefined ? Array.from({ length: count - 1 }, (_unused, index) => make(index + 1)) : [Buffer.alloc((count - 1) * same.length, same)]
    socket.write(Buffer.concat([first, ...rest]))
    await until(() => bind.size === 0)
    // Others are served all the same.
    expect((await request2(session(port), {})).body).toBe('ok')
  })
})
