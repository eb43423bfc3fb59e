import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { Client, credentials } from '@grpc/grpc-js'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect, createServer, Socket, type AddressInfo, type Server } from 'node:net'
import pg from 'pg'
import type { DialRules } from '#api/address.ts'
import { Dialing, dialing } from './dial.ts'
import { createPool } from './pools.ts'
import { connectTcp } from './tcp.ts'
import { testRequest } from './http1/testing.ts'
import { UpstreamError, type Transport, type Tunnel } from './types.ts'

const { rules: standalone, lookup } = dialing
const open: Server[] = []
afterEach(async () => {
  dialing.rules = standalone
  dialing.lookup = lookup
  for (const server of open.splice(0)) await new Promise((resolve) => server.close(resolve))
})

async function listen(onSocket: (socket: Socket) => void = (socket) => socket.destroy()): Promise<number> {
  const server = createServer(onSocket).listen(0, '127.0.0.1')
  open.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const tls = { servername: 'x', ca: undefined, cert: undefined, key: undefined, subjectAltNames: undefined, verify: 'none', alpn: undefined } as const
const pod = (): DialRules => ({ ...standalone, isLoopbackAllowed: false })
const transportTo = (host: string, port: number): Transport => ({ host, port, tls: undefined, keepAlive: undefined })

/** The failure of a connection, by each way to open one. */
async function failures(transport: Transport): Promise<string[]> {
  const of = (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => 'connected',
      (error: unknown) => (error instanceof UpstreamError ? error.failure : String(error)),
    )
  return Promise.all([
    of(connectTcp(transport, 5000).socket),
    of(createPool('http1', transport).call(testRequest(), { connectMs: 5000 }).response),
    of(createPool('http2', transport).call(testRequest(), { connectMs: 5000 }).response),
    of(createPool('negotiate', { ...transport, tls }).call(testRequest(), { connectMs: 5000 }).response),
    of(connectTcp({ ...transport, tls }, 5000).socket),
  ])
}

describe('a connection to an upstream', () => {
  test.each(['127.0.0.1', 'localhost', '0x7f000001', '127.1', '::1', '::ffff:127.0.0.1', '0.0.0.0'])(
    'is refused to %s in a pod, whatever opens it',
    async (host) => {
      const port = await listen()
      dialing.rules = pod()
      expect(await failures(transportTo(host, port))).toEqual(Array.from({ length: 5 }, () => 'denied'))
    },
  )

  test('is refused to a name that leads to a forbidden address at its second look-up, and uses the addresses that were judged', async () => {
    const port = await listen((socket) => socket.end())
    dialing.rules = { ...standalone, ports: () => [port] }
    let lookups = 0
    const answers = [['192.0.2.1'], ['127.0.0.1'], ['169.254.169.254']]
    const rebinding = (_: string, __: object, done: (error: null, found: object[]) => void): void =>
      done(
        null,
        (answers[lookups++] ?? []).map((address) => ({ address, family: 4 })),
      )
    dialing.lookup = rebinding as unknown as typeof lookup
    const first = connectTcp(transportTo('rebinding.example.com', port), 50)
    await expect(first.socket).rejects.toMatchObject({ failure: expect.stringMatching(/^connect/) as unknown })
    for (let again = 0; again < 2; again++)
      await expect(connectTcp(transportTo('rebinding.example.com', port), 5000).socket).rejects.toMatchObject({ failure: 'denied' })
    expect(lookups).toBe(3)
  })

  test('is judged again for an address that becomes one of this machine later', async () => {
    const addresses: string[] = []
    dialing.rules = { ...standalone, ports: () => [15_000], addresses: () => addresses }
    const pool = createPool('http1', transportTo('192.0.2.7', 15_000))
    const call = (): Promise<unknown> => pool.call(testRequest(), { connectMs: 50 }).response
    await expect(call()).rejects.toMatchObject({ failure: expect.stringMatching(/^connect/) as unknown })
    addresses.push('192.0.2.7')
    await expect(call()).rejects.toMatchObject({ failure: 'denied' })
  })

  test('is refused through a tunnel to an address and to localhost, without asking the proxy', async () => {
    dialing.rules = pod()
    const asked: string[] = []
    const tunnel: Tunnel = {
      key: 't',
      connect: (authority) => {
        asked.push(authority)
        throw new UpstreamError('connect', 'no proxy')
      },
    }
    for (const host of ['127.0.0.1', 'localhost', 'a.localhost.', '169.254.169.254'])
      expect(new Set(await failures({ ...transportTo(host, 80), tunnel }))).toEqual(new Set(['denied']))
    expect(asked).toEqual([])
    await failures({ ...transportTo('example.com', 80), tunnel })
    expect(asked).toContain('example.com:80')
  })

  test('says for logs which address of which host it was refused to', async () => {
    dialing.rules = pod()
    await expect(connectTcp(transportTo('127.0.0.1', 80), 5000).socket).rejects.toThrow('127.0.0.1:80 (127.0.0.1): a loopback address')
  })
})

describe('a management port', () => {
  /** Each way by which code of this process, or of a library in it, opens a connection. */
  const ways: [string, (port: number) => unknown][] = [
    ['a relay of a TCP route', (port) => connectTcp(transportTo('127.0.0.1', port), 5000).socket.then((socket) => socket.write('x'))],
    ['a relay by TLS', (port) => connectTcp({ ...transportTo('127.0.0.1', port), tls }, 5000).socket],
    ['HTTP/1.1', (port) => createPool('http1', transportTo('127.0.0.1', port)).call(testRequest(), { connectMs: 5000 }).response],
    ['HTTP/2', (port) => createPool('http2', transportTo('127.0.0.1', port)).call(testRequest(), { connectMs: 5000 }).response],
    ['HTTP by TLS', (port) => createPool('negotiate', { ...transportTo('127.0.0.1', port), tls }).call(testRequest(), { connectMs: 5000 }).response],
    ['fetch', (port) => fetch(`http://127.0.0.1:${port}/`)],
    ['fetch by TLS', (port) => fetch(`https://127.0.0.1:${port}/`)],
    ['http.get of Node', (port) => get(`http://127.0.0.1:${port}/`).on('error', () => undefined)],
    [
      'a socket that a library makes',
      (port) =>
        new Socket()
          .connect(port, '127.0.0.1')
          .on('error', () => undefined)
          .write('x'),
    ],
    ['a client of gRPC', (port) => new Client(`127.0.0.1:${port}`, credentials.createInsecure()).waitForReady(Date.now() + 200, () => undefined)],
    ['a client of PostgreSQL', (port) => new pg.Client({ host: '127.0.0.1', port }).connect()],
  ]
  beforeAll(() => dialing.watch())
  test.each(ways)('knows the connections that this process opened to it: %s', async (_way, openOne) => {
    const seen = Promise.withResolvers<boolean>()
    const port = await listen((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        seen.resolve(dialing.isOwn(socket, true))
        socket.destroy()
      })
    })
    dialing.rules = { ...standalone, ports: () => [port] }
    // Judged by the first lock, which is open here.
    dialing.refuse = () => undefined
    try {
      Promise.resolve(openOne(port)).catch(() => undefined)
      await expect(seen.promise).resolves.toBe(true)
    } finally {
      Reflect.deleteProperty(dialing, 'refuse')
    }
  })

  test('knows a connection that was closed before its request was read, and none of another program', async () => {
    const own = new Dialing()
    const accepted: Socket[] = []
    const port = await listen((socket) => void accepted.push(socket))
    own.rules = { ...standalone, ports: () => [port] }
    const opened = connect({ host: '127.0.0.1', port })
    own.track(opened)
    await once(opened, 'connect')
    const other = connect({ host: '127.0.0.1', port })
    await once(other, 'connect')
    while (accepted.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    const of = ({ localPort: remotePort = 0 }: Socket): boolean => own.isOwn({ remoteAddress: '127.0.0.1', remotePort })
    const [openedPort, otherPort] = [{ localPort: opened.localPort } as Socket, { localPort: other.localPort } as Socket]
    expect([of(openedPort), of(otherPort)]).toEqual([true, false])
    opened.destroy()
    await once(opened, 'close')
    expect([of(openedPort), of(otherPort)]).toEqual([true, false])
    for (const socket of [other, ...accepted]) socket.destroy()
  })

  test('takes a connection from an address of this machine for its own if any connection uses its port, because addresses may be translated', async () => {
    const own = new Dialing()
    const port = await listen(() => undefined)
    own.rules = { ...standalone, ports: () => [15_000], addresses: () => ['10.1.0.5'] }
    const opened = connect({ host: '127.0.0.1', port })
    own.track(opened)
    await once(opened, 'connect')
    const { localPort: remotePort = 0 } = opened
    const isOwn = (remoteAddress: string, isExact = false): boolean => own.isOwn({ remoteAddress, remotePort }, isExact)
    expect([isOwn('10.1.0.5'), isOwn('::ffff:10.1.0.5'), isOwn('10.1.0.6'), isOwn('127.0.0.1')]).toEqual([true, true, false, false])
    // Such as the probe of a kubelet of this machine.
    expect(isOwn('10.1.0.5', true)).toBe(false)
    opened.destroy()
  })
})
