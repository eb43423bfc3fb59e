import { HeaderList } from '../headers.ts'
import { isFramingSpelling, readName, sectionStart, type FieldRole, type KnownName } from '../names.ts'
import { isForbiddenTrailer } from '../trailers.ts'
import { acceptsUnderscores, isToken, listElements, MessageError, parseContentLength, type HeadLimits } from '../syntax.ts'

/**
 * A field section: the end-to-end fields, and separately those that belong to this hop (traffic.md §5.1) or to framing.
 * Repeated fields of the latter are joined with `, `, except `host` and `content-length`, which must not repeat.
 */
export interface FieldSection {
  /** End-to-end fields with lower-case names, including content-length. */
  readonly headers: HeaderList
  host: string | undefined
  connection: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  te: string | undefined
  upgrade: string | undefined
  expect: string | undefined
  keepAlive: string | undefined
}

/** Start of the name prediction for request sections and for response sections (see `KnownName.next`). */
export const requestStart: KnownName = sectionStart()
export const responseStart: KnownName = sectionStart()
const trailerStart: KnownName = sectionStart()

/** Parses the field lines of `text` from `from` to `to`. Every line, including the last, ends with CRLF. Throws MessageError. */
export function parseFields(text: string, from: number, to: number, limits: HeadLimits, start: KnownName): FieldSection {
  const raw: string[] = []
  const section: FieldSection = {
    headers: new HeaderList(raw),
    host: undefined,
    connection: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    te: undefined,
    upgrade: undefined,
    expect: undefined,
    keepAlive: undefined,
  }
  let known = start
  let count = 0
  for (let at = from; at < to;) {
    if (++count > limits.maxHeaders) throw new MessageError(431, `more than ${limits.maxHeaders} header lines`)
    known = readName(text, at, known)
    at += known.prefix.length
    while (isSpace(text.charCodeAt(at))) at++
    const end = findLineEnd(text, at)
    let stop = end
    while (stop > at && isSpace(text.charCodeAt(stop - 1))) stop--
    const value = text.slice(at, stop)
    at = end + 2
    if (known.role === 'keep') raw.push(known.name, value)
    else if (known.role === 'underscored') {
      if (acceptsUnderscores(limits.underscores) && !isFramingSpelling(known.name)) raw.push(known.name, value)
    } else if (known.role !== 'drop') setSpecial(section, known.role, known.name, value)
  }
  return section
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** Index of the CRLF of this line. Rejects a control character before it: parsers disagree about bare CR and LF. */
export function findLineEnd(text: string, from: number): number {
  let at = from
  let code = text.charCodeAt(at)
  while (code >= 0x20 ? code !== 0x7f : code === 0x09) code = text.charCodeAt(++at)
  if (code !== 0x0d || text.charCodeAt(at + 1) !== 0x0a) throw new MessageError(400, 'control character, bare CR or bare LF in the head')
  return at
}

function setSpecial(section: FieldSection, role: Exclude<FieldRole, 'keep' | 'underscored' | 'drop'>, name: string, value: string): void {
  const before = section[role]
  if (before === undefined) section[role] = value
  // RFC 9112 §6.3 allows to collapse equal duplicates of content-length; rejecting them is simpler to reason about.
  else if (role === 'host' || role === 'contentLength') throw new MessageError(400, `duplicate ${name}`)
  else section[role] = `${before}, ${value}`
  if (role === 'contentLength') section.headers.append(name, value)
}

/** Options of a Connection field. */
export interface ConnectionOptions {
  isClose: boolean
  isKeepAlive: boolean
  isUpgrade: boolean
}

/** Parses `Connection` and removes the fields that it names from the section (RFC 9110 §7.6.1). */
export function applyConnection(section: FieldSection): ConnectionOptions {
  const options: ConnectionOptions = { isClose: false, isKeepAlive: false, isUpgrade: false }
  const { connection } = section
  if (connection === undefined) return options
  if (connection === 'keep-alive') {
    options.isKeepAlive = true
    return options
  }
  for (const option of listElements(connection)) {
    if (option === 'close') options.isClose = true
    else if (option === 'keep-alive') options.isKeepAlive = true
    else if (option === 'upgrade') options.isUpgrade = true
    else section.headers.remove(option)
  }
  return options
}

/**
 * How the end of a body is determined: a number of bytes (0: no body), chunked coding, or the end of the connection.
 */
export type Framing = number | 'chunked' | 'until-close'

/** Framing by the fields, or undefined if they define none. Rejects every combination that two parsers could read differently. */
export function framingOf(section: FieldSection, isHttp10: boolean): Framing | undefined {
  const { transferEncoding, contentLength } = section
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) throw new MessageError(400, 'content-length together with transfer-encoding')
    if (isHttp10) throw new MessageError(400, 'transfer-encoding in an HTTP/1.0 message')
    if (transferEncoding.toLowerCase() === 'chunked') return 'chunked'
    const codings = listElements(transferEncoding)
    const isUnknownCoding = codings.at(-1) === 'chunked' && codings.indexOf('chunked') === codings.length - 1 && codings.every(isToken) && codings.length > 1
    throw new MessageError(isUnknownCoding ? 501 : 400, 'transfer-encoding is not just chunked')
  }
  if (contentLength === undefined) return undefined
  const length = parseContentLength(contentLength)
  if (length === undefined) throw new MessageError(400, 'content-length is not a plain number')
  return length
}

/** Parses trailer fields and drops forbidden and hop-by-hop ones; undefined if none is left. */
export function parseTrailers(text: string, limits: HeadLimits): HeaderList | undefined {
  const { headers } = parseFields(text, 0, text.length, limits, trailerStart)
  const kept = new HeaderList()
  for (const [name, value] of headers) if (!isForbiddenTrailer(name)) kept.append(name, value)
  return kept.raw.length === 0 ? undefined : kept
}
