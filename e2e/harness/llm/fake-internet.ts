import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { makeAuthority, makeCertificate } from '../certificates.ts'

/** One TLS connection to a host of the fake internet. */
interface RecordedCall {
  /** `host:port` of the CONNECT. */
  readonly address: string
  /** Name in the ClientHello; undefined while none was sent. */
  serverName: string | undefined
}

/** The running fake internet, and the calls that it received. */
export interface FakeInternet {
  /** Port of the forward proxy through which all hosts are reached. */
  readonly port: number
  /** PEM of the authority that signs the certificates of all hosts. */
  readonly authority: string
  readonly calls: RecordedCall[]
  /** Makes every host present a certificate of this name; `undefined` restores the hosts' own certificates. */
  impersonate(name: string | undefined): void
  close(): Promise<void>
}

/**
 * A forward proxy that stands in for every host of the internet: CONNECT to any host reaches a TLS server with a valid certificate for that host, which
 * forwards plaintext to `port`. Tests use it to observe calls to public hosts without making them.
 */
export async function startFakeInternet({ port: upstreamPort }: { readonly port: number }): Promise<FakeInternet> {
  const authority = makeAuthority('internet')
  const sockets = new Set<Duplex>()
  const calls: RecordedCall[] = []
  const callOfPort = new Map<number, RecordedCall>()
  let impostor: string | undefined
  const track = (socket: Duplex): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  }
  const contextOf = (name: string) => {
    const { certificate, privateKey } = makeCertificate({ name, issuer: authority })
    return createSecureContext({ cert: certificate, key: privateKey })
  }
  const servers = createTlsServer({
    ALPNProtocols: ['h2', 'http/1.1'],
    SNICallback: (name, done) => done(null, contextOf(impostor ?? name)),
  })
  servers.on('connection', (socket: Socket) => void track(socket))
  servers.on('secureConnection', (socket) => {
    track(socket)
    const call = callOfPort.get(socket.remotePort ?? 0)
    if (call !== undefined) call.serverName = typeof socket.servername === 'string' ? socket.servername : undefined
    const upstream = connect(upstreamPort, '127.0.0.1')
    track(upstream)
    socket.pipe(upstream).pipe(socket)
    upstream.once('close', () => socket.destroy())
    socket.once('close', () => upstream.destroy())
  })
  const proxy = createServer((_, response) => response.writeHead(405).end())
  proxy.on('connection', track)
  proxy.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    const call: RecordedCall = { address: request.url ?? '', serverName: undefined }
    calls.push(call)
    const server = connect((servers.address() as AddressInfo).port, '127.0.0.1', () => {
      callOfPort.set(server.localPort ?? 0, call)
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      server.write(head)
      server.pipe(client).pipe(server)
    })
    track(server)
    server.once('close', () => client.destroy())
    client.once('close', () => server.destroy())
  })
  for (const server of [servers, proxy]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  return {
    port: (proxy.address() as AddressInfo).port,
    authority: authority.certificate,
    calls,
    impersonate: (name) => void (impostor = name),
    async close() {
      const closed = [servers, proxy].map((server) => new Promise((resolve) => server.close(resolve)))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    },
  }
}
