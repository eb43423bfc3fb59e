import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createHttp2Server, createSecureServer, type Http2ServerRequest } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Server as NetServer, type Socket } from 'node:net'
import type { BackendFull } from '#gen/config/types.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { makeAuthority, makeCertificate, type TestCertificate } from '../../testing/certificates.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { createPool } from '../upstream/pools.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

interface ProxyServer {
  readonly port: number
  /** `<authority> <proxy-authorization>` of each CONNECT. */
  readonly asked: string[]
  /** Status of the next responses, if not a tunnel. */
  status: number
}

const open: (() => Promise<unknown>)[] = []
let authority: TestCertificate
let leaf: TestCertificate
let proxy: ProxyServer
let gateway: Gateway

beforeAll(() => {
  authority = makeAuthority()
  leaf = makeCertificate({ name: 'upstream.test', names: ['DNS:upstream.test', 'DNS:localhost', 'IP:127.0.0.1'], authority })
})
beforeEach(async () => void (proxy = await startProxy(createServer())))
afterEach(async () => {
  gateway.close()
  for (const close of open.splice(0)) await close()
})

async function listen(server: NetServer): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** A forward proxy that resolves all names to this machine. */
async function startProxy(server: Server): Promise<ProxyServer> {
  const started = { asked: [] as string[], status: 200, port: 0 }
  server.on('connect', (request, client: Socket, head: Buffer) => {
    started.asked.push(`${request.url} ${request.headers['proxy-authorization'] ?? '-'}`)
    client.on('error', () => undefined)
    if (started.status !== 200) return void client.end(`HTTP/1.1 ${started.status} No\r\ncontent-length: 2\r\n\r\nno`)
    const upstream = connect(Number((request.url ?? '').split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      client.pipe(upstream).pipe(client)
    })
    upstream.on('error', () => client.destroy())
  })
  return Object.assign(started, { port: await listen(server) })
}

const echo = (request: IncomingMessage | Http2ServerRequest, response: { end(text: string): unknown }): void => {
  let bytes = 0
  request.on('data', (chunk: Buffer) => (bytes += chunk.length))
  request.on('end', () => response.end(`${request.method} ${bytes}`))
}

/** Sends a request to `upstream`, whose policies are `policies`, through what `proxyPolicies` say about the proxy. */
async function send(port: number, policies: BackendFull, options: { body?: string; proxy?: BackendFull; host?: string; tunnel?: object } = {}) {
  gateway = new Gateway({ createPool })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const { host = 'upstream.test', tunnel = { backendRef: { backend: 'ns/proxy' } } } = options
  const messages: ConfigMessage[] = [
    ...testListener,
    testRoute({ backend: 'ns/api' }),
    { kind: 'secret', message: { key: 'ca', type: 'ca', certificate: authority.certificate } },
    { kind: 'service', message: { key: 'ns/empty', ports: [{ port: 80, endpoints: [] }] } },
    { kind: 'backend', message: { key: 'ns/api', static: { host, port }, policies: { tunnel, ...policies } as BackendFull } },
    {
      kind: 'backend',
      message: { key: 'ns/proxy', static: { host: '127.0.0.1', port: proxy.port }, ...(options.proxy && { policies: options.proxy }) },
    },
  ]
  replaceMessages(store, messages)
  /** Messages of the causes of errors, which logs have and clients do not. */
  const causes: string[] = []
  const ask = async (): Promise<string> => {
    const { body } = options
    const request = testRequest({ method: body === undefined ? 'GET' : 'POST', body: body === undefined ? undefined : new BufferBody(body) })
    const exchange = new Exchange(testConnection, request, performance.now())
    await gateway.handle(exchange)
    causes.push((exchange.error?.cause as Error | undefined)?.message ?? '')
    return `${exchange.response?.status} ${(await readBody(exchange.response?.body, 10_000)).bytes.toString()}`
  }
  return { ask, causes }
}

const trusted: BackendFull = { tls: { caCertificateRefs: [{ secret: 'ca' }] } }
const large = 'x'.repeat(300_000)

