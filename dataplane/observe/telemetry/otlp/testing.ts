import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Destination, defaultSettings } from '../../../net/upstream/destination.ts'
import { createPool } from '../../../net/upstream/pools.ts'

/** Response of a collector; `status` is an HTTP status or a gRPC code. */
export type Answer = { readonly status: number; readonly body?: Uint8Array }

export interface FakeCollector {
  readonly port: number
  readonly bodies: Buffer[]
  readonly paths: string[]
  readonly headers: IncomingHttpHeaders[]
  close(): void
}

/** Starts a collector on loopback that keeps the received messages, without gRPC framing. */
export async function startCollector(
  protocol: 'HTTP' | 'GRPC',
  answer: () => Answer = () => ({ status: protocol === 'HTTP' ? 200 : 0 }),
): Promise<FakeCollector> {
  const bodies: Buffer[] = []
  const paths: string[] = []
  const received: IncomingHttpHeaders[] = []
  const sessions = new Set<ServerHttp2Session>()
  const http = createServer((request, response) => void acceptHttp(request, response))
  const acceptHttp = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    bodies.push(Buffer.concat(chunks))
    paths.push(request.url ?? '')
    received.push(request.headers)
    const { status, body } = answer()
    response.writeHead(status).end(body)
  }
  const http2 = createHttp2()
  http2.on('session', (session) => sessions.add(session))
  http2.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const chunks: Buffer[] = []
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      bodies.push(Buffer.concat(chunks).subarray(5))
      paths.push(headers[':path'] ?? '')
      received.push(headers)
      const { status, body = Buffer.alloc(0) } = answer()
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(status) }))
      const frame = Buffer.alloc(5)
      frame.writeUInt32BE(body.length, 1)
      stream.end(Buffer.concat([frame, body]))
    })
  })
  const server = protocol === 'HTTP' ? http : http2
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    bodies,
    paths,
    headers: received,
    close: () => {
      for (const session of sessions) session.destroy()
      http.closeAllConnections()
      server.close()
    },
  }
}

export function destinationAt(port: number): Destination {
  return new Destination(
    'ns/collector',
    {
      endpoints: [{ address: '127.0.0.1', port }],
      appProtocol: undefined,
      settings: { ...defaultSettings, connectMs: 20_000 },
      hostname: undefined,
      isHostRewritten: false,
      isDynamic: false,
      error: undefined,
    },
    createPool,
  )
}
