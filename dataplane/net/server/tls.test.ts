import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectNet, createServer } from 'node:net'
import { connect, createServer as createTlsServer, type ConnectionOptions, type TLSSocket } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate, type TestCertificate } from '../../testing/certificates.ts'
import type { BindProgram } from './program.ts'
import { relayTcp } from '../../gateway/splice.ts'
import { describeRequest, httpProgram, request2, startBind, talk, type TestBind } from './testing.ts'
import { createTlsChoices, type TlsListener } from './tls.ts'
import { until } from '../../../e2e/harness/wait.ts'

let ca: TestCertificate
let otherCa: TestCertificate
let a: TestCertificate
let aRsa: TestCertificate
let b: TestCertificate
let client: TestCertificate
let stranger: TestCertificate
/** Signed by another CA with the name of ours. */
let impostor: TestCertificate
let rsaCa: TestCertificate

beforeAll(() => {
  ca = makeAuthority('Our CA')
  otherCa = makeAuthority('Their CA')
  a = makeCertificate({ name: 'a.example.com', authority: ca })
  aRsa = makeCertificate({ name: 'a.example.com', authority: ca, algorithm: 'RSA' })
  b = makeCertificate({ name: 'b.example.com', authority: ca })
  client = makeCertificate({ name: 'alice', names: ['DNS:alice.example.com', 'URI:spiffe://td/ns/a/sa/alice'], authority: ca })
  stranger = makeCertificate({ name: 'mallory', authority: otherCa })
  rsaCa = makeAuthority('Our RSA CA', 'RSA')
  impostor = makeCertificate({ name: 'mallory', omitsIssuerKeyId: true, authority: makeAuthority('Our RSA CA', 'RSA') })
})

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})

const choices = createTlsChoices()
const listener = (key: string, change: Partial<TlsListener> = {}): TlsListener => ({ key, kind: 'terminate-http', certificates: [a], ...change })
const tlsProgram = (table: Record<string, TlsListener>, change: Partial<BindProgram> = {}): Partial<BindProgram> => ({
  plaintext: 'none',
  hasTls: true,
  selectTls: (sni) => {
    const found = table[sni ?? ''] ?? table['*']
    return found && choices.get(found)
  },
  ...change,
})

async function start(table: Record<string, TlsListener>, change: Partial<BindProgram> = {}): Promise<TestBind> {
  const server = await startBind(describeRequest, tlsProgram(table, change))
  open.push(server)
  return server
}

interface Peer {
  readonly socket: TLSSocket
  readonly name: string
}

/** Performs a handshake as a client. Rejects if it fails, also if the server closes just after it. */
function shake(port: number, options: ConnectionOptions = {}): Promise<Peer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca: ca.certificate, servername: 'a.example.com', ...options }, () => {
      // TLS 1.3 servers verify the client's certificate after the client has finished its handshake.
      setTimeout(
        () =>
          socket.destroyed ? reject(new Error('closed after the handshake')) : resolve({ socket, name: socket.getPeerCertificate().subject.CN as string }),
        60,
      )
    })
    open.push({ close: () => socket.destroy() })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('closed in the handshake')))
  })
}

async function get(port: number, options: ConnectionOptions = {}): Promise<{ listener: string; tls: Record<string, unknown> }> {
  const { socket } = await shake(port, options)
  socket.write('GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n')
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return JSON.parse(text.slice(text.indexOf('{'))) as { listener: string; tls: Record<string, unknown> }
}

describe('selection by SNI', () => {
  test.each([
    ['a.example.com', 'a.example.com', 'la'],
    ['B.Example.com', 'b.example.com', 'lb'],
  ])('%s gets its own certificate and listener', async (servername, name, key) => {
    const { port } = await start({ 'a.example.com': listener('la'), 'b.example.com': listener('lb', { certificates: [b] }) })
    expect((await shake(port, { servername })).name).toBe(name)
    expect(await get(port, { servername })).toMatchObject({ listener: key, tls: { sni: name, protocol: 'TLSv1.3' } })
  })

  test.each<[string, ConnectionOptions, string]>([
    ['an unknown name', { servername: 'c.example.com' }, 'no listener for SNI c.example.com'],
    ['no name', { servername: '' }, 'no listener for SNI (none)'],
  ])('a handshake with %s is dropped', async (_, options, reason) => {
    const { port, dropped } = await start({ 'a.example.com': listener('la') })
    await expect(shake(port, options)).rejects.toThrow()
    expect(dropped).toEqual([reason])
  })
})

