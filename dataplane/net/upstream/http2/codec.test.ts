import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { BufferBody, type BodySink } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import * as frames from '../../../http/http2/frames.ts'
import { frame, FrameCollector, headers, uint32, type TestFrame } from '../../../http/http2/testing.ts'
import type { RequestHead } from '../../../http/message.ts'
import { readResponse, testRequest } from '../http1/testing.ts'
import type { UpstreamError } from '../types.ts'
import { createHttp2Pool } from './pool.ts'
import { until } from '../../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})

/** An upstream that sends frames as they are. */
interface RawUpstream {
  readonly frames: TestFrame[]
  connections(): number
  send(...parts: Buffer[]): void
  of(type: number, id?: number): TestFrame[]
  data(id: number): number
  isClosed(): boolean
}

/** Starts an upstream that answers SETTINGS, and a pool to it. */
async function start(settings: string = ''): Promise<{
  upstream: RawUpstream
  call(request?: Partial<RequestHead>): Promise<{ text: string; error: Error | undefined }>
  pool: ReturnType<typeof createHttp2Pool>
}> {
  const all: TestFrame[] = []
  let socket: Socket | undefined
  let connections = 0
  let closed = false
  const server = createServer((accepted) => {
    socket = accepted
    connections++
    const collector = new FrameCollector()
    let preface = frames.PREFACE.length
    accepted.on('error', () => undefined)
    accepted.on('close', () => (closed = true))
    accepted.on('data', (chunk: Buffer) => {
      const rest = chunk.subarray(Math.min(preface, chunk.length))
      preface -= chunk.length - rest.length
      if (rest.length > 0) collector.reader.read(rest)
      all.push(...collector.frames.splice(0))
    })
    accepted.write(Buffer.concat([frame(frames.SETTINGS, 0, 0, settings), frame(frames.SETTINGS, frames.ACK, 0)]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const pool = createHttp2Pool({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, tls: undefined, keepAlive: { idleMs: 60_000 } })
  open.push(
    () => server.close(),
    () => socket?.destroy(),
    () => pool.close(),
  )
  const of = (type: number, id?: number): TestFrame[] => all.filter((one) => one.type === type && (id === undefined || one.id === id))
  const upstream = {
    frames: all,
    connections: () => connections,
    send: (...parts: Buffer[]) => void socket?.write(Buffer.concat(parts)),
    of,
    data: (id: number) => of(frames.DATA, id).reduce((sum, { payload }) => sum + payload.length, 0),
    isClosed: () => closed,
  }
  const call = async (request: Partial<RequestHead> = {}): Promise<{ text: string; error: Error | undefined }> =>
    pool
      .call(testRequest(request), { connectMs: 20_000 })
      .response.then(readResponse)
      .catch((error: Error) => ({ text: (error as UpstreamError).failure, error }))
  return { upstream, call, pool }
}

const ok = (id: number, flags = 0): Buffer => headers(id, [[':status', '200']], flags)
const initialWindow = (size: number): string => frames.settingBytes(frames.SETTINGS_INITIAL_WINDOW_SIZE, size)

describe('a hostile upstream', () => {
  const { DATA, HEADERS, CONTINUATION, END_STREAM, END_HEADERS, WINDOW_UPDATE, RST_STREAM, PUSH_PROMISE, SETTINGS, PING, GOAWAY, PRIORITY } = frames
  const interim = (status: string, flags = 0): Buffer => headers(1, [[':status', status]], flags)
  /** A head that announces two bytes. */
  const ok2 = headers(1, Object.entries({ ':status': '200', 'content-length': '2' }), 0)
  const repeat = (part: Buffer, count: number): Buffer[] => Array.from({ length: count }, () => part)

  test.each<[string, Buffer[]]>([
    ['DATA before the head', [frame(DATA, 0, 1, 'x')]],
    ['empty DATA before the head', [frame(DATA, 0, 1)]],
    ['DATA that ends the stream before the head', [frame(DATA, END_STREAM, 1, 'x')]],
    ['DATA after an interim response', [interim('103'), frame(DATA, END_STREAM, 1, 'x')]],
    ['trailers before the head', [headers(1, [['x-a', '1']], END_STREAM)]],
    ['an interim response that ends the stream', [interim('103', END_STREAM)]],
    ['interim responses without end', repeat(interim('103'), 33)],
    ['101', [interim('101')]],
    ['a status that is none', [interim('20')]],
    ['a head of another stream', [headers(3, [[':status', '200']], END_STREAM)]],
    ['DATA of another stream', [frame(DATA, END_STREAM, 3, 'x')]],
    ['a second head', [ok(1), ok(1)]],
    ['trailers without an end', [ok(1), frame(DATA, 0, 1, 'x'), headers(1, [['x-a', '1']], 0)]],
    ['trailers with a pseudo-header field', [ok(1), headers(1, [[':status', '200']], END_STREAM)]],
    ['less than its content-length', [ok2, frame(DATA, END_STREAM, 1, 'x')]],
    ['more than its content-length', [ok2, frame(DATA, 0, 1, 'xxx')]],
    ['a header section without end', [frame(HEADERS, 0, 1), ...repeat(frame(CONTINUATION, 0, 1, 'x'), 129)]],
    ['empty parts of a header section without end', [frame(HEADERS, 0, 1), ...repeat(frame(CONTINUATION, 0, 1), 129)]],
    ['a header section that another frame interrupts', [frame(HEADERS, 0, 1), frame(PING, 0, 0, '12345678')]],
    ['CONTINUATION without a header section', [frame(CONTINUATION, END_HEADERS, 1)]],
    ['a header section that cannot be decoded', [frame(HEADERS, END_HEADERS | END_STREAM, 1, '\xff\xff\xff\xff\xff\xff')]],
    [
      'a header section of more than 64 KiB',
      [
        headers(
          1,
          [
            [':status', '200'],
            ['x-a', 'x'.repeat(70_000)],
          ],
          END_STREAM,
        ),
      ],
    ],
    ['WINDOW_UPDATE of 0', [frame(WINDOW_UPDATE, 0, 1, uint32(0))]],
    ['WINDOW_UPDATE of 0 for the connection', [frame(WINDOW_UPDATE, 0, 0, uint32(0))]],
    ['a window beyond 2^31-1', repeat(frame(WINDOW_UPDATE, 0, 1, uint32(0x7fff_ffff)), 2)],
    ['a window of the connection beyond 2^31-1', repeat(frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff)), 2)],
    ['RST_STREAM before the head', [frame(RST_STREAM, 0, 1, uint32(0))]],
    ['RST_STREAM after the head', [ok(1), frame(RST_STREAM, 0, 1, uint32(8))]],
    ['PUSH_PROMISE', [frame(PUSH_PROMISE, END_HEADERS, 1, uint32(2))]],
    ['GOAWAY and nothing else', [frame(GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(0)]))]],
    ['SETTINGS of 5 bytes', [frame(SETTINGS, 0, 0, '12345')]],
    ['PING of 7 bytes', [frame(PING, 0, 0, '1234567')]],
    ['PRIORITY of itself', [frame(PRIORITY, 0, 1, Buffer.concat([uint32(1), Buffer.from('x')]))]],
    ['padding beyond the frame', [ok(1), frame(DATA, frames.PADDED, 1, '\x05abc')]],
    ['PING frames without end', repeat(frame(PING, 0, 0, '12345678'), 25_000)],
    ['empty DATA without end', [ok(1), ...repeat(frame(DATA, 0, 1), 25_000)]],
  ])('ends the request with an error: %s', async (_, parts) => {
    const { upstream, call } = await start()
    // Not sent again: its method is not idempotent.
    const answered = call({ method: 'POST', body: new BufferBody('x') })
    await until(() => upstream.of(HEADERS).length === 1)
    upstream.send(...parts)
    // GOAWAY for stream 0: the request was not processed, and is sent to the same upstream again.
    if (parts[0]?.[3] === GOAWAY) {
      await until(() => upstream.connections() === 2)
      await until(() => upstream.of(HEADERS).length === 2)
      upstream.send(frame(RST_STREAM, 0, 1, uint32(8)))
    }
    expect((await answered).error).toBeInstanceOf(Error)
  })
})

