import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { makeAuthority, makeCertificate } from '../certificates.ts'

/** What somebody was called as. */
interface InternetCall {
  /** `host:port` of the CONNECT. */
  readonly address: string
  /** Name in the ClientHello; undefined while none was sent. */
  serverName: string | undefined
}

export interface Internet {
  /** Of the forward proxy that leads there. */
  readonly port: number
  /** PEM of the authority that everybody out there has certificates of. */
  readonly authority: string
  readonly calls: InternetCall[]
  /** From now on the servers show certificates of this name, or, with `undefined`, their own. */
  impersonate(name: string | undefined): void
  close(): Promise<void>
}

/**
 * Everything behind port 443, as far as a client of TLS sees it: a forward proxy whose CONNECT leads, whatever the host, to a server with a good certificate
 * for it, and from there in plaintext to `port`. Lets a test watch calls to hosts that are not to be called.
 */
export async function startInternet({ port: upstreamPort }: { readonly port: number }): Promise<Internet> {
  const authority = makeAuthority('everybody')
  const sockets = new Set<Duplex>()
  const calls: InternetCall[] = []
  const callOfPort = new Map<number, InternetCall>()
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
    const call: InternetCall = { address: request.url ?? '', serverName: undefined }
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
