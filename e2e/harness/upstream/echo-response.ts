import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as waitFor } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { respondGrpc } from './grpc-echo.ts'

/** One request as the upstream received it; also the JSON of its response. */
export interface EchoRequest {
  readonly name: string
  readonly protocol: string
  readonly method: string
  /** Path with query, as received. */
  readonly path: string
  readonly host: string
  /** Lower-case names; repeated headers are joined as in Node. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Pairs as received, without HTTP/2 pseudo headers. */
  readonly rawHeaders: readonly (readonly [string, string])[]
  bodyBytes: number
  /** The first 4 KiB of the body. */
  body: string
  trailers: Readonly<Record<string, string | undefined>>
  readonly sni?: string
  readonly clientName?: string
  /** Source port of the connection, which identifies it. */
  readonly sourcePort: number
}

/** State of an echo upstream. */
export interface EchoContext {
  readonly name: string
  readonly requests: EchoRequest[]
  /** Number of requests for each `id` of `failures=`. */
  readonly attempts: Map<string, number>
}

const KEPT_REQUESTS = 2000
const KEPT_BODY_BYTES = 4096
const CHUNK = Buffer.alloc(64 * 1024, 'x')
/** Does not keep the process running: the client may disconnect during a long delay. */
const sleep = (ms: number): Promise<void> => waitFor(ms, undefined, { ref: false })

/**
 * Responds to a request with the request as JSON. Query parameters change the response:
 * `status=503`; `delay=ms` before the head; `header=name:value` (repeatable); `failures=n&id=k`: 503 for the first n requests of that id;
 * `size=bytes`: a body of x; `chunks=n&interval=ms`: a stream of lines; `events=n&interval=ms`: server-sent events; `trailers=1`: sends `x-trailer`;
 * `rate=bytes per second` at which the body is read; `early=1`: responds before reading the body; `close=1`: closes the connection; `stall=ms` after the head.
 */
export async function respond(
  context: EchoContext,
  request: IncomingMessage | Http2ServerRequest,
  eitherResponse: ServerResponse | Http2ServerResponse,
): Promise<void> {
  // Both response types have the members used here, but TypeScript cannot call methods of the union.
  const response = eitherResponse as ServerResponse
  const received = describe(context.name, request)
  context.requests.push(received)
  if (context.requests.length > KEPT_REQUESTS) context.requests.shift()
  if (request.httpVersionMajor === 2 && /^application\/grpc(\+|;|$)/.test(request.headers['content-type'] ?? '')) {
    return respondGrpc(context.name, request as Http2ServerRequest, eitherResponse as Http2ServerResponse)
  }
  const query = new URLSearchParams((request.url ?? '').split('?')[1] ?? '')
  const number = (name: string) => Number(query.get(name) ?? 0)
  if (query.has('close')) return void request.socket.destroy()
  if (!query.has('early')) await readBody(request, received, number('rate'))
  if (query.has('delay')) await sleep(number('delay'))

  for (const header of query.getAll('header')) response.setHeader(header.slice(0, header.indexOf(':')), header.slice(header.indexOf(':') + 1))
  response.setHeader('x-server', context.name)
  response.statusCode = number('status') || 200
  if (isFailing(context, query)) response.statusCode = 503
  if (query.has('trailers') && request.httpVersionMajor === 1) response.setHeader('trailer', 'x-trailer')

  const body = bodyOf(query, received)
  if (typeof body === 'string') {
    response.setHeader('content-type', 'application/json')
    // RFC 9110 §8.6: never with 204.
    if (!query.has('trailers') && response.statusCode !== 204) response.setHeader('content-length', Buffer.byteLength(body))
  } else if (query.has('size')) response.setHeader('content-length', number('size'))
  else response.setHeader('content-type', query.has('events') ? 'text/event-stream' : 'text/plain')
  if (response.statusCode === 204 || response.statusCode === 304 || request.method === 'HEAD') return void response.end()
  if (query.has('stall')) {
    response.flushHeaders()
    await sleep(number('stall'))
  }
  const source = Readable.from(typeof body === 'string' ? [body] : body)
  if (!query.has('trailers')) return pipeline(source, response)
  for await (const part of source) response.write(part)
  response.addTrailers({ 'x-trailer': 'end' })
  response.end()
}

function describe(name: string, request: IncomingMessage | Http2ServerRequest): EchoRequest {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([key]) => !key.startsWith(':')))
  const rawHeaders: [string, string][] = []
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const key = request.rawHeaders[at] ?? ''
    if (!key.startsWith(':')) rawHeaders.push([key, request.rawHeaders[at + 1] ?? ''])
  }
  const socket = request.socket as TLSSocket
  const clientName = socket.encrypted ? (socket.getPeerCertificate?.()?.subject?.CN as string | undefined) : undefined
  return {
    name,
    protocol: `HTTP/${request.httpVersion}`,
    method: request.method ?? '',
    path: request.url ?? '',
    host: String(request.headers[':authority'] ?? request.headers.host ?? ''),
    headers,
    rawHeaders,
    bodyBytes: 0,
    body: '',
    trailers: {},
    ...(socket.encrypted && typeof socket.servername === 'string' ? { sni: socket.servername } : {}),
    ...(clientName === undefined ? {} : { clientName }),
    sourcePort: socket.remotePort ?? 0,
  }
}

async function readBody(request: IncomingMessage | Http2ServerRequest, received: EchoRequest, bytesPerSecond: number): Promise<void> {
  const started = Date.now()
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (received.bodyBytes < KEPT_BODY_BYTES) received.body += chunk.subarray(0, KEPT_BODY_BYTES - received.bodyBytes).toString()
    received.bodyBytes += chunk.length
    const aheadMs = bytesPerSecond === 0 ? 0 : (received.bodyBytes / bytesPerSecond) * 1000 - (Date.now() - started)
    if (aheadMs > 5) await sleep(aheadMs)
  }
  received.trailers = request.trailers as Record<string, string | undefined>
}

function isFailing(context: EchoContext, query: URLSearchParams): boolean {
  if (!query.has('failures')) return false
  const key = query.get('id') ?? ''
  const seen = context.attempts.get(key) ?? 0
  context.attempts.set(key, seen + 1)
  return seen < Number(query.get('failures'))
}

function bodyOf(query: URLSearchParams, received: EchoRequest): string | Iterable<Buffer> | AsyncIterable<string> {
  const intervalMs = Number(query.get('interval') ?? 0)
  if (query.has('size')) return repeatBytes(Number(query.get('size')))
  if (query.has('events')) return stream(Number(query.get('events')), intervalMs, (index) => `id: ${index}\ndata: ${Date.now()}\n\n`)
  if (query.has('chunks')) return stream(Number(query.get('chunks')), intervalMs, (index) => `line ${index}\n`)
  return JSON.stringify(received)
}

function* repeatBytes(bytes: number): Iterable<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length) yield left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left)
}

async function* stream(count: number, intervalMs: number, text: (index: number) => string): AsyncIterable<string> {
  for (let index = 0; index < count; index++) {
    if (index > 0 && intervalMs > 0) await sleep(intervalMs)
    yield text(index)
  }
}
