import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { createConfigStore } from '../../config/store.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { startHttp1Server } from '../../net/server/http1/testing.ts'
import { createRegistry, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { createPool } from '../../net/upstream/pools.ts'
import { endPlugins } from './host.ts'

const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const MEBIBYTE = 1024 * 1024

/** Passes both bodies through transformations of text. */
const transforming = (request: string, response = request): string => `
  const through = (change) => new TransformStream({ transform: (chunk, controller) => controller.enqueue(new TextEncoder().encode(change(new TextDecoder().decode(chunk)))) })
  export default { setup: () => ({ async request(c, next) {
    if (c.req.raw.body !== null) c.req.raw = new Request(c.req.raw, { body: c.req.raw.body.pipeThrough(through(${request})), duplex: 'half' })
    await next()
    if (c.res.body !== null) c.res = new Response(c.res.body.pipeThrough(through(${response})), c.res)
  } }) }`
const middleware = (body: string): string => `export default { setup: ({ log }) => ({ async request(c, next) {\n${body}\n} }) }`

interface Bed {
  readonly url: URL
  readonly registry: Registry
  readonly lines: readonly string[]
}

/** A gateway with one plugin before an upstream. */
async function start(code: string, upstream: (request: IncomingMessage, response: ServerResponse) => void, more: Partial<Plugin> = {}): Promise<Bed> {
  const server: Server = createServer(upstream)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  opened.push(() => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())))
  const registry = createRegistry()
  const lines: string[] = []
  const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const gateway = new Gateway({ createPool, registry, log: { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true } })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const plugin: Plugin = {
    name: 'p',
    source: { configMapRef: { code, file: 'index.ts', owner: 'ns/policy' } },
    body: 'Streamed',
    limits: { timeout: '50s' },
    ...more,
  }
  const { port } = server.address() as AddressInfo
  replaceMessages(store, [
    ...testListener.map((message) =>
      message.kind === 'listener' && plugin.isolation === 'InProcess' ? { ...message, message: { ...message.message, inProcessPlugins: true } } : message,
    ),
    testRoute({ backend: 'ns/up' }),
    { kind: 'backend', message: { key: 'ns/up', static: { host: '127.0.0.1', port } } },
    {
      kind: 'policy',
      message: { key: 'p', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'policy' }, target: testGateway, traffic: { plugins: [plugin] } },
    },
  ])
  const bound = await startHttp1Server((exchange) => gateway.handle(exchange))
  opened.push(async () => {
    await bound.close()
    gateway.close()
    endPlugins(registry)
  })
  return { url: new URL(`http://127.0.0.1:${bound.port}/`), registry, lines }
}

interface Opened {
  readonly request: ReturnType<typeof httpRequest>
  readonly response: Promise<IncomingMessage>
  /** Text of the response so far. */
  readonly text: () => string
  /** Settles with the end of the response: whether it is complete. */
  readonly ended: Promise<boolean>
}

function open(url: URL, method = 'POST'): Opened {
  let text = ''
  const request = httpRequest(url, { method, agent: false })
  const response = new Promise<IncomingMessage>((resolve, reject) => request.on('response', resolve).on('error', reject))
  const ended = response.then(
    (message) =>
      new Promise<boolean>((resolve) => {
        message.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        message.on('close', () => resolve(message.complete)).on('error', () => undefined)
      }),
  )
  ended.catch(() => undefined)
  return { request, response, text: () => text, ended }
}

async function send(
  url: URL,
  body?: string | Buffer,
): Promise<{ status: number | undefined; text: string; isComplete: boolean; headers: IncomingMessage['headers'] }> {
  const { request, response, text, ended } = open(url, body === undefined ? 'GET' : 'POST')
  request.end(body)
  const { statusCode, headers } = await response
  const isComplete = await ended
  return { status: statusCode, text: text(), isComplete, headers }
}

const echo = (request: IncomingMessage, response: ServerResponse): void => void request.pipe(response)

