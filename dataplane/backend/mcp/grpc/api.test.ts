import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { create, fromJson, toBinary, type JsonObject } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import type { BackendFull } from '#gen/config/types.ts'
import { encodeFrame, FrameReader } from '../../../net/callout/frames.ts'
import { staticTarget, type GatewayConfig } from '../testing/gateway.ts'
import { begin, call, TestBed, until } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

/** A file with a service that has the method `Open`. */
const fileOf = (service: string) =>
  fromJson(FileDescriptorProtoSchema, {
    name: 'shop.proto',
    package: 'shop',
    syntax: 'proto3',
    dependency: ['google/protobuf/empty.proto'],
    service: [{ name: service, method: [{ name: 'Open', inputType: '.google.protobuf.Empty', outputType: '.google.protobuf.Empty' }] }],
  })
const descriptors = Buffer.from(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [fileOf('Shop')] }))).toString('base64')

/** A gRPC server that speaks HTTP/2 only. Its responses are empty messages, or `answer` responds. */
async function startShop(answer?: (stream: ServerHttp2Stream, path: string) => void): Promise<{ address: AddressInfo; seen: IncomingHttpHeaders[] }> {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer().on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    seen.push(headers)
    if (answer !== undefined) return answer(stream, headers[':path'] ?? '')
    respond(stream, new Uint8Array())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  bed.onClose(() => new Promise((resolve) => server.close(resolve)))
  return { address: server.address() as AddressInfo, seen }
}

const respond = (stream: ServerHttp2Stream, message: Uint8Array): void => respondWith(stream, encodeFrame(message))

function respondWith(stream: ServerHttp2Stream, frames: Uint8Array): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(frames)
}

const field = (writer: BinaryWriter, number: number, bytes: Uint8Array) => writer.tag(number, WireType.LengthDelimited).bytes(bytes)

/** A response of the reflection service to both of its questions: the services, and the file of one. */
function reflectionOf(service: string): Uint8Array {
  const one = (number: number, bytes: Uint8Array) => field(new BinaryWriter(), number, bytes).finish()
  const services = one(1, one(1, Buffer.from(`shop.${service}`)))
  return field(field(new BinaryWriter(), 6, services), 4, one(1, toBinary(FileDescriptorProtoSchema, fileOf(service)))).finish()
}

const http: BackendFull = { http: { requestTimeout: '7s' } }
const gatewayPolicy = [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, backend: http }] as const

describe('a gRPC server with a policy that has other fields of http', () => {
  test.each<[where: string, config: (address: AddressInfo) => GatewayConfig]>([
    ['at the target', ({ port }) => ({ mcp: { targets: [{ ...staticTarget('shop', port, { policies: http }), grpc: { descriptors } }] } })],
    ['at the Gateway', ({ port }) => ({ mcp: { targets: [{ ...staticTarget('shop', port), grpc: { descriptors } }] }, attached: gatewayPolicy })],
    [
      'for a Service',
      (address) => ({
        mcp: { targets: [{ name: 'shop', grpc: { descriptors, backend: { service: 'ns/shop', port: 80 } } }] },
        services: { 'ns/shop': [address] },
        policies: http,
      }),
    ],
  ])('%s is called by HTTP/2, and receives the timeout', async (_, config) => {
    const { address, seen } = await startShop()
    const { post } = await begin((await bed.gateway(config(address))).url)
    expect((await post(call('tools/call', { name: 'Shop_Open', arguments: {} }))).json.result).toMatchObject({ structuredContent: {} })
    expect(seen).toMatchObject([{ ':path': '/shop.Shop/Open', 'grpc-timeout': '7000m', te: 'trailers', 'content-type': 'application/grpc' }])
    expect(seen[0]?.['user-agent']).toBeTruthy()
  })
})

