import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A gRPC service of any name that echoes messages byte for byte. A method named `Repeat` sends the first message `x-count` times. Metadata: `x-grpc-status` and
 * `x-grpc-message` end the call with that status and no message; `x-delay-ms` delays the head.
 */
export async function respondGrpc(name: string, request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const status = request.headers['x-grpc-status']
  const delayMs = Number(request.headers['x-delay-ms'] ?? 0)
  if (delayMs > 0) await sleep(delayMs)
  if (typeof status === 'string') {
    const message = String(request.headers['x-grpc-message'] ?? '')
    for await (const _ of request);
    // Trailers-Only (gRPC over HTTP/2): the head ends the stream.
    const head = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status, 'grpc-message': message, 'x-server': name }
    response.stream.respond(head, { endStream: true })
    return
  }
  response.writeHead(200, { 'content-type': 'application/grpc', 'x-server': name, 'x-path': request.url })
  if (request.url.endsWith('/Repeat')) {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const message = Buffer.concat(chunks)
    for (let count = Number(request.headers['x-count'] ?? 1); count > 0; count--) response.write(message)
  } else {
    for await (const chunk of request as AsyncIterable<Buffer>) response.write(chunk)
  }
  response.addTrailers({ 'grpc-status': '0', 'x-trailer': 'end' })
  response.end()
}
