import { afterEach, describe, expect, test } from '@jest/globals'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import * as frames from '../../../http/http2/frames.ts'
import { encodeField, encodeName, encodeValue } from '../../../http/http2/hpack.ts'
import { frame, headers, openRaw, requestFields, uint32, type RawClient } from '../../../http/http2/testing.ts'
import { describeRequest, respondWith, startBind, type TestBind } from '../testing.ts'
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
const raw = (port: number): RawClient => {
  const client = openRaw(port)
  open.push({ close: () => client.socket.destroy() })
  return client
}
const hold = (exchange: Exchange): Promise<void> => new Promise((resolve) => exchange.onAbort(() => resolve()))
const many = (count: number, one: Buffer): Buffer => Buffer.alloc(count * one.length, one)
const get = (id: number): Buffer => headers(id, requestFields('GET', '/'))

describe('a client that reads everything and floods the connection', () => {
  test.each<[string, (client: RawClient) => void]>([
    ['PING frames', (client) => client.send(many(40_000, frame(frames.PING, 0, 0, '12345678')))],
    ['acknowledgements of PING', (client) => client.send(many(40_000, frame(frames.PING, frames.ACK, 0, '12345678')))],
    ['SETTINGS frames', (client) => client.send(many(40_000, frame(frames.SETTINGS, 0, 0, '')))],
    ['PRIORITY frames', (client) => client.send(many(40_000, frame(frames.PRIORITY, 0, 3, '\0\0\0\x01\x10')))],
    ['unknown frames', (client) => client.send(many(40_000, frame(200, 0, 0, 'x')))],
    ['empty DATA frames', (client) => client.send(headers(1, requestFields('POST', '/hold'), 0), many(40_000, frame(frames.DATA, 0, 1)))],
    [
      'DATA frames of padding',
      (client) => client.send(headers(1, requestFields('POST', '/hold'), 0), many(40_000, frame(frames.DATA, frames.PADDED, 1, '\0'))),
    ],
    ['small WINDOW_UPDATE frames', (client) => client.send(many(40_000, frame(frames.WINDOW_UPDATE, 0, 0, uint32(1))))],
    ['RST_STREAM frames of a closed stream', (client) => client.send(get(1), many(40_000, frame(frames.RST_STREAM, 0, 1, uint32(8))))],
    ['empty CONTINUATION frames', (client) => client.send(frame(frames.HEADERS, 0, 1, '\x82'), many(1000, frame(frames.CONTINUATION, 0, 1)))],
    [
      'CONTINUATION frames of 80 KiB',
      (client) => client.send(frame(frames.HEADERS, 0, 1, '\x82'), many(5, frame(frames.CONTINUATION, 0, 1, Buffer.alloc(16_384, 0x82)))),
    ],
    [
      'requests that it resets',
      (client) => client.send(...Array.from({ length: 1100 }, (_, i) => Buffer.concat([get(2 * i + 1), frame(frames.RST_STREAM, 0, 2 * i + 1, uint32(8))]))),
    ],
    // CVE-2025-8671: the violation makes the server reset the stream.
    [
      'requests that the server must reset',
      (client) => client.send(...Array.from({ length: 1100 }, (_, i) => Buffer.concat([get(2 * i + 1), frame(frames.WINDOW_UPDATE, 0, 2 * i + 1, uint32(0))]))),
    ],
    ['malformed requests', (client) => client.send(...Array.from({ length: 1100 }, (_, i) => headers(2 * i + 1, [[':method', 'GET']])))],
    ['streams beyond the limit', (client) => client.send(...Array.from({ length: 1300 }, (_, i) => headers(2 * i + 1, requestFields('GET', '/hold'))))],
  ])('is disconnected after %s', async (_, flood) => {
    const { port, bind } = await start((exchange) => hold(exchange))
    const client = raw(port)
    flood(client)
    await until(() => client.isClosed())
    expect(client.goaway()).toBe(frames.ENHANCE_YOUR_CALM)
    await until(() => bind.size === 0)
  })
})

