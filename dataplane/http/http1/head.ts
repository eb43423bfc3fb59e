import { applyConnection, findLineEnd, framingOf, parseFields, requestStart, responseStart, type Framing } from './fields.ts'
import type { HeaderList } from '../headers.ts'
import type { RequestHead } from '../message.ts'
import { isAuthority, isOriginForm, isToken, listElements, MessageError, type HeadLimits } from '../syntax.ts'

/** A request head with the fields that only the connection needs. The connection adds the body. */
export interface ParsedRequest extends RequestHead {
  framing: Framing
  /** The client wants to reuse the connection after the response. */
  isPersistent: boolean
  expectsContinue: boolean
}

/** A response head without its body, with its framing and connection options. */
export interface ParsedResponse {
  status: number
  headers: HeaderList
  framing: Framing
  /** The connection may be reused after this exchange. */
  isPersistent: boolean
  /** Seconds of `Keep-Alive: timeout=`. */
  keepAliveSeconds: number | undefined
  /** Protocol of a 101. */
  upgrade: string | undefined
}

/**
 * Parses a request head: `text` up to `end`, the index of its empty line. `scheme` is the connection's.
 * Throws MessageError with the response status.
 */
export function parseRequestHead(text: string, end: number, scheme: 'http' | 'https', limits: HeadLimits): ParsedRequest {
  const methodEnd = text.indexOf(' ')
  const targetEnd = text.indexOf(' ', methodEnd + 1)
  const lineEnd = findLineEnd(text, targetEnd + 1)
  if (methodEnd <= 0 || targetEnd === -1) throw new MessageError(400, 'request line is not "method target version"')
  const method = text.slice(0, methodEnd)
  if (method !== 'GET' && method !== 'POST' && !isToken(method)) throw new MessageError(400, 'invalid method')
  const version = text.slice(targetEnd + 1, lineEnd)
  if (version !== 'HTTP/1.1' && version !== 'HTTP/1.0') {
    if (/^HTTP\/[0-9]\.[0-9]$/.test(version)) throw new MessageError(505, 'only HTTP/1.0 and HTTP/1.1 are supported')
    throw new MessageError(400, 'request line is not "method target version"')
  }
  if (targetEnd - methodEnd - 1 > limits.maxTargetBytes) throw new MessageError(414, `request target exceeds ${limits.maxTargetBytes} bytes`)
  const rawTarget = text.slice(methodEnd + 1, targetEnd)

  const section = parseFields(text, lineEnd + 2, end, limits, requestStart)
  const isHttp10 = version === 'HTTP/1.0'
  const connection = applyConnection(section)
  const framing = framingOf(section, isHttp10) ?? 0
  if (section.host === undefined && !isHttp10) throw new MessageError(400, 'invalid request')
  if (section.host !== undefined && !isAuthority(section.host)) throw new MessageError(400, 'invalid host')

  const request: ParsedRequest = {
    method,
    target: rawTarget,
    scheme,
    authority: section.host ?? '',
    version,
    headers: section.headers,
    body: undefined,
    upgrade: undefined,
    acceptsTrailers: section.te !== undefined && listElements(section.te).includes('trailers'),
    framing,
    isPersistent: isHttp10 ? connection.isKeepAlive && !connection.isClose : !connection.isClose,
    expectsContinue: false,
  }
  if (method === 'CONNECT' || !isOriginForm(rawTarget)) applyOtherTarget(request, rawTarget)
  if (section.expect !== undefined && !isHttp10) {
    if (section.expect.toLowerCase() !== '100-continue') throw new MessageError(417, 'unknown expectation')
    request.expectsContinue = framing !== 0
  }
  if (connection.isUpgrade && section.upgrade !== undefined && !isHttp10 && framing === 0) request.upgrade = relayedUpgrade(section.upgrade)
  return request
}

