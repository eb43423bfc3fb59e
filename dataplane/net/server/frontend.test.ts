import { readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Connection } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { makeAuthority, makeCertificate } from '../../testing/certificates.ts'
import type { BindProgram } from './program.ts'
import { relayTcp } from '../../gateway/splice.ts'
import { describeRequest, openHttp2, request2, startBind, talk, type TestBind } from './testing.ts'
import { createTlsChoices } from './tls.ts'
import { until } from '../../../e2e/harness/wait.ts'

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
async function start(program: Partial<BindProgram>): Promise<TestBind> {
  const server = await startBind(describeRequest, program)
  open.push(server)
  return server
}
const GET = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
const V1 = 'PROXY TCP4 203.0.113.7 10.0.0.2 12345 80\r\n'
const V2 = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb0071070a00000230390050', 'hex')
const peerOf = ({ remoteAddress, remotePort, rawAddress }: Connection): string => `${remoteAddress}:${remotePort} through ${rawAddress ?? 'nobody'}`

describe('PROXY protocol on connections', () => {
  test.each<[string, NonNullable<BindProgram['proxyProtocol']>, Buffer | string, string]>([
    ['v2 replaces the client address', { version: 'V2', mode: 'Strict' }, V2, '203.0.113.7:12345 through 127.0.0.1'],
    ['v1 with version All replaces the client address', { version: 'All', mode: 'Strict' }, V1, '203.0.113.7:12345 through 127.0.0.1'],
    ['Strict without a header closes (row 73)', { version: 'V2', mode: 'Strict' }, '', 'dropped'],
    ['Strict with a header of the other version closes', { version: 'V2', mode: 'Strict' }, V1, 'dropped'],
    ['Optional with a broken header closes', { version: 'All', mode: 'Optional' }, 'PROXY TCP4 x y 1 2\r\n', 'dropped'],
    ['Optional with a header replaces the client address', { version: 'V2', mode: 'Optional' }, V2, '203.0.113.7:12345 through 127.0.0.1'],
    ['Optional without a header keeps the socket address', { version: 'V2', mode: 'Optional' }, '', /^127.0.0.1:\d+ through nobody$/.source],
  ])('%s', async (_, proxyProtocol, header, expected) => {
    const { port, finished, dropped } = await start({ proxyProtocol })
    const answer = await talk(port, Buffer.concat([Buffer.from(header as Buffer), Buffer.from(GET)]))
    if (expected === 'dropped') expect([answer.replace('reset', ''), dropped]).toEqual(['', ['no PROXY protocol header']])
    else expect(finished.map(({ connection }) => peerOf(connection))[0]).toMatch(new RegExp(expected))
  })

  test('a header that arrives byte by byte is read, and HTTP/2 follows', async () => {
    const { port, finished } = await start({ proxyProtocol: { version: 'V2', mode: 'Strict' } })
    const socket = connect(port, '127.0.0.1')
    for (const byte of V2) {
      socket.write(Buffer.of(byte))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const session = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => socket })
    for (const emitter of [session, socket]) emitter.on('error', () => undefined)
    expect((await request2(session, {})).status).toBe(200)
    session.destroy()
    await until(() => finished.length === 1)
    expect(finished[0]?.connection).toMatchObject({ remoteAddress: '203.0.113.7', rawAddress: '127.0.0.1' })
  })

  test.each<['Strict' | 'Optional', string]>([
    ['Strict', ''],
    ['Optional', 'hello'],
  ])('%s and a silent client: at the timeout Strict closes the connection and Optional serves it', async (mode, expected) => {
    const upstream = createServer((socket) => socket.on('error', () => undefined).end('hello'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => void upstream.close() })
    const target = { host: '127.0.0.1', port: (upstream.address() as AddressInfo).port, tls: undefined, keepAlive: undefined }
    const { port } = await start({
      proxyProtocol: { version: 'V2', mode, waitMs: 100 },
      plaintext: 'tcp',
      tcpListener: 'l',
      handleTcp: (tcp) => void relayTcp(tcp, target, { connectMs: 20_000 }),
    })
    const startedAtMs = performance.now()
    expect(await talk(port, '')).toBe(expected)
    expect(performance.now() - startedAtMs).toBeGreaterThan(80)
  })
})

