import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { OnRequest } from '../../request/exchange/exchange.ts'
import { readBody, type BodySink } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { requestHeadLimits, type Underscores } from '../../http/syntax.ts'
import { createHttp1Pool } from '../upstream/http1/pool.ts'
import { createHttp2Pool } from '../upstream/http2/pool.ts'
import type { BindProgram } from './program.ts'
import { describeRequest, forwardTo, startBind, talk, type TestBind } from './testing.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
async function start(onRequest: OnRequest, program: Partial<BindProgram> = {}): Promise<TestBind> {
  const server = await startBind(onRequest, program)
  open.push(server)
  return server
}
const session = (port: number): ClientHttp2Session => {
  const client = connectHttp2(`http://127.0.0.1:${port}`)
  client.on('error', () => undefined)
  open.push({ close: () => client.destroy() })
  return client
}

interface Received {
  readonly status: number
  readonly body: string
  readonly trailers: Readonly<Record<string, unknown>>
}
type Fields = Readonly<Record<string, string>>

/** POSTs `body` with trailers on a new connection, by either protocol. */
async function post(protocol: 'h1' | 'h2', port: number, headers: Fields, trailers: Fields): Promise<Received> {
  if (protocol === 'h1') {
    const lines = (fields: Fields): string =>
      Object.entries(fields)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')
    const head = `POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\nte: trailers\r\nconnection: close, te\r\n${lines(headers)}\r\n`
    const text = await talk(port, `${head}4\r\nbody\r\n0\r\n${lines(trailers)}\r\n`)
    const [received = '', ...rest] = text.split('\r\n\r\n')
    const chunks = rest.join('\r\n\r\n').split('\r\n')
    const isChunked = /transfer-encoding: chunked/.test(received)
    const last = chunks.indexOf('0')
    const sent = chunks.slice(last + 1).flatMap((line) => (line === '' ? [] : [line.split(': ')]))
    return { status: Number(received.split(' ')[1]), body: (isChunked ? chunks[1] : rest[0]) ?? '', trailers: isChunked ? Object.fromEntries(sent) : {} }
  }
  const stream = session(port).request({ ':method': 'POST', ':path': '/', ':authority': 'test', ...headers }, { waitForTrailers: true })
  return new Promise((resolve) => {
    let status = 0
    let received: Record<string, unknown> = {}
    const parts: Buffer[] = []
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.on('response', (fields) => (status = Number(fields[':status'])))
    stream.on('trailers', (fields) => (received = Object.fromEntries(Object.entries(fields))))
    stream.on('data', (chunk: Buffer) => parts.push(chunk))
    stream.on('error', () => undefined)
    stream.on('close', () => resolve({ status, body: Buffer.concat(parts).toString(), trailers: received }))
    stream.end('body')
  })
}

const protocols = ['h1', 'h2'] as const

describe('headersWithUnderscores', () => {
  const programOf = (underscores: Underscores): Partial<BindProgram> => ({
    settings: { http1: { limits: { ...requestHeadLimits, underscores } }, http2: { underscores } },
  })

  test.each(protocols)('Allow forwards names with underscores over %s, except spellings of framing headers', async (protocol) => {
    const { port } = await start(describeRequest)
    const framing = { content_length: '5', transfer_encoding: 'chunked', keep_alive: '1' }
    const { headers, trailers } = JSON.parse((await post(protocol, port, { x_user: '1', ...framing }, { x_t: '2', ...framing })).body) as {
      headers: Fields
      trailers: Fields
    }
    expect(headers).toHaveProperty('x_user', '1')
    expect(Object.keys(framing).filter((name) => name in headers)).toEqual([])
    expect(trailers).toEqual({ x_t: '2' })
  })

  test.each(protocols)('Drop removes headers and trailers with underscores over %s', async (protocol) => {
    const { port } = await start(describeRequest, programOf('Drop'))
    const { headers, trailers } = JSON.parse((await post(protocol, port, { x_user: '1', 'x-a': '2' }, { x_t: '3', 'x-t': '4' })).body) as {
      headers: Fields
      trailers: Fields
    }
    expect(headers).toHaveProperty('x-a', '2')
    expect(headers).not.toHaveProperty('x_user')
    expect(trailers).toEqual({ 'x-t': '4' })
  })

  test.each(protocols)('Reject responds with 400 to a header with an underscore over %s', async (protocol) => {
    const { port, refused } = await start(describeRequest, programOf('Reject'))
    expect((await post(protocol, port, { x_user: '1' }, {})).status).toBe(400)
    expect(refused).toEqual(['header name with an underscore'])
  })

  test.each(protocols)('Reject responds with 400 to a trailer with an underscore over %s', async (protocol) => {
    const { port } = await start(describeRequest, programOf('Reject'))
    expect((await post(protocol, port, {}, { x_t: '1' })).status).toBe(400)
    expect((await post(protocol, port, {}, { 'x-t': '1' })).status).toBe(200)
  })
})

describe.each(protocols.flatMap((client) => protocols.map((upstream) => [client, upstream] as const)))('trailers from %s to %s', (client, upstream) => {
  const expected = { 'x-t': '1', 'grpc-status': '0', 'grpc-message': 'm' }
  const sentByOrigin = { ...expected, 'x-state': 'evil', 'x-internal': 'evil', 'set-cookie': 'a=b', content_length: '9' }

  /** A proxy whose policies set x-user and remove x-secret on requests, and set x-state and remove x-internal on responses. */
  async function startProxy(): Promise<{ port: number; seen: () => Fields | undefined }> {
    let seen: Fields | undefined
    const origin = await start(async (exchange) => {
      const { trailers } = await readBody(exchange.request.body, 1 << 20)
      seen = trailers && Object.fromEntries(trailers)
      const responseTrailers = new HeaderList(Object.entries(sentByOrigin).flat())
      const body = {
        length: undefined,
        start: (sink: BodySink) => (sink.onData(Buffer.from('ok')), sink.onEnd(responseTrailers)),
        pause() {},
        resume() {},
        cancel() {},
      }
      exchange.response = { status: 200, headers: new HeaderList(), body, upgraded: undefined }
    })
    const transport = { host: '127.0.0.1', port: origin.port, tls: undefined, keepAlive: undefined }
    const pool = upstream === 'h1' ? createHttp1Pool(transport) : createHttp2Pool(transport)
    open.push(pool)
    const forward = forwardTo(pool)
    const { port } = await start(async (exchange) => {
      exchange.request.headers.set('x-user', 'alice')
      exchange.request.headers.remove('x-secret')
      exchange.request.acceptsTrailers = true
      await forward(exchange)
      exchange.response?.headers.set('x-state', 'good')
      exchange.response?.headers.remove('x-internal')
      exchange.response?.headers.set('grpc-status', '0')
    })
    return { port, seen: () => seen }
  }

  test('carry nothing that the head may not, in both directions', async () => {
    const { port, seen } = await startProxy()
    const evil = { authorization: 'evil', cookie: 'evil', 'x-user': 'evil', x_user: 'evil', 'x-secret': 'evil', x_secret: 'evil', content_length: '9' }
    const { status, trailers } = await post(client, port, {}, { ...evil, 'x-checksum': '1' })
    expect(status).toBe(200)
    expect(seen()).toEqual({ 'x-checksum': '1' })
    expect(trailers).toEqual(expected)
  })
})
