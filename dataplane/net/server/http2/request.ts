import { randomBytes } from 'node:crypto'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead } from '../../../http/message.ts'
import { isFramingSpelling } from '../../../http/names.ts'
import { acceptsUnderscores, isAuthority, isOriginForm, isToken, MessageError, parseContentLength, type Underscores } from '../../../http/syntax.ts'
import { PROTOCOL_ERROR, StreamError } from '../../../http/http2/frames.ts'

/** A request head with the fields that only the stream needs. */
export interface Http2Request {
  readonly request: RequestHead
  readonly contentLength: number | undefined
  readonly expectsContinue: boolean
}

/**
 * Parses a header section (RFC 9113 §8.3) of names and values that the decoder found valid. Throws StreamError if it is malformed, and MessageError
 * for what HTTP/2 permits but a later HTTP/1.1 hop could read differently. `scheme` is the connection's.
 */
export function parseHttp2Request(raw: readonly string[], scheme: 'http' | 'https', underscores?: Underscores): Http2Request {
  const fields: string[] = []
  let method: string | undefined
  let target: string | undefined
  let receivedScheme: string | undefined
  let authority: string | undefined
  let protocol: string | undefined
  let host: string | undefined
  let cookie = -1
  let contentLength: number | undefined
  let expectsContinue = false
  let acceptsTrailers = false
  /** Index of the first field after the pseudo-header fields. */
  let fieldsStart = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    if (name.charCodeAt(0) === 58 && fieldsStart !== i) throw new StreamError(PROTOCOL_ERROR, 'pseudo-header field after other fields')
    switch (name) {
      case ':method':
        method = onlyOne(method, value)
        fieldsStart = i + 2
        break
      case ':path':
        target = onlyOne(target, value)
        fieldsStart = i + 2
        break
      case ':authority':
        authority = onlyOne(authority, value)
        fieldsStart = i + 2
        break
      case ':scheme':
        receivedScheme = onlyOne(receivedScheme, value)
        fieldsStart = i + 2
        break
      case ':protocol':
        protocol = onlyOne(protocol, value)
        fieldsStart = i + 2
        break
      case 'host':
        if (host !== undefined && host !== value) throw new MessageError(400, 'duplicate host')
        host = value
        break
      case 'cookie':
        // Join cookie crumbs for HTTP/1.1 upstreams (RFC 9113 §8.2.3).
        if (cookie === -1) cookie = fields.push(name, value) - 1
        else fields[cookie] += `; ${value}`
        break
      case 'content-length':
        if (contentLength !== undefined) throw new MessageError(400, 'duplicate content-length')
        contentLength = parseContentLength(value)
        if (contentLength === undefined) throw new MessageError(400, 'content-length is not a plain number')
        fields.push(name, value)
        break
      case 'expect':
        if (value.toLowerCase() !== '100-continue') throw new MessageError(417, 'unknown expectation')
        expectsContinue = true
        break
      case 'te':
        if (value.toLowerCase() !== 'trailers') throw new StreamError(PROTOCOL_ERROR, 'te is not trailers')
        acceptsTrailers = true
        break
      case 'trailer':
      case 'proxy-authenticate':
        break
      case 'connection':
      case 'keep-alive':
      case 'proxy-connection':
      case 'transfer-encoding':
      case 'upgrade':
        throw new StreamError(PROTOCOL_ERROR, `field ${name} in HTTP/2`)
      default:
        if (name.charCodeAt(0) === 58) throw new StreamError(PROTOCOL_ERROR, 'unknown pseudo-header field')
        if (!name.includes('_') || (acceptsUnderscores(underscores) && !isFramingSpelling(name))) fields.push(name, value)
    }
  }
  const isConnect = checkPseudoHeaders(method, receivedScheme, target, authority, protocol)
  // Extended CONNECT is a request for an upgrade (RFC 8441 §4), so it is routed like one of HTTP/1.1.
  if (protocol !== undefined) method = 'GET'
  method ??= ''
  target ??= ''
  if (!isToken(method)) throw new MessageError(400, 'invalid method')
  if (!isConnect && target !== '*' && !isOriginForm(target)) throw new MessageError(400, 'invalid :path')
  if (target === '*' && method !== 'OPTIONS') throw new MessageError(400, ':path * is for OPTIONS only')
  const headers = new HeaderList(fields)
  // HTTP/1.1 upstreams require it; over HTTP/2 it does not exist (RFC 8441 §5.1).
  if (protocol !== undefined) headers.set('sec-websocket-key', randomBytes(16).toString('base64'))
  const request: RequestHead = {
    method,
    target,
    scheme,
    authority: resolveAuthority(authority, host),
    version: 'HTTP/2',
    headers,
    body: undefined,
    upgrade: protocol?.toLowerCase(),
    acceptsTrailers,
  }
  return { request, contentLength, expectsContinue }
}

/** Checks which pseudo-header fields a request has (RFC 9113 §8.3.1, §8.5). Returns whether it is CONNECT without `:protocol`. */
function checkPseudoHeaders(
  method: string | undefined,
  scheme: string | undefined,
  target: string | undefined,
  authority: string | undefined,
  protocol: string | undefined,
): boolean {
  if (method === undefined) throw new StreamError(PROTOCOL_ERROR, 'request without :method')
  if (method === 'CONNECT' && protocol === undefined) {
    if (scheme !== undefined || target !== undefined || authority === undefined) throw new StreamError(PROTOCOL_ERROR, 'CONNECT has :authority only')
    return true
  }
  if (!scheme || !target) throw new StreamError(PROTOCOL_ERROR, 'request without :scheme or :path')
  if (protocol === undefined) return false
  if (method !== 'CONNECT' || authority === undefined) throw new StreamError(PROTOCOL_ERROR, ':protocol without CONNECT or :authority')
  if (protocol.toLowerCase() !== 'websocket') throw new MessageError(501, ':protocol is not websocket')
  return false
}

/** The authority of a request, which `host` may repeat. */
function resolveAuthority(received: string | undefined, host: string | undefined): string {
  if (received !== undefined && host !== undefined && received.toLowerCase() !== host.toLowerCase()) throw new MessageError(400, 'host differs from :authority')
  const authority = received ?? host ?? ''
  if (authority !== '' && !isAuthority(authority)) throw new MessageError(400, 'invalid :authority')
  return authority
}

function onlyOne(known: string | undefined, value: string): string {
  if (known !== undefined) throw new StreamError(PROTOCOL_ERROR, 'duplicate pseudo-header field')
  return value
}
