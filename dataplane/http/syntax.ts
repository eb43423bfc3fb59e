/**
 * The words of HTTP/1.1 (RFC 9110 §5.5-5.6, RFC 9112 §3): what may stand in a method, a name, a value, a target, an authority.
 * Stricter than the RFCs where leniency has let two parsers disagree; each case says so.
 */

/** Why a message is refused. The status is the answer to a client; an upstream that sends such a message broke the protocol. */
export class MessageError extends Error {
  readonly status: MessageErrorStatus
  constructor(status: MessageErrorStatus, message: string) {
    super(message)
    this.name = 'MessageError'
    this.status = status
  }
}
export type MessageErrorStatus = 400 | 408 | 413 | 414 | 417 | 431 | 501 | 505

export interface HeadLimits {
  /** Bytes of a head, start line included; more is 431. */
  readonly maxHeadBytes: number
  /** Field lines of a head, and of a trailer section; more is 431. */
  readonly maxHeaders: number
  /** Bytes of a request target; more is 414. */
  readonly maxTargetBytes: number
}

export const requestHeadLimits: HeadLimits = { maxHeadBytes: 16_384, maxHeaders: 100, maxTargetBytes: 8192 }
/** Upstreams are configured, not anonymous, and set long cookies. */
export const responseHeadLimits: HeadLimits = { maxHeadBytes: 65_536, maxHeaders: 256, maxTargetBytes: 0 }

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

export function isToken(text: string): boolean {
  return token.test(text)
}

/** Whether a line feed without carriage return stands at or after `from`; such a head would never end. */
export function hasBareLineFeed(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf(10, from); at !== -1; at = bytes.indexOf(10, at + 1)) if (at === 0 || bytes[at - 1] !== 13) return true
  return false
}

// oxlint-disable-next-line no-control-regex -- the tab is the one control that a value may hold
const badValueCharacter = /[^\t\x20-\x7e\x80-\xff]/

/** A value that can be written as it is: no CR, LF, NUL or other control, and nothing beyond Latin-1, which would be cut to its low byte. */
export function isFieldValue(text: string): boolean {
  return !badValueCharacter.test(text)
}

// Raw bytes over 0x7f and `#` are not allowed by RFC 3986 and are read differently by different servers.
const origin = /^\/[!"$-~]*$/

/** Path and query. More is let through than RFC 3986 allows (`|`, `{`, `"`), because clients send it and it is not ambiguous. */
export function isOriginForm(target: string): boolean {
  return origin.test(target)
}

// Registered names have no percent escapes and no sub-delims in practice; refusing them leaves one reading of every host.
const authority = /^(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?$/

let lastAuthority = 'a'

/** Host with optional port; no userinfo. */
export function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  const match = authority.exec(text)
  const isValid = match !== null && (match[1] === undefined || Number(match[1]) <= 65_535)
  // Often asked twice in a row, for the message that comes and for the one that goes.
  if (isValid) lastAuthority = text
  return isValid
}

const digits = /^[0-9]{1,15}$/

/** A content-length: digits only, at most 15 so that sums stay exact; undefined when it is not. */
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

/** Longest read that is turned into text as a whole to look for the end of a head. */
const MAX_SEARCHED_TEXT = 8192

/** A head at the start of `bytes`, which holds none before `from`; undefined when its end is not there. `end` is where its empty line begins. */
export function findHead(bytes: Buffer, start: number, from: number): { readonly text: string; readonly end: number } | undefined {
  if (bytes.length - start <= MAX_SEARCHED_TEXT) {
    const text = bytes.toString('latin1', start)
    const end = text.indexOf('\r\n\r\n', from)
    return end === -1 ? undefined : { text, end: end + 2 }
  }
  const end = bytes.indexOf('\r\n\r\n', start + from, 'latin1')
  return end === -1 ? undefined : { text: bytes.toString('latin1', start, end + 4), end: end + 2 - start }
}
