/**
 * Syntax of HTTP/1.1 (RFC 9110 §5.5-5.6, RFC 9112 §3): methods, names, values, targets, authorities.
 * Stricter than the RFCs where leniency has made parsers disagree; each case has a comment.
 */

/** An invalid message. `status` is the response to a client; from an upstream it is a protocol error. */
export class MessageError extends Error {
  readonly status: MessageErrorStatus
  constructor(status: MessageErrorStatus, message: string) {
    super(message)
    this.name = 'MessageError'
    this.status = status
  }
}
/** Response status for an invalid request. */
export type MessageErrorStatus = 400 | 408 | 413 | 414 | 417 | 431 | 501 | 505

/** Limits of a message head. */
export interface HeadLimits {
  /** Bytes of a head, start line included; more is 431. */
  readonly maxHeadBytes: number
  /** Field lines of a head, and of a trailer section; more is 431. */
  readonly maxHeaders: number
  /** Bytes of a request target; more is 414. */
  readonly maxTargetBytes: number
  /** What happens to fields, trailers too, with underscores in their names. Undefined: Allow. */
  readonly underscores?: Underscores | undefined
}

/** Value of `frontend.http.headersWithUnderscores`. */
export type Underscores = 'Allow' | 'Drop' | 'Reject'

/** Whether to keep a field with an underscore in its name. Throws MessageError for Reject. */
export function acceptsUnderscores(underscores: Underscores = 'Allow'): boolean {
  if (underscores === 'Reject') throw new MessageError(400, 'header name with an underscore')
  return underscores === 'Allow'
}

/** Limits of request heads from clients. */
export const requestHeadLimits: HeadLimits = { maxHeadBytes: 16_384, maxHeaders: 100, maxTargetBytes: 8192 }
/** Larger than for requests: upstreams are configured, not anonymous, and set long cookies. */
export const responseHeadLimits: HeadLimits = { maxHeadBytes: 65_536, maxHeaders: 256, maxTargetBytes: 0 }

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text is a token (RFC 9110 §5.6.2). */
export function isToken(text: string): boolean {
  return token.test(text)
}

/** Whether there is a line feed without carriage return at or after `from`; such a head would never end. */
export function hasBareLineFeed(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf(10, from); at !== -1; at = bytes.indexOf(10, at + 1)) if (at === 0 || bytes[at - 1] !== 13) return true
  return false
}

// oxlint-disable-next-line no-control-regex -- the tab is the only control character allowed in a value
const badValueCharacter = /[^\t\x20-\x7e\x80-\xff]/

/** Whether a value can be written unchanged: no control characters except tab, and nothing beyond Latin-1, which would be cut to its low byte. */
export function isFieldValue(text: string): boolean {
  return !badValueCharacter.test(text)
}

// RFC 3986 does not allow raw bytes over 0x7f and `#`, and servers read them differently.
const origin = /^\/[!"$-~]*$/

/** Whether a target is in origin form: path and query. Allows more than RFC 3986 (`|`, `{`, `"`): clients send these, and they are not ambiguous. */
export function isOriginForm(target: string): boolean {
  return origin.test(target)
}

// Registered names have no percent escapes and no sub-delims in practice; rejecting them leaves one reading of every host.
const authority = /^(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?$/

let lastAuthority = 'a'

/** Whether a text is a host with optional port and without userinfo. */
export function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  const match = authority.exec(text)
  const isValid = match !== null && (match[1] === undefined || Number(match[1]) <= 65_535)
  // Called twice in a row for most requests: on receipt and on sending.
  if (isValid) lastAuthority = text
  return isValid
}

const digits = /^[0-9]{1,15}$/

/** Parses a content-length: digits only, at most 15 so that sums stay exact; undefined if it is invalid. */
export function parseContentLength(text: string): number | undefined {
  return digits.test(text) ? Number(text) : undefined
}

/** Elements of a comma-separated list, lower case, empty ones left out (RFC 9110 §5.6.1). */
export function listElements(value: string): string[] {
  const elements: string[] = []
  for (const element of value.split(',')) {
    const trimmed = element.trim().toLowerCase()
    if (trimmed !== '') elements.push(trimmed)
  }
  return elements
}

/** Longest read that is converted to text at once to search for the end of a head. */
const MAX_SEARCHED_TEXT = 8192

/**
 * Finds a head that begins at `start` of `bytes`; its end is searched from `from` after `start`. Undefined if the end is not there yet.
 * `end` is the index of the empty line in `text`.
 */
export function findHead(bytes: Buffer, start: number, from: number): { readonly text: string; readonly end: number } | undefined {
  if (bytes.length - start <= MAX_SEARCHED_TEXT) {
    const text = bytes.toString('latin1', start)
    const end = text.indexOf('\r\n\r\n', from)
    return end === -1 ? undefined : { text, end: end + 2 }
  }
  const end = bytes.indexOf('\r\n\r\n', start + from, 'latin1')
  return end === -1 ? undefined : { text: bytes.toString('latin1', start, end + 4), end: end + 2 - start }
}