describe('a tunnel', () => {
  test('carries plaintext to the hostname of the backend, on one connection for several requests', async () => {
    const port = await listen(createServer(echo))
    const { ask } = await send(port, {}, { body: large })
    expect([await ask(), await ask()]).toEqual(['200 POST 300000', '200 POST 300000'])
    expect(proxy.asked).toEqual([`upstream.test:${port} -`])
  })

  test('carries TLS that is verified against the hostname of the backend', async () => {
    const port = await listen(createTlsServer({ key: leaf.privateKey, cert: leaf.certificate }, echo))
    expect(await (await send(port, trusted, { body: large })).ask()).toBe('200 POST 300000')
    gateway.close()
    const { ask, causes } = await send(port, trusted, { host: 'other.test' })
    expect(await ask()).toBe('503 upstream call failed: TLS handshake failed')
    expect(causes).toEqual([expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID')])
  })

  test.each<[string, BackendFull, (echoing: typeof echo) => NetServer]>([
    ['HTTP/2 in plaintext', { http: { version: 'HTTP2' } }, (on) => createHttp2Server(on)],
    ['HTTP/2 by ALPN', {}, (on) => createSecureServer({ key: leaf.privateKey, cert: leaf.certificate }, on)],
  ])('carries %s', async (_, policies, create) => {
    const port = await listen(create(echo))
    const { ask } = await send(port, policies.http === undefined ? trusted : policies, { body: large })
    expect([await ask(), await ask()]).toEqual(['200 POST 300000', '200 POST 300000'])
    expect(proxy.asked).toHaveLength(1)
  })

  test('sends the credential of the proxy to the proxy only', async () => {
    const headers: unknown[] = []
    const port = await listen(createServer((request, response) => void (headers.push(request.headers), response.end('ok'))))
    expect(await (await send(port, {}, { proxy: { auth: { key: 'of-proxy' } } })).ask()).toBe('200 ok')
    expect(proxy.asked).toEqual([`upstream.test:${port} Bearer of-proxy`])
    expect(JSON.stringify(headers)).not.toContain('of-proxy')
  })

  test('reaches a proxy behind TLS', async () => {
    proxy = await startProxy(createTlsServer({ key: leaf.privateKey, cert: leaf.certificate }))
    const port = await listen(createServer(echo))
    expect(await (await send(port, {}, { proxy: trusted })).ask()).toBe('200 GET 0')
  })
})

describe('nothing is sent without a tunnel', () => {
  test.each<[string, (port: number) => ReturnType<typeof send>, string, RegExp]>([
    [
      'the proxy responds with 407',
      (port) => ((proxy.status = 407), send(port, {})),
      'connection failed',
      /^upstream\.test:\d+: no tunnel: the proxy answered 407$/,
    ],
    [
      'nothing listens on the port of the proxy',
      (port) => ((proxy = { ...proxy, port: 1 }), send(port, {})),
      'connection refused',
      /^127\.0\.0\.1:1: connect failed: ECONNREFUSED$/,
    ],
    [
      'the reference does not resolve',
      (port) => send(port, {}, { tunnel: { backendRef: { invalid: 'BACKEND_NOT_FOUND' } } }),
      'connection failed',
      /^no tunnel through invalid: backend does not exist$/,
    ],
    [
      'the credential is missing',
      (port) => send(port, {}, { proxy: { auth: { secretRef: { secret: 'gone' } } } }),
      'connection failed',
      /^no tunnel through ns\/proxy: the Secret of secretRef does not resolve$/,
    ],
    [
      'the proxy is behind itself',
      (port) => send(port, {}, { proxy: { tunnel: { backendRef: { backend: 'ns/proxy' } } } }),
      'connection failed',
      /^no tunnel through ns\/proxy: it is behind a tunnel itself, which is not supported$/,
    ],
    [
      'the proxy has no endpoints',
      (port) => send(port, {}, { tunnel: { backendRef: { service: 'ns/empty', port: 80 } } }),
      'connection failed',
      /^no tunnel through ns\/empty:80: no healthy backends$/,
    ],
  ])('if %s', async (_, start, expected, cause) => {
    const reached: string[] = []
    const port = await listen(createServer((request, response) => void (reached.push(request.url ?? ''), response.end())))
    const { ask, causes } = await start(port)
    expect(await ask()).toBe(`503 upstream call failed: ${expected}`)
    expect(causes).toEqual([expect.stringMatching(cause)])
    expect(reached).toEqual([])
  })
})
