/** An API key of a Secret: the key itself or its digest, and its metadata. */
export type ApiKeyEntry = { readonly metadata: Readonly<Record<string, unknown>> } & (
  | { readonly key: string; readonly keyHash?: undefined }
  /** SHA-256 in lower-case hex. */
  | { readonly keyHash: string; readonly key?: undefined }
)

/** An entry that is not an API key. */
export interface ApiKeyProblem {
  /** The reason, without any part of the value. */
  readonly problem: string
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses the value of an entry: a raw key, or a JSON object with `key` or `keyHash` (`sha256:` and hex) and optionally `metadata` (traffic.md §8.5).
 * `parse` parses JSON and throws if it cannot. */
export function readApiKeyEntry(value: string, parse: (text: string) => unknown = JSON.parse): ApiKeyEntry | ApiKeyProblem {
  if (value.trim() === '') return { problem: 'is empty' }
  if (!value.trimStart().startsWith('{')) return { key: value, metadata: {} }
  let parsed: unknown
  try {
    parsed = parse(value)
  } catch {
    return { problem: 'starts with { but is not JSON' }
  }
  const { key, keyHash, metadata = {} } = isObject(parsed) ? parsed : {}
  if (!isObject(metadata)) return { problem: 'has metadata that is not an object' }
  if ((key === undefined) === (keyHash === undefined)) return { problem: 'needs exactly one of key and keyHash' }
  if (keyHash === undefined) return typeof key === 'string' && key !== '' ? { key, metadata } : { problem: 'has a key that is not a string, or an empty one' }
  const [, digest] = typeof keyHash === 'string' ? (/^sha256:([0-9a-f]{64})$/i.exec(keyHash) ?? []) : []
  return digest === undefined ? { problem: 'has a keyHash that is not sha256: and 64 hex digits' } : { keyHash: digest.toLowerCase(), metadata }
}