describe('limits of HTTP/2 connections', () => {
  test('streams that were reset count as running until their handlers return', async () => {
    const releases: (() => void)[] = []
    const { port, finished } = await start(() => new Promise<void>((resolve) => releases.push(resolve)), { settings: { http2: { maxConcurrentStreams: 10 } } })
    const client = raw(port)
    for (let i = 0; i < 30; i++) client.send(get(2 * i + 1), frame(frames.RST_STREAM, 0, 2 * i + 1, uint32(8)))
    client.send(get(61))
    await until(() => client.reset(61) !== undefined)
    expect([client.reset(61), releases.length]).toEqual([frames.REFUSED_STREAM, 20])
    for (const release of releases) release()
    await until(() => finished.length === 20)
    client.send(get(63), frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => client.of(frames.PING).length === 1)
    expect(client.reset(63)).toBeUndefined()
  })

  test('a header section of references to a large field gets 431 and keeps the connection', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'ok'))
    const client = raw(port)
    const large = `\x40${encodeName('a-large').slice(1)}${encodeValue('v'.repeat(4000))}`
    const head = requestFields('GET', '/')
      .map(([name, value]) => encodeField(name, value))
      .join('')
    client.send(frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, head + large + '\xbe'.repeat(12_000)), get(3))
    await until(() => client.data(3) === 2)
    expect(client.heads().map(({ id, fields }) => [id, fields[':status']])).toEqual([
      [1, '431'],
      [3, '200'],
    ])
  })

  test('one read of many requests is served in several turns', async () => {
    const turns: number[] = []
    let turn = 0
    const { port } = await start((exchange) => {
      turns.push(turn)
      respondWith(exchange, 'ok')
    })
    const client = raw(port)
    await until(() => client.of(frames.SETTINGS).length === 2)
    const count = (): void => void (turn++, (timer = setImmediate(count)))
    let timer = setImmediate(count)
    client.send(...Array.from({ length: 128 }, (_, i) => get(2 * i + 1)))
    await until(() => client.data(255) === 2)
    clearImmediate(timer)
    const perTurn = new Map<number, number>()
    for (const one of turns) perTurn.set(one, (perTurn.get(one) ?? 0) + 1)
    expect([turns.length, Math.max(...perTurn.values()) <= 64]).toEqual([128, true])
  })

  test('a stream whose client opens no window holds a bounded part of its body', async () => {
    let sent = 0
    let isPaused = false
    const { port, finished } = await start((exchange) => {
      const body = {
        length: undefined,
        start(sink: { onData(chunk: Buffer): void }) {
          for (; !isPaused && sent < 10_000_000; sent += 16_384) sink.onData(Buffer.alloc(16_384))
        },
        pause: () => void (isPaused = true),
        resume() {},
        cancel() {},
      }
      exchange.response = { status: 200, headers: new HeaderList(), body, upgraded: undefined }
    })
    const client = raw(port)
    client.send(get(1))
    await until(() => client.data(1) === 65_535)
    expect([isPaused, sent < 200_000]).toEqual([true, true])
    client.socket.destroy()
    await until(() => finished.length === 1)
    expect(finished[0]?.cutBy).toBe('client')
  })

  test('a client that does not read is disconnected while its PING frames wait', async () => {
    const { port, bind } = await start((exchange) => {
      exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(Buffer.alloc(50_000_000)), upgraded: undefined }
    })
    const client = raw(port)
    client.socket.pause()
    client.send(
      frame(frames.SETTINGS, 0, 0, frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, 0x7fff_ffff)),
      frame(frames.WINDOW_UPDATE, 0, 0, uint32(0x7fff_0000)),
    )
    client.send(get(1))
    const timer = setInterval(() => client.send(many(200, frame(frames.PING, 0, 0, '12345678'))), 5)
    await until(() => bind.size === 0)
    clearInterval(timer)
    expect(bind.size).toBe(0)
  })
})

