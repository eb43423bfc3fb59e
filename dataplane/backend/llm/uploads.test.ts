import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { until } from '../../../e2e/harness/wait.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { chat, send } from './testing/test-bed.ts'

const open: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

interface Upload {
  readonly gateway: LlmGateway
  /** Bytes that the provider received so far. */
  readonly received: () => number
}

/** Starts a gateway in front of a provider that counts the bytes of requests. */
async function startCounter(options: Partial<LlmGatewayOptions> = {}): Promise<Upload> {
  let received = 0
  const server: Server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => void (received += chunk.length))
    request.on(
      'end',
      () => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"hi","usage":{"input_tokens":3,"output_tokens":4}}'),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => void server.close())
  const { port } = server.address() as AddressInfo
  const gateway = await startLlmGateway({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port } },
    ...options,
    policies: { ai: { routes: { '/raw': 'Passthrough', '/detect': 'Detect', '/chat': 'Completions' }, ...options.policies?.ai } },
  })
  open.push(() => gateway.close())
  return { gateway, received: () => received }
}

const head = '--xx\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
const tail = '\r\n--xx\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--xx--\r\n'
const megabyte = Buffer.alloc(1024 * 1024, 0x61)
const form = 'multipart/form-data; boundary=xx'

/** Begins an upload; the returned functions send more and end it. */
function upload(gateway: LlmGateway, path: string, type: string) {
  const request = httpRequest({ host: '127.0.0.1', port: gateway.port, path, method: 'POST', agent: false, headers: { 'content-type': type } })
  const status = new Promise<number>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response: IncomingMessage) => void response.resume().on('end', () => resolve(response.statusCode ?? 0)))
  })
  return { status, write: (bytes: Buffer | string) => void request.write(bytes), end: (bytes: string) => void request.end(bytes) }
}

describe('an upload', () => {
  test.each([
    ['of type Passthrough', '/raw', form],
    ['of type Detect', '/detect', form],
    ['of type Detect that is an image', '/detect', 'image/png'],
  ])('%s reaches the provider while the client sends it', async (_, path, type) => {
    const { gateway, received } = await startCounter()
    const { status, write, end } = upload(gateway, path, type)
    write(head)
    write(megabyte)
    await until(() => received() >= megabyte.length)
    end(tail)
    expect(await status).toBe(200)
    expect(received()).toBe(head.length + megabyte.length + tail.length)
  })

  test.each([
    ['a form', form, head, tail],
    ['JSON', 'application/json', '{"model":"m","image":"', '"}'],
  ])('of type Detect that is %s may exceed every limit', async (_, type, begin, finish) => {
    const { gateway, received } = await startCounter({ onGateway: [{ frontend: { http: { maxBufferSize: 1000 } } }] })
    const { status, write, end } = upload(gateway, '/detect', type)
    write(begin)
    for (let count = 0; count < 5; count++) write(megabyte)
    end(finish)
    expect(await status).toBe(200)
    expect(received()).toBe(begin.length + 5 * megabyte.length + finish.length)
  })

  test('of JSON that a policy reads is 413 over the limit', async () => {
    const { gateway } = await startCounter({
      onGateway: [{ frontend: { http: { maxBufferSize: 1000 } } }],
      policies: { ai: { defaults: [{ field: 'seed', value: 1 }] } },
    })
    const { status, text } = await send(gateway.port, { path: '/detect', body: chat('x'.repeat(2000)) })
    expect([status, text]).toEqual([413, 'failed to process LLM request: request was too large: the limit is 1000 bytes (frontend.http.maxBufferSize)'])
  })

  test('in a form shows its model in the access log', async () => {
    const { gateway } = await startCounter()
    const { status, write, end } = upload(gateway, '/detect', form)
    write(head)
    write(megabyte)
    end(tail)
    expect(await status).toBe(200)
    await until(() => gateway.finished.length > 0)
    const fields = logFieldsOf(gateway.finished[0])
    expect([fields['gen_ai.request.model'], fields['gen_ai.usage.input_tokens']]).toEqual(['whisper-1', 3])
  })
})

describe('the size limit of bodies that are read', () => {
  test.each<[string, number | undefined, number]>([
    ['is 32 MiB by default', undefined, 200],
    ['is 32 MiB with the default of maxBufferSize', 2 * 1024 * 1024, 200],
    ['is maxBufferSize otherwise', 3 * 1024 * 1024, 413],
  ])('%s', async (_, maxBufferSize, expected) => {
    const { gateway } = await startCounter(maxBufferSize === undefined ? {} : { onGateway: [{ frontend: { http: { maxBufferSize } } }] })
    const { status } = await send(gateway.port, { path: '/chat', body: chat('x'.repeat(4 * 1024 * 1024)) })
    expect(status).toBe(expected)
  })

  test('is 32 MiB after a policy that buffered the first 2 MiB', async () => {
    const traffic = { authorization: { policy: { matchExpressions: ['size(request.bodyPrefix) > 0'] } } }
    const { gateway } = await startCounter({ onGateway: [{ traffic }] })
    const { status } = await send(gateway.port, { path: '/chat', body: chat('x'.repeat(4 * 1024 * 1024)) })
    expect(status).toBe(200)
  })
})
