import {
  credentials,
  makeGenericClientConstructor,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type MethodDefinition,
  type ServiceDefinition,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientUnaryCall,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
} from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createHttp2Pool } from '../upstream/http2/pool.ts'
import type { UpstreamPool } from '../upstream/types.ts'
import { makeAuthority, makeCertificate } from '../../testing/certificates.ts'
import { forwardTo, startBind, type TestBind } from './testing.ts'
import { createTlsChoices } from './tls.ts'
import { until } from '../../../e2e/harness/wait.ts'

const method = (name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<Buffer, Buffer> => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: (value) => value,
  requestDeserialize: (value) => value,
  responseSerialize: (value) => value,
  responseDeserialize: (value) => value,
})
const service: ServiceDefinition = { unary: method('Unary', false, false), repeat: method('Repeat', false, true), chat: method('Chat', true, true) }
const EchoClient = makeGenericClientConstructor(service, 'Echo')
interface Echo extends Client {
  unary(message: Buffer, metadata: Metadata, options: object, callback: (error: ServiceError | null, answer?: Buffer) => void): ClientUnaryCall
  repeat(message: Buffer): ClientReadableStream<Buffer>
  chat(metadata?: Metadata): ClientDuplexStream<Buffer, Buffer>
}

const events: string[] = []
let server: Server
let pool: UpstreamPool
let bind: TestBind
let client: Echo
let tlsClient: Echo

beforeAll(async () => {
  server = new Server()
  server.addService(service, {
    unary(call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) {
      const want = call.metadata.get('x-want')[0]
      call.on('cancelled', () => events.push('unary cancelled'))
      if (want === 'error') return callback({ code: status.NOT_FOUND, details: 'no such thing: ä', metadata: metadataOf('x-why', 'because') })
      if (want === 'silence') return undefined
      return callback(null, Buffer.concat([call.request, Buffer.from(` ${call.getPath()}`)]), metadataOf('x-trailer', 'end'))
    },
    repeat(call: ServerWritableStream<Buffer, Buffer>) {
      call.on('cancelled', () => events.push('repeat cancelled'))
      const send = (left: number): void => {
        if (call.cancelled) return
        if (left === 0) return void call.end()
        const next = (): unknown => setImmediate(() => send(left - 1))
        if (call.write(call.request)) next()
        else call.once('drain', next)
      }
      send(100)
    },
    chat(call: ServerDuplexStream<Buffer, Buffer>) {
      call.on('cancelled', () => events.push('chat cancelled'))
      call.on('data', (message: Buffer) => call.write(message))
      call.on('end', () => call.end(metadataOf('x-trailer', 'end')))
    },
  })
  const upstreamPort = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error === null ? resolve(port) : reject(error))),
  )
  pool = createHttp2Pool({ host: '127.0.0.1', port: upstreamPort, tls: undefined, keepAlive: { idleMs: 60_000 } })
  const authority = makeAuthority()
  const choice = createTlsChoices().get({ key: 'l', kind: 'terminate-http', certificates: [makeCertificate({ name: 'localhost', authority })] })
  bind = await startBind(forwardTo(pool), { hasTls: true, selectTls: () => choice })
  client = new EchoClient(`127.0.0.1:${bind.port}`, credentials.createInsecure()) as unknown as Echo
  tlsClient = new EchoClient(`localhost:${bind.port}`, credentials.createSsl(Buffer.from(authority.certificate))) as unknown as Echo
})
afterAll(async () => {
  client.close()
  tlsClient.close()
  await bind.close()
  pool.close()
  server.forceShutdown()
})

function metadataOf(name: string, value: string): Metadata {
  const metadata = new Metadata()
  metadata.set(name, value)
  return metadata
}

interface Result {
  readonly code: number
  readonly details: string
  readonly answer: string | undefined
  readonly trailers: Record<string, unknown>
}

function unary(to: Echo, text: string, metadata = new Metadata(), options = {}): Promise<Result> {
  return new Promise((resolve) => {
    let answer: string | undefined
    const call = to.unary(Buffer.from(text), metadata, options, (_error, message) => (answer = message?.toString()))
    call.on('status', ({ code, details, metadata: trailers }) => setImmediate(() => resolve({ code, details, answer, trailers: trailers.getMap() })))
  })
}

