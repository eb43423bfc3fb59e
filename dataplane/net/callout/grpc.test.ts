import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { create } from '@bufbuild/protobuf'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js'
import { Authorization, CheckRequestSchema, CheckResponseSchema, type CheckResponse } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import {
  ExternalProcessor,
  ProcessingRequestSchema,
  ProcessingResponseSchema,
  type ProcessingRequest,
  type ProcessingResponse,
} from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { HeaderList } from '../../http/headers.ts'
import { startPortForwarder } from '../../testing/port-forwarder.ts'
import { testExchange } from '../../testing/exchange.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamError } from '../upstream/types.ts'
import { circuitOf } from './circuit.ts'
import { encodeFrame } from './frames.ts'
import { callUnary, GrpcError, openStream, type GrpcOptions } from './grpc.ts'
import { bidi, destinationTo, startGrpcService, unary } from './testing.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})
const later = <T extends { close(): unknown }>(thing: T): T => {
  open.push(() => thing.close())
  return thing
}
const { check } = Authorization.method
const { process: processMethod } = ExternalProcessor.method
const messageOf = (id: string) => create(CheckRequestSchema, { attributes: { request: { http: { id } } } })
const answerOf = (message: string): CheckResponse => create(CheckResponseSchema, { status: { code: 0, message } })

async function service(answer: Parameters<typeof unary<typeof check.input, typeof check.output>>[1]): Promise<Destination> {
  const { port } = later(await startGrpcService([unary(check, answer)]))
  return later(destinationTo(port))
}

/** How a call ended, in one line. */
async function outcomeOf(destination: Destination, options: GrpcOptions = {}, id = 'a'): Promise<string> {
  try {
    return `ok ${(await callUnary(destination, check, messageOf(id), options)).status?.message ?? ''}`
  } catch (error) {
    if (error instanceof GrpcError) return `grpc ${error.status} ${error.message}`
    return error instanceof Error ? `${error.name} ${error.message.replace(/:\d+/g, ':port')}` : String(error)
  }
}

