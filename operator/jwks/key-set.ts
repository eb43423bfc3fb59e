interface Jwk {
  readonly kty: string
}

const isKey = (value: unknown): value is Jwk => typeof value === 'object' && value !== null && 'kty' in value && typeof value.kty === 'string'

/**
 * Reads a JSON Web Key Set (RFC 7517 §5) and returns it in a normalized form, so that white space and unknown members make no difference.
 * Throws if the text is not a key set. An empty set is valid: its owner has withdrawn all keys.
 */
export function readKeySet(text: string): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('the answer is not JSON')
  }
  const keys: unknown = typeof value === 'object' && value !== null && 'keys' in value ? value.keys : undefined
  if (!Array.isArray(keys) || !keys.every(isKey)) throw new Error('the answer is not a JSON Web Key Set: it needs "keys", a list of objects with "kty"')
  return JSON.stringify({ keys })
}
