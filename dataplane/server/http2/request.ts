import { HeaderList } from '../../http/headers.ts'
import type { RequestHead } from '../../http/message.ts'
import { isFramingSpelling } from '../../http/names.ts'
import { acceptsUnderscores, isAuthority, isOriginForm, isToken, listElements, MessageError, parseContentLength, type Underscores } from '../../http/syntax.ts'

/** A request head with the fields that only the stream needs. */
export interface Http2Request {
  readonly request: RequestHead
  readonly contentLength: number | undefined
  readonly expectsContinue: boolean
}

/**
 * Parses a header block (RFC 9113 §8.3). nghttp2 has already checked its general form: lower-case names, pseudo-headers
 * first and once, no connection-specific fields. This checks what a later HTTP/1.1 hop could read differently, and `maxHeaderList`,
 * which nghttp2 enforces only after the client has acknowledged it. `scheme` is the connection's. Throws MessageError.
 */
export function parseHttp2Request(raw: readonly string[], scheme: 'http' | 'https', maxHeaderList: number, underscores?: Underscores): Http2Request {
  const fields: string[] = []
  let method = ''
  let target = ''
  let authority: string | undefined
  let host: string | undefined
  let cookie = -1
  let contentLength: number | undefined
  let expectsContinue = false
  let acceptsTrailers = false
  let size = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    size += name.length + value.length + 32
    switch (name) {
      case ':method':
        method = value
        break
      case ':path':
        target = value
        break
      case ':authority':
        authority = value
        break
      case ':scheme':
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
        acceptsTrailers ||= listElements(value).includes('trailers')
        break
      case 'trailer':
      case 'connection':
      case 'keep-alive':
      case 'proxy-connection':
      case 'proxy-authenticate':
      case 'transfer-encoding':
      case 'upgrade':
        break
      default:
        if (name.charCodeAt(0) === 58) throw new MessageError(400, 'unknown pseudo-header')
        if (!name.includes('_') || (acceptsUnderscores(underscores) && !isFramingSpelling(name))) fields.push(name, value)
    }
  }
  if (size > maxHeaderList) throw new MessageError(431, `request header section exceeds ${maxHeaderList} bytes`)
  if (!isToken(method)) throw new MessageError(400, 'invalid method')
  const isConnect = method === 'CONNECT'
  if (!isConnect && target !== '*' && !isOriginForm(target)) throw new MessageError(400, 'invalid :path')
  if (target === '*' && method !== 'OPTIONS') throw new MessageError(400, ':path * is for OPTIONS only')
  if (authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase())
    throw new MessageError(400, 'host differs from :authority')
  authority ??= host ?? ''
  if (authority !== '' && !isAuthority(authority)) throw new MessageError(400, 'invalid :authority')
  const request: RequestHead = {
    method,
    target: isConnect ? '' : target,
    scheme,
    authority,
    version: 'HTTP/2',
    headers: new HeaderList(fields),
    body: undefined,
    upgrade: undefined,
    acceptsTrailers,
  }
  return { request, contentLength, expectsContinue }
}