describe('a unary call', () => {
  test('carries messages and metadata', async () => {
    const destination = await service((request, metadata) => answerOf(`${request.attributes?.request?.http?.id} ${metadata.get('x-a').join()}`))
    expect(await outcomeOf(destination, { metadata: new HeaderList(['x-a', '1', 'x-a', '2']) })).toBe('ok a 1, 2')
  })

  test('carries messages of over a megabyte in both directions', async () => {
    const destination = await service((request) => answerOf(request.attributes?.request?.http?.id ?? ''))
    const text = 'long '.repeat(500_000)
    expect(await outcomeOf(destination, {}, text)).toBe(`ok ${text}`)
  })

  test('shares one connection with concurrent calls', async () => {
    const peers = new Set<string>()
    const server = createServer()
    server.on('session', (session: ServerHttp2Session) => peers.add(String(session.socket.remotePort)))
    const destination = await http2(server, (stream) => void setTimeout(() => respondOk(stream, answerBytes()), 5))
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => outcomeOf(destination))))).toEqual(new Set(['ok raw']))
    expect(peers.size).toBe(1)
  })

  test('rejects with the status of the service', async () => {
    const destination = await service(() => {
      throw Object.assign(new Error('no'), { code: 7, details: 'wer da? – nein' })
    })
    expect(await outcomeOf(destination)).toBe('grpc 7 wer da? – nein')
  })

  test('sends its timeout as grpc-timeout and ends when it expires', async () => {
    let received = ''
    const destination = await http2(createServer(), (_stream, headers) => void (received = headers['grpc-timeout'] ?? 'none'))
    expect(await outcomeOf(destination, { timeoutMs: 1500 })).toBe('UpstreamError test/service took longer than 1500 ms')
    expect(received).toBe('1500m')
  })

  test('has the headers that gRPC requires, beside its metadata', async () => {
    let received: unknown
    const destination = await http2(createServer(), (stream, headers) => {
      received = headers
      respondOk(stream, answerBytes())
    })
    await outcomeOf(destination, { timeoutMs: 1500, metadata: new HeaderList(['x-a', '1', 'content-type', 'text/plain']) })
    const required = { ':method': 'POST', te: 'trailers', 'content-type': 'application/grpc', 'grpc-timeout': '1500m' }
    expect(received).toMatchObject({ ...required, 'x-a': '1', 'user-agent': expect.stringMatching(/^proxy\//) as unknown })
  })

  test('ends at the deadline of its exchange', async () => {
    const destination = await http2(createServer(), () => undefined)
    const exchange = testExchange()
    exchange.deadlineAtMs = performance.now() + 60
    expect(await outcomeOf(destination, { exchange, timeoutMs: 5000 })).toBe('ProxyError request timeout')
    expect(await outcomeOf(destination, { exchange })).toBe('ProxyError request timeout')
  })

  test('is cancelled when the client disconnects', async () => {
    let closed = 0
    const exchange = testExchange()
    const destination = await http2(createServer(), (stream) => {
      stream.on('close', () => (closed = stream.rstCode))
      exchange.abort(new Error('gone'))
    })
    expect(await outcomeOf(destination, { exchange })).toBe('UpstreamError call was cancelled')
    await until(() => closed === 8)
  })

  test.each<[string, (stream: ServerHttp2Stream) => void, string]>([
    [
      'a page of HTML',
      (stream) => void (stream.respond({ ':status': 200, 'content-type': 'text/html' }), stream.end('<p>')),
      'grpc 2 the answer is not gRPC: content-type text/html',
    ],
    ['HTTP 503', (stream) => stream.respond({ ':status': 503 }, { endStream: true }), 'grpc 14 the answer has HTTP status 503'],
    ['no status', (stream) => void (stream.respond(grpcHead), stream.end(answerBytes())), 'grpc 13 the answer ended without a grpc-status'],
    ['no message', (stream) => respondOk(stream, Buffer.alloc(0)), 'UpstreamError test/service: expected one whole message'],
    ['two messages', (stream) => respondOk(stream, Buffer.concat([answerBytes(), answerBytes()])), 'UpstreamError test/service: expected one whole message'],
    ['half a message', (stream) => respondOk(stream, answerBytes().subarray(0, 7)), 'UpstreamError test/service: expected one whole message'],
    ['no protobuf', (stream) => respondOk(stream, encodeFrame(Buffer.from('ffffff', 'hex'))), 'UpstreamError test/service: premature EOF'],
    [
      'a compressed message',
      (stream) => respondOk(stream, Buffer.from('0100000000', 'hex')),
      'UpstreamError test/service: a message is compressed, which was not offered',
    ],
    [
      'a message of 4 GB',
      (stream) => respondOk(stream, Buffer.from('00ffffffff', 'hex')),
      'UpstreamError test/service: a message of 4294967295 bytes exceeds 4194304',
    ],
    ['a reset', (stream) => stream.close(2), 'UpstreamError 127.0.0.1:port: stream was reset with code 2'],
    ['a cut connection', (stream) => stream.session?.destroy(), 'UpstreamError 127.0.0.1:port: stream was reset with code 8'],
  ])('rejects if the response is %s', async (_, respond, expected) => {
    expect(await outcomeOf(await http2(createServer(), respond))).toContain(expected)
  })

  test('rejects with an explanation if the appProtocol of its Service is HTTP/1.1', async () => {
    const destination = later(destinationTo(1, {}, { appProtocol: 'HTTP11' }))
    expect(await outcomeOf(destination)).toBe('UpstreamError test/service is called by HTTP/1.1, as its appProtocol or a policy says; gRPC needs HTTP/2')
  })

  test('is sent to another endpoint if the first accepts no connection', async () => {
    const { port } = later(await startGrpcService([unary(check, () => answerOf('here'))]))
    const destination = later(destinationTo([CLOSED_PORT, port]))
    for (let nth = 0; nth < 5; nth++) expect(await outcomeOf(destination)).toBe('ok here')
  })

  test('reconnects after the service was stopped and started', async () => {
    const first = await startGrpcService([unary(check, () => answerOf('first'))])
    const forwarder = later(await startPortForwarder(first.port))
    const destination = later(destinationTo(forwarder.port))
    expect(await outcomeOf(destination)).toBe('ok first')
    forwarder.to = undefined
    first.close()
    expect(await outcomeOf(destination)).toMatch(/^UpstreamError/)
    forwarder.to = later(await startGrpcService([unary(check, () => answerOf('second'))])).port
    expect(await outcomeOf(destination)).toBe('ok second')
  })
})

describe('the circuit of an unreachable service', () => {
  test('opens after the first calls timed out, so that later calls fail at once', async () => {
    const destination = await blackHole({ connectMs: 150 })
    const first = await Promise.all([outcomeOf(destination), outcomeOf(destination), outcomeOf(destination)])
    expect(first).toEqual(Array.from({ length: 3 }, () => 'UpstreamError 127.0.0.1:port: no connection within 150 ms'))
    // Concurrently, because the circuit permits a trial after half a second.
    const next = await Promise.all(Array.from({ length: 20 }, () => outcomeOf(destination)))
    for (const outcome of next) expect(outcome).toMatch(/did not answer the last calls; the next is tried in \d+ ms/)
  })

  test('closes once the service is reachable again', async () => {
    const forwarder = later(await startPortForwarder())
    const destination = later(destinationTo(forwarder.port))
    await until(async () => (await outcomeOf(destination)).includes('did not answer'))
    forwarder.to = later(await startGrpcService([unary(check, () => answerOf('back'))])).port
    let last = ''
    const asking = setInterval(() => void outcomeOf(destination).then((text) => (last = text)), 20)
    await until(() => last === 'ok back')
    clearInterval(asking)
    expect(circuitOf(destination).tryAcquire(0)).not.toEqual(expect.any(Number))
  })
})

describe('a stream', () => {
  type Duplex = ServerDuplexStream<ProcessingRequest, ProcessingResponse>
  const bodyOf = (text: string) => create(ProcessingRequestSchema, { request: { case: 'requestBody', value: { body: Buffer.from(text) } } })
  const replyOf = (text: string) =>
    create(ProcessingResponseSchema, { response: { case: 'immediateResponse', value: { body: Buffer.from(text), details: '' } } })
  const textOf = ({ response }: ProcessingResponse): string => (response.case === 'immediateResponse' ? Buffer.from(response.value.body).toString() : '')

  async function streamTo(handle: (call: Duplex) => void, options: GrpcOptions = {}) {
    const { port } = later(await startGrpcService([bidi(processMethod, handle as never)]))
    const destination = later(destinationTo(port))
    const log: string[] = []
    const stream = openStream(
      destination,
      processMethod,
      {
        onMessage: (message) => void log.push(textOf(message)),
        onEnd: (error) => void log.push(error === undefined ? 'end' : error instanceof GrpcError ? `grpc ${error.status}` : error.message),
        onDrain: () => void log.push('drain'),
      },
      options,
    )
    return { stream, log }
  }
  const echo = (call: Duplex): void => {
    call.on(
      'data',
      ({ request }: ProcessingRequest) => void call.write(replyOf(request.case === 'requestBody' ? Buffer.from(request.value.body).toString() : '?')),
    )
    call.on('end', () => call.end())
  }

  test('carries messages in both directions while it is open', async () => {
    const { stream, log } = await streamTo(echo)
    stream.send(bodyOf('a'))
    await until(() => log.length === 1)
    stream.send(bodyOf('b'))
    stream.send(bodyOf('c'))
    await until(() => log.length === 3)
    stream.end()
    await until(() => log.length === 4)
    expect(log).toEqual(['a', 'b', 'c', 'end'])
  })

  test('ends with the status of the service', async () => {
    const { stream, log } = await streamTo((call) => call.emit('error', { code: 9, details: 'x' }))
    stream.send(bodyOf('a'))
    await until(() => log.length === 1)
    expect(log).toEqual(['grpc 9'])
  })

  test('applies back-pressure while the service does not read', async () => {
    let take: Duplex | undefined
    const { stream, log } = await streamTo((call) => void (take = call))
    let sent = 0
    while (stream.send(bodyOf('x'.repeat(60_000))) && sent < 100) sent++
    await until(() => take !== undefined)
    while (stream.send(bodyOf('x'.repeat(60_000))) && sent < 100) sent++
    expect(sent).toBeLessThan(40)
    const count = log.length
    take?.resume()
    await until(() => log.length > count)
    expect(log).toContain('drain')
  })

  test('reports no events after cancel', async () => {
    let cancelled = false
    let begun = false
    const { stream, log } = await streamTo((call) => {
      begun = true
      call.on('cancelled', () => (cancelled = true))
    })
    stream.send(bodyOf('a'))
    await until(() => begun)
    stream.cancel(new Error('enough'))
    await until(() => cancelled)
    expect(log).toEqual([])
  })

  test.each<[string, (call: Duplex) => void]>([
    ['that never responds', (call) => void call.resume()],
    ['that sends its head and then nothing', (call) => (call.sendMetadata(new Metadata()), void call.resume())],
    ['that responds once and then stops', (call) => void call.once('data', () => call.write(replyOf('once')))],
  ])('cancelled with a timeout opens the circuit of a service %s', async (_, handle) => {
    const { port } = later(await startGrpcService([bidi(processMethod, handle as never)]))
    const destination = later(destinationTo(port))
    for (let nth = 0; nth < 3; nth++) {
      const answered = Promise.withResolvers<unknown>()
      const stream = openStream(destination, processMethod, { onMessage: answered.resolve, onEnd: answered.resolve })
      stream.send(bodyOf('a'))
      await Promise.race([answered.promise, new Promise((resolve) => setTimeout(resolve, 100))])
      stream.cancel(new UpstreamError('connect-timeout', 'no reply'))
    }
    const ended = await new Promise((resolve) => openStream(destination, processMethod, { onMessage: () => undefined, onEnd: resolve }).send(bodyOf('a')))
    expect(String(ended)).toContain('did not answer the last calls')
  })

  test('ends with an error if nothing listens on the port', async () => {
    const destination = later(destinationTo(CLOSED_PORT))
    const ended = await new Promise((resolve) => openStream(destination, processMethod, { onMessage: () => undefined, onEnd: resolve }).send(bodyOf('a')))
    expect(String(ended)).toMatch(/UpstreamError: 127.0.0.1:\d+/)
  })
})

const grpcHead = { ':status': 200, 'content-type': 'application/grpc' }
// A CheckResponse with status.message "raw".
const answerBytes = (): Buffer => encodeFrame(Buffer.from('0a051203726177', 'hex'))

function respondOk(stream: ServerHttp2Stream, bytes: Buffer): void {
  stream.respond(grpcHead, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(bytes)
}

async function http2(
  server: ReturnType<typeof createServer>,
  respond: (stream: ServerHttp2Stream, headers: Record<string, string>) => void,
): Promise<Destination> {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.on('error', () => undefined)
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: object) => {
    stream.on('error', () => undefined)
    respond(stream, headers as Record<string, string>)
  })
  const port = await listening(server)
  open.push(() => {
    for (const session of sessions) session.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return later(destinationTo(port))
}

/** A server that accepts connections and sends nothing. */
async function blackHole(settings: { connectMs: number }): Promise<Destination> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  const port = await listening(server)
  open.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return later(destinationTo(port, settings))
}

/** A port on which nothing listens, and which the system does not assign. */
const CLOSED_PORT = 1

async function listening(server: Pick<Server, 'listen' | 'address'>): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
  return (server.address() as AddressInfo).port
}
