import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer, createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { WebSocket, WebSocketServer } from 'ws'
import { respond, type EchoRequest } from './echo-response.ts'
import { KEEP_ALIVE_TIMEOUT_MS } from './keep-alive.ts'

export type { EchoRequest } from './echo-response.ts'

export interface EchoOptions {
  /** Name of the server in its responses, like the name of a pod. */
  readonly name: string
  /** Default: a port that the system assigns. */
  readonly port?: number
  readonly tls?: { readonly certificate: string; readonly privateKey: string; readonly clientCa?: string }
}

/** A running echo upstream. */
export interface EchoServer {
  readonly name: string
  readonly port: number
  /** Received requests, oldest first. */
  readonly requests: EchoRequest[]
  /** Open sockets. */
  readonly sockets: ReadonlySet<Socket>
  close(): Promise<void>
}

/**
 * An upstream that responds with the request as JSON. One port serves HTTP/1.1, HTTP/2 (prior knowledge, or ALPN with `tls`), WebSocket, other upgrades
 * (`Upgrade: echo`) and gRPC. `echo-response.ts` lists the query parameters that change the response.
 */
export async function startEcho(options: EchoOptions): Promise<EchoServer> {
  const requests: EchoRequest[] = []
  const context = { name: options.name, requests, attempts: new Map<string, number>() }
  const sockets = new Set<Socket>()
  const receive = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) => {
    respond(context, request, response).catch(() => request.socket.destroy())
  }
  const listener = options.tls === undefined ? createPlainServer(receive, options.name) : createTlsServer(options.tls, receive, options.name)
  listener.on('connection', (socket: Socket) => track(sockets, socket))
  const port = await listen(listener, options.port)
  return { name: options.name, port, requests, sockets, close: () => close(listener, sockets) }
}

/** A TCP upstream that sends `<name>\n` and then echoes every byte. */
export async function startTcpEcho(options: Pick<EchoOptions, 'name' | 'port'>): Promise<Omit<EchoServer, 'requests'>> {
  const sockets = new Set<Socket>()
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    track(sockets, socket)
    socket.write(`${options.name}\n`)
    socket.pipe(socket)
  })
  const port = await listen(server, options.port)
  return { name: options.name, port, sockets, close: () => close(server, sockets) }
}

type Receive = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse) => void

function createPlainServer(receive: Receive, name: string): Server {
  const http1 = createHttpServer(receive)
  http1.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  http1.on('upgrade', acceptUpgrades(name))
  const http2 = createHttp2Server(receive)
  http2.on('sessionError', () => {})
  return createTcpServer((socket) => {
    socket.once('data', (head: Buffer) => {
      socket.pause()
      socket.unshift(head)
      // RFC 9113 §3.4: the preface distinguishes HTTP/2 from HTTP/1.1.
      const isHttp2 = head.subarray(0, 3).toString('latin1') === 'PRI'
      ;(isHttp2 ? http2 : http1).emit('connection', socket)
      if (!isHttp2) socket.resume()
    })
  })
}

function createTlsServer(tls: NonNullable<EchoOptions['tls']>, receive: Receive, name: string): Server {
  const server = createSecureServer({
    allowHTTP1: true,
    cert: tls.certificate,
    key: tls.privateKey,
    ...(tls.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
  })
  server.on('request', receive)
  server.on('sessionError', () => {})
  server.on('tlsClientError', () => {})
  server.on('upgrade', acceptUpgrades(name))
  server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => {}))
  return server
}

function acceptUpgrades(name: string): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  let webSockets: Promise<WebSocketServer> | undefined
  return (request, socket, head) => {
    socket.on('error', () => {})
    if (request.headers.upgrade?.toLowerCase() === 'websocket') {
      void (webSockets ??= startWebSockets(name)).then(
        (server) => server.handleUpgrade(request, socket, head, (client) => server.emit('connection', client, request)),
        () => socket.end('HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'),
      )
      return
    }
    if (request.headers.upgrade?.toLowerCase() !== 'echo') {
      socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      return
    }
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\nx-server: ${name}\r\n\r\n`)
    if (head.length > 0) socket.write(head)
    socket.pipe(socket)
  }
}

/** Rejects where the packages of development are not installed, as after `make run`. */
async function startWebSockets(name: string): Promise<WebSocketServer> {
  const { WebSocketServer: Server } = await import('ws')
  const server = new Server({ noServer: true })
  server.on('connection', (client: WebSocket, request: IncomingMessage) => {
    client.send(JSON.stringify({ name, path: request.url, headers: request.headers }))
    client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }))
    client.on('error', () => {})
  })
  return server
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.once('close', () => sockets.delete(socket))
}

async function listen(server: Server, port: number | undefined): Promise<number> {
  server.listen(port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function close(server: Server, sockets: Set<Socket>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const socket of sockets) socket.destroy()
  await closed
}