describe.each(['Worker', 'Process', 'InProcess'] as const)('body: Streamed with isolation %s', (isolation) => {
  const more: Partial<Plugin> = { isolation }

  test(
    'passes each chunk when it arrives, in both directions',
    async () => {
      let received = ''
      let answer: ServerResponse | undefined
      const { url } = await start(
        transforming('(text) => text.toUpperCase()', `(text) => '<' + text + '>'`),
        (request, response) => {
          answer = response
          request.setEncoding('utf8').on('data', (chunk: string) => (received += chunk))
        },
        more,
      )
      const { request, response, text, ended } = open(url)
      request.write('one')
      await waitUntil('the first chunk', () => received === 'ONE')
      answer?.write('first')
      await response
      await waitUntil('the first chunk of the response', () => text() === '<first>')
      request.end('two')
      await waitUntil('the second chunk', () => received === 'ONETWO')
      answer?.end('last')
      expect([await ended, text()]).toEqual([true, '<first><last>'])
    },
    SLOW,
  )

  test(
    'changes bodies that are longer than all limits for buffers, and leaves others as they are',
    async () => {
      const { url } = await start(transforming('(text) => text.toUpperCase()', '(text) => text'), echo, { ...more, limits: { timeout: '50s', memory: '32Mi' } })
      const { status, text, isComplete } = await send(url, Buffer.alloc(12 * MEBIBYTE, 'x'))
      expect([status, isComplete, text.length, text.replaceAll('X', '')]).toEqual([200, true, 12 * MEBIBYTE, ''])
      const untouched = await start(middleware(`await next(); c.header('x-seen', c.req.raw.body === null ? 'none' : 'some')`), echo, more)
      const plain = await send(untouched.url, 'abc')
      expect([plain.text, plain.headers['x-seen']]).toEqual(['abc', 'some'])
      expect((await send(untouched.url)).headers['x-seen']).toBe('none')
    },
    SLOW,
  )

  test(
    'reads no more of a response than the client does',
    async () => {
      let written = 0
      const { url } = await start(
        transforming('(text) => text'),
        (_, response) => {
          const write = (): void => {
            while (written < 2000 && response.write(Buffer.alloc(MEBIBYTE / 4, 'x'))) written++
            response.once('drain', write)
          }
          write()
        },
        more,
      )
      const { request, response } = open(url, 'GET')
      request.end()
      ;(await response).pause()
      // What sockets and the chunk under way hold; the upstream stops when they are full.
      let before = -1
      while (before !== written) {
        before = written
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
      expect(written).toBeLessThan(400)
      request.destroy()
    },
    SLOW,
  )

  test.each([
    ['the request body', `await c.req.text(); await next()`, 'the plugin read the request body and did not pass it on', 500],
    ['the response body', `await next(); await c.res.text()`, 'the plugin read the response body and did not pass it on', 500],
  ])(
    'fails a plugin that reads %s without passing it on, with FailOpen too',
    async (_, code, line, status) => {
      for (const failureMode of ['FailClosed', 'FailOpen'] as const) {
        const { url, lines } = await start(middleware(code), echo, { ...more, failureMode })
        expect((await send(url, 'abc')).status).toBe(status)
        expect(lines.join()).toContain(line)
      }
    },
    SLOW,
  )

  test(
    'breaks off a body if a transformation throws, and the log has the plugin and the line',
    async () => {
      const { url, lines, registry } = await start(
        transforming('(text) => text', `(text) => { if (text.includes('bad')) throw new Error('broken'); return text }`),
        (_, response) => {
          response.write('good')
          response.flushHeaders()
          setImmediate(() => response.end('bad'))
        },
        more,
      )
      const { isComplete, status } = await send(url)
      expect([status, isComplete]).toEqual([200, false])
      expect(lines.join()).toMatch(/"plugin":"ns\/policy\/p".*broken/)
      expect([...registry.expose('text')].join('')).toContain('proxy_plugin_calls_total{plugin="ns/policy/p",result="failed"} 1')
    },
    SLOW,
  )

  test(
    'ends with a timeout if the plugin makes no chunk, but not while client or upstream send none',
    async () => {
      const stuck = middleware(
        `await next(); c.res = new Response(c.res.body.pipeThrough(new TransformStream({ transform: () => new Promise(() => undefined) })), c.res)`,
      )
      const slow = await start(stuck, echo, { ...more, limits: { timeout: '300ms' } })
      // On a slow machine, a step may take as long.
      let result = await send(slow.url, 'abc')
      while (result.status === 504) result = await send(slow.url, 'abc')
      expect([result.status, result.isComplete]).toEqual([200, false])
      expect(slow.lines.join()).toContain('no part of a body in 300 ms')
      const { url } = await start(transforming('(text) => text'), echo, { ...more, limits: { timeout: '2s' } })
      const { request, ended, text } = open(url)
      request.write('a')
      await new Promise((resolve) => setTimeout(resolve, 2500))
      request.end('b')
      expect([await ended, text()]).toEqual([true, 'ab'])
    },
    SLOW,
  )

  test(
    'ends the upstream request if the client disconnects',
    async () => {
      let isAborted = false
      const { url } = await start(
        transforming('(text) => text'),
        (request, response) => {
          response.write('started')
          request.resume().on('close', () => (isAborted ||= !request.complete))
        },
        more,
      )
      const { request, response } = open(url)
      request.on('error', () => undefined)
      request.write('part')
      await response
      request.destroy()
      await waitUntil('the upstream request ends', () => isAborted)
      expect(isAborted).toBe(true)
    },
    SLOW,
  )

  test(
    'lets a plugin respond itself after it read the request',
    async () => {
      const { url } = await start(middleware(`return c.text('read ' + (await c.req.text()).length)`), echo, more)
      expect(await send(url, 'x'.repeat(300_000))).toMatchObject({ status: 200, text: 'read 300000' })
    },
    SLOW,
  )
})
