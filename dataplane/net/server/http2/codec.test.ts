import { afterEach, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import * as frames from '../../../http/http2/frames.ts'
import { frame, headers, openRaw, requestFields, uint32, type RawClient } from '../../../http/http2/testing.ts'
import { describeRequest, openHttp2, request2, respondWith, startBind, type TestBind } from '../testing.ts'
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
const raw = (port: number, ...options: [settings?: Buffer | string, sendsAck?: boolean]): RawClient => {
  const client = openRaw(port, ...options)
  open.push({ close: () => client.socket.destroy() })
  return client
}
const answerWith =
  (body: Buffer) =>
  (exchange: Exchange): void => {
    exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(body), upgraded: undefined }
  }
const hold = (exchange: Exchange): Promise<void> => new Promise((resolve) => exchange.onAbort(() => resolve()))

describe('HTTP/2 codec of the server', () => {
  test('nghttp2 as the client: every byte of values, names of any length, and the dynamic table arrive unchanged', async () => {
    const { port } = await start(describeRequest)
    const client = openHttp2(port)
    open.push({ close: () => client.destroy() })
    const bytes = Array.from({ length: 223 }, (_, i) => String.fromCharCode(i + 33)).filter((char) => char !== '\x7f')
    for (let at = 0; at < bytes.length; at += 50) {
      // Long enough that nghttp2 uses the Huffman code.
      const sent = Object.fromEntries(bytes.slice(at, at + 50).map((char, i) => [`x-${i}`, `${'a'.repeat(40)}${char}${'e'.repeat(40)}`]))
      const { body } = await request2(client, sent)
      expect(JSON.parse(body)).toMatchObject({ headers: sent })
    }
    const field = fc.tuple(fc.stringMatching(/^x[a-z0-9]{1,40}$/), fc.stringMatching(/^[!-~](?:[ -~]{0,200}[!-~])?$/))
    await fc.assert(
      fc.asyncProperty(fc.array(field, { maxLength: 10 }), async (fields) => {
        const sent = Object.fromEntries(fields)
        const { body } = await request2(client, sent)
        expect(JSON.parse(body)).toMatchObject({ headers: sent })
      }),
      { numRuns: 50 },
    )
  })

  test('requests are read alike however their bytes are split', async () => {
    const { port } = await start(describeRequest)
    const bytes = Buffer.concat([
      headers(1, requestFields('POST', '/a', [['x-a', 'b']]), 0),
      frame(frames.DATA, frames.PADDED, 1, '\x02he\0\0'),
      frame(99, 0, 0, 'unknown'),
      frame(frames.DATA, 0, 1, 'llo'),
      headers(1, [['x-end', 'yes']]),
      // A header section in three frames.
      ...split(headers(3, requestFields('GET', '/b', [['x-long', 'v'.repeat(300)]]))),
    ])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 10 }), async (sizes) => {
        const client = raw(port)
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = sizes[i % sizes.length] ?? 1
          client.send(bytes.subarray(at, at + size))
          at += size
          // Separate segments, so that the server reads them apart more often than not.
          if (i % 5 === 0) await new Promise((resolve) => setImmediate(resolve))
        }
        const ended = (id: number): boolean => client.of(frames.DATA, id).some(({ flags }) => (flags & frames.END_STREAM) !== 0)
        await until(() => ended(1) && ended(3))
        const body = (id: number): object => JSON.parse(Buffer.concat(client.of(frames.DATA, id).map(({ payload }) => payload)).toString()) as object
        expect(body(1)).toMatchObject({ method: 'POST', target: '/a', body: 'hello', headers: { 'x-a': 'b' }, trailers: { 'x-end': 'yes' } })
        expect(body(3)).toMatchObject({ method: 'GET', target: '/b', headers: { 'x-long': 'v'.repeat(300) } })
        client.socket.destroy()
      }),
      { numRuns: 20 },
    )
  })

  test('a head and a short body are one HEADERS and one DATA frame', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'ok'))
    const client = raw(port)
    client.send(headers(1, requestFields('GET', '/')))
    await until(() => client.data(1) === 2)
    expect(client.of(frames.HEADERS, 1).map(({ flags }) => flags)).toEqual([frames.END_HEADERS])
    expect(client.of(frames.DATA, 1).map(({ flags }) => flags)).toEqual([frames.END_STREAM])
  })

  test('an empty response is one HEADERS frame', async () => {
    const { port } = await start(answerWith(Buffer.alloc(0)))
    const client = raw(port)
    client.send(headers(1, requestFields('GET', '/')))
    await until(() => client.of(frames.HEADERS, 1).length === 1)
    expect(client.of(frames.HEADERS, 1)[0]?.flags).toBe(frames.END_HEADERS | frames.END_STREAM)
  })

  test('a response head larger than a frame continues in CONTINUATION frames', async () => {
    const { port } = await start((exchange) => {
      exchange.response = { status: 200, headers: new HeaderList(['x-long', 'v'.repeat(40_000)]), body: new BufferBody('ok'), upgraded: undefined }
    })
    const client = openHttp2(port)
    open.push({ close: () => client.destroy() })
    const { headers: received, body } = await request2(client, {})
    expect([received['x-long'], body]).toEqual(['v'.repeat(40_000), 'ok'])
  })

  test('a client with a smaller HPACK table is sent a size update once', async () => {
    const { port } = await start((exchange) => respondWith(exchange, 'ok'))
    const client = raw(port, Buffer.from(frames.settingBytes(frames.SETTINGS_HEADER_TABLE_SIZE, 0), 'latin1'))
    client.send(headers(1, requestFields('GET', '/')), headers(3, requestFields('GET', '/')))
    await until(() => client.data(3) === 2)
    expect(client.of(frames.HEADERS).map(({ payload }) => payload[0])).toEqual([0x20, 0x88])
  })
})

