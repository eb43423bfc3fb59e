/** Types of keys that tokens can be signed with, by `kty` and, where there is one, curve (RFC 7518 §6). */
const signingKeyTypes = ['RSA', 'EC P-256', 'EC P-384', 'OKP Ed25519'] as const

/** As a key set has it; what is not there or of another type is unknown. */
interface Jwk {
  readonly kty?: unknown
  readonly crv?: unknown
  readonly kid?: unknown
  readonly use?: unknown
}

/** How `signingKeyTypes` calls the type of a key. */
export function typeOfKey({ kty, crv }: Jwk): string {
  return [kty, crv].filter((part) => typeof part === 'string').join(' ')
}

/**
 * What makes a JSON Web Key Set useless (traffic.md §8.3): one key that cannot be relied on spoils all. Undefined: nothing that can
 * be seen from here; the numbers in the keys are for who uses them.
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