describe('network authorization', () => {
  const authority = makeAuthority('Our CA')
  const server = makeCertificate({ name: 'a.example.com', authority })
  const client = makeCertificate({ name: 'alice', authority })

  test('a denied plaintext connection is closed before anything is read', async () => {
    const { port, dropped, causes, finished } = await start({ admits: () => false })
    expect((await talk(port, '')).replace('reset', '')).toBe('')
    expect([dropped, causes, finished]).toEqual([['denied by networkAuthorization'], ['authorization'], []])
  })

  test('it receives the client address of the PROXY header', async () => {
    const seen: string[] = []
    const { port } = await start({
      proxyProtocol: { version: 'All', mode: 'Strict' },
      admits: (connection) => {
        seen.push(peerOf(connection))
        return connection.remoteAddress === '203.0.113.7'
      },
    })
    expect(await talk(port, V1 + GET)).toContain('200 OK')
    expect((await talk(port, V1.replace('113.7', '113.8') + GET)).replace('reset', '')).toBe('')
    expect(seen).toEqual(['203.0.113.7:12345 through 127.0.0.1', '203.0.113.8:12345 through 127.0.0.1'])
  })

  test('over TLS it is called once, with the verified certificate', async () => {
    const seen: (string | undefined)[] = []
    const choices = createTlsChoices()
    const { port } = await start({
      plaintext: 'none',
      hasTls: true,
      selectTls: () =>
        choices.get({
          key: 'l',
          kind: 'terminate-http',
          certificates: [server],
          clientValidation: { mode: 'AllowInsecureFallback', caCertificates: [authority.certificate] },
        }),
      admits: ({ tls }) => {
        seen.push(tls?.clientCertificate?.subjectCn)
        return tls?.clientCertificate !== undefined
      },
    })
    const ask = (own: object): Promise<string> =>
      new Promise((resolve) => {
        let text = ''
        const socket = connectTls({ port, host: '127.0.0.1', servername: 'a.example.com', ca: authority.certificate, ...own }, () => void socket.write(GET))
        socket.on('data', (chunk) => (text += chunk.toString()))
        socket.on('error', () => undefined)
        socket.on('close', () => resolve(text))
      })
    expect(await ask({ cert: client.certificate, key: client.privateKey })).toContain('200 OK')
    expect(await ask({})).toBe('')
    expect(seen).toEqual(['alice', undefined])
  })

  test('it denies HTTP/2 by prior knowledge too', async () => {
    const { port } = await start({ admits: () => false })
    const session = openHttp2(port)
    expect((await request2(session, {})).status).toBe(0)
  })
})

/**
 * Seconds until the next keepalive probe of the established connection with this local port, from the kernel's table
 * (Documentation/networking/proc_net_tcp.rst: state 01, timer_active 2, time in 1/100 s). Undefined if no such timer runs.
 */
function readKeepAliveTimer(port: number): number | undefined {
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n'))
  for (const line of lines) {
    const [, local = '', , state, , timer = ''] = line.trim().split(/\s+/)
    const [isActive, time = ''] = timer.split(':')
    if (state === '01' && Number.parseInt(local.split(':')[1] ?? '', 16) === port && isActive === '02') return Number.parseInt(time, 16) / 100
  }
  return undefined
}

test('TCP keepalive probes idle connections after the time of the policy', async () => {
  const { port, bind } = await start({ settings: { keepAlive: { timeMs: 119_000, intervalMs: 5000, retries: 3 } } })
  void talk(port, '')
  await until(() => bind.size === 1)
  // The kernel's own view of the connection: time until the next probe, which would be two hours without the policy.
  const seconds = readKeepAliveTimer(port)
  expect(seconds).toBeGreaterThan(60)
  expect(seconds).toBeLessThanOrEqual(120)
})

describe('idle connections', () => {
  test('an idle upgraded connection is closed, an active one stays open', async () => {
    const tunnel = await startBind(
      (exchange) => {
        const [far, near] = duplexPair({ allowHalfOpen: true })
        far.on('error', () => undefined)
        far.resume()
        exchange.response = { status: 101, headers: new HeaderList(), body: undefined, upgraded: { socket: near, head: Buffer.alloc(0) } }
      },
      { settings: { http1: { timeouts: { idleMs: 2500 } } } },
    )
    open.push(tunnel)
    const upgrade = 'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'
    let used: Socket | undefined
    const isClosed: Record<string, boolean> = {}
    void talk(tunnel.port, upgrade).then(() => (isClosed['unused'] = true))
    void talk(tunnel.port, upgrade, (socket) => (used = socket)).then(() => (isClosed['used'] = true))
    const timer = setInterval(() => used?.write('x'), 40)
    await until(() => isClosed['unused'] === true)
    expect(isClosed).toEqual({ unused: true })
    clearInterval(timer)
    await until(() => isClosed['used'] === true)
    await until(() => tunnel.finished.length === 2)
    expect(tunnel.finished.map(({ cutBy }) => cutBy)).toEqual(['timeout', 'timeout'])
  })
})