describe('flow control of the server', () => {
  const noWindow = Buffer.from(frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, 0), 'latin1')

  test('streams share the connection in round robin', async () => {
    const { port } = await start(answerWith(Buffer.alloc(400_000, 'x')))
    const client = raw(port, Buffer.from(frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, 1_000_000), 'latin1'))
    client.send(frame(frames.WINDOW_UPDATE, 0, 0, uint32(10_000_000)), headers(1, requestFields('GET', '/')), headers(3, requestFields('GET', '/')))
    await until(() => client.data(1) === 400_000 && client.data(3) === 400_000)
    const order = client.of(frames.DATA).map(({ id }) => id)
    expect(order.slice(0, 6)).toEqual([1, 3, 1, 3, 1, 3])
  })

  test('a body is sent as far as the windows of stream and connection admit', async () => {
    const { port } = await start(answerWith(Buffer.alloc(200_000, 'x')))
    const client = raw(port, noWindow)
    client.send(headers(1, requestFields('GET', '/')))
    await until(() => client.of(frames.HEADERS, 1).length === 1)
    client.send(frame(frames.WINDOW_UPDATE, 0, 1, uint32(10)))
    await until(() => client.data(1) === 10)
    // Only the window of the connection, 65,535 bytes, is left.
    client.send(frame(frames.WINDOW_UPDATE, 0, 1, uint32(500_000)), frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => client.data(1) === 65_535)
    client.send(frame(frames.WINDOW_UPDATE, 0, 0, uint32(500_000)))
    await until(() => client.data(1) === 200_000)
    expect(client.of(frames.DATA, 1).at(-1)?.flags).toBe(frames.END_STREAM)
  })

  test('a smaller initial window makes the window of a stream negative', async () => {
    const { port } = await start(answerWith(Buffer.alloc(100_000, 'x')))
    const client = raw(port, Buffer.from(frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, 1000), 'latin1'))
    client.send(headers(1, requestFields('GET', '/')))
    await until(() => client.data(1) === 1000)
    // -900 now: 900 bytes more change nothing, one more byte is sent.
    client.send(frame(frames.SETTINGS, 0, 0, frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, 100)), frame(frames.WINDOW_UPDATE, 0, 1, uint32(900)))
    client.send(frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => client.of(frames.PING).length === 1)
    expect(client.data(1)).toBe(1000)
    client.send(frame(frames.WINDOW_UPDATE, 0, 1, uint32(1)))
    await until(() => client.data(1) === 1001)
  })

  test('the windows are refilled only as the body is consumed', async () => {
    let sink: BodySink | undefined
    let received = 0
    const { port } = await start((exchange) => {
      exchange.request.body?.start({ onData: (chunk) => (received += chunk.length), onEnd() {}, onError() {} })
      exchange.request.body?.pause()
      sink = { onData() {}, onEnd() {}, onError() {} }
      resume = () => exchange.request.body?.resume()
      return hold(exchange)
    })
    let resume: () => void = () => undefined
    const client = raw(port)
    client.send(headers(1, requestFields('POST', '/'), 0))
    for (let i = 0; i < 16; i++) client.send(frame(frames.DATA, 0, 1, Buffer.alloc(16_384)))
    client.send(frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => sink !== undefined && client.of(frames.PING).length === 1)
    // The first is that of the connection, after SETTINGS.
    expect([client.of(frames.WINDOW_UPDATE).length, received]).toEqual([1, 0])
    resume()
    await until(() => client.of(frames.WINDOW_UPDATE, 1).length === 1)
    expect([client.of(frames.WINDOW_UPDATE, 1)[0]?.payload.readUInt32BE(0), received]).toEqual([262_144, 262_144])
    expect(client.goaway()).toBeUndefined()
  })

  test('DATA beyond the window of a stream resets it, and beyond that of the connection closes it', async () => {
    const { port, finished } = await start((exchange) => hold(exchange))
    const client = raw(port)
    client.send(headers(1, requestFields('POST', '/'), 0))
    for (let i = 0; i < 17; i++) client.send(frame(frames.DATA, 0, 1, Buffer.alloc(16_384)))
    await until(() => client.reset(1) !== undefined && finished.length === 1)
    expect([client.reset(1), finished[0]?.cutBy]).toEqual([frames.FLOW_CONTROL_ERROR, 'client'])
    for (let id = 3; id < 13; id += 2) {
      client.send(headers(id, requestFields('POST', '/'), 0))
      for (let i = 0; i < 16; i++) client.send(frame(frames.DATA, 0, id, Buffer.alloc(16_384)))
    }
    await until(() => client.isClosed())
    expect(client.goaway()).toBe(frames.FLOW_CONTROL_ERROR)
  })

  test('bytes of a stream that the client resets are credited to the connection', async () => {
    const { port } = await start((exchange) => hold(exchange))
    const client = raw(port)
    for (let id = 1; id < 20; id += 2) {
      client.send(headers(id, requestFields('POST', '/'), 0))
      for (let i = 0; i < 16; i++) client.send(frame(frames.DATA, 0, id, Buffer.alloc(16_384)))
      client.send(frame(frames.RST_STREAM, 0, id, uint32(frames.CANCEL)))
    }
    client.send(frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => client.of(frames.PING).length === 1)
    const credited = client.of(frames.WINDOW_UPDATE, 0).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0)
    // 1 MiB at the beginning, less the default; 2.5 MiB were received.
    expect(credited).toBeGreaterThan(3_000_000)
  })
})

/** Splits HEADERS with END_HEADERS into HEADERS and two CONTINUATION frames. */
function split(whole: Buffer): Buffer[] {
  const payload = whole.subarray(frames.FRAME_HEADER_BYTES)
  const id = whole.readUInt32BE(5)
  return [
    frame(frames.HEADERS, frames.END_STREAM, id, payload.subarray(0, 10)),
    frame(frames.CONTINUATION, 0, id, payload.subarray(10, 11)),
    frame(frames.CONTINUATION, frames.END_HEADERS, id, payload.subarray(11)),
  ]
}
