import { HeaderList } from '../headers.ts'
import { isHopField } from '../names.ts'
import { acceptsUnderscores, isFieldValue, isToken, type Underscores } from '../syntax.ts'
import { isForbiddenTrailer } from '../trailers.ts'
import { PROTOCOL_ERROR, StreamError } from './frames.ts'
import { encodeName, encodeValue } from './hpack.ts'

/** Whether a field (lower case) of a peer makes its message malformed (RFC 9113 §8.2.2). */
export function isConnectionField(name: string, value: string): boolean {
  switch (name) {
    case 'connection':
    case 'keep-alive':
    case 'proxy-connection':
    case 'transfer-encoding':
    case 'upgrade':
      return true
    case 'te':
      return value.toLowerCase() !== 'trailers'
    default:
      return false
  }
}

/** Encoded names of valid fields; '': not sent. Bounded, because policies and clients choose names. */
const encodedNames = new Map<string, string>()
const MAX_ENCODED_NAMES = 2000

/**
 * Encodes a field as a literal; '' for hop-by-hop fields and `host`, which are not sent. Throws for text that HTTP cannot carry, or that a later HTTP/1.1 hop
 * could read differently.
 */
export function encodeLiteral(name: string, value: string): string {
  let prefix = encodedNames.get(name)
  if (prefix === undefined) {
    if (!isToken(name)) throw new Error('header name holds a character that HTTP cannot carry')
    prefix = isHopField(name) || name === 'host' ? '' : encodeName(name)
    if (encodedNames.size < MAX_ENCODED_NAMES) encodedNames.set(name, prefix)
  }
  if (prefix === '') return ''
  if (!isFieldValue(value)) throw new Error(`header ${name} holds a character that HTTP cannot carry`)
  return prefix + encodeValue(value)
}

/** Encodes a trailer section; throws like `encodeLiteral`. */
export function encodeTrailers(trailers: HeaderList): string {
  const { raw } = trailers
  let block = ''
  for (let i = 0; i < raw.length; i += 2) block += encodeLiteral(raw[i] ?? '', raw[i + 1] ?? '')
  return block
}

/** Parses a trailer section without the fields that are not allowed there. Throws StreamError and, for rejected underscores, MessageError. */
export function parseTrailers(fields: readonly string[], underscores: Underscores | undefined): HeaderList | undefined {
  const trailers = new HeaderList()
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    if (name.charCodeAt(0) === 58) throw new StreamError(PROTOCOL_ERROR, 'pseudo-header field in trailers')
    if (isConnectionField(name, value)) throw new StreamError(PROTOCOL_ERROR, `field ${name} in trailers`)
    if (isForbiddenTrailer(name)) continue
    if (!name.includes('_') || acceptsUnderscores(underscores)) trailers.append(name, value)
  }
  return trailers.raw.length === 0 ? undefined : trailers
}
