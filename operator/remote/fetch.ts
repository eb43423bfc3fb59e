import { request as requestPlain, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { request as requestTls, type RequestOptions as TlsRequestOptions } from 'node:https'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { RemoteRequest, RemoteTls } from '../model/translation.ts'
import { createLookup, describeRefusal, UnreachableError } from './address.ts'

export interface FetchOptions {
  /** Loopback is for directory mode, where servers may be on the same machine. */
  readonly isLoopbackAllowed: boolean
  /** Milliseconds until connected (TLS included), and altogether. */
  readonly times?: { readonly dialMs: number; readonly totalMs: number }
  readonly maxBytes?: number
}

/** A response with status 200, or 304 if the request was conditional. */
interface FetchedResponse {
  /** The value did not change since the conditional request that was sent. */
  readonly isUnchanged: boolean
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

/** Sends a GET request. `attempt` counts from 0 and picks among endpoints. Rejects with the cause. */
export type Get = (source: RemoteRequest, attempt: number, signal: AbortSignal, headers: OutgoingHttpHeaders) => Promise<FetchedResponse>

/** Makes a client that follows no redirect, reads no more than it must, and dials no refused address (traffic.md §8.3, mcp.md §2.1). */
export function createGet({ isLoopbackAllowed, times, maxBytes }: Required<FetchOptions>): Get {
  return async (source, attempt, signal, headers) => {
    const { url, tls, endpoints } = source
    const target = endpoints ? endpoints[attempt % endpoints.length] : { address: url.host, port: url.port }
    if (!target) throw new Error(`${url.host} has no endpoints`)
    const problem = isIP(target.address) === 0 ? undefined : describeRefusal(target.address, target.port, isLoopbackAllowed)
    if (problem !== undefined) throw new Error(problem)
    const options = {
      host: target.address,
      port: target.port,
      path: url.path,
      headers: { host: authorityOf(source), 'accept-encoding': 'identity', ...headers },
      lookup: createLookup(target.port, isLoopbackAllowed),
      signal,
      // A connection of its own, which is closed afterwards.
      agent: false,
    }
    return exchange({ ...options, ...(tls && tlsOptions(tls, url.host)) }, tls !== undefined, times, maxBytes)
  }
}

function authorityOf({ url, tls }: RemoteRequest): string {
  const host = isIP(url.host) === 6 ? `[${url.host}]` : url.host
  return url.port === (tls ? 443 : 80) ? host : `${host}:${url.port}`
}

/** The URL of a source, for people. */
export function describeSource(source: RemoteRequest): string {
  return `${source.tls ? 'https' : 'http'}://${authorityOf(source)}${source.url.path}`
}

function tlsOptions(tls: RemoteTls, host: string): Omit<TlsRequestOptions, 'headers'> {
  const name = tls.servername ?? host
  const names = tls.subjectAltNames
  const checkNames = (certificate: PeerCertificate): Error | undefined => {
    if (!names || names.length === 0) return checkServerIdentity(name, certificate)
    const uris = (certificate.subjectaltname ?? '').split(', ')
    const isMatch = names.some(({ type, value }) => (type === 'URI' ? uris.includes(`URI:${value}`) : checkServerIdentity(value, certificate) === undefined))
    return isMatch ? undefined : new Error('the certificate carries none of the names that the TLS policy asks for')
  }
  return {
    servername: isIP(name) === 0 ? name : '',
    rejectUnauthorized: tls.verify !== 'none',
    checkServerIdentity: (_, certificate) => (tls.verify === 'full' ? checkNames(certificate) : undefined),
    ...(tls.ca && { ca: [...tls.ca] }),
    ...(tls.certificate !== undefined && { cert: tls.certificate }),
    ...(tls.privateKey !== undefined && { key: tls.privateKey }),
  }
}

/** A response with status 200, or 304 to a conditional request. */
function exchange(
  options: Omit<TlsRequestOptions, 'headers'> & { readonly headers: OutgoingHttpHeaders },
  isTls: boolean,
  times: { dialMs: number; totalMs: number },
  maxBytes: number,
): Promise<FetchedResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<FetchedResponse>()
  const isConditional = options.headers['if-none-match'] !== undefined || options.headers['if-modified-since'] !== undefined
  const request = isTls ? requestTls(options) : requestPlain(options)
  const end = (error: Error): void => {
    // First: once a response has begun, destroying the request need not be an error of it.
    reject(error)
    request.destroy()
  }
  const fail = (message: string): void => end(new Error(message))
  let hasResponse = false
  const late = `not complete within ${times.totalMs} ms`
  const dialTimer = setTimeout(() => end(new UnreachableError(`not connected within ${times.dialMs} ms`)), times.dialMs)
  const totalTimer = setTimeout(() => end(hasResponse ? new Error(late) : new UnreachableError(late)), times.totalMs)
  request.on('socket', (socket) => socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(dialTimer)))
  request.on('error', (error) => reject(UnreachableError.from(error)))
  request.on('response', (response: IncomingMessage) => {
    hasResponse = true
    const { statusCode = 0, headers } = response
    if (statusCode === 304 && isConditional) return resolve({ isUnchanged: true, headers, bytes: Buffer.alloc(0) })
    if (statusCode !== 200) return fail(statusCode >= 300 && statusCode < 400 ? `answered ${statusCode}; redirects are not followed` : `answered ${statusCode}`)
    if (Number(headers['content-length'] ?? 0) > maxBytes) return fail(`the answer is longer than ${maxBytes} bytes`)
    const chunks: Buffer[] = []
    let size = 0
    response.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) fail(`the answer is longer than ${maxBytes} bytes`)
      else chunks.push(chunk)
    })
    response.on('error', reject)
    response.on('end', () => resolve({ isUnchanged: false, headers, bytes: Buffer.concat(chunks) }))
    // When it comes before `end`.
    response.on('close', () => reject(new Error('the answer was cut')))
  })
  request.end()
  return promise.finally(() => {
    clearTimeout(dialTimer)
    clearTimeout(totalTimer)
    request.destroy()
  })
}