describe('HTTP/2 codec of the upstream side', () => {
  test('requests of one turn are sent with increasing identifiers, and a cancelled one leaves no frame', async () => {
    const { upstream, call, pool } = await start()
    const first = call()
    await until(() => upstream.of(frames.HEADERS).length === 1)
    const second = call()
    const cancelled = pool.call(testRequest(), { connectMs: 20_000 })
    const third = call({ target: '/3' })
    cancelled.cancel(new Error('gone'))
    await expect(cancelled.response).rejects.toMatchObject({ failure: 'cancelled' })
    await until(() => upstream.of(frames.HEADERS).length === 3)
    expect(upstream.of(frames.HEADERS).map(({ id }) => id)).toEqual([1, 3, 7])
    expect(upstream.of(frames.RST_STREAM)).toEqual([])
    for (const id of [7, 3, 1]) upstream.send(ok(id), frame(frames.DATA, frames.END_STREAM, id, `id ${id}`))
    expect((await Promise.all([first, second, third])).map(({ text }) => text)).toEqual(['200 id 1', '200 id 3', '200 id 7'])
  })

  test('a request body is sent as far as the windows of stream and connection admit, and its source is paused', async () => {
    const { upstream, call } = await start(initialWindow(1000))
    let isPaused = false
    let sink: BodySink | undefined
    const body = {
      length: undefined,
      start: (to: BodySink) => (sink = to).onData(Buffer.alloc(150_000)),
      pause: () => (isPaused = true),
      resume: () => (isPaused = false),
      cancel() {},
    }
    const answered = call({ method: 'POST', body })
    await until(() => upstream.data(1) === 1000)
    expect(isPaused).toBe(true)
    upstream.send(frame(frames.WINDOW_UPDATE, 0, 1, uint32(500_000)))
    await until(() => upstream.data(1) === 65_535)
    upstream.send(frame(frames.WINDOW_UPDATE, 0, 0, uint32(500_000)))
    await until(() => upstream.data(1) === 150_000 && !isPaused)
    sink?.onEnd(new HeaderList(['x-end', 'yes']))
    await until(() => upstream.of(frames.HEADERS, 1).length === 2)
    upstream.send(ok(1, frames.END_STREAM))
    expect(await answered).toMatchObject({ text: '200 ' })
  })

  test('the window of the connection is refilled while a body is paused, its own is not', async () => {
    const { upstream, pool } = await start()
    const started = pool.call(testRequest(), { connectMs: 20_000 })
    await until(() => upstream.of(frames.HEADERS).length === 1)
    upstream.send(ok(1), ...Array.from({ length: 16 }, () => frame(frames.DATA, 0, 1, Buffer.alloc(16_384))))
    const { body } = await started.response
    upstream.send(frame(frames.PING, 0, 0, 'barrier1'))
    await until(() => upstream.of(frames.PING).length === 1)
    expect(upstream.of(frames.WINDOW_UPDATE, 1)).toEqual([])
    let received = 0
    body?.start({ onData: (chunk) => (received += chunk.length), onEnd() {}, onError() {} })
    await until(() => upstream.of(frames.WINDOW_UPDATE, 1).length === 1)
    expect(received).toBe(262_144)
    body?.cancel()
    await until(() => upstream.of(frames.RST_STREAM, 1).length === 1)
  })

  test('GOAWAY fails or repeats the requests that were not processed, and others finish', async () => {
    const { upstream, call } = await start()
    const first = call()
    await until(() => upstream.of(frames.HEADERS).length === 1)
    const second = call()
    const third = call({ method: 'POST', body: { length: undefined, start: (sink) => sink.onData(Buffer.from('part')), pause() {}, resume() {}, cancel() {} } })
    await until(() => upstream.of(frames.DATA, 5).length === 1)
    upstream.send(frame(frames.GOAWAY, 0, 0, Buffer.concat([uint32(1), uint32(0)])), ok(1), frame(frames.DATA, frames.END_STREAM, 1, 'first'))
    expect((await first).text).toBe('200 first')
    // A body that was partly read cannot be sent again.
    expect((await third).text).toBe('connect')
    await until(() => upstream.connections() === 2 && upstream.of(frames.HEADERS, 1).length === 2)
    upstream.send(ok(1), frame(frames.DATA, frames.END_STREAM, 1, 'second'))
    expect((await second).text).toBe('200 second')
  })

  test('a refused stream is repeated on the same connection', async () => {
    const { upstream, call } = await start()
    const answered = call({ method: 'POST', body: new BufferBody('again') })
    await until(() => upstream.data(1) === 5)
    upstream.send(frame(frames.RST_STREAM, 0, 1, uint32(frames.REFUSED_STREAM)))
    await until(() => upstream.data(3) === 5)
    upstream.send(ok(3, frames.END_STREAM))
    expect([(await answered).text, upstream.connections()]).toEqual(['200 ', 1])
  })

  test('a response that ends before the request resets the rest of the request', async () => {
    const { upstream, call } = await start()
    let isCancelled = false
    const body = { length: undefined, start: (sink: BodySink) => sink.onData(Buffer.from('part')), pause() {}, resume() {}, cancel: () => (isCancelled = true) }
    const answered = call({ method: 'POST', body })
    await until(() => upstream.data(1) === 4)
    upstream.send(headers(1, [[':status', '413']], frames.END_STREAM))
    expect((await answered).text).toBe('413 ')
    await until(() => upstream.of(frames.RST_STREAM, 1).length === 1)
    expect([isCancelled, upstream.of(frames.RST_STREAM, 1)[0]?.payload.readUInt32BE(0)]).toEqual([true, frames.CANCEL])
  })

  test('a complete response is delivered although the upstream then resets the stream', async () => {
    const { upstream, pool } = await start()
    const body = { length: undefined, start: (sink: BodySink) => sink.onData(Buffer.from('part')), pause() {}, resume() {}, cancel() {} }
    const started = pool.call(testRequest({ method: 'POST', body }), { connectMs: 20_000 })
    await until(() => upstream.data(1) === 4)
    upstream.send(
      ok(1),
      frame(frames.DATA, frames.END_STREAM, 1, 'early'),
      frame(frames.RST_STREAM, 0, 1, uint32(frames.NO_ERROR)),
      frame(frames.PING, 0, 0, 'barrier1'),
    )
    const response = await started.response
    await until(() => upstream.of(frames.PING).length === 1)
    expect(await readResponse(response)).toMatchObject({ text: '200 early', error: undefined })
  })

  test.each<[string, Buffer[]]>([
    ['no :status', [headers(1, [['x-a', 'b']])]],
    [
      'two :status',
      [
        headers(1, [
          [':status', '200'],
          [':status', '200'],
        ]),
      ],
    ],
    ['a status of four digits', [headers(1, [[':status', '2000']])]],
    ['101', [headers(1, [[':status', '101']], 0)]],
    ['an interim response that ends the stream', [headers(1, [[':status', '103']])]],
    [
      'connection',
      [
        headers(1, [
          [':status', '200'],
          ['connection', 'close'],
        ]),
      ],
    ],
    [
      'transfer-encoding',
      [
        headers(1, [
          [':status', '200'],
          ['transfer-encoding', 'chunked'],
        ]),
      ],
    ],
    [
      'a line feed in a value',
      [
        headers(1, [
          [':status', '200'],
          ['x-a', 'b\nc: d'],
        ]),
      ],
    ],
    [
      'two content-length',
      [
        headers(
          1,
          [
            [':status', '200'],
            ['content-length', '1'],
            ['content-length', '1'],
          ],
          0,
        ),
      ],
    ],
    ['a header section above 64 KiB', large()],
  ])('%s in a response fails the call and keeps the connection', async (_, sent) => {
    const { upstream, call } = await start()
    const failed = call({ method: 'POST' })
    await until(() => upstream.of(frames.HEADERS).length === 1)
    upstream.send(...sent)
    expect((await failed).text).toBe('protocol')
    const next = call()
    await until(() => upstream.of(frames.HEADERS, 3).length === 1)
    upstream.send(ok(3, frames.END_STREAM))
    expect([(await next).text, upstream.connections()]).toEqual(['200 ', 1])
  })

  test('a violation of the connection fails its calls, and the next call opens another', async () => {
    const { upstream, call } = await start()
    const failed = call({ method: 'POST' })
    await until(() => upstream.of(frames.HEADERS).length === 1)
    upstream.send(frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, '\0\0\0\x02'))
    expect((await failed).text).toBe('protocol')
    const next = call()
    await until(() => upstream.connections() === 2 && upstream.of(frames.HEADERS).length === 2)
    upstream.send(ok(1, frames.END_STREAM))
    expect((await next).text).toBe('200 ')
    expect(upstream.of(frames.GOAWAY)[0]?.payload.readUInt32BE(4)).toBe(frames.PROTOCOL_ERROR)
  })

  test.each([
    ['HEAD', 'HEAD', 200],
    ['304', 'GET', 304],
  ])('the content-length of a response to %s announces no body', async (_, method, status) => {
    const { upstream, pool } = await start()
    const started = pool.call(testRequest({ method }), { connectMs: 20_000 })
    await until(() => upstream.of(frames.HEADERS).length === 1)
    upstream.send(
      headers(1, [
        [':status', String(status)],
        ['content-length', '99'],
      ]),
    )
    const response = await started.response
    expect([response.status, response.headers.get('content-length'), response.body]).toEqual([status, '99', undefined])
  })
})

/** A header section of 80 KB in several frames. */
function large(): Buffer[] {
  const whole = headers(1, [[':status', '200'], ...Array.from({ length: 8 }, (_, i): [string, string] => [`x-${i}`, 'v'.repeat(10_000)])]).subarray(
    frames.FRAME_HEADER_BYTES,
  )
  const parts: Buffer[] = []
  for (let at = 0; at < whole.length; at += 16_384) {
    const flags = (at === 0 ? frames.END_STREAM : 0) | (at + 16_384 >= whole.length ? frames.END_HEADERS : 0)
    parts.push(frame(at === 0 ? frames.HEADERS : frames.CONTINUATION, flags, 1, whole.subarray(at, at + 16_384)))
  }
  return parts
}