describe.each([
  ['plaintext', () => client],
  ['TLS', () => tlsClient],
])('gRPC over %s', (_, to) => {
  test('a unary call returns its response, trailers and status', async () => {
    expect(await unary(to(), 'hello')).toMatchObject({ code: 0, answer: 'hello /test.Echo/Unary', trailers: { 'x-trailer': 'end' } })
  })

  test('an error status is returned with its metadata', async () => {
    expect(await unary(to(), 'x', metadataOf('x-want', 'error'))).toMatchObject({ code: 5, details: 'no such thing: ä', trailers: { 'x-why': 'because' } })
  })

  test('an unknown method is UNIMPLEMENTED', async () => {
    const other = method('Nothing', false, false)
    const code = await new Promise((resolve) =>
      to().makeUnaryRequest(other.path, other.requestSerialize, other.responseDeserialize, Buffer.from(''), (error) => resolve(error?.code)),
    )
    expect(code).toBe(12)
  })

  test('a message of 3 MiB is echoed', async () => {
    const { code, answer } = await unary(to(), 'x'.repeat(3 * 1024 * 1024))
    expect([code, answer?.length]).toEqual([0, 3 * 1024 * 1024 + ' /test.Echo/Unary'.length])
  })

  test('a deadline cancels the call upstream', async () => {
    events.length = 0
    expect(await unary(to(), 'x', metadataOf('x-want', 'silence'), { deadline: Date.now() + 1500 })).toMatchObject({ code: 4 })
    await until(() => events.includes('unary cancelled'))
    await until(() => bind.finished.at(-1)?.cutBy === 'client')
  })

  test('a server stream delivers all messages', async () => {
    let messages = 0
    const call = to().repeat(Buffer.alloc(10_000))
    call.on('data', () => messages++)
    const code = await new Promise((resolve) => call.on('status', (ended: { code: number }) => resolve(ended.code)))
    expect([messages, code]).toEqual([100, 0])
  })

  test('a cancelled server stream is cancelled upstream', async () => {
    events.length = 0
    const call = to().repeat(Buffer.alloc(100_000))
    call.on('error', () => undefined)
    call.once('data', () => call.cancel())
    const code = await new Promise((resolve) => call.on('status', (ended: { code: number }) => resolve(ended.code)))
    expect(code).toBe(1)
    await until(() => events.includes('repeat cancelled'))
  })

  test('a bidirectional stream: each message is answered before the next is sent', async () => {
    const call = to().chat()
    const answers: string[] = []
    call.on('data', (message: Buffer) => {
      answers.push(message.toString())
      if (answers.length === 5) call.end()
      else call.write(Buffer.from(`m${answers.length}`))
    })
    call.write(Buffer.from('m0'))
    const ended = await new Promise<{ code: number; metadata: Metadata }>((resolve) => call.on('status', resolve))
    expect([answers, ended.code, ended.metadata.getMap()]).toMatchObject([['m0', 'm1', 'm2', 'm3', 'm4'], 0, { 'x-trailer': 'end' }])
  })

  test('a cancelled bidirectional stream is cancelled upstream', async () => {
    events.length = 0
    const call = to().chat()
    call.on('error', () => undefined)
    call.once('data', () => call.cancel())
    call.write(Buffer.from('m0'))
    await until(() => events.length > 0)
    expect(events).toEqual(['chat cancelled'])
  })

  test('100 concurrent calls succeed', async () => {
    const all = await Promise.all(Array.from({ length: 100 }, (_unused, index) => unary(to(), `call ${index}`)))
    expect(all.map(({ answer }) => answer)).toEqual(all.map((_unused, index) => `call ${index} /test.Echo/Unary`))
  })
})

test('a call to an unreachable endpoint is UNAVAILABLE', async () => {
  const nowhere = createHttp2Pool({ host: '127.0.0.1', port: 1, tls: undefined, keepAlive: undefined })
  const broken = await startBind(forwardTo(nowhere))
  const other = new EchoClient(`127.0.0.1:${broken.port}`, credentials.createInsecure()) as unknown as Echo
  expect(await unary(other, 'x')).toMatchObject({ code: 14, details: 'upstream call failed: connect' })
  other.close()
  await broken.close()
})
