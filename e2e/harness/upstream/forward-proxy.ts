import { once } from 'node:events'
import { createServer, STATUS_CODES, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { EchoRequest } from './echo-response.ts'

/**
 * An egress proxy: tunnels CONNECT (RFC 9110 §9.3.6) to hosts of this machine for clients with the token `egress`. Responds with 407 to other clients, 403 for
 * other hosts and 405 to other methods.
 */
export async function startForwardProxy({ name, port = 0 }: { readonly name: string; readonly port?: number }) {
  const requests: EchoRequest[] = []
  const sockets = new Set<Duplex>()
  const track = (socket: Duplex): void => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  }
  const server = createServer((_, response) => response.writeHead(405).end())
  server.on('connection', track)
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    const { url: authority = '', headers } = request
    requests.push({ method: 'CONNECT', path: authority, version: `HTTP/${request.httpVersion}`, headers } as unknown as EchoRequest)
    const target = /^(127\.0\.0\.1|localhost):(\d+)$/.exec(authority)
    if (headers['proxy-authorization'] !== 'Bearer egress') return reject(client, 407)
    if (target === null) return reject(client, 403)
    const upstream = connect(Number(target[2]), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      upstream.pipe(client).pipe(upstream)
    })
    track(upstream)
    upstream.once('close', () => client.destroy())
    client.once('close', () => upstream.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    name,
    port: (server.address() as AddressInfo).port,
    requests,
    async close(): Promise<void> {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function reject(client: Duplex, status: number): void {
  client.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
}
