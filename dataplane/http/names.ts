import { toDashes } from './headers.ts'
import { isToken, MessageError } from './syntax.ts'

/**
 * Role of a field: 'keep' is an end-to-end field, 'underscored' is one whose name holds an underscore, 'drop' is ignored, the others are stored by
 * that name in the FieldSection.
 */
export type FieldRole =
  | 'keep'
  | 'underscored'
  | 'drop'
  | 'host'
  | 'connection'
  | 'contentLength'
  | 'transferEncoding'
  | 'te'
  | 'upgrade'
  | 'expect'
  | 'keepAlive'

/** A field name in the spelling of a peer. */
export interface KnownName {
  /** The name as received, with its colon. */
  readonly prefix: string
  /** In lower case. */
  readonly name: string
  readonly role: FieldRole
  /** The name that followed this one last time. Peers repeat their order: one comparison is cheaper than a map lookup. */
  next: KnownName | undefined
}

const roles: ReadonlyMap<string, FieldRole> = new Map<string, FieldRole>([
  ['host', 'host'],
  ['connection', 'connection'],
  ['content-length', 'contentLength'],
  ['transfer-encoding', 'transferEncoding'],
  ['te', 'te'],
  ['upgrade', 'upgrade'],
  ['expect', 'expect'],
  ['keep-alive', 'keepAlive'],
  ['proxy-connection', 'drop'],
  ['proxy-authenticate', 'drop'],
  ['trailer', 'drop'],
])

/** Hop-by-hop fields, which HTTP/2 forbids (RFC 9113 §8.2.2). */
const hopFields = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'transfer-encoding', 'upgrade', 'te', 'trailer'])

/** Whether a field (lower case) is hop-by-hop. */
export function isHopField(name: string): boolean {
  return hopFields.has(name)
}

/** Whether a name with underscores is a spelling of a field that frames the message or belongs to one connection: never forwarded. */
export function isFramingSpelling(name: string): boolean {
  return roles.has(toDashes(name))
}

/** Valid names by their spelling; bounded, because peers choose them. */
const knownNames = new Map<string, KnownName>()
const MAX_KNOWN_NAMES = 2000

/** Predecessor of the first field, so that it has a `next` too. One for each kind of section. */
export function sectionStart(): KnownName {
  return { prefix: '', name: '', role: 'drop', next: undefined }
}

/** Reads the name at `at` in `text`, up to its colon; `previous` is the name before it. Throws MessageError. */
export function readName(text: string, at: number, previous: KnownName): KnownName {
  const guess = previous.next
  if (guess !== undefined && text.startsWith(guess.prefix, at)) return guess
  const colon = text.indexOf(':', at)
  if (colon === -1) throw new MessageError(400, 'header line without a colon')
  const prefix = text.slice(at, colon + 1)
  const known = knownNames.get(prefix) ?? learnName(prefix)
  previous.next = known
  return known
}

/** Validates a new name. A line that starts with white space (obs-fold) has no valid name. */
function learnName(prefix: string): KnownName {
  const raw = prefix.slice(0, -1)
  if (!isToken(raw)) throw new MessageError(400, raw === '' ? 'empty header name' : 'invalid character in a header name')
  const name = raw.toLowerCase()
  const known: KnownName = { prefix, name, role: roles.get(name) ?? (name.includes('_') ? 'underscored' : 'keep'), next: undefined }
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.set(prefix, known)
  return known
}
