/** An API key of a Secret: the key itself or its digest, and its metadata. */
export type ApiKeyEntry = {
  readonly metadata: Readonly<Record<string, unknown>>
  /** Milliseconds since 1970 from which the key is rejected. */
  readonly expiresMs?: number
} & (
  | { readonly key: string; readonly keyHash?: undefined }
  /** SHA-256 in lower-case hex. */
  | { readonly keyHash: string; readonly key?: undefined }
)

/** An entry that is not an API key. */
export interface ApiKeyProblem {
  /** The reason, without any part of the value. */
  readonly problem: string
}

/** SHA-256 of no bytes and of a line feed: what `sha256sum` prints if the variable with the key is not set. */
const EMPTY_DIGESTS: ReadonlySet<string> = new Set([
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b',
])

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses the value of an entry: a raw key, or a JSON object with `key` or `keyHash` (`sha256:` and hex), and optionally `metadata` and
 * `expires` (RFC 3339), see traffic.md §8.5. White space around a key is removed, such as the last line feed of a file.
 * `parse` parses JSON and throws if it cannot. */
export function readApiKeyEntry(value: string, parse: (text: string) => unknown = JSON.parse): ApiKeyEntry | ApiKeyProblem {
  if (value.trim() === '') return { problem: 'is empty' }
  if (!value.trimStart().startsWith('{')) {
    const raw = readKey(value)
    return typeof raw === 'string' ? { key: raw, metadata: {} } : raw
  }
  let parsed: unknown
  try {
    parsed = parse(value)
  } catch {
    return { problem: 'starts with { but is not JSON' }
  }
  const { key, keyHash, metadata: data = {}, expires } = isObject(parsed) ? parsed : {}
  if (!isObject(data)) return { problem: 'has metadata that is not an object' }
  const expiresMs = expires === undefined ? undefined : parseTime(expires)
  if (Number.isNaN(expiresMs)) return { problem: 'has an expires that is not a time such as 2027-01-31T00:00:00Z' }
  const metadata = { metadata: data, ...(expiresMs !== undefined && { expiresMs }) }
  if ((key === undefined) === (keyHash === undefined)) return { problem: 'needs exactly one of key and keyHash' }
  if (keyHash === undefined) {
    const raw = readKey(key)
    return typeof raw === 'string' ? { key: raw, ...metadata } : raw
  }
  const [, digest] = typeof keyHash === 'string' ? (/^sha256:([0-9a-f]{64})$/i.exec(keyHash) ?? []) : []
  if (digest === undefined) return { problem: 'has a keyHash that is not sha256: and 64 hex digits' }
  const lower = digest.toLowerCase()
  return EMPTY_DIGESTS.has(lower) ? { problem: 'has the keyHash of an empty key' } : { keyHash: lower, ...metadata }
}

/** A key without white space around it, which clients cannot send. */
function readKey(value: unknown): string | ApiKeyProblem {
  const key = typeof value === 'string' ? value.trim() : ''
  if (key === '') return { problem: 'has a key that is not a string, or an empty one' }
  // oxlint-disable-next-line no-control-regex -- the expression looks for them
  return /[\s\0-\x1f\x7f]/.test(key) ? { problem: 'has a key with white space or control characters inside' } : key
}

/** Milliseconds since 1970 of a time by RFC 3339; NaN for all other values, days that do not exist included. */
function parseTime(value: unknown): number {
  const [text, day] = typeof value === 'string' ? (/^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.exec(value) ?? []) : []
  const dayMs = Date.parse(`${day}T00:00:00Z`)
  const exists = !Number.isNaN(dayMs) && new Date(dayMs).toISOString().slice(0, 10) === day
  return text !== undefined && exists ? Date.parse(text) : Number.NaN
}
