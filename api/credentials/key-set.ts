/** Types of keys for signatures: `kty` and, if it has one, the curve (RFC 7518 §6). */
const signingKeyTypes = ['RSA', 'EC P-256', 'EC P-384', 'OKP Ed25519'] as const

/** An unchecked key of a key set. */
interface Jwk {
  readonly kty?: unknown
  readonly crv?: unknown
  readonly kid?: unknown
  readonly use?: unknown
}

/** Type of a key: `kty` and, if it has one, the curve: `EC P-256`. */
export function typeOfKey({ kty, crv }: Jwk): string {
  return [kty, crv].filter((part) => typeof part === 'string').join(' ')
}

/**
 * Why a JSON Web Key Set cannot be used; undefined if it can. One unusable key makes the whole set unusable (traffic.md §8.3). Does
 * not check the key material itself.
 */
export function findKeySetProblem(text: string): string | undefined {
  let keys: unknown
  try {
    keys = (JSON.parse(text) as { keys?: unknown } | null)?.keys
  } catch {
    return 'is not JSON'
  }
  if (!Array.isArray(keys)) return 'is not a JSON Web Key Set: it has no list keys'
  for (const [index, key] of (keys as (Jwk | null)[]).entries()) {
    if (typeof key !== 'object' || key === null) return `keys.${index} is not an object`
    // Identity providers publish their encryption keys in the same set.
    if (key.use === 'enc') continue
    if (typeof key.kid !== 'string' || key.kid === '') return `keys.${index} has no kid`
    const type = typeOfKey(key)
    if (!(signingKeyTypes as readonly string[]).includes(type)) return `keys.${index} is of type ${type}; usable are ${signingKeyTypes.join(', ')}`
  }
  return undefined
}
