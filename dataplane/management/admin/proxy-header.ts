import { createServer, type Server, type Socket } from 'node:net'
import type { Server as HttpServer } from 'node:http'
import { parseProxyHeader, PROXY_HEADER_MS } from '../../net/server/proxy-protocol.ts'

/**
 * A server in front of `http` that skips an optional PROXY protocol header: load balancers send it to every port alike, health checks
 * included. The addresses in it are ignored.
 */
export function createProxyHeaderServer(http: HttpServer): Server {
  // `http` never listens itself, but its timeouts and connection tracking start with this event.
  http.emit('listening')
  return createServer({ noDelay: true }, (socket) => {
    socket.setTimeout(PROXY_HEADER_MS, () => socket.destroy())
    socket.on('error', () => socket.destroy())
    readHeader(socket, Buffer.alloc(0), (rest) => {
      socket.setTimeout(0)
      socket.removeAllListeners('timeout')
      if (rest.length > 0) socket.unshift(rest)
      http.emit('connection', socket)
      socket.resume()
    })
  })
}

function readHeader(socket: Socket, read: Buffer, done: (rest: Buffer) => void): void {
  socket.once('data', (chunk: Buffer) => {
    const bytes = Buffer.concat([read, chunk])
    const header = parseProxyHeader(bytes)
    if (header === 'bad') socket.destroy()
    else if (header === 'more') readHeader(socket, bytes, done)
    else {
      socket.pause()
      done(header === 'none' ? bytes : bytes.subarray(header.length))
    }
  })
}
