import { once } from 'node:events'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, constants, type IncomingHttpHeaders, type SecureClientSessionOptions } from 'node:http2'
import { request as requestHttps, type RequestOptions } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

/** An HTTP request to loopback. */
export interface ClientRequest {
  readonly port: number
  /** Path with query; default `/`. */
  readonly path?: string
  readonly method?: string
  /** Host header or `:authority`; default `127.0.0.1:<port>`. */
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  readonly protocol?: 'http1' | 'http2'
  /** If set, the request uses HTTPS and trusts `ca` alone. */
  readonly tls?: ClientTls
  readonly timeoutMs?: number
}

/** TLS settings of a request. */
export interface ClientTls {
  readonly ca: string
  readonly sni: string
  readonly cert?: string
  readonly key?: string
}

/** A complete HTTP response. */
export interface ClientResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly trailers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  /** The body as JSON, which is what the echo upstream sends. */
  json(): Echoed
}

/** The part of the echo upstream's response that tests read. */
interface Echoed {
  readonly name: string
  readonly protocol: string
  readonly method: string
  readonly path: string
  readonly host: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly bodyBytes: number
  readonly sni?: string
  readonly clientName?: string
  readonly sourcePort: number
}

/** Sends one request on a new connection. Rejects if the connection fails or is cut. */
export function send(options: ClientRequest): Promise<ClientResponse> {
  return options.protocol === 'http2' ? sendHttp2(options) : sendHttp1(options)
}

async function sendHttp1(options: ClientRequest): Promise<ClientResponse> {
  const { port, tls, body } = options
  const common = {
    host: '127.0.0.1',
    port,
    path: options.path ?? '/',
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { host: options.host ?? `127.0.0.1:${port}`, ...options.headers },
    agent: false as const,
    signal: AbortSignal.timeout(options.timeoutMs ?? 60_000),
  }
  const request = tls === undefined ? requestHttp(common) : requestHttps({ ...common, ...tlsOptions(tls), ALPNProtocols: ['http/1.1'] } as RequestOptions)
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const text = await readText(response)
  return reply(response.statusCode ?? 0, response.headers, response.trailers, text)
}

async function sendHttp2(options: ClientRequest): Promise<ClientResponse> {
  const { port, tls, body } = options
  const secure: SecureClientSessionOptions = tls === undefined ? {} : { ...tlsOptions(tls), ALPNProtocols: ['h2'] }
  const session = connectHttp2(`${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, secure)
  const failed = once(session, 'error').then(([error]) => Promise.reject(error as Error))
  failed.catch(() => {})
  try {
    const stream = session.request(
      {
        [constants.HTTP2_HEADER_METHOD]: options.method ?? (body === undefined ? 'GET' : 'POST'),
        [constants.HTTP2_HEADER_PATH]: options.path ?? '/',
        [constants.HTTP2_HEADER_AUTHORITY]: options.host ?? `127.0.0.1:${port}`,
        ...options.headers,
      },
      { signal: AbortSignal.timeout(options.timeoutMs ?? 60_000) },
    )
    let trailers: IncomingHttpHeaders = {}
    stream.on('trailers', (received: IncomingHttpHeaders) => (trailers = received))
    stream.end(body)
    const exchange = async () => {
      const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      const text = await readText(stream)
      return reply(Number(headers[':status'] ?? 0), headers, trailers, text)
    }
    return await Promise.race([exchange(), failed])
  } finally {
    session.destroy()
  }
}

/** Sends raw bytes and returns the received bytes when the peer closes, when they match `until`, or after one minute. */
export async function sendRaw(port: number, bytes: string | Buffer, options: { tls?: ClientTls; until?: RegExp; end?: boolean } = {}): Promise<string> {
  const socket =
    options.tls === undefined ? connectTcp(port, '127.0.0.1') : connectTls({ host: '127.0.0.1', port, ...tlsOptions(options.tls) } as ConnectionOptions)
  await once(socket, options.tls === undefined ? 'connect' : 'secureConnect')
  if (options.end === true) socket.end(bytes)
  else socket.write(bytes)
  let text = ''
  socket.setEncoding('latin1')
  socket.setTimeout(60_000, () => socket.destroy())
  socket.on('data', (chunk: string) => {
    text += chunk
    if (options.until?.test(text) === true) socket.destroy()
  })
  socket.on('error', () => {})
  await once(socket, 'close')
  return text
}

function tlsOptions(tls: ClientTls): { ca: string; servername: string; cert?: string; key?: string } {
  return { ca: tls.ca, servername: tls.sni, ...(tls.cert === undefined ? {} : { cert: tls.cert }), ...(tls.key === undefined ? {} : { key: tls.key }) }
}

async function readText(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream) text += chunk
  return text
}

function reply(status: number, headers: ClientResponse['headers'], trailers: ClientResponse['trailers'], body: string): ClientResponse {
  return {
    status,
    headers,
    trailers,
    body,
    json() {
      try {
        return JSON.parse(body) as Echoed
      } catch {
        throw new Error(`status ${status}; the body does not come from the echo upstream: ${body.slice(0, 200)}`)
      }
    },
  }
}
