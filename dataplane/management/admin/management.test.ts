import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { request } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { parseExposition } from '../../testing/exposition.ts'
import { createLogging, type Logging } from '../../observe/telemetry/log.ts'
import { createMetrics } from '../../observe/telemetry/metrics/metrics.ts'
import { AddressError, resolveAddresses, type HostPort } from './listen.ts'
import { startManagement, type Management } from './management.ts'

const anyPort: HostPort = { host: '127.0.0.1', port: 0 }
const addresses = { admin: anyPort, stats: anyPort, readiness: anyPort }
const logs: string[] = []
const newLogging = (): Logging =>
  createLogging({ writer: { dropped: 0, write: (line) => logs.push(line) > 0, flush: () => Promise.resolve(), flushSync: () => undefined } })

const source = { from: 'ProxyPolicy a/authorization', target: 'Gateway a/gw' }
const explained = {
  timeouts: { value: { request: '1s' }, sources: [source], overrides: [] },
  basicAuthentication: { value: { users: ['bob:hash'] }, sources: [source], overrides: [] },
}

/** Routes of the config dump. */
let routes: Readonly<Record<string, unknown>> = {}

let management: Management
let logging: Logging
let pending: string[] = []
let quits = 0

beforeAll(async () => {
  logging = newLogging()
  management = await startManagement({
    addresses,
    readiness: () => pending,
    explainRoute: (namespace, name) => (name === 'shop' ? [{ route: `${namespace}/${name}`, postRouting: explained }] : []),
    configDump: () => ({ version: 3, binds: new Map([['80/a/b', { key: '80/a/b', port: 80 }]]), secrets: new Map(), config: { gateway: 'web' }, ...routes }),
    metrics: createMetrics({ version: '9.9' }).registry,
    logging,
    onQuit: () => void quits++,
  })
})
afterAll(() => management.close())

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

