import { request as requestHttp, type IncomingMessage } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { TryRequest, TryResult } from '#api/management/requests.ts'

/** A port of this process. */
export interface TryTarget {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Connections start with a PROXY protocol header. */
  readonly hasProxyHeader: boolean
}

/** Receives a response while it arrives. */
export interface ResponseListener {
  onHead(status: number, headers: readonly (readonly [string, string])[], headMs: number): void
  /** Bytes of the body, at most as many as are kept. */
  onData(chunk: Buffer): void
  /** Aborted when nobody waits for the response any more. */
  readonly signal: AbortSignal
}

/**
 * Sends a request to a port of this process. Reads the response until it ends, the limit of the body or the timeout. Throws a TypeError if HTTP does not
 * allow the request; resolves with `error` if there is no response.
 */
export function sendRequest(target: TryTarget, request: TryRequest, listener?: ResponseListener): Promise<Pick<TryResult, 'response' | 'error'>> {
  const { method, host, path, headers, body, timeoutMs, maxResponseBytes } = request
  const startedAt = performance.now()
  const { promise, resolve } = Promise.withResolvers<Pick<TryResult, 'response' | 'error'>>()
  const fields = headers.flatMap(([name, value]) => (name.toLowerCase() === 'host' ? [] : [name, value]))
  const hasLength = headers.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name))
  const length = body === '' || hasLength ? [] : ['content-length', String(Buffer.byteLength(body))]
  const sent = requestHttp({
    method,
    path,
    headers: ['host', host, 'connection', 'close', ...fields, ...length],
    setHost: false,
    createConnection: () => openSocket(target, host),
    ...(listener && { signal: listener.signal }),
  })
  const timer = setTimeout(() => sent.destroy(new Error(`no response within ${timeoutMs} ms`)), timeoutMs)
  const finish = (result: Pick<TryResult, 'response' | 'error'>): void => {
    clearTimeout(timer)
    resolve(result)
    sent.destroy()
  }
  sent.on('error', (error) => finish({ response: null, error: error.message }))
  sent.on('upgrade', (response, socket) => {
    finish({ response: describe(response, [], startedAt, performance.now() - startedAt, true), error: null })
    socket.destroy()
  })
  // A request that ends without any of these.
  sent.on('close', () => finish({ response: null, error: 'the connection was closed' }))
  sent.on('response', (response) => {
    const headMs = performance.now() - startedAt
    const chunks: Buffer[] = []
    let size = 0
    const end = (isTruncated: boolean): void => finish({ response: describe(response, chunks, startedAt, headMs, isTruncated), error: null })
    clearTimeout(timer)
    listener?.onHead(response.statusCode ?? 0, pairsOf(response.rawHeaders), headMs)
    const cut = setTimeout(() => end(true), Math.max(0, timeoutMs - headMs))
    response.on('data', (chunk: Buffer) => {
      const kept = chunk.subarray(0, maxResponseBytes - size)
      chunks.push(kept)
      listener?.onData(kept)
      size += chunk.length
      if (size > maxResponseBytes) end(true)
    })
    response.on('close', () => {
      clearTimeout(cut)
      end(!response.complete)
    })
    response.on('error', () => undefined)
  })
  sent.end(body)
  return promise
}

function openSocket({ host, port, isTls, hasProxyHeader }: TryTarget, name: string): Socket {
  const socket = connect({ host, port })
  if (hasProxyHeader) socket.write(`PROXY TCP4 127.0.0.1 127.0.0.1 1 ${port}\r\n`)
  if (!isTls) return socket
  const servername = name.replace(/:\d+$/, '')
  // The peer is this process; its certificate may be one that only its clients trust.
  return connectTls({ socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], ...(isIP(servername) === 0 && servername !== '' && { servername }) })
}

function describe(
  response: IncomingMessage,
  chunks: readonly Buffer[],
  startedAt: number,
  headMs: number,
  isTruncated: boolean,
): NonNullable<TryResult['response']> {
  const { rawHeaders, statusCode = 0 } = response
  const headers = pairsOf(rawHeaders)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text).equals(bytes) || (isTruncated && /text|json|xml/.test(response.headers['content-type'] ?? ''))
  return {
    status: statusCode,
    headers,
    body: isText ? text : bytes.toString('base64'),
    encoding: isText ? 'utf8' : 'base64',
    isTruncated,
    headMs,
    durationMs: performance.now() - startedAt,
  }
}

const pairsOf = (raw: readonly string[]): [string, string][] => Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] ?? '', raw[2 * i + 1] ?? ''])
