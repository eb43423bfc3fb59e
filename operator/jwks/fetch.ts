import { request as requestPlain, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestTls, type RequestOptions as TlsRequestOptions } from 'node:https'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { KeySetRequest, KeySetTls } from '../model/translation.ts'
import { createLookup, refuseAddress } from './address.ts'
import { readKeySet } from './key-set.ts'

/** Fetches a key set: its text, normalized. `attempt` counts from 0 and picks among endpoints. Rejects with the cause. */
export type FetchKeySet = (source: KeySetRequest, attempt: number, signal: AbortSignal) => Promise<string>

export interface FetchOptions {
  /** Loopback is for directory mode, where the identity provider may be on the same machine. */
  readonly isLoopbackAllowed: boolean
  /** Default 5 and 10 s: until connected (TLS included), and altogether. */
  readonly times?: { readonly dialMs: number; readonly totalMs: number }
  /** Default 1 MiB. */
  readonly maxBytes?: number
}

/** Makes a fetcher that follows no redirect, reads no more than it must, and dials no refused address (traffic.md §8.3). */
export function createFetch({ isLoopbackAllowed, times = { dialMs: 5000, totalMs: 10_000 }, maxBytes = 1 << 20 }: FetchOptions): FetchKeySet {
  const lookup = createLookup(isLoopbackAllowed)
  return async (source, attempt, signal) => {
    const { url, tls, endpoints } = source
    const target = endpoints ? endpoints[attempt % endpoints.length] : { address: url.host, port: url.port }
    if (!target) throw new Error(`${url.host} has no endpoints`)
    const problem = isIP(target.address) === 0 ? undefined : refuseAddress(target.address, isLoopbackAllowed)
    if (problem !== undefined) throw new Error(problem)
    const options: RequestOptions = {
      host: target.address,
      port: target.port,
      path: url.path,
      headers: { host: authorityOf(source), accept: 'application/jwk-set+json, application/json', 'accept-encoding': 'identity' },
      lookup,
      signal,
      // A connection of its own, which is closed afterwards.
      agent: false,
    }
    return readKeySet(await exchange(tls ? { ...options, ...tlsOptions(tls, url.host) } : options, tls !== undefined, times, maxBytes))
  }
}

function authorityOf({ url, tls }: KeySetRequest): string {
  const host = isIP(url.host) === 6 ? `[${url.host}]` : url.host
  return url.port === (tls ? 443 : 80) ? host : `${host}:${url.port}`
}

/** The URL of a source, for people. */
export function describeSource(source: KeySetRequest): string {
  return `${source.tls ? 'https' : 'http'}://${authorityOf(source)}${source.url.path}`
}

function tlsOptions(tls: KeySetTls, host: string): TlsRequestOptions {
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

/** The body of a 200 answer. */
function exchange(options: TlsRequestOptions, isTls: boolean, times: { dialMs: number; totalMs: number }, maxBytes: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const request = isTls ? requestTls(options) : requestPlain(options)
  const fail = (message: string): void => {
    // First: once an answer has begun, destroying the request need not be an error of it.
    reject(new Error(message))
    request.destroy()
  }
  const dialTimer = setTimeout(() => fail(`not connected within ${times.dialMs} ms`), times.dialMs)
  const totalTimer = setTimeout(() => fail(`no key set within ${times.totalMs} ms`), times.totalMs)
  request.on('socket', (socket) => socket.once(isTls ? 'secureConnect' : 'connect', () => clearTimeout(dialTimer)))
  request.on('error', reject)
  request.on('response', (response: IncomingMessage) => {
    const { statusCode = 0, headers } = response
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
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
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