describe('TLS settings', () => {
  const withSettings = (settings: TlsListener['settings']): Promise<TestBind> => start({ '*': listener('l', { certificates: [a, aRsa], settings }) })

  test.each<[string, TlsListener['settings'], ConnectionOptions, string | RegExp]>([
    ['TLS 1.1 is refused', {}, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }, /./],
    ['TLS 1.2 is accepted', {}, { maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['minVersion 1.3 refuses 1.2', { minVersion: 'TLSv1.3' }, { maxVersion: 'TLSv1.2' }, /./],
    ['maxVersion 1.2 bounds 1.3', { maxVersion: 'TLSv1.2' }, {}, 'TLSv1.2'],
    ['a suite that is not listed is rejected', {}, { ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305', maxVersion: 'TLSv1.2' }, /./],
    [
      'a suite that is listed is accepted',
      { cipherSuites: ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'] },
      { ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305', maxVersion: 'TLSv1.2' },
      'TLSv1.2',
    ],
    ['TLS 1.3 suites are restricted too', { cipherSuites: ['TLS13_AES_128_GCM_SHA256'] }, { ciphers: 'TLS_AES_256_GCM_SHA384' }, /./],
    ['a group that is not a default is rejected', {}, { ecdhCurve: 'P-521' }, /./],
    ['the last default group except the hybrid one is accepted', {}, { ecdhCurve: 'P-384' }, 'TLSv1.3'],
    ['a client that supports only RSA is accepted', {}, { ciphers: 'ECDHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['a client that supports only ECDSA is accepted', {}, { ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['a client without a common ALPN protocol is rejected', { alpn: ['h2'] }, { ALPNProtocols: ['http/1.1'] }, /./],
  ])('%s', async (_, settings, options, expected) => {
    const { port } = await withSettings(settings)
    const shaken = shake(port, options)
    if (typeof expected === 'string') expect((await shaken).socket.getProtocol()).toBe(expected)
    else await expect(shaken).rejects.toThrow(expected)
  })

  test.each<[string, string[], string | false]>([
    ['h2 is preferred', ['http/1.1', 'h2'], 'h2'],
    ['http/1.1 is selected if the client does not offer h2', ['http/1.1'], 'http/1.1'],
    ['no protocol is selected if the client offers none', [], false],
  ])('in ALPN %s', async (_, offered, chosen) => {
    const { port } = await withSettings({})
    const { socket } = await shake(port, { ALPNProtocols: offered })
    expect(socket.alpnProtocol).toBe(chosen)
  })

  test.each<[string, Partial<TlsListener>, RegExp]>([
    ['no certificate', { certificates: [] }, /no certificate resolves/],
    ['a broken certificate', { certificates: [{ certificate: 'broken', privateKey: 'broken' }] }, /key material cannot be used/],
    ['a key of another certificate', { certificates: [{ certificate: 'A', privateKey: 'B' }] }, /key material cannot be used/],
    ['no trust anchor', { clientValidation: { mode: 'AllowInsecureFallback', caCertificates: [] } }, /no CA certificate for client validation/],
    ['a broken trust anchor', { clientValidation: { mode: 'AllowValidOnly', caCertificates: ['broken'] } }, /key material cannot be used/],
    ['minVersion above maxVersion', { settings: { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.2' } }, /minVersion TLSv1.3 is above/],
    ['an unknown suite', { settings: { cipherSuites: ['NULL'] } }, /unknown cipher suite NULL/],
  ])('with %s handshakes fail and nothing is served in plaintext', async (name, change, problem) => {
    const broken = name === 'a key of another certificate' ? { certificates: [{ certificate: a.certificate, privateKey: b.privateKey }] } : change
    expect(choices.get(listener('broken', broken)).problem).toMatch(problem)
    const { port, dropped, finished } = await start({ '*': listener('broken', broken) })
    await expect(shake(port)).rejects.toThrow()
    expect(await talk(port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')).toBe('')
    expect(dropped).toHaveLength(2)
    expect(finished).toHaveLength(0)
  })
})

test('renegotiation by a TLS 1.2 client is refused, and the connection serves its request', async () => {
  const { port } = await start({ '*': listener('l') })
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  const outcome = await new Promise<Error | null>((resolve) => {
    socket.once('error', resolve)
    socket.renegotiate({}, resolve)
  })
  expect(outcome).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' })
  socket.destroy()
  expect((await get(port, { maxVersion: 'TLSv1.2' })).tls['protocol']).toBe('TLSv1.2')
})

describe('client certificates', () => {
  const validating = (mode: 'AllowValidOnly' | 'AllowInsecureFallback'): Promise<TestBind> =>
    start({ '*': listener('l', { clientValidation: { mode, caCertificates: [ca.certificate, rsaCa.certificate] } }) })
  const as = ({ certificate, privateKey }: TestCertificate): ConnectionOptions => ({ cert: certificate, key: privateKey })

  test.each<[string, 'AllowValidOnly' | 'AllowInsecureFallback', () => ConnectionOptions, string | undefined | Error]>([
    ['AllowValidOnly, valid', 'AllowValidOnly', () => as(client), 'alice'],
    ['AllowValidOnly, valid, TLS 1.2', 'AllowValidOnly', () => ({ ...as(client), maxVersion: 'TLSv1.2' }), 'alice'],
    ['AllowValidOnly, none', 'AllowValidOnly', () => ({}), new Error()],
    ['AllowValidOnly, none, TLS 1.2', 'AllowValidOnly', () => ({ maxVersion: 'TLSv1.2' }), new Error()],
    ['AllowValidOnly, of another CA', 'AllowValidOnly', () => as(stranger), new Error()],
    ['AllowInsecureFallback, valid', 'AllowInsecureFallback', () => as(client), 'alice'],
    ['AllowInsecureFallback, none', 'AllowInsecureFallback', () => ({}), undefined],
    ['AllowInsecureFallback, of another CA', 'AllowInsecureFallback', () => as(stranger), undefined],
    ['AllowValidOnly, of a CA with our CA’s name', 'AllowValidOnly', () => as(impostor), new Error()],
    ['AllowInsecureFallback, of a CA with our CA’s name', 'AllowInsecureFallback', () => as(impostor), undefined],
    ['AllowInsecureFallback, of a CA with our CA’s name, TLS 1.2', 'AllowInsecureFallback', () => ({ ...as(impostor), maxVersion: 'TLSv1.2' }), undefined],
  ])('%s', async (_, mode, options, expected) => {
    const { port, finished } = await validating(mode)
    if (expected instanceof Error) {
      await expect(get(port, options())).rejects.toThrow()
      expect(finished).toHaveLength(0)
      return
    }
    const { tls } = await get(port, options())
    if (expected === undefined) expect(tls).not.toHaveProperty('clientCertificate')
    else
      expect(tls['clientCertificate']).toEqual({
        pem: client.certificate,
        subject: 'CN=alice,O=Test',
        subjectCn: 'alice',
        issuer: 'CN=Our CA,O=Test',
        subjectAltNames: ['alice.example.com', 'spiffe://td/ns/a/sa/alice'],
        chain: `${client.certificate}${ca.certificate}`,
      })
  })

  test('a session that started without a valid certificate cannot be resumed', async () => {
    const { port } = await validating('AllowInsecureFallback')
    const first = await shake(port, as(stranger))
    const session = await new Promise<Buffer | undefined>((resolve) => {
      first.socket.on('session', resolve)
      setTimeout(() => resolve(first.socket.getSession()), 100)
    })
    const second = await shake(port, { ...as(stranger), session })
    expect(second.socket.isSessionReused()).toBe(false)
  })
})

test('a new certificate is used for new handshakes, and open connections continue', async () => {
  const { port, bind } = await start({ '*': listener('l') })
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: ca.certificate, servername: 'a.example.com' })
  open.push({ close: () => session.destroy() })
  expect((await request2(session, {})).status).toBe(200)
  bind.update({ ...httpProgram, ...tlsProgram({ '*': listener('l', { certificates: [b] }) }) })
  expect((await shake(port, { servername: 'b.example.com' })).name).toBe('b.example.com')
  expect((await request2(session, {})).status).toBe(200)
  bind.drainListeners((key) => key === 'l')
  await until(() => session.destroyed)
})

test('TLS choices of equal content are shared until they are dropped', () => {
  const shared = createTlsChoices()
  const first = shared.get(listener('x'))
  expect(shared.get(listener('x')).terminator).toBe(first.terminator)
  expect(shared.get(listener('y')).terminator).not.toBe(first.terminator)
  expect(shared.get(listener('x', { certificates: [b] })).terminator).not.toBe(first.terminator)
  shared.retain([listener('y')])
  expect(shared.get(listener('x')).terminator).not.toBe(first.terminator)
})

describe('a port with several protocols', () => {
  /** A TLS server behind passthrough. */
  async function startBackend(): Promise<number> {
    const backend = createTlsServer({ cert: b.certificate, key: b.privateKey, allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined)
      socket.write('hello ')
      socket.on('data', (chunk) => socket.write(chunk))
      socket.on('end', () => socket.end(' bye'))
    })
    await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => new Promise((resolve) => backend.close(resolve)) })
    return (backend.address() as AddressInfo).port
  }

  async function startMixed(settings?: BindProgram['settings']): Promise<TestBind> {
    const passthrough = await startBackend()
    const plain = connectNetServer()
    const tcpPort = await plain
    return start(
      {
        'a.example.com': listener('https'),
        'b.example.com': listener('pass', { kind: 'passthrough', certificates: [] }),
        'tcp.example.com': listener('term', { kind: 'terminate-tcp' }),
      },
      {
        plaintext: 'http',
        settings,
        handleTcp: (tcp) => {
          const port = tcp.listener === 'pass' ? passthrough : tcpPort
          void relayTcp(tcp, { host: '127.0.0.1', port, tls: undefined, keepAlive: undefined }, { connectMs: 20_000 })
        },
      },
    )
  }

  /** A TCP echo server that reports the half-close of its client. */
  async function connectNetServer(): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => socket.write(chunk))
      socket.on('end', () => socket.end(' end'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => new Promise((resolve) => server.close(resolve)) })
    return (server.address() as AddressInfo).port
  }

  const readAll = async (socket: TLSSocket): Promise<string> => {
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  }

  test('serves HTTP, HTTPS, TLS passthrough and TLS to TCP', async () => {
    const { port } = await startMixed()
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('"scheme":"http"')
    expect(await get(port)).toMatchObject({ listener: 'https' })
    const passed = await shake(port, { servername: 'b.example.com', allowHalfOpen: true } as ConnectionOptions)
    expect(passed.name).toBe('b.example.com')
    passed.socket.end('there')
    expect(await readAll(passed.socket)).toBe('hello there bye')
    const terminated = await shake(port, {
      servername: 'tcp.example.com',
      checkServerIdentity: () => undefined,
      ALPNProtocols: ['h2'],
      allowHalfOpen: true,
    } as ConnectionOptions)
    expect([terminated.name, terminated.socket.alpnProtocol]).toEqual(['a.example.com', false])
    terminated.socket.end('echo')
    expect(await readAll(terminated.socket)).toBe('echo end')
  })

  test.each(['a.example.com', 'b.example.com'])('accepts a ClientHello for %s that arrives byte by byte', async (servername) => {
    const { port } = await startMixed()
    const relay = createServer((socket) => {
      const upstream = connectNet({ port, host: '127.0.0.1', noDelay: true })
      upstream.on('error', () => undefined)
      upstream.pipe(socket)
      let queue = Promise.resolve()
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        for (const byte of chunk as Buffer) queue = queue.then(() => new Promise((resolve) => (upstream.write(Buffer.from([byte])), setImmediate(resolve))))
      })
    })
    await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
    open.push({ close: () => new Promise((resolve) => relay.close(resolve)) })
    const { name } = await shake((relay.address() as AddressInfo).port, { servername })
    expect(name).toBe(servername)
  })

  test.each<[string, Buffer | string, string]>([
    ['nothing', '', 'no protocol or handshake in time'],
    ['a ClientHello that stops', Buffer.from('16030102000100', 'hex'), 'no protocol or handshake in time'],
    ['a part of the HTTP/2 preface', 'PRI * HT', 'no protocol or handshake in time'],
    ['a TLS record that is no ClientHello', Buffer.from('160301000402000000', 'hex'), 'not a TLS ClientHello'],
  ])('closes a connection that sends %s', async (_, bytes, reason) => {
    const { port, dropped } = await startMixed({ handshakeMs: reason.includes('in time') ? 100 : 60_000 })
    expect(await talk(port, bytes)).toBe('')
    expect(dropped).toEqual([reason])
  })

  test('closes a handshake that stops after its ClientHello at the timeout', async () => {
    const { port, bind, dropped } = await startMixed({ handshakeMs: 1500 })
    const hello = await captureHello()
    expect((await talk(port, hello)).length).toBeGreaterThan(100)
    await until(() => bind.size === 0)
    expect(dropped).toEqual(['no protocol or handshake in time'])
  })

  test('responds to garbage with 400 and closes', async () => {
    const { port, bind } = await startMixed()
    expect(await talk(port, Buffer.from([0, 1, 2, 3, 13, 10, 13, 10]))).toMatch(/^HTTP\/1.1 400 /)
    await until(() => bind.size === 0)
  })
})

/** A ClientHello for a.example.com. */
async function captureHello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const server = createServer((socket) =>
      socket.once('data', (chunk: Buffer) => {
        resolve(chunk)
        socket.destroy()
        server.close()
      }),
    )
    server.listen(0, '127.0.0.1', () => connect({ port: (server.address() as AddressInfo).port, servername: 'a.example.com' }).on('error', () => undefined))
  })
}
