import { isToken, MessageError } from './syntax.ts'

/** What becomes of a field: 'keep' leaves it among the end-to-end ones, 'drop' forgets it, the others name the place it goes to. */
export type FieldRole = 'keep' | 'drop' | 'host' | 'connection' | 'contentLength' | 'transferEncoding' | 'te' | 'upgrade' | 'expect' | 'keepAlive'

/** A field name as some peer writes it. */
export interface KnownName {
  /** The name as received, with its colon. */
  readonly prefix: string
  /** In lower case. */
  readonly name: string
  readonly role: FieldRole
  /** The name that followed this one last time. Peers repeat themselves: comparing with one guess is cheaper than a look-up. */
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

/** Validated names by how they were received; bounded, because peers choose them. */
const knownNames = new Map<string, KnownName>()
const MAX_KNOWN_NAMES = 2000

/** Stands before the first field, so that it has a `next` too. One for each kind of section. */
export function sectionStart(): KnownName {
  return { prefix: '', name: '', role: 'drop', next: undefined }
}

/** The name that `text` holds at `at`, up to its colon; `previous` is the one before it. Throws MessageError. */
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

/** A line that starts with white space is obs-fold: it has no valid name. */
function learnName(prefix: string): KnownName {
  const raw = prefix.slice(0, -1)
  if (!isToken(raw)) throw new MessageError(400, raw === '' ? 'empty header name' : 'invalid character in a header name')
  const name = raw.toLowerCase()
  const known: KnownName = { prefix, name, role: roles.get(name) ?? 'keep', next: undefined }
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.set(prefix, known)
  return known
}