function ask(endpoint: 'admin' | 'stats' | 'readiness', target: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [method = 'GET', path = '/'] = target.split(' ')
  const { host, port } = management.addresses[endpoint]
  return new Promise((resolve, reject) => {
    const call = request({ host, port, method, path, headers, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    call.on('error', reject)
    call.end()
  })
}

describe('readiness', () => {
  test('names pending parts until there are none', async () => {
    pending = ['first config', 'certificates']
    expect(await ask('readiness', 'GET /healthz/ready')).toMatchObject({ status: 500, body: 'not ready, pending: first config, certificates' })
    pending = []
    expect(await ask('readiness', 'GET /healthz/ready')).toMatchObject({ status: 200, body: 'ready' })
  })

  test.each([
    ['POST /healthz/ready', 405],
    ['HEAD /healthz/ready', 405],
    ['GET /healthz', 404],
    ['GET /', 404],
  ])('%s gets status %d', async (target, status) => {
    expect((await ask('readiness', target)).status).toBe(status)
  })

  const v2 = Buffer.concat([Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'), Buffer.from([0x21, 0x11, 0, 12, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 0, 80])])
  const get = 'GET /healthz/ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
  test.each([
    ['no PROXY header', [get]],
    ['a version 1 header', ['PROXY TCP4 10.0.0.1 10.0.0.2 1024 80\r\n', get]],
    ['an unknown version 1 header in the same packet', [`PROXY UNKNOWN\r\n${get}`]],
    ['a version 2 header', [v2, get]],
    ['a version 2 header byte by byte', [...v2].map((byte) => Buffer.from([byte])).concat(Buffer.from(get))],
    ['a request byte by byte', get.split('')],
  ])('responds after %s', async (_name, pieces) => {
    expect(await send(pieces)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nready$/)
  })

  test.each([
    ['a version 1 header without end', [`PROXY ${'x'.repeat(200)}`]],
    ['a version 2 header that is too long', [Buffer.concat([v2.subarray(0, 14), Buffer.from([0xff, 0xff])])]],
    ['version 3', [Buffer.concat([v2.subarray(0, 12), Buffer.from([0x31, 0x11, 0, 0])])]],
  ])('closes the connection on %s', async (_name, pieces) => {
    expect(await send(pieces)).toBe('')
  })

  async function send(pieces: readonly (string | Buffer)[]): Promise<string> {
    const { host, port } = management.addresses.readiness
    const socket = connect({ host, port, noDelay: true })
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += String(chunk)))
    socket.on('error', () => undefined)
    const isClosed = once(socket, 'close')
    for (const piece of pieces) {
      socket.write(piece)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await isClosed
    return answer
  }
})

describe('stats', () => {
  test.each([
    ['/metrics', undefined, 'text', 'text/plain; version=0.0.4; charset=utf-8'],
    ['/stats/prometheus', '*/*', 'text', 'text/plain; version=0.0.4; charset=utf-8'],
    [
      '/metrics',
      'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1',
      'openmetrics',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ],
    ['/metrics', 'text/plain, application/openmetrics-text;q=0.2', 'text', 'text/plain; version=0.0.4; charset=utf-8'],
  ] as const)('GET %s with Accept %s answers %s', async (path, accept, format, type) => {
    const answer = await ask('stats', `GET ${path}`, accept === undefined ? {} : { accept })
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': type } })
    expect(parseExposition(answer.body, format).value('proxy_build_info', { tag: '9.9' })).toBe(1)
  })

  test.each([
    ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.5', true],
    ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text,text/plain;q=0.5', false],
    ['application/vnd.google.protobuf;proto=some.other.Message,text/plain;q=0.5', false],
    ['application/vnd.google.protobuf,text/plain;q=0.5', true],
    ['application/vnd.google.protobuf', true],
    ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.3,text/plain', false],
  ])('chooses protobuf by Accept: %s', async (accept, isProtobuf) => {
    const { headers } = await ask('stats', 'GET /metrics', { accept })
    expect(String(headers['content-type']).startsWith('application/vnd.google.protobuf')).toBe(isProtobuf)
  })

  test.each(['POST /metrics', 'DELETE /stats/prometheus'])('%s is not allowed', async (target) => {
    expect(await ask('stats', target)).toMatchObject({ status: 405, headers: { allow: 'GET' } })
  })

  test.each(['GET /', 'GET /config_dump'])('%s is not found', async (target) => {
    expect((await ask('stats', target)).status).toBe(404)
  })
})

describe('admin', () => {
  test('the index lists all paths', async () => {
    const { status, body } = await ask('admin', 'GET /')
    expect(status).toBe(200)
    for (const path of ['/config_dump', '/debug/effective', '/logging', '/memory', '/quitquitquit']) expect(body).toContain(path)
  })

  test('config_dump is JSON with a list per kind', async () => {
    const { status, headers, body } = await ask('admin', 'GET /config_dump')
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
    expect(JSON.parse(body)).toEqual({ version: 3, binds: [{ key: '80/a/b', port: 80 }], secrets: [], config: { gateway: 'web' } })
  })

  test('debug/effective returns the policies of a route without credentials', async () => {
    const { status, body } = await ask('admin', 'GET /debug/effective?route=a/shop')
    const basicAuthentication = { ...explained.basicAuthentication, value: { users: '<redacted>' } }
    expect([status, JSON.parse(body)]).toEqual([200, { rules: [{ route: 'a/shop', postRouting: { ...explained, basicAuthentication } }] }])
  })

  test.each([
    ['', 400, 'route: "" is not <namespace>/<name>: use ?route=default/shop\n'],
    ['?route=shop', 400, 'route: "shop" is not <namespace>/<name>: use ?route=default/shop\n'],
    ['?route=a/b/c', 400, 'route: "a/b/c" is not <namespace>/<name>: use ?route=default/shop\n'],
    ['?route=a/gone', 404, 'route: there is no HTTPRoute or GRPCRoute a/gone on a listener of this gateway; it has none\n'],
  ])('debug/effective%s gets status %d', async (query, status, body) => {
    expect(await ask('admin', `GET /debug/effective${query}`)).toMatchObject({ status, body })
  })

  test('debug/effective names the routes that there are', async () => {
    const rules = Array.from({ length: 44 }, (_, at) => [`${at}`, { route: { namespace: 'a', name: `r${10 + (at % 22)}` } }] as const)
    routes = { routes: new Map(rules) }
    const { body } = await ask('admin', 'GET /debug/effective?route=a/gone')
    routes = {}
    expect(body).toMatch(/; it has a\/r10, a\/r11, .*a\/r29 and 2 more\n$/)
  })

  test('logging shows, sets and resets the level', async () => {
    const logger = logging.logger('config')
    expect((await ask('admin', 'POST /logging')).body).toBe('current log level is info\n')
    expect((await ask('admin', 'POST /logging?level=debug')).body).toBe('current log level is debug\n')
    expect(logger.isEnabled('debug')).toBe(true)
    expect((await ask('admin', 'POST /logging?level=config=trace,upstream=warn')).body).toBe('current log level is config=trace,upstream=warn\n')
    expect(logger.isEnabled('trace')).toBe(true)
    expect(await ask('admin', 'POST /logging?level=loud')).toMatchObject({ status: 400, body: expect.stringContaining('bad log level "loud"') })
    expect(logger.isEnabled('trace')).toBe(true)
    expect((await ask('admin', 'POST /logging?reset')).body).toBe('current log level is info\n')
    expect(logger.isEnabled('debug')).toBe(false)
  })

  test('memory is JSON in bytes', async () => {
    expect(JSON.parse((await ask('admin', 'GET /memory')).body)).toMatchObject({ rss: expect.any(Number), heapSizeLimit: expect.any(Number) })
  })

  test('quitquitquit responds, then stops the process', async () => {
    expect(await ask('admin', 'POST /quitquitquit')).toMatchObject({ status: 200, body: 'shutdown now\n' })
    expect(quits).toBe(1)
  })

  test.each([
    ['GET /logging', 405, 'POST'],
    ['POST /debug/effective', 405, 'GET'],
    ['GET /quitquitquit', 405, 'POST'],
    ['DELETE /config_dump', 405, 'GET'],
    ['GET /nowhere', 404, undefined],
  ])('%s gets status %d', async (target, status, allow) => {
    expect(await ask('admin', target)).toMatchObject({ status, headers: allow === undefined ? {} : { allow } })
    expect(quits).toBe(1)
  })

  test.each([
    ['a rebound host name', 'GET /config_dump', { host: 'evil.example' }],
    ['a host name that starts with localhost', 'GET /config_dump', { host: 'localhost.evil.example' }],
    ['a rebound host name for routes', 'GET /debug/effective?route=a/shop', { host: 'evil.example' }],
    ['the address of another machine', 'GET /config_dump', { host: '10.0.0.1:15000' }],
    ['a form from another site', 'POST /quitquitquit', { origin: 'http://evil.example' }],
    ['a sandboxed page', 'POST /quitquitquit', { origin: 'null' }],
    ['a fetch from another site', 'POST /logging?level=off', { 'sec-fetch-site': 'cross-site' }],
  ])('%s is rejected', async (_name, target, headers) => {
    expect((await ask('admin', target, headers)).status).toBe(403)
    expect([quits, logging.level]).toEqual([1, 'info'])
  })

  test.each(['localhost:15000', '127.0.0.1', '[::1]:15000', 'LOCALHOST'])('the host %s is accepted', async (host) => {
    expect((await ask('admin', 'GET /', { host })).status).toBe(200)
  })

  test('a same-origin form is accepted', async () => {
    const host = 'localhost:15000'
    expect((await ask('admin', 'POST /logging', { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
  })
})

describe('connections that this process opened itself', () => {
  const endpoints = ['admin', 'stats', 'readiness'] as const
  let ownPorts = new Set<number | undefined>()
  let own: Management
  const quit = { calls: 0 }
  beforeAll(async () => {
    own = await startManagement({
      addresses,
      readiness: () => [],
      explainRoute: () => [],
      configDump: () => ({ version: 1, binds: new Map(), secrets: new Map(), config: {} }),
      metrics: createMetrics({ version: '9.9' }).registry,
      logging,
      isOwn: ({ remotePort }) => ownPorts.has(remotePort),
      onQuit: () => void quit.calls++,
    })
  })
  afterAll(() => own.close())

  /** The text that comes back until the connection closes. */
  async function exchange(endpoint: (typeof endpoints)[number], text: string, isOwn: boolean): Promise<string> {
    const socket = connect(own.addresses[endpoint])
    await once(socket, 'connect')
    ownPorts = new Set(isOwn ? [socket.localPort] : [])
    let received = ''
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()))
    socket.on('error', () => undefined)
    const closed = once(socket, 'close')
    socket.write(text)
    await closed
    return received
  }
  const requests = ['GET /', 'POST /quitquitquit', 'GET /config_dump', 'GET /metrics', 'GET /healthz/ready', 'OPTIONS *'].flatMap((line) =>
    ['', 'expect: 100-continue\r\n', 'upgrade: websocket\r\nconnection: upgrade\r\n'].map(
      (extra) => `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n${extra}\r\n`,
    ),
  )

  test.each(endpoints)('are closed without a response to any request: %s', async (endpoint) => {
    for (const text of requests) expect([text, (await exchange(endpoint, text, true)).replace('HTTP/1.1 100 Continue\r\n\r\n', '')]).toEqual([text, ''])
    expect(await exchange('readiness', `PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n${requests[0]}`, true)).toBe('')
    expect(quit.calls).toBe(0)
    expect(await exchange(endpoint, requests[0] ?? '', false)).toContain('HTTP/1.1 ')
  })
})

describe('addresses', () => {
  test('the environment overrides the file, and the file the defaults', () => {
    expect(resolveAddresses({ ADMIN_ADDR: '127.0.0.1:1', STATS_ADDR: '' }, { adminAddr: '127.0.0.1:2', statsAddr: '[::1]:3' })).toEqual({
      admin: { host: '127.0.0.1', port: 1 },
      stats: { host: '::1', port: 3 },
      readiness: { host: '::', port: 15021 },
    })
  })

  test.each(['15000', 'localhost', '1.2.3.4:', '1.2.3.4:99999', '::1:80', 'a b:80', 'http://x:80'])('%j is rejected with the name of the setting', (text) => {
    expect(() => resolveAddresses({ STATS_ADDR: text })).toThrow(
      new AddressError(`STATS_ADDR: ${JSON.stringify(text)} is not host:port, such as 127.0.0.1:15000`),
    )
  })

  test('a port in use is reported in one line, and no endpoint stays open', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const options = {
      readiness: () => [],
      configDump: () => ({}),
      explainRoute: () => [],
      metrics: createMetrics({ version: 'x' }).registry,
      logging: newLogging(),
      onQuit: () => undefined,
    }
    await expect(startManagement({ ...options, addresses: { ...addresses, readiness: { host: '127.0.0.1', port } } })).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port} (readiness endpoint): the port is in use; set READINESS_ADDR to another host:port`,
    )
    taken.close()
    await once(taken, 'close')
  })

  test('close ends idle keep-alive connections', async () => {
    const other = await startManagement({
      addresses,
      readiness: () => [],
      configDump: () => ({}),
      explainRoute: () => [],
      metrics: createMetrics({ version: 'x' }).registry,
      logging: newLogging(),
      onQuit: () => undefined,
    })
    const sockets = await Promise.all(
      (['stats', 'readiness'] as const).map(async (endpoint) => {
        const socket = connect(other.addresses[endpoint].port, '127.0.0.1')
        socket.write('GET /healthz/ready HTTP/1.1\r\nhost: x\r\n\r\n')
        await once(socket, 'data')
        return { isClosed: once(socket, 'close') }
      }),
    )
    const startMs = performance.now()
    await other.close()
    await Promise.all(sockets.map(({ isClosed }) => isClosed))
    expect(performance.now() - startMs).toBeLessThan(4000)
  })
})
