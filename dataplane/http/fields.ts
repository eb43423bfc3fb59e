import { HeaderList } from './headers.ts'
import { hasBadHeadByte, isToken, listElements, MessageError, parseContentLength, type HeadLimits } from './syntax.ts'

/**
 * A field section: the end-to-end fields, and apart from them those that belong to this hop (traffic.md §5.1) or to framing.
 * A field that came several times is joined with `, `, except `host` and `content-length`, which must not.
 */
export interface FieldSection {
  /** End-to-end fields, names lower case; content-length stays here too. */
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

type Keep = 'keep' | 'drop' | Exclude<keyof FieldSection, 'headers'>

interface KnownName {
  readonly name: string
  readonly keep: Keep
}

const special: Readonly<Record<string, Keep>> = {
  host: 'host',
  connection: 'connection',
  'content-length': 'contentLength',
  'transfer-encoding': 'transferEncoding',
  te: 'te',
  upgrade: 'upgrade',
  expect: 'expect',
  'keep-alive': 'keepAlive',
  'proxy-connection': 'drop',
  'proxy-authenticate': 'drop',
  trailer: 'drop',
}

/** Names as received, validated once; bounded, because clients choose them. */
const knownNames = new Map<string, KnownName>()
const maxKnownNames = 2000

function learnName(raw: string): KnownName {
  if (!isToken(raw)) throw new MessageError(400, raw === '' ? 'empty header name' : 'invalid character in a header name')
  const name = raw.toLowerCase()
  const known: KnownName = { name, keep: Object.hasOwn(special, name) ? (special[name] ?? 'keep') : 'keep' }
  if (knownNames.size < maxKnownNames) knownNames.set(raw, known)
  return known
}

/** Parses the field lines of `text` from `from`; every line, the last too, ends with CRLF. Throws MessageError. */
export function parseFields(text: string, from: number, limits: HeadLimits): FieldSection {
  if (hasBadHeadByte(text)) throw new MessageError(400, 'control character, bare CR or bare LF in the head')
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
  let count = 0
  for (let at = from; at < text.length;) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    // A line that starts with white space is obs-fold; it has no valid name, so learnName refuses it.
    if (colon === -1 || colon > end) throw new MessageError(400, 'header line without a colon')
    if (++count > limits.maxHeaders) throw new MessageError(431, `more than ${limits.maxHeaders} header lines`)
    const rawName = text.slice(at, colon)
    const { name, keep } = knownNames.get(rawName) ?? learnName(rawName)
    let start = colon + 1
    let stop = end
    while (start < stop && isSpace(text.charCodeAt(start))) start++
    while (stop > start && isSpace(text.charCodeAt(stop - 1))) stop--
    const value = text.slice(start, stop)
    at = end + 2
    if (keep === 'keep') raw.push(name, value)
    else if (keep !== 'drop') setSpecial(section, keep, name, value)
  }
  return section
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function setSpecial(section: FieldSection, keep: Exclude<Keep, 'keep' | 'drop'>, name: string, value: string): void {
  const before = section[keep]
  if (before === undefined) section[keep] = value
  // RFC 9112 §6.3 allows to collapse equal duplicates of content-length; refusing them is simpler to reason about.
  else if (keep === 'host' || keep === 'contentLength') throw new MessageError(400, `duplicate ${name}`)
  else section[keep] = `${before}, ${value}`
  if (keep === 'contentLength') section.headers.append(name, value)
}

/** What `Connection` says; the fields it names are removed from the section (RFC 9110 §7.6.1). */
export function applyConnection(section: FieldSection): { isClose: boolean; isKeepAlive: boolean; isUpgrade: boolean } {
  const options = { isClose: false, isKeepAlive: false, isUpgrade: false }
  if (section.connection === undefined) return options
  for (const option of listElements(section.connection)) {
    if (option === 'close') options.isClose = true
    else if (option === 'keep-alive') options.isKeepAlive = true
    else if (option === 'upgrade') options.isUpgrade = true
    else section.headers.remove(option)
  }
  return options
}

/**
 * How the end of a body is found: a count of bytes (0: no body), chunked coding, or the end of the connection.
 */
export type Framing = number | 'chunked' | 'until-close'

/** Framing that the fields state, or undefined when they state none. Refuses every combination that two readers could read differently. */
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

/** Fields that must not come as trailers (RFC 9110 §6.5.1): framing, routing, authentication, content, request modifiers. */
const forbiddenTrailers = new Set(
  `content-length content-encoding content-type content-range host authorization proxy-authorization www-authenticate
  set-cookie cookie cache-control age expires date location retry-after vary warning max-forwards pragma range
  if-match if-none-match if-modified-since if-unmodified-since if-range`.split(/\s+/),
)

/** Trailer fields, forbidden and hop-by-hop ones dropped; undefined when nothing is left. */
export function parseTrailers(text: string, limits: HeadLimits): HeaderList | undefined {
  const { headers } = parseFields(text, 0, limits)
  const kept = new HeaderList()
  for (const [name, value] of headers) if (!forbiddenTrailers.has(name)) kept.append(name, value)
  return kept.raw.length === 0 ? undefined : kept
}
