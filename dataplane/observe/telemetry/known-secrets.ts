import { REDACTED } from '#api/names.ts'
import { findSecrets } from '#api/secret-fields.ts'
import { issuedSecrets } from '../../runtime/issued-secrets.ts'

/** The parts of a Secret message that are secret. */
interface SecretMessage {
  readonly privateKey?: string
  readonly data?: Readonly<Record<string, string>>
}

/** The parts of a config snapshot that may have credentials: Secrets, and what is written into other messages. */
export interface SecretSource {
  readonly secrets: ReadonlyMap<string, SecretMessage>
  readonly policies?: ReadonlyMap<string, object>
  readonly backends?: ReadonlyMap<string, object>
  readonly routes?: ReadonlyMap<string, object>
}

/** Shorter values would redact ordinary words. */
const MIN_LENGTH = 8
/** Values that are found in encoded form too; further ones as they are. */
const MAX_ENCODED = 2000
/** Entries of Secrets, and members of their JSON, that are no secrets. */
const publicEntry = /^(?:user(?:name)?|e-?mail|region|host(?:name)?|port|url|issuer|type|name|namespace|tenant-?id|client-?id|(?:ca|tls)\.crt|certificate)$/i
/** Members of JSON that are secrets: an API key has metadata, a service account has URLs. */
const secretMember = /^(?:key|key-?hash|auth|.*(?:token|secret|passw(?:or)?d|private-?key|api-?key|access-?key))$/i

/**
 * Finds values of Secrets in texts, also in the forms in which messages have them: JSON, URL, base64 and base64url. The time is that of one pass over the text, however many
 * values there are: three characters select the places to look at, eight the lengths of the values that begin with them.
 */
export class KnownSecrets {
  #source: SecretSource = { secrets: new Map() }
  #isCompiled = true
  /** Credentials of the config in force. */
  #written: ReadonlySet<string> = new Set()
  #values = new Set<string>()
  readonly #lengths = new Map<string, number[]>()
  readonly #starts = new Uint8Array(1 << 16)

  set(source: SecretSource): void {
    const { secrets, policies, backends, routes } = this.#source
    const isSame = secrets === source.secrets && policies === source.policies && backends === source.backends && routes === source.routes
    this.#source = source
    if (!isSame) this.#isCompiled = false
  }

  redact(text: string): string {
    if (issuedSecrets.hasNew) this.#addIssued(issuedSecrets.take())
    if (!this.#isCompiled) this.#compile()
    if (this.#values.size === 0 || text.length < MIN_LENGTH) return text
    let [out, copied] = ['', 0]
    for (let at = 0; at <= text.length - MIN_LENGTH; at++) {
      if (this.#starts[slotOf(text, at)] === 0) continue
      const length = this.#lengths.get(text.slice(at, at + MIN_LENGTH))?.find((one) => this.#values.has(text.slice(at, at + one)))
      if (length === undefined) continue
      out += text.slice(copied, at) + REDACTED
      copied = at + length
      at = copied - 1
    }
    return copied === 0 ? text : out + text.slice(copied)
  }

  /** Adds secrets without a pass over all others. */
  #addIssued(secrets: readonly string[] | undefined): void {
    if (secrets === undefined) {
      this.#written = new Set()
      this.#isCompiled = false
    } else if (this.#isCompiled) for (const value of entriesIn(secrets)) this.#addForms(value, true)
  }

  #compile(): void {
    this.#isCompiled = true
    const written = writtenIn(this.#source)
    // Most edits change no credential.
    if (written.size > 0 && written.size === this.#written.size && written.isSubsetOf(this.#written)) return
    this.#written = written
    this.#values = new Set()
    this.#lengths.clear()
    this.#starts.fill(0)
    let count = 0
    for (const value of written) this.#addForms(value, count++ < MAX_ENCODED)
    for (const value of entriesIn(issuedSecrets)) this.#addForms(value, true)
  }

  #addForms(value: string, isEncoded: boolean): void {
    this.#addValue(value)
    if (isEncoded) for (const form of formsOf(value)) if (form.length >= MIN_LENGTH) this.#addValue(form)
  }

  #addValue(value: string): void {
    if (this.#values.has(value)) return
    this.#values.add(value)
    this.#starts[slotOf(value, 0)] = 1
    const start = value.slice(0, MIN_LENGTH)
    const lengths = this.#lengths.get(start)
    if (lengths === undefined) this.#lengths.set(start, [value.length])
    else if (!lengths.includes(value.length)) {
      // The longest value wins.
      const at = lengths.findIndex((length) => length < value.length)
      lengths.splice(at === -1 ? lengths.length : at, 0, value.length)
    }
  }
}

/** Credentials that are written into a message of the config, which is never changed. */
const writtenInto = new WeakMap<object, readonly string[]>()

function writtenIn({ secrets, policies, backends, routes }: SecretSource): Set<string> {
  const written = new Set<string>()
  for (const { privateKey, data } of secrets.values()) {
    if (privateKey !== undefined) addEntry(written, privateKey)
    for (const [name, value] of Object.entries(data ?? {})) if (!publicEntry.test(name)) addEntry(written, value)
  }
  for (const messages of [policies, backends, routes])
    for (const message of messages?.values() ?? []) {
      let own = writtenInto.get(message)
      if (own === undefined) writtenInto.set(message, (own = [...findSecrets(message)]))
      for (const value of own) addEntry(written, value)
    }
  return written
}

function entriesIn(secrets: Iterable<string>): Set<string> {
  const entries = new Set<string>()
  for (const secret of secrets) addEntry(entries, secret)
  return entries
}

const slotOf = (text: string, at: number): number => ((text.charCodeAt(at) * 31 + text.charCodeAt(at + 1)) * 31 + text.charCodeAt(at + 2)) & 0xff_ff

/** Adds an entry of a Secret: the whole, and its secret parts if it is JSON or lines of `name:value`. */
function addEntry(found: Set<string>, entry: string): void {
  const text = entry.trim()
  const add = (value: string): void => void (value.length >= MIN_LENGTH && found.add(value))
  add(text)
  if (text.startsWith('{') || text.startsWith('[')) {
    try {
      addMembers(JSON.parse(text), add)
    } catch {
      // Not JSON: the entire text is a secret.
    }
  } else if (text.includes('\n')) for (const line of text.split('\n')) add(line.slice(line.indexOf(':') + 1).trim())
}

function addMembers(value: unknown, add: (text: string) => void): void {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner !== 'string') addMembers(inner, add)
    else if (secretMember.test(name.replaceAll('_', '-'))) add(inner)
  }
}

/** A value as JSON, in URLs, and within base64 of a longer text, whose beginning may be anywhere in a group of three bytes. */
function* formsOf(value: string): Generator<string> {
  yield JSON.stringify(value).slice(1, -1)
  // A lone surrogate has no UTF-8.
  if (value.isWellFormed()) yield encodeURIComponent(value)
  for (let shift = 0; shift < 3; shift++) {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)])
    // Characters that depend on the text before and after it are left out.
    const form = bytes.toString('base64').slice(shift === 0 ? 0 : shift + 1, Math.floor((bytes.length * 8) / 6))
    yield form
    yield form.replaceAll('+', '-').replaceAll('/', '_')
  }
}