test.each([
  [400, 'INTERNAL'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'UNIMPLEMENTED'],
  [418, 'UNKNOWN'],
  [429, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
])('a response with HTTP status %d that is no gRPC is the error %s of the tool', async (status, name) => {
  const { address } = await startShop((stream) => void (stream.respond({ ':status': status, 'content-type': 'text/html' }), stream.end('no')))
  const { post } = await begin((await bed.gateway({ mcp: { targets: [{ ...staticTarget('shop', address.port), grpc: { descriptors } }] } })).url)
  const { result } = (await post(call('tools/call', { name: 'Shop_Open', arguments: {} }))).json
  expect(result).toEqual({ content: [{ type: 'text', text: `${name}: the response has HTTP status ${status}` }], isError: true })
})

test('a server without grpc.reflection.v1 that responds with 404 is asked by v1alpha', async () => {
  const { address, seen } = await startShop((stream) => void (stream.respond({ ':status': 404 }), stream.end()))
  const { post } = await begin((await bed.gateway({ mcp: { targets: [{ ...staticTarget('shop', address.port), grpc: {} }] } })).url)
  await post(call('tools/list'))
  expect(seen.map(({ te }) => te)).toEqual(['trailers', 'trailers'])
  expect(seen.map((headers) => headers[':path'])).toEqual(
    ['v1', 'v1alpha'].map((revision) => `/grpc.reflection.${revision}.ServerReflection/ServerReflectionInfo`),
  )
})

test('a call that the client cancels ends without a response', async () => {
  let open = 0
  const { address } = await startShop((stream) => {
    open++
    stream.on('error', () => undefined).on('close', () => open--)
  })
  const { post } = await begin((await bed.gateway({ mcp: { targets: [{ ...staticTarget('shop', address.port), grpc: { descriptors } }] } })).url)
  const called = post(call('tools/call', { name: 'Shop_Open', arguments: {} }, 5))
  await until('the call', () => open === 1)
  await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
  expect(await called).toMatchObject({ status: 200, text: '' })
  await until('the end of the call', () => open === 0)
})

describe('a reflection service that lacks descriptors', () => {
  const errorAnswer = field(new BinaryWriter(), 7, new BinaryWriter().tag(2, WireType.LengthDelimited).string('not found').finish()).finish()
  const one = (number: number, bytes: Uint8Array) => field(new BinaryWriter(), number, bytes).finish()

  /** Starts a gateway for a server with these services. `files`: their files, or those that they import, by name. */
  async function withFiles(services: readonly string[], files: Readonly<Record<string, object>>) {
    const list = one(
      6,
      services.map((name) => one(1, one(1, Buffer.from(`shop.${name}`)))).reduce((all, each) => Buffer.concat([all, each]), Buffer.alloc(0)),
    )
    const answerTo = (question: Buffer): Uint8Array => {
      const reader = new BinaryReader(question)
      const [number] = reader.tag()
      const file = files[reader.string().replace('shop.', '')]
      if (number === 7) return list
      return file === undefined ? errorAnswer : one(4, one(1, toBinary(FileDescriptorProtoSchema, fromJson(FileDescriptorProtoSchema, file as JsonObject))))
    }
    const { address } = await startShop((stream) => {
      const frames = new FrameReader(65_536)
      stream.on('data', (chunk: Buffer) => frames.push(chunk))
      stream.on('end', () => {
        const answers: Buffer[] = []
        for (let question = frames.next(); question !== undefined; question = frames.next()) answers.push(encodeFrame(answerTo(question)))
        respondWith(stream, Buffer.concat(answers))
      })
    })
    const lines: object[] = []
    const mcp = { targets: [{ ...staticTarget('shop', address.port), grpc: {} }] }
    const { url } = await bed.gateway({ mcp, onLog: (message, fields) => void lines.push({ message, ...fields }) })
    return { ...(await begin(url)), lines }
  }

  const open = { inputType: '.google.protobuf.Empty', outputType: '.google.protobuf.Empty', name: 'Open' }
  const file = (service: string, ...imports: string[]) => ({
    name: `${service}.proto`,
    package: 'shop',
    syntax: 'proto3',
    dependency: ['google/protobuf/empty.proto', ...imports],
    service: [{ name: service, method: [open] }],
  })

  test.each<[of: string, files: Record<string, object>]>([
    ['a service', { Books: file('Books') }],
    ['an import', { Books: file('Books'), Toys: file('Toys', 'parts.proto'), 'parts.proto': file('Parts', 'bolts.proto') }],
  ])('of %s has the tools of the other services, and the log names the service once', async (_, files) => {
    const { post, lines } = await withFiles(['Books', 'Toys'], files)
    for (let count = 0; count < 2; count++) expect((await post(call('tools/list'))).json.result).toMatchObject({ tools: [{ name: 'Books_Open' }] })
    expect(lines).toEqual([
      {
        message: 'services of a gRPC server have no tools',
        code: 'PX4041',
        backend: 'ns/mcp',
        target: 'shop',
        services: 'shop.Toys',
        missing: 1,
        error: 'the reflection service answered "not found"',
      },
    ])
  })

  test('of all services makes the target unavailable', async () => {
    const { post } = await withFiles(['Books', 'Toys'], {})
    expect((await post(call('tools/list'))).json.error).toMatchObject({ code: -32603 })
  })
})

test('a target that leads to another server has the tools of that server at once', async () => {
  const ports = await Promise.all(['Books', 'Toys'].map(async (name) => (await startShop((stream) => respond(stream, reflectionOf(name)))).address.port))
  const [first, second] = ports.map((port) => ({ mcp: { targets: [{ ...staticTarget('shop', port), grpc: {} }] } }))
  const gateway = await bed.gateway(first ?? {})
  const { post } = await begin(gateway.url)
  const names = async () => ((await post(call('tools/list'))).json.result as { tools: { name: string }[] }).tools.map(({ name }) => name)
  expect(await names()).toEqual(['Books_Open'])
  gateway.configure(second ?? {})
  expect(await names()).toEqual(['Toys_Open'])
})
