import { execFile } from 'node:child_process'
import { connect as connectHttp2, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import { connect as connectNet, type Socket } from 'node:net'
import type { Exchange, OnRequest } from '../../request/exchange/exchange.ts'
import { toErrorResponse, ProxyError } from '../../request/exchange/error.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { Deadlines } from '../../http/deadlines.ts'
import { HeaderList } from '../../http/headers.ts'
import { UpstreamError, type UpstreamPool } from '../upstream/types.ts'
import { createBind, type Bind, type BindOptions } from './bind.ts'
import type { BindProgram } from './program.ts'

/** A bind on a free port of 127.0.0.1. Records its events. */
export interface TestBind {
  readonly bind: Bind
  readonly port: number
  readonly finished: Exchange[]
  /** Reasons of dropped connections. */
  readonly dropped: string[]
  /** Causes of dropped connections. */
  readonly causes: string[]
  /** Requests rejected before their heads were parsed. */
  readonly refused: string[]
  close(): Promise<void>
}

export const httpProgram: BindProgram = {
  plaintext: 'http',
  hasTls: false,
  selectTls: () => undefined,
  handleTcp: ({ socket }) => void socket.destroy(),
}

export async function startBind(onRequest: OnRequest, program: Partial<BindProgram> = {}, options: Partial<BindOptions> = {}): Promise<TestBind> {
  const finished: Exchange[] = []
  const dropped: string[] = []
  const causes: string[] = []
  const refused: string[] = []
  const bind = createBind({
    key: 'test',
    port: 0,
    addresses: ['127.0.0.1'],
    program: { ...httpProgram, ...program },
    onRequest,
    onFinished: (exchange) => finished.push(exchange),
    deadlines: new Deadlines(10),
    hooks: { onDrop: (reason, _, cause) => (dropped.push(reason), causes.push(cause)), onRefuse: (error) => refused.push(error.message) },
    ...options,
  })
  await bind.listen()
  return { bind, port: bind.port, finished, dropped, causes, refused, close: () => bind.close(true) }
}

/** Responds with the parsed request as JSON. */
export const describeRequest: OnRequest = async (exchange) => {
  const { request, connection } = exchange
  const { method, target, scheme, authority, version, headers, acceptsTrailers } = request
  const { bytes, trailers } = await readBody(request.body, 1 << 20)
  const text = JSON.stringify({
    method,
    target,
    scheme,
    authority,
    version,
    acceptsTrailers,
    listener: connection.listener,
    tls: connection.tls,
    headers: Object.fromEntries(headers),
    body: bytes.toString('latin1'),
    trailers: trailers && Object.fromEntries(trailers),
  })
  respondWith(exchange, text)
}

export function respondWith(exchange: Exchange, text: string, trailers?: HeaderList): void {
  const headers = new HeaderList(['content-type', 'text/plain', ...(trailers === undefined ? ['content-length', String(Buffer.byteLength(text))] : [])])
  exchange.response = { status: 200, headers, body: new BufferBody(text, trailers), upgraded: undefined }
}

/** Forwards requests to a pool, without policies. */
export function forwardTo(pool: UpstreamPool): OnRequest {
  return async (exchange) => {
    const call = pool.call(exchange.request, { connectMs: 5000 })
    exchange.onAbort((reason) => call.cancel(reason))
    try {
      exchange.response = await call.response
    } catch (error) {
      exchange.error = new ProxyError('UPSTREAM_FAILED', { detail: error instanceof UpstreamError ? error.failure : String(error) })
      exchange.response = toErrorResponse(exchange.error, exchange.request)
    }
  }
}

export interface Http2Answer {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly body: string
  readonly trailers: Record<string, unknown> | undefined
  readonly error: string | undefined
}

/** Sends one request on a client session of Node. */
export function request2(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Http2Answer> {
  return new Promise((resolve) => {
    const stream = session.request({ ':path': '/', ':authority': 'test', ...headers }, { endStream: body === undefined })
    let response: Record<string, unknown> = {}
    let trailers: Record<string, unknown> | undefined
    let error: string | undefined
    const chunks: Buffer[] = []
    stream.on('response', (fields) => (response = fields))
    stream.on('trailers', (fields) => (trailers = fields))
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', (thrown) => (error = thrown.message))
    stream.on('close', () => resolve({ status: Number(response[':status'] ?? 0), headers: response, body: Buffer.concat(chunks).toString(), trailers, error }))
    if (body !== undefined) stream.end(body)
  })
}

export function openHttp2(port: number): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  return session
}

/** Runs a program. Returns its output, preceded by the exit code if it failed. */
export function run(command: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile(command, args, { timeout: 60_000 }, (error, stdout, stderr) =>
      resolve(error === null ? stdout : `exit ${String(error.code)}: ${stdout}${stderr}`),
    )
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}

/** Sends bytes and reads until the connection closes. Appends `reset` if it was reset. */
export function talk(port: number, bytes: Buffer | string, onOpen?: (socket: Socket) => void): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connectNet(port, '127.0.0.1', () => {
      socket.write(bytes)
      onOpen?.(socket)
    })
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    socket.on('error', (error: NodeJS.ErrnoException) => (text += error.code === 'ECONNRESET' ? 'reset' : error.message))
    socket.on('close', () => resolve(text))
  })
}
