import { once } from 'node:events'
import { connect as connectNet, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate, type TestCertificate } from '../../testing/certificates.ts'
import type { BindProgram } from './program.ts'
import { openHttp2, request2, respondWith, startBind, type TestBind } from './testing.ts'
import { createTlsChoices, type TlsListener } from './tls.ts'
import { until } from '../../../e2e/harness/wait.ts'

const REQUEST = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'

let ca: TestCertificate
let certificate: TestCertificate
beforeAll(() => {
  ca = makeAuthority('CA')
  certificate = makeCertificate({ name: 'a.example.com', authority: ca })
})

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const thing of open.splice(0).toReversed()) await thing.close()
})
async function start(program: Partial<BindProgram> = {}): Promise<TestBind> {
  const server = await startBind((exchange) => Promise.resolve(respondWith(exchange, 'ok')), program)
  open.push(server)
  return server
}
const tlsProgram = (): Partial<BindProgram> => {
  const choices = createTlsChoices()
  const listener: TlsListener = { key: 'l', kind: 'terminate-http', certificates: [certificate] }
  return { plaintext: 'none', hasTls: true, selectTls: () => choices.get(listener) }
}

/** A client whose received text is kept. */
interface Client {
  readonly socket: Socket
  text(): string
  readonly closed: Promise<unknown>
}
function follow(socket: Socket): Client {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', (error: NodeJS.ErrnoException) => (text += `error ${error.code}`))
  open.push({ close: () => socket.destroy() })
  return { socket, text: () => text, closed: once(socket, 'close') }
}
const plain = (port: number): Client => follow(connectNet(port, '127.0.0.1'))
/** `secured` listens from the start: a handshake that completes while the test waits for something else counts. */
function encrypted(port: number): Client & { readonly secured: Promise<unknown> } {
  const socket = connectTls({ port, host: '127.0.0.1', ca: ca.certificate, servername: 'a.example.com' })
  return { ...follow(socket), secured: once(socket, 'secureConnect') }
}

describe('a bind that closes', () => {
  test('accepts and serves the connections in the queue of the kernel', async () => {
    const { port, bind } = await start()
    // Connected by the kernel before this turn of the event loop ends.
    const clients = Array.from({ length: 60 }, () => plain(port))
    for (const { socket } of clients) socket.write(REQUEST)
    expect(bind.size).toBe(0)
    bind.drain()
    await bind.acceptPending()
    await bind.close(false)
    await Promise.all(clients.map(({ closed }) => closed))
    for (const { text } of clients) expect(text()).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close[\s\S]*ok$/)
  })

  test('serves a connection whose first request arrives afterwards', async () => {
    const { port, bind } = await start()
    const client = plain(port)
    await until(() => bind.size === 1)
    const closed = bind.close(false)
    client.socket.write(REQUEST)
    await closed
    await client.closed
    expect(client.text()).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close[\s\S]*ok$/)
  })

  test('closes a connection without a request after a second', async () => {
    const { port, bind } = await start()
    const client = plain(port)
    await until(() => bind.size === 1)
    await bind.close(false)
    await client.closed
    expect(client.text()).toBe('')
  })

  test('completes TLS handshakes and serves their first requests', async () => {
    const { port, bind } = await start(tlsProgram())
    const client = encrypted(port)
    await until(() => bind.size === 1)
    const closed = bind.close(false)
    await client.secured
    client.socket.write(REQUEST)
    await closed
    await client.closed
    expect(client.text()).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close[\s\S]*ok$/)
  })

  test('closes an HTTPS connection without a request after a second', async () => {
    const { port, bind } = await start(tlsProgram())
    const client = encrypted(port)
    await client.secured
    await bind.close(false)
    await client.closed
    expect(client.text()).toBe('')
  })
})

describe('a bind that drains', () => {
  test('serves new HTTPS connections', async () => {
    const { port, bind } = await start(tlsProgram())
    bind.drain()
    const client = encrypted(port)
    await client.secured
    client.socket.write(REQUEST)
    await client.closed
    expect(client.text()).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close[\s\S]*ok$/)
  })

  test('closes idle connections that had a request at once', async () => {
    const { port, bind } = await start()
    const client = plain(port)
    client.socket.write(REQUEST)
    await until(() => client.text().endsWith('ok'))
    bind.drain()
    await client.closed
    expect(client.text()).not.toContain('error')
  })

  test('serves new HTTP/2 connections', async () => {
    const { port, bind } = await start()
    bind.drain()
    const session = openHttp2(port)
    open.push({ close: () => session.destroy() })
    expect(await request2(session, {})).toMatchObject({ status: 200, body: 'ok' })
  })

  test('closes the connections of changed listeners, new ones too, because they were admitted under the old terms', async () => {
    const { port, bind } = await start(tlsProgram())
    const client = encrypted(port)
    await client.secured
    bind.drainListeners(() => true)
    await client.closed
    expect(client.text()).toBe('')
  })
})
