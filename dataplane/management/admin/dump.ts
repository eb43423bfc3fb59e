import { setImmediate } from 'node:timers/promises'
import { REDACTED } from '#api/names.ts'
import { isSecretField, isSensitiveName } from '#api/secret-fields.ts'
import { dumpSections, withRealNames } from '../../config/real-names.ts'
import { isSensitiveHeader, redactText } from '../../observe/telemetry/redact.ts'

/** Content of a config dump: a ConfigSnapshot and the process's settings. Maps are printed as lists of their values. */
export type ConfigDump = Readonly<Record<string, unknown>>

/** Order of the sections; others follow. */
const sections = ['version', 'binds', 'listeners', 'routes', 'tcpRoutes', 'policies', 'backends', 'services', 'workloads', 'secrets', 'config']
/** Fields of a Secret message that are printed; all others are redacted. */
const publicSecretFields: ReadonlySet<string> = new Set(['key', 'type', 'certificate'])
/** Shorter values are not searched for in texts, because they occur by chance. */
const MIN_SECRET_LENGTH = 6

const ENTRIES_PER_PIECE = 50

/**
 * Prints the dump as JSON in pieces, one message per line; yields to traffic between pieces. Contains no credentials: only listed
 * fields of Secret messages are printed, vendors have their real names, and fields with credentials and texts that contain a value of a Secret message are redacted.
 */
export async function* writeDump(dump: ConfigDump): AsyncGenerator<string, void> {
  const known = collectSecrets(dump['secrets'])
  const names = [...sections.filter((name) => name in dump), ...Object.keys(dump).filter((name) => !sections.includes(name))]
  let piece = '{'
  for (const [i, name] of names.entries()) {
    piece += `${i === 0 ? '\n' : ',\n'}  ${JSON.stringify(name)}: `
    const entries = entriesOf(dump[name])
    if (entries === undefined) {
      piece += JSON.stringify(redact(name, dump[name], '', known)) ?? 'null'
      continue
    }
    piece += '['
    const kind = dumpSections.get(name)
    for (const [index, entry] of entries.entries()) {
      const shown = name === 'secrets' ? redactSecret(entry) : redact('', kind === undefined ? entry : withRealNames(kind, entry), '', known)
      piece += `${index === 0 ? '\n' : ',\n'}    ${JSON.stringify(shown)}`
      if (index % ENTRIES_PER_PIECE !== ENTRIES_PER_PIECE - 1) continue
      yield piece
      piece = ''
      await setImmediate()
    }
    piece += entries.length === 0 ? ']' : '\n  ]'
  }
  yield `${piece}\n}\n`
}

/** Returns a copy of a value without credentials; `secrets` are the Secret messages. */
export function redactMessage(message: unknown, secrets: unknown): unknown {
  return redact('', message, '', collectSecrets(secrets))
}

function entriesOf(value: unknown): readonly unknown[] | undefined {
  if (value instanceof Map) return [...(value as ReadonlyMap<string, unknown>).values()]
  return Array.isArray(value) ? (value as unknown[]) : undefined
}

/** Returns a copy of a Secret message with its public fields. */
export function redactSecret(secret: unknown): unknown {
  if (typeof secret !== 'object' || secret === null) return REDACTED
  return Object.fromEntries(
    Object.entries(secret).map(([name, value]: [string, unknown]) => [
      name,
      publicSecretFields.has(name) ? (typeof value === 'string' ? redactText(value) : REDACTED) : REDACTED,
    ]),
  )
}

/** Returns a copy without credentials. `name` is the field of `value`, `parent` the field around it. */
function redact(name: string, value: unknown, parent: string, known: readonly string[]): unknown {
  if (value === null || typeof value === 'number' || typeof value === 'boolean' || value === undefined) return value
  // References are names of secrets, not secrets: `{name: …}` under secretRef stays readable, a plain value does not.
  if (isSensitiveName(name) && !isReference(value) && !isRuleSet(value)) return REDACTED
  if (typeof value === 'string' && isSecretField(name, parent)) return REDACTED
  if (typeof value === 'string') return holdsSecret(value, known) ? REDACTED : redactText(value)
  const entries = entriesOf(value)
  if (entries !== undefined) return entries.map((entry) => redact(name, entry, parent, known))
  if (typeof value !== 'object') return REDACTED
  const isHeader = 'name' in value && typeof value.name === 'string' && 'value' in value && isSensitiveHeader(value.name)
  // An explained field, such as `backend.auth`: its value is redacted as that of the field.
  const isExplained = 'value' in value && 'sources' in value
  const copy: Record<string, unknown> = {}
  for (const [field, inner] of Object.entries(value) as [string, unknown][])
    if (isExplained && field === 'value') copy[field] = redact(name.slice(name.lastIndexOf('.') + 1), inner, parent, known)
    else copy[field] = isHeader && field !== 'name' ? REDACTED : redact(field, inner, name, known)
  return copy
}

/** `known` is sorted by length, because most texts of a config are shorter than most secrets. */
function holdsSecret(text: string, known: readonly string[]): boolean {
  for (const secret of known) {
    if (secret.length > text.length) return false
    if (text.includes(secret)) return true
  }
  return false
}

function isReference(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const keys = Object.keys(value)
  return keys.length > 0 && keys.every((key) => key === 'secret' || key === 'secrets' || key === 'invalid' || key === 'name' || key === 'namespace')
}

/** Whether a value is an authorization section or its explanation; both have the name of the sensitive header. */
function isRuleSet(value: unknown): boolean {
  const entries = Array.isArray(value) ? (value as unknown[]) : [value]
  return entries.length > 0 && entries.every((entry) => typeof entry === 'object' && entry !== null && ('policy' in entry || 'sources' in entry))
}

/** All non-public texts of Secret messages: values, and the strings inside values that are JSON. */
function collectSecrets(secrets: unknown): string[] {
  const found = new Set<string>()
  const add = (value: unknown): void => {
    if (typeof value === 'string') {
      const text = value.trim()
      if (text.length >= MIN_SECRET_LENGTH) found.add(text)
      if (text.startsWith('{') || text.startsWith('[')) addParsed(text)
    } else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) add(inner)
  }
  const addParsed = (text: string): void => {
    try {
      add(JSON.parse(text))
    } catch {
      // Not JSON: the entire text is a secret.
    }
  }
  for (const secret of entriesOf(secrets) ?? []) {
    if (typeof secret !== 'object' || secret === null) continue
    for (const [name, value] of Object.entries(secret)) if (!publicSecretFields.has(name)) add(value)
  }
  return [...found].sort((a, b) => a.length - b.length)
}
