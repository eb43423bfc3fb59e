import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Secret } from '#api/cel/index.ts'
import { compileHealth } from '../destination/health.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import type { UpstreamAuth } from '../upstream/auth.ts'
import type { Destination, DestinationConfig, UpstreamSettings } from '../upstream/destination.ts'
import { callDestination, fetchDestination, startCall, type Callout, type CalloutOptions, type StartedCall } from './http.ts'
import { destinationTo } from './testing.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { variables } from '../../request/exchange/variables.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

async function service(answer: Answer, settings: Partial<UpstreamSettings> = {}, change: Partial<DestinationConfig> = {}): Promise<Destination> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(request, response, Buffer.concat(chunks).toString()))
  })
  const port = await new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
  const destination = destinationTo(port, settings, change)
  open.push(() => {
    destination.close()
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return destination
}

const echo: Answer = (request, response, body) => response.end(JSON.stringify({ method: request.method, url: request.url, ...request.headers, body }))
const get: Callout = { method: 'GET', target: '/a?b' }

async function outcomeOf(destination: Destination, callout: Callout = get, options: CalloutOptions & { limitBytes?: number } = {}): Promise<string> {
  try {
    const { status, body } = await fetchDestination(destination, callout, { limitBytes: 1000, ...options })
    return `${status} ${body.toString()}`
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message.replace(/\d+\.\d+\.\d+\.\d+:\d+/, 'address')}` : String(error)
  }
}

describe('a callout', () => {
  test('carries method, target, headers and body', async () => {
    const destination = await service(echo, {}, { hostname: 'auth.example' })
    const text = await outcomeOf(destination, { method: 'POST', target: '/x', headers: new HeaderList(['x-a', '1']), body: 'hello' })
    expect(JSON.parse(text.slice(4))).toMatchObject({ method: 'POST', url: '/x', host: 'auth.example', 'x-a': '1', 'content-length': '5', body: 'hello' })
  })

  test.each<[string, Partial<UpstreamSettings>, Parameters<typeof testExchange>, string | undefined]>([
    ['its own credentials', { auth: { kind: 'bearer', token: 'ours' } }, [{}, {}], 'Bearer ours'],
    ["its client's credentials, which a policy stored", { auth: { kind: 'passthrough' } }, [{}, {}], 'Bearer theirs'],
  ])('sends %s', async (_, settings, change, expected) => {
    const exchange = testExchange(...change)
    variables.jwt.set(exchange, { rawToken: new Secret('theirs') })
    const text = await outcomeOf(await service(echo, settings), get, { exchange })
    expect((JSON.parse(text.slice(4)) as { authorization?: string }).authorization).toBe(expected)
  })

  test.each<[string, Partial<UpstreamSettings>, Partial<DestinationConfig>, string]>([
    ['does not resolve', {}, { error: 'SERVICE_NOT_FOUND' }, 'UpstreamError: test/service does not resolve: service not found'],
    ['has a broken policy', { broken: 'no CA' }, {}, 'UpstreamError: test/service cannot be called: no CA'],
    ['lacks its credentials', { auth: { kind: 'broken', reason: 'no secret' } }, {}, 'UpstreamError: test/service cannot be called: no secret'],
    ['has no endpoints', {}, { endpoints: [] }, 'UpstreamError: test/service has no endpoints'],
  ])('fails if the destination %s', async (_, settings, change, expected) => {
    expect(await outcomeOf(await service(echo, settings, change))).toBe(expected)
  })

  test('fails if the response body exceeds the limit', async () => {
    expect(await outcomeOf(await service((_request, response) => response.end('x'.repeat(1001))))).toBe('Error: body exceeds 1000 bytes')
  })

  test.each<[string, Answer]>([
    ['the head', () => undefined],
    ['the end of the body', (_request, response) => void response.write('a')],
  ])('fails if %s does not arrive before the timeout', async (_, answer) => {
    expect(await outcomeOf(await service(answer), get, { timeoutMs: 60 })).toBe('UpstreamError: test/service took longer than 60 ms')
    expect(await outcomeOf(await service(answer, { requestMs: 50 }), get, { timeoutMs: 5000 })).toBe('UpstreamError: test/service took longer than 50 ms')
  })

  test('with a timeout for the head does not limit the body', async () => {
    const destination = await service((_request, response) => void (response.write('a'), setTimeout(() => response.end('b'), 2500)))
    const { body } = await callDestination(destination, get, { timeoutMs: 2000 })
    expect((await readBody(body, 10)).bytes.toString()).toBe('ab')
  })

  test.each<[string, Answer]>([
    ['before the head', () => undefined],
    ['in the body', (_request, response) => void response.write('a')],
  ])('rejects with the timeout of its exchange at its deadline %s', async (_, answer) => {
    const exchange = testExchange()
    exchange.deadlineAtMs = performance.now() + 50
    expect(await outcomeOf(await service(answer), get, { exchange, timeoutMs: 5000 })).toBe('ProxyError: request timeout')
  })

  test('is cancelled when its client disconnects, and not started afterwards', async () => {
    let closed = 0
    const exchange = testExchange()
    const destination = await service((request) => {
      request.socket.on('close', () => closed++)
      exchange.abort(new Error('gone'))
    })
    expect(await outcomeOf(destination, get, { exchange })).toBe('UpstreamError: call was cancelled')
    await until(() => closed === 1)
    expect(await outcomeOf(destination, get, { exchange })).toBe('UpstreamError: the client is gone')
  })

  test.each<[string, (exchange: Exchange, call: StartedCall) => void]>([
    ['its client disconnects', (exchange) => exchange.abort(new Error('gone'))],
    ['its caller cancels it', (_, call) => call.cancel(new Error('enough'))],
  ])('is not sent if %s while its token is fetched', async (_, cancel) => {
    let received = 0
    const token = Promise.withResolvers<string>()
    const auth: UpstreamAuth = { kind: 'oauth', source: { tokenFor: () => token.promise } }
    const destination = await service(
      (_request, response) => {
        received++
        response.end()
      },
      { auth },
    )
    const exchange = testExchange()
    const call = startCall(destination, get, { exchange })
    cancel(exchange, call)
    token.resolve('late')
    await expect(call.response).rejects.toMatchObject({ failure: 'cancelled' })
    expect(received).toBe(0)
  })

  test('can be cancelled by its caller', async () => {
    const call = startCall(await service(() => undefined), get)
    setTimeout(() => call.cancel(new Error('enough')), 30)
    await expect(call.response).rejects.toMatchObject({ failure: 'cancelled' })
  })
})

describe('a guarded callout', () => {
  test('to a service that hangs times out three times, then fails at once', async () => {
    const destination = await service(() => undefined)
    const outcomes: string[] = []
    for (let nth = 0; nth < 3; nth++) outcomes.push(await outcomeOf(destination, get, { timeoutMs: 60, isGuarded: true }))
    expect(outcomes).toEqual(Array.from({ length: 3 }, () => 'UpstreamError: test/service took longer than 60 ms'))
    // Concurrently, because the circuit permits a trial after half a second.
    const next = await Promise.all(Array.from({ length: 3 }, () => outcomeOf(destination, get, { timeoutMs: 60, isGuarded: true })))
    for (const outcome of next) expect(outcome).toContain('did not answer the last calls')
  })

  test('does not open the circuit if its client disconnects', async () => {
    const destination = await service((request, response) => void (request.url === '/now' && response.end('now')))
    for (let nth = 0; nth < 5; nth++) {
      const exchange = testExchange()
      setTimeout(() => exchange.abort(new Error('gone')), 5)
      await outcomeOf(destination, get, { exchange, isGuarded: true })
    }
    expect(await outcomeOf(destination, { method: 'GET', target: '/now' }, { isGuarded: true })).toBe('200 now')
  })

  test.each<[string, string, string, number]>([
    ['a status that matches', 'response.code == 429', '/429', 1],
    ['a status that does not match', 'response.code == 429', '/500', 0],
    ['a body that matches', 'string(response.body).contains("not")', '/not-today', 1],
    ['a body that does not match', 'string(response.body).contains("not")', '/today', 0],
    ['the request and the backend', 'request.path == "/today" && backend.name == "test/service"', '/today', 1],
  ])('is judged by the health condition of its target: %s', async (_, unhealthyCondition, target, failures) => {
    const answer: Answer = ({ url = '' }, response) => void response.writeHead(Number(url.slice(1)) || 200).end(url)
    const destination = await service(answer, { health: compileHealth({ unhealthyCondition }) })
    await outcomeOf(destination, { method: 'GET', target }, { isGuarded: true })
    expect(destination.pick({ request: testExchange().request, connection: { tls: undefined } })?.failures).toBe(failures)
  })

  test('is retried once on another endpoint, with its body', async () => {
    const live = await service(echo)
    const port = live.pick({ request: testExchange().request, connection: { tls: undefined } })?.port ?? 0
    const destination = destinationTo([1, port])
    open.push(() => destination.close())
    const callout = { method: 'POST', target: '/', body: new BufferBody('again') }
    expect(await outcomeOf(destination, callout, { isGuarded: true })).toContain('"body":"again"')
  })
})