describe('violations of the protocol', () => {
  test.each<[string, Buffer[], number]>([
    ['an even stream identifier', [get(2)], frames.PROTOCOL_ERROR],
    ['a stream identifier that was skipped', [get(5), get(3)], frames.PROTOCOL_ERROR],
    ['HEADERS on a closed stream', [get(1), frame(frames.RST_STREAM, 0, 1, uint32(8)), get(1)], frames.STREAM_CLOSED],
    ['DATA on an idle stream', [frame(frames.DATA, 0, 1, 'x')], frames.PROTOCOL_ERROR],
    ['DATA without a stream', [frame(frames.DATA, 0, 0, 'x')], frames.PROTOCOL_ERROR],
    ['padding longer than its frame', [headers(1, requestFields('POST', '/'), 0), frame(frames.DATA, frames.PADDED, 1, '\x05abc')], frames.PROTOCOL_ERROR],
    ['padding longer than HEADERS', [frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, '\x09abc')], frames.PROTOCOL_ERROR],
    ['a frame within a header section', [frame(frames.HEADERS, 0, 1, '\x82'), frame(frames.PING, 0, 0, '12345678')], frames.PROTOCOL_ERROR],
    ['CONTINUATION of nothing', [frame(frames.CONTINUATION, frames.END_HEADERS, 1, '\x82')], frames.PROTOCOL_ERROR],
    ['PUSH_PROMISE', [frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, '\0\0\0\x02')], frames.PROTOCOL_ERROR],
    ['an invalid header block', [frame(frames.HEADERS, frames.END_HEADERS, 1, '\xff\xff\xff\xff\xff\xff')], frames.COMPRESSION_ERROR],
    ['a frame above the limit', [frame(frames.DATA, 0, 1, Buffer.alloc(16_385))], frames.FRAME_SIZE_ERROR],
    ['PING without 8 bytes', [frame(frames.PING, 0, 0, 'short')], frames.FRAME_SIZE_ERROR],
    ['SETTINGS on a stream', [frame(frames.SETTINGS, 0, 1)], frames.PROTOCOL_ERROR],
    ['a window above the limit', [frame(frames.WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff))], frames.FLOW_CONTROL_ERROR],
    ['an initial window above the limit', [frame(frames.SETTINGS, 0, 0, frames.settingBytes(4, 0x8000_0000))], frames.FLOW_CONTROL_ERROR],
    ['a PRIORITY frame of a stream that depends on itself', [frame(frames.PRIORITY, 0, 1, '\0\0\0\x01\x10')], frames.PROTOCOL_ERROR],
  ])('%s closes the connection with GOAWAY', async (_, sent, code) => {
    const { port, bind } = await start((exchange) => hold(exchange))
    const client = raw(port)
    client.send(...sent)
    await until(() => client.goaway() !== undefined)
    expect(client.goaway()).toBe(code)
    await until(() => bind.size === 0 && client.isClosed())
  })

  test.each<[string, Buffer[], number]>([
    [
      'a request without :path',
      [
        headers(1, [
          [':method', 'GET'],
          [':scheme', 'http'],
        ]),
      ],
      frames.PROTOCOL_ERROR,
    ],
    ['a duplicate :path', [headers(1, requestFields('GET', '/', []).concat([[':path', '/b']]))], frames.PROTOCOL_ERROR],
    ['a pseudo-header field after others', [headers(1, [['x-a', 'b'], ...requestFields('GET', '/')])], frames.PROTOCOL_ERROR],
    ['connection', [headers(1, requestFields('GET', '/', [['connection', 'close']]))], frames.PROTOCOL_ERROR],
    ['transfer-encoding', [headers(1, requestFields('POST', '/', [['transfer-encoding', 'chunked']]))], frames.PROTOCOL_ERROR],
    ['an upper-case name', [headers(1, requestFields('GET', '/', [['X-A', 'b']]))], frames.PROTOCOL_ERROR],
    ['a line feed in a value', [headers(1, requestFields('GET', '/', [['x-a', 'b\nc: d']]))], frames.PROTOCOL_ERROR],
    ['content-length without a body', [headers(1, requestFields('POST', '/', [['content-length', '3']]))], frames.PROTOCOL_ERROR],
    ['less than content-length', [headers(1, requestFields('POST', '/', [['content-length', '3']]), 0), frame(frames.DATA, 1, 1, 'ab')], frames.PROTOCOL_ERROR],
    ['a pseudo-header field in trailers', [headers(1, requestFields('POST', '/'), 0), headers(1, [[':path', '/b']])], frames.PROTOCOL_ERROR],
    ['trailers without END_STREAM', [headers(1, requestFields('POST', '/'), 0), headers(1, [['x-a', 'b']], 0)], frames.PROTOCOL_ERROR],
    ['DATA after the end of the request', [get(1), frame(frames.DATA, 0, 1, 'x')], frames.STREAM_CLOSED],
  ])('%s resets the stream and keeps the connection', async (_, sent, code) => {
    const { port } = await start((exchange) => (exchange.request.target === '/ok' ? respondWith(exchange, 'ok') : describeAfterBody(exchange)))
    const client = raw(port)
    client.send(...sent, headers(101, requestFields('GET', '/ok')))
    await until(() => client.data(101) === 2)
    expect([client.reset(1), client.goaway()]).toEqual([code, undefined])
  })

  test('frames of a stream that the server has reset are ignored', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'early'))
    const client = raw(port)
    client.send(headers(1, requestFields('POST', '/'), 0))
    await until(() => client.reset(1) === frames.NO_ERROR)
    client.send(frame(frames.DATA, 0, 1, 'late'), frame(frames.WINDOW_UPDATE, 0, 1, uint32(1000)), headers(1, [['x-end', 'late']]), get(3))
    await until(() => client.data(3) === 5)
    expect(client.goaway()).toBeUndefined()
  })
})

/** Holds requests without a body, so that violations meet an open stream. */
function describeAfterBody(exchange: Exchange): Promise<void> {
  return exchange.request.body === undefined ? hold(exchange) : Promise.resolve(describeRequest(exchange)).catch(() => undefined)
}
