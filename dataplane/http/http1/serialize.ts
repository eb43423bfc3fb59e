import { STATUS_CODES } from 'node:http'
import type { Framing } from './fields.ts'
import type { HeaderList } from '../headers.ts'
import type { RequestHead } from '../message.ts'
import { isAuthority, isFieldValue, isOriginForm, isToken } from '../syntax.ts'

/** A head that cannot be written without a change of meaning, because a policy inserted text that would end a line. */
class UnwritableHeadError extends Error {
  constructor(part: string) {
    super(`${part} holds a character that HTTP/1.1 cannot carry`)
    this.name = 'UnwritableHeadError'
  }
}

/** Fields that the codec writes itself; they are skipped in the header list. */
const ownNames = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'host', 'expect', 'trailer'])

/** A field name that is a valid token. */
interface KnownName {
  /** Whether the codec writes this field itself. */
  readonly isOwn: boolean
  /** Name and colon of the field line. */
  readonly start: string
  /** A value that was found valid: most fields have the same value in request after request. */
  value: string
}

/** Names that policies and clients chose; bounded. */
const knownNames = new Map<string, KnownName>()
/** Longer values are not kept: names times length is what a client can make the gateway hold. */
const MAX_KEPT_CHARACTERS = 128

function checkName(name: string): KnownName {
  if (!isToken(name)) throw new UnwritableHeadError('header name')
  const known = { isOwn: ownNames.has(name), start: `${name}: `, value: '' }
  if (knownNames.size < 2000) knownNames.set(name, known)
  return known
}

function fieldLines(headers: HeaderList): string {
  const raw = headers.raw
  let text = ''
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    const known = knownNames.get(name) ?? checkName(name)
    if (known.isOwn) continue
    if (value !== known.value) {
      if (!isFieldValue(value)) throw new UnwritableHeadError(`header ${name}`)
      if (value.length <= MAX_KEPT_CHARACTERS) known.value = value
    }
    text += known.start + value + '\r\n'
  }
  return text
}

/** Serializes a trailer section, without the empty line. Throws UnwritableHeadError. */
export function encodeTrailers(trailers: HeaderList): string {
  return fieldLines(trailers)
}

function framingLine(framing: Framing): string {
  if (framing === 'chunked') return 'transfer-encoding: chunked\r\n'
  return framing === 'until-close' ? '' : `content-length: ${framing}\r\n`
}

/** Methods whose requests have `content-length: 0` if they have no body (RFC 9110 §8.6). */
function expectsBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

/** Framing of a request to an upstream; undefined: neither body nor content-length. */
export function requestFraming(request: RequestHead): Framing | undefined {
  if (request.body !== undefined) return request.body.length ?? 'chunked'
  return expectsBody(request.method) || request.headers.has('content-length') ? 0 : undefined
}

/** Serializes a request head with its empty line: Host first, names in lower case. `ownLines`: field lines of the gateway. Throws UnwritableHeadError. */
export function encodeRequestHead(request: RequestHead, framing: Framing | undefined, keepAlive: boolean, ownLines = ''): string {
  const { method, target, authority, upgrade } = request
  if (!isToken(method)) throw new UnwritableHeadError('method')
  const isConnect = method === 'CONNECT'
  if (!isConnect && target !== '*' && !isOriginForm(target)) throw new UnwritableHeadError('target')
  if (authority !== '' && !isAuthority(authority)) throw new UnwritableHeadError('authority')
  let text = `${method} ${isConnect ? authority : target} HTTP/1.1\r\nhost: ${authority}\r\n${fieldLines(request.headers)}${ownLines}`
  if (framing !== undefined) text += framingLine(framing)
  if (upgrade !== undefined) {
    if (!isFieldValue(upgrade)) throw new UnwritableHeadError('upgrade')
    text += `connection: upgrade\r\nupgrade: ${upgrade}\r\n`
  } else if (request.acceptsTrailers) text += keepAlive ? 'connection: te\r\nte: trailers\r\n' : 'connection: close, te\r\nte: trailers\r\n'
  else if (!keepAlive) text += 'connection: close\r\n'
  return `${text}\r\n`
}

/** Value of a response's `connection` field; 'none' omits it (persistent by default in HTTP/1.1). */
export type ConnectionOption = 'none' | 'keep-alive' | 'close' | { readonly upgrade: string }

/** Serializes a response head with its empty line; adds `date`. Throws UnwritableHeadError. */
export function encodeResponseHead(status: number, headers: HeaderList, framing: Framing | undefined, connection: ConnectionOption): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fieldLines(headers)}`
  if (!headers.has('date')) text += `date: ${httpDate()}\r\n`
  if (framing !== undefined) text += framingLine(framing)
  if (typeof connection !== 'string') text += `connection: upgrade\r\nupgrade: ${connection.upgrade}\r\n`
  else if (connection !== 'none') text += `connection: ${connection}\r\n`
  return `${text}\r\n`
}

let dateText = ''
let dateSecond = 0

/** Current time as an IMF-fixdate, cached for a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
