import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { afterEach, expect, test } from '@jest/globals'
import { ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { EndpointPicker, Route } from '#gen/config/types.ts'
import { ExternalProcessor, ProcessingResponseSchema, type ProcessingRequest } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { StatusCode } from '#gen/proto/envoy/type/v3/http_status_pb.js'
import { bidi, startGrpcService } from '../../net/callout/testing.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { logFieldOf } from '../../observe/telemetry/access-log/fields.ts'
import { makeCertificate } from '../../testing/certificates.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { createPool } from '../../net/upstream/pools.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

type Reply = MessageInitShape<typeof ProcessingResponseSchema>
type Picker = (request: ProcessingRequest, model: string[]) => Reply | readonly Reply[] | undefined | Error
const KEY = 'x-gateway-destination-endpoint'
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

const named = (value: string): Reply => ({
  response: { case: 'requestHeaders', value: { response: { headerMutation: { setHeaders: [{ header: { key: KEY, rawValue: Buffer.from(value) } }] } } } },
})
const inMetadata = (value: string): Reply => ({ response: { case: 'requestHeaders', value: {} }, dynamicMetadata: { 'envoy.lb': { [KEY]: value } } })
const streamed = (body: string, endOfStream = true): Reply => ({
  response: {
    case: 'requestBody',
    value: { response: { bodyMutation: { mutation: { case: 'streamedResponse', value: { body: Buffer.from(body), endOfStream } } } } },
  },
})
const plainYes: Reply = { response: { case: 'requestBody', value: { response: {} } } }
const busy: Reply = { response: { case: 'immediateResponse', value: { status: { code: StatusCode.TooManyRequests }, body: Buffer.from('busy') } } }

/** A picker that selects after it received the complete body, as the pickers of the Inference Extension do. */
const afterBody =
  (choose: (labels: string[]) => readonly Reply[]): Picker =>
  ({ request }, labels) => {
    if (request.case === 'requestHeaders') return request.value.endOfStream ? choose(labels).slice(0, 1) : undefined
    if (request.case === 'requestBody') return request.value.endOfStream ? choose(labels) : undefined
    return request.case === 'responseHeaders' ? { response: { case: 'responseHeaders', value: {} } } : undefined
  }

/** A model server that returns its name and the body that it received. */
async function startModel(name: string, status = 200, onRequest = (): void => undefined): Promise<number> {
  const server: Server = createServer((request, response) => {
    onRequest()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => response.writeHead(status).end(`${name} got ${Buffer.concat(chunks).toString() || 'nothing'}`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => (server.closeAllConnections(), server.close()))
  return (server.address() as AddressInfo).port
}

interface Options {
  readonly failureMode?: EndpointPicker['failureMode']
  readonly body?: string
  readonly headers?: Record<string, string>
  readonly route?: Partial<Route>
  readonly statuses?: readonly number[]
  readonly isTls?: boolean
  readonly isMissing?: boolean
  readonly maxBufferSize?: number
  /** Removes the endpoints of the pool when the first request reaches a model. */
  readonly removesEndpoints?: boolean
}

/** Starts a gateway with a pool of three model servers, a, b and c, and sends one request to it. */
async function ask(picker: Picker | undefined, options: Options = {}) {
  const {
    failureMode = 'FailClose',
    body,
    headers = {},
    route,
    statuses = [],
    isTls = false,
    isMissing = false,
    maxBufferSize,
    removesEndpoints = false,
  } = options
  let onRequest = (): void => undefined
  const ports = await Promise.all(['a', 'b', 'c'].map((name, index) => startModel(name, statuses[index], () => onRequest())))
  const labels = ports.map((port) => `127.0.0.1:${port}`)
  const seen: ProcessingRequest[] = []
  let ends = 0
  const handle = (call: ServerDuplexStream<ProcessingRequest, unknown>): void => {
    call.on('data', (request: ProcessingRequest) => {
      seen.push(request)
      const replies = picker?.(request, labels)
      if (replies instanceof Error) return void call.emit('error', replies)
      for (const reply of [replies].flat()) if (reply !== undefined) call.write(create(ProcessingResponseSchema, reply))
    })
    call.on('end', () => (ends++, call.end()))
    call.on('error', () => undefined)
  }
  const leaf = isTls ? makeCertificate({ name: 'nobody.example.com' }) : undefined
  const credentials =
    leaf === undefined
      ? undefined
      : ServerCredentials.createSsl(null, [{ private_key: Buffer.from(leaf.privateKey), cert_chain: Buffer.from(leaf.certificate) }], false)
  const service = await startGrpcService([bidi(ExternalProcessor.method.process, handle as never)], 0, credentials)
  open.push(() => service.close())
  if (picker === undefined) service.close()
  // Port 1 has no listener; a port that was just closed may be in use again.
  const pickerPort = picker === undefined ? 1 : service.port
  const backend = isMissing ? { invalid: 'BACKEND_NOT_FOUND' as const } : { service: 'ns/picker', port: 9002 }
  const store = createConfigStore()
  const gateway = new Gateway({ createPool })
  open.push(() => gateway.close())
  store.subscribe((snapshot) => gateway.update(snapshot))
  const messages: ConfigMessage[] = [
    ...testListener,
    testRoute({ service: 'ns/models.inference', port: 8000 }, route),
    {
      kind: 'service',
      message: {
        key: 'ns/models.inference',
        ports: [{ port: 8000, appProtocol: 'HTTP11', endpoints: ports.map((port) => ({ address: '127.0.0.1', port })) }],
        picker: { backend, failureMode, isPlaintext: !isTls },
      },
    },
    {
      kind: 'service',
      message: {
        key: 'ns/picker',
        hostname: 'picker.ns.svc',
        ports: [{ port: 9002, appProtocol: 'HTTP2', endpoints: [{ address: '127.0.0.1', port: pickerPort }] }],
      },
    },
  ]
  if (maxBufferSize !== undefined)
    messages.push({
      kind: 'policy',
      message: {
        key: 'frontend/ns/p:0',
        policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
        target: testGateway,
        frontend: { http: { maxBufferSize } },
      },
    })
  replaceMessages(store, messages)
  if (removesEndpoints) onRequest = () => replaceMessages(store, messages.map(withoutModels))
  const request = testRequest(
    body === undefined ? {} : { method: 'POST', body: new BufferBody(body) },
    body === undefined ? headers : { 'content-length': String(body.length), ...headers },
  )
  const exchange = new Exchange(testConnection, request, performance.now())
  await gateway.handle(exchange)
  const text = (await readBody(exchange.response?.body, 10_000)).bytes.toString()
  return { answer: `${exchange.response?.status} ${text}`, exchange, seen, labels, ends: () => ends }
}

function withoutModels(message: ConfigMessage): ConfigMessage {
  if (message.kind !== 'service' || message.message.key !== 'ns/models.inference') return message
  return { ...message, message: { ...message.message, ports: [{ port: 8000, appProtocol: 'HTTP11', endpoints: [] }] } }
}

const at = (labels: readonly string[], index: number): string => labels[index] ?? ''

test.each<[string, Picker, Options, string]>([
  ['the endpoint in the header', afterBody((labels) => [named(at(labels, 1)), streamed('hello')]), { body: 'hello' }, '200 b got hello'],
  ['the endpoint in the metadata', afterBody((labels) => [inMetadata(at(labels, 2)), streamed('hello')]), { body: 'hello' }, '200 c got hello'],
  ['a request without a body', afterBody((labels) => [named(at(labels, 1))]), {}, '200 b got nothing'],
  [
    'a body that the picker changes in pieces',
    afterBody((labels) => [named(at(labels, 1)), streamed('longer ', false), streamed('text')]),
    { body: 'x' },
    '200 b got longer text',
  ],
  ['a picker that accepts the body without returning it', afterBody((labels) => [named(at(labels, 1)), plainYes]), { body: 'hello' }, '200 b got hello'],
  ['the first listed endpoint that is in the pool', afterBody((labels) => [named(`10.9.9.9:80, ${at(labels, 2)},${at(labels, 1)}`)]), {}, '200 c got nothing'],
  ['a picker that sheds load with 429', () => busy, { body: 'hello' }, '429 busy'],
  ['a fail-open picker that sheds load with 429', () => busy, { failureMode: 'FailOpen' }, '429 busy'],
  [
    'an address outside the pool with 503',
    afterBody(() => [named('169.254.169.254:80')]),
    {},
    '503 endpoint picker failed: the picker named no endpoint of the pool',
  ],
  [
    'an address outside the pool with 503, also if the picker fails open',
    afterBody(() => [named('169.254.169.254:80')]),
    { failureMode: 'FailOpen' },
    '503 endpoint picker failed: the picker named no endpoint of the pool',
  ],
  [
    'a reply without endpoint with 503, although the client names one',
    afterBody(() => [{ response: { case: 'requestHeaders', value: {} } }]),
    { headers: { [KEY]: '127.0.0.1:1' } },
    '503 endpoint picker failed: the picker named no endpoint',
  ],
  [
    'a body that is too large for the picker with 413',
    afterBody((labels) => [named(at(labels, 1))]),
    { body: 'x'.repeat(2_000), maxBufferSize: 1_000 },
    '413 request body too large',
  ],
])('a request handles %s', async (_, picker, options, expected) => expect((await ask(picker, options)).answer).toBe(expected))

test('a retry after the chosen endpoints are gone is 503, and its detail says that the picker chose them', async () => {
  const { answer, exchange, labels } = await ask(
    afterBody((all) => [named(at(all, 1))]),
    { statuses: [200, 503, 200], removesEndpoints: true, route: { retry: { attempts: 1, codes: [503] } } },
  )
  expect(answer).toBe('503 no healthy backends')
  expect(exchange.error?.detail).toBe(`no endpoint that the endpoint picker chose is left in ns/models.inference:8000: ${at(labels, 1)}`)
})

test('a picker with an untrusted certificate is called over TLS', async () => {
  const { answer, seen } = await ask(
    afterBody((labels) => [named(at(labels, 1)), streamed('hello')]),
    { body: 'hello', isTls: true },
  )
  expect([answer, seen[0]?.request.case]).toEqual(['200 b got hello', 'requestHeaders'])
})

const failures: readonly [string, Picker | undefined, Options][] = [
  ['an unavailable picker', undefined, { body: 'hello' }],
  ['a reference that does not resolve', undefined, { body: 'hello', isMissing: true }],
  ['an error', () => Object.assign(new Error('broken'), { code: 13 }), { body: 'hello' }],
  [
    'an error after the body',
    ({ request }) => (request.case === 'requestBody' ? Object.assign(new Error('broken'), { code: 13 }) : undefined),
    { body: 'hello' },
  ],
]
test.each(failures)('a fail-close picker turns %s into a 503', async (_, picker, options) => {
  expect((await ask(picker, options)).answer).toMatch(/^503 endpoint picker failed: /)
})
test.each(failures)('a fail-open picker turns %s into load balancing of the complete request', async (_, picker, options) => {
  const { answer, exchange } = await ask(picker, { ...options, failureMode: 'FailOpen', headers: { [KEY]: '127.0.0.1:1' } })
  expect(answer).toMatch(/^200 [abc] got hello$/)
  expect(exchange.request.headers.has(KEY)).toBe(false)
})

test('a fail-open picker is not called for a body that is too large, which is forwarded completely', async () => {
  const body = 'x'.repeat(2_000)
  const { answer, seen } = await ask(undefined, { body, maxBufferSize: 1_000, failureMode: 'FailOpen' })
  expect([answer.replace(/ [abc] /, ' '), seen]).toEqual([`200 got ${body}`, []])
})

test('the picker receives head and body of request and response, and the endpoint that served it', async () => {
  const base = afterBody((labels) => [named(at(labels, 1)), streamed('hello')])
  const { exchange, seen, labels, ends } = await ask(
    (request, all) =>
      request.request.case === 'responseHeaders'
        ? {
            response: {
              case: 'responseHeaders',
              value: { response: { headerMutation: { setHeaders: [{ header: { key: 'x-picked', rawValue: Buffer.from('1') } }] } } },
            },
          }
        : base(request, all),
    { body: 'hello' },
  )
  await until(() => ends() === 1)
  expect(seen.map(({ request }) => request.case)).toEqual(['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody', 'responseBody'])
  const [, body, head, ...answer] = seen
  expect(body?.request.value).toMatchObject({ endOfStream: true })
  expect(head?.metadataContext?.filterMetadata).toEqual({ 'envoy.lb': { 'x-gateway-destination-endpoint-served': labels[1] } })
  expect(answer.map(({ request }) => (request.case === 'responseBody' ? textOf(request.value.body) : '')).join('')).toBe('b got hello')
  expect(exchange.response?.headers.get('x-picked')).toBe('1')
  expect(logFieldOf(exchange, 'inferencepool.selected_endpoint')).toBe(labels[1])
})

test('a picker that fails in the response phase does not affect the response', async () => {
  const base = afterBody((labels) => [named(at(labels, 1)), streamed('hello')])
  const { answer } = await ask((request, labels) => (request.request.case === 'responseHeaders' ? new Error('broken') : base(request, labels)), {
    body: 'hello',
  })
  expect(answer).toBe('200 b got hello')
})

test('a picker that does not reply to the response delays it by at most a second', async () => {
  const base = afterBody((labels) => [named(at(labels, 1))])
  const startedAt = performance.now()
  const { answer } = await ask((request, labels) => (request.request.case === 'responseHeaders' ? undefined : base(request, labels)))
  expect(answer).toBe('200 b got nothing')
  expect(performance.now() - startedAt).toBeLessThan(15_000)
})

test("retries use the picker's endpoints in order", async () => {
  const { answer, exchange, labels, seen } = await ask(
    afterBody((all) => [named(`${at(all, 2)},${at(all, 0)},${at(all, 1)}`), streamed('hello')]),
    { body: 'hello', statuses: [503, 200, 503], route: { retry: { codes: [503], attempts: 2 } } },
  )
  expect([answer, exchange.retryAttempt, exchange.endpoint]).toEqual(['200 b got hello', 2, labels[1]])
  const served = seen.find(({ request }) => request.case === 'responseHeaders')?.metadataContext?.filterMetadata
  expect(served).toEqual({ 'envoy.lb': { 'x-gateway-destination-endpoint-served': labels[1] } })
})
