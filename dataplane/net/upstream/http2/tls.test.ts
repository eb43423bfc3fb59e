import { createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { connect as connectTcp, createServer as createNetServer, type AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { BufferBody } from '../../../http/body.ts'
import { makeAuthority, makeCertificate, type TestCertificate } from '../../../testing/certificates.ts'
import { startPortForwarder } from '../../../testing/port-forwarder.ts'
import { createHttp2Pool } from './pool.ts'
import { readResponse, testRequest } from '../http1/testing.ts'
import { createNegotiatedPool } from '../negotiated.ts'
import type { Transport, UpstreamPool } from '../types.ts'
import { call, failureOf, open, serve } from './testing.ts'
import { until } from '../../../../e2e/harness/wait.ts'

/** An upstream over TLS whose first `stalled` connections never begin their handshake; a pool to it. */
async function startStalling(stalled: number, kind: 'h2' | 'negotiated'): Promise<{ pool: UpstreamPool; connections: () => number }> {
  const { certificate: cert, privateKey: key } = makeCertificate({ name: 'localhost', authority: makeAuthority() })
  const server = createSecureServer({ cert, key })
  const { port } = await serve(server, (stream) => void (stream.respond({ ':status': 200 }), stream.end('ok')))
  let connections = 0
  const relay = createNetServer((client) => {
    client.on('error', () => undefined)
    if (connections++ < stalled) return
    const upstream = connectTcp(port, '127.0.0.1')
    upstream.on('error', () => undefined)
    client.pipe(upstream).pipe(client)
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  open.push(() => void relay.close())
  const tls = { servername: 'localhost', ca: undefined, cert: undefined, key: undefined, subjectAltNames: undefined, verify: 'none', alpn: undefined } as const
  const transport = { host: '127.0.0.1', port: (relay.address() as AddressInfo).port, tls, keepAlive: { idleMs: 60_000 } }
  const pool = kind === 'h2' ? createHttp2Pool(transport) : createNegotiatedPool(transport)
  open.push(() => pool.close())
  return { pool, connections: () => connections }
}

describe.each(['h2', 'negotiated'] as const)('a connection that stalls in its handshake (%s)', (kind) => {
  test('does not hold up the calls that wait for it, nor later ones', async () => {
    const { pool, connections } = await startStalling(2, kind)
    const send = async (): Promise<string> => (await readResponse(await pool.call(testRequest(), { connectMs: 60_000 }).response)).text
    const first = [send(), send()]
    await until(() => connections() === 2)
    expect(await Promise.all([...first, send()])).toEqual(['200 ok', '200 ok', '200 ok'])
    expect([await send(), connections()]).toEqual(['200 ok', 3])
  })

  test('is followed by two others at most, and calls end at the connect timeout', async () => {
    const { pool, connections } = await startStalling(100, kind)
    const calls = Array.from({ length: 5 }, () => pool.call(testRequest(), { connectMs: 2500 }).response)
    for (const each of calls) await expect(each).rejects.toMatchObject({ failure: 'connect-timeout' })
    expect(connections()).toBe(3)
  })
})

describe('TLS to the upstream', () => {
  let ca: TestCertificate
  let leaf: TestCertificate
  beforeAll(() => {
    ca = makeAuthority()
    leaf = makeCertificate({ name: 'up.example.com', authority: ca })
  })
  const tls = (alpn?: string[]): NonNullable<Transport['tls']> => ({
    servername: 'up.example.com',
    ca: [ca.certificate],
    cert: undefined,
    key: undefined,
    subjectAltNames: undefined,
    verify: 'full',
    alpn,
  })
  const startHttps = async (): Promise<number> => {
    const server = createHttpsServer({ cert: leaf.certificate, key: leaf.privateKey }, (_, response) => response.end('one'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => (server.closeAllConnections(), server.close()))
    return (server.address() as AddressInfo).port
  }
  const startH2 = async (): Promise<number> =>
    (await serve(createSecureServer({ cert: leaf.certificate, key: leaf.privateKey }), (stream) => (stream.respond({ ':status': 200 }), stream.end('two'))))
      .port
  const transport = (port: number, alpn?: string[]): Transport => ({ host: '127.0.0.1', port, tls: tls(alpn), keepAlive: { idleMs: 60_000 } })

  test('a fixed HTTP/2 pool requires h2', async () => {
    const pool = createHttp2Pool(transport(await startH2(), ['http/1.1']))
    open.push(() => pool.close())
    expect(await call(pool)).toBe('200 two')
    expect(await failureOf(createHttp2Pool(transport(await startHttps())))).toBe('connect')
  })

  test.each<[string, string[] | undefined, () => Promise<number>, string]>([
    ['h2 if the upstream offers it', undefined, startH2, '200 two'],
    ['http/1.1 if the upstream does not offer h2', undefined, startHttps, '200 one'],
    ['http/1.1 if the policy allows nothing else', ['http/1.1'], startHttps, '200 one'],
  ])('negotiates %s', async (_, alpn, startServer, expected) => {
    const pool = createNegotiatedPool(transport(await startServer(), alpn))
    open.push(() => pool.close())
    expect(await Promise.all([call(pool), call(pool), call(pool)])).toEqual([expected, expected, expected])
    expect(await call(pool)).toBe(expected)
    expect(pool.size).toBe(expected === '200 two' ? 1 : 3)
  })

  test('a failed connection fails every call that waits for the negotiation', async () => {
    const pool = createNegotiatedPool({ ...transport(await startH2()), tls: { ...tls(), ca: [leaf.certificate], servername: 'other' } })
    expect(await Promise.all([failureOf(pool), failureOf(pool, { method: 'POST', body: new BufferBody('a') })])).toEqual(['connect', 'connect'])
    const silent = createNetServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    open.push(() => silent.close())
    const waiting = createNegotiatedPool(transport((silent.address() as AddressInfo).port))
    const started = waiting.call(testRequest(), { connectMs: 300 })
    setTimeout(() => started.cancel(new Error('gone')), 20)
    await expect(started.response).rejects.toMatchObject({ failure: 'cancelled' })
    await expect(waiting.call(testRequest(), { connectMs: 300 }).response).rejects.toMatchObject({ failure: 'connect-timeout' })
  })

  test('an upstream that rejects the client certificate after the handshake fails the call at once', async () => {
    const server = createSecureServer({ cert: leaf.certificate, key: leaf.privateKey, ca: [ca.certificate], requestCert: true, rejectUnauthorized: true })
    server.on('tlsClientError', () => undefined)
    const { port } = await serve(server, (stream) => stream.respond({ ':status': 200 }, { endStream: true }))
    for (const create of [createHttp2Pool, createNegotiatedPool]) {
      const pool = create(transport(port))
      open.push(() => pool.close())
      // Not connect-timeout, because of the alert.
      await expect(pool.call(testRequest(), { connectMs: 60_000 }).response).rejects.toMatchObject({ failure: 'connect' })
    }
  })

  test('an upstream that ends the connection after the handshake fails the call at once', async () => {
    const server = createTlsServer({ cert: leaf.certificate, key: leaf.privateKey, ALPNProtocols: ['h2'] }, (socket) =>
      socket.on('error', () => undefined).end(),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => server.close())
    for (const create of [createHttp2Pool, createNegotiatedPool]) {
      const pool = create(transport((server.address() as AddressInfo).port))
      open.push(() => pool.close())
      await expect(pool.call(testRequest(), { connectMs: 60_000 }).response).rejects.toMatchObject({ failure: 'connect' })
    }
  })

  test('the version is negotiated again if an upstream changes from h2 to http/1.1', async () => {
    const second = createSecureServer({ cert: leaf.certificate, key: leaf.privateKey })
    const { port, sessions } = await serve(second, (stream) => (stream.respond({ ':status': 200 }), stream.end('two')))
    const forwarder = await startPortForwarder(port)
    const pool = createNegotiatedPool(transport(forwarder.port))
    open.push(
      () => forwarder.close(),
      () => pool.close(),
    )
    expect(await call(pool)).toBe('200 two')
    await new Promise<void>((resolve) => {
      second.close(() => resolve())
      for (const session of sessions) session.destroy()
    })
    forwarder.to = await startHttps()
    await failureOf(pool)
    expect(await call(pool)).toBe('200 one')
  })
})