/** Absolute form, authority form and asterisk form (RFC 9112 §3.2.2-3.2.4). */
function applyOtherTarget(request: ParsedRequest, target: string): void {
  if (request.method === 'CONNECT') {
    if (!isAuthority(target) || !/:[0-9]+$/.test(target)) throw new MessageError(400, 'CONNECT target is not host:port')
    if (request.framing !== 0) throw new MessageError(400, 'CONNECT with a body')
    request.authority = target
    request.target = ''
    return
  }
  if (target === '*') {
    if (request.method !== 'OPTIONS') throw new MessageError(400, 'target * is for OPTIONS only')
    return
  }
  const match = /^(https?):\/\/([^/?]*)(.*)$/i.exec(target)
  const [, scheme = '', authority = '', rest = ''] = match ?? []
  if (match === null || !isAuthority(authority)) throw new MessageError(400, 'invalid request target')
  // A target with the other scheme is for another server (RFC 9110 §7.4).
  if (scheme.toLowerCase() !== request.scheme) throw new MessageError(400, "scheme of the target is not the connection's")
  // The target's authority takes precedence over Host (RFC 9112 §3.2.2).
  request.authority = authority
  if (rest === '' && request.method === 'OPTIONS') request.target = '*'
  else request.target = rest.startsWith('/') ? rest : `/${rest}`
  if (request.target !== '*' && !isOriginForm(request.target)) throw new MessageError(400, 'invalid request target')
}

/** Never forwards h2c: after the switch, requests would bypass all policies. */
function relayedUpgrade(upgrade: string): string | undefined {
  return listElements(upgrade).some((protocol) => protocol === 'h2c' || protocol.startsWith('h2c/')) || upgrade === '' ? undefined : upgrade
}

/**
 * Parses a response head, `text` and `end` as in `parseRequestHead`. `method` is the request's: responses to HEAD and CONNECT have no body
 * (RFC 9112 §6.3). The reason phrase may be missing. Throws MessageError; its status has no meaning here.
 */
export function parseResponseHead(text: string, end: number, method: string, limits: HeadLimits): ParsedResponse {
  const isHttp10 = text.startsWith('HTTP/1.0 ')
  const status = parseStatus(text)
  // A space and the reason phrase may follow the status.
  if ((!isHttp10 && !text.startsWith('HTTP/1.1 ')) || status === undefined) throw new MessageError(400, 'invalid status line')
  const section = parseFields(text, findLineEnd(text, 12) + 2, end, limits, responseStart)
  const connection = applyConnection(section)
  const stated = framingOf(section, isHttp10)
  let isPersistent = isHttp10 ? connection.isKeepAlive && !connection.isClose : !connection.isClose
  let framing: Framing = stated ?? 'until-close'
  if (status < 200 || status === 204) {
    // An upstream that announces a body for these statuses may also send one: do not reuse the connection.
    if (stated !== undefined && stated !== 0) isPersistent = false
    section.headers.remove('content-length')
    framing = 0
  } else if (method === 'HEAD' || status === 304 || (method === 'CONNECT' && status < 300)) framing = 0
  if (framing === 'until-close') isPersistent = false
  return { status, headers: section.headers, framing, isPersistent, keepAliveSeconds: keepAliveTimeout(section.keepAlive), upgrade: section.upgrade }
}

/** The status, 100 to 599, of a status line; CR or a space must follow it. */
function parseStatus(text: string): number | undefined {
  const status = digit(text, 9) * 100 + digit(text, 10) * 10 + digit(text, 11)
  const next = text.charCodeAt(12)
  return status >= 100 && status <= 599 && (next === 0x20 || next === 0x0d) ? status : undefined
}

function digit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39 ? code - 0x30 : NaN
}

function keepAliveTimeout(keepAlive: string | undefined): number | undefined {
  const match = keepAlive === undefined ? null : /(?:^|[,; ])timeout=([0-9]{1,6})/i.exec(keepAlive)
  return match === null ? undefined : Number(match[1])
}
