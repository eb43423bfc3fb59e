import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { KEEP_ALIVE_TIMEOUT_MS } from '../upstream/keep-alive.ts'

/** A request as the mock received it. */
export interface MockRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly raw: Buffer
  /** Parsed body; undefined if it is not JSON. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** Resolves when the client disconnects before the response is complete. */
  readonly closed: Promise<void>
}

/** Handles one request; a rejection closes the connection. */
export type Answer = (request: MockRequest, response: ServerResponse) => Promise<void> | void

/** A running mock server, with its received requests and upgrades. */
export interface MockServer {
  readonly port: number
  readonly url: string
  readonly requests: MockRequest[]
  readonly upgrades: { readonly path: string; readonly headers: Readonly<Record<string, string>> }[]
  close(): Promise<void>
}

export interface MockServerOptions {
  readonly port?: number
  readonly answer: Answer
  readonly onUpgrade?: (request: IncomingMessage, socket: Socket, head: Buffer) => void
}

/** An HTTP server that records its requests. Serves HTTP/1.1 and h2c on one port, because the Bedrock SDK uses HTTP/2 only. */
export async function startMockServer({ port = 0, answer, onUpgrade }: MockServerOptions): Promise<MockServer> {
  const requests: MockRequest[] = []
  const upgrades: MockServer['upgrades'] = []
  const sockets = new Set<Socket>()
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    receive(request, response)
      .then(async (received) => {
        requests.push(received)
        await answer(received, response)
      })
      .catch(() => request.socket.destroy())
  }
  const http1 = createHttpServer(onRequest)
  http1.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  // The compatibility API of HTTP/2 covers everything that handlers use.
  const http2 = createHttp2Server((request, response) => onRequest(request as unknown as IncomingMessage, response as unknown as ServerResponse))
  http2.on('sessionError', () => {})
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', (head: Buffer) => {
      socket.pause()
      socket.unshift(head)
      // RFC 9113 §3.4: the preface distinguishes HTTP/2 from HTTP/1.1.
      const isHttp2 = head.subarray(0, 3).toString('latin1') === 'PRI'
      ;(isHttp2 ? http2 : http1).emit('connection', socket)
      if (!isHttp2) socket.resume()
    })
  })
  http1.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    upgrades.push({ path: request.url ?? '', headers: flatten(request) })
    if (onUpgrade === undefined) socket.destroy()
    else onUpgrade(request, socket, head)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    requests,
    upgrades,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<MockRequest> {
  const chunks: Buffer[] = []
  const closed = new Promise<void>((resolve) => response.on('close', () => response.writableFinished || resolve()))
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks)
  return { method: request.method ?? '', path: request.url ?? '', headers: flatten(request), raw, body: parse(raw), closed }
}

/** Request headers as strings, with HTTP/2's `:authority` as `host`. */
function flatten({ headers }: IncomingMessage): Record<string, string> {
  const own = Object.entries(headers).flatMap(([name, value]) =>
    name === ':authority' ? [['host', value] as const] : name.startsWith(':') ? [] : [[name, value] as const],
  )
  return Object.fromEntries(own.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]))
}

function parse(raw: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(raw.toString()) as Readonly<Record<string, unknown>>
  } catch {
    return undefined
  }
}
