import { createPublicKey } from 'node:crypto'

type KeyObject = ReturnType<typeof createPublicKey>

/** A key of a key set that verifies signatures. */
export interface SigningKey {
  readonly kid: string
  readonly key: KeyObject
  /** Algorithms of tokens (RFC 7518 §3.1): that of the member `alg`, or all of the type. */
  readonly algorithms: readonly string[]
}

/** A key set: the keys that can be used, and the reasons why others of it cannot. */
export interface KeySet {
  readonly keys: readonly SigningKey[]
  readonly ignored: readonly string[]
}

/** What users have to know about a key set. */
export interface KeySetProblem {
  readonly problem: string
  /** Whether tokens of other keys of the set are accepted. */
  readonly isUsable: boolean
}

/** A key, unchecked. */
type Jwk = Readonly<Record<string, unknown>>

interface KeyType {
  readonly algorithms: readonly string[]
  /** Members of the public key (RFC 7518 §6). Other members are ignored. */
  readonly members: readonly string[]
}

/** By `kty` and curve, if any. Symmetric keys are not supported, because a key that verifies could also sign. */
const keyTypes: ReadonlyMap<string, KeyType> = new Map([
  ['RSA', { algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'], members: ['kty', 'n', 'e'] }],
  ['EC P-256', { algorithms: ['ES256'], members: ['kty', 'crv', 'x', 'y'] }],
  ['EC P-384', { algorithms: ['ES384'], members: ['kty', 'crv', 'x', 'y'] }],
  ['OKP Ed25519', { algorithms: ['EdDSA', 'Ed25519'], members: ['kty', 'crv', 'x'] }],
])

/** Minimum size of RSA keys (RFC 7518 §3.3). */
const MIN_RSA_BITS = 2048
/** A status names the first few keys. */
const MAX_NAMED = 3
/** Longer values of a key are not quoted. */
const MAX_QUOTED = 40

const isObject = (value: unknown): value is Jwk => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads a JSON Web Key Set. Keys that cannot be used are ignored (RFC 7517 §5), because identity providers add keys of new types beside old ones
 * (traffic.md §8.3). Returns the reason if the text is not a key set.
 */
export function readKeySet(text: string): KeySet | string {
  let set: unknown
  try {
    set = JSON.parse(text)
  } catch {
    return 'is not JSON'
  }
  const list = isObject(set) ? set['keys'] : undefined
  if (!Array.isArray(list)) return 'is not a JSON Web Key Set: it has no list keys'
  const keys = new Map<string, SigningKey>()
  const ignored: string[] = []
  for (const [index, jwk] of (list as unknown[]).entries()) {
    // Identity providers publish their encryption keys in the same set.
    if (isObject(jwk) && jwk['use'] === 'enc') continue
    const key = readKey(jwk)
    if (typeof key === 'string') ignored.push(`keys.${index} ${key}`)
    else if (keys.has(key.kid)) ignored.push(`keys.${index} has the kid of an earlier key`)
    else keys.set(key.kid, key)
  }
  return { keys: [...keys.values()], ignored }
}

function readKey(jwk: unknown): SigningKey | string {
  if (!isObject(jwk)) return 'is not an object'
  const { kid, kty, crv, use, alg, key_ops: operations } = jwk
  if (typeof kty !== 'string') return 'has no kty'
  const name = typeof crv === 'string' ? `${kty} ${crv}` : kty
  const type = keyTypes.get(name)
  if (type === undefined) return `is of type ${quote(name)}; usable are ${[...keyTypes.keys()].join(', ')}`
  if (typeof kid !== 'string' || kid === '') return 'has no kid'
  if (use !== undefined && use !== 'sig') return 'has a use other than sig'
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return 'has key_ops without verify'
  const algorithms = alg === undefined ? type.algorithms : type.algorithms.filter((algorithm) => algorithm === alg)
  if (algorithms.length === 0) return `has an alg that its type does not have; usable are ${type.algorithms.join(', ')}`
  const broken = type.members.find((member) => member.length === 1 && !isBase64Url(jwk[member]))
  if (broken !== undefined) return `has a member ${broken} that is not base64url`
  let key: KeyObject
  try {
    key = createPublicKey({ format: 'jwk', key: Object.fromEntries(type.members.map((member) => [member, jwk[member]])) })
  } catch {
    return 'is not a valid public key'
  }
  if ((key.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS) < MIN_RSA_BITS) return `is an RSA key of less than ${MIN_RSA_BITS} bits`
  return { kid, key, algorithms }
}

/** Base64url without padding (RFC 7515 §2), of which no bit is lost by decoding. */
export function isBase64Url(text: unknown): text is string {
  return typeof text === 'string' && /^[\w-]+$/.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text
}

/** The type is text of another party. */
function quote(text: string): string {
  return /^[\w .+-]+$/.test(text) ? text.slice(0, MAX_QUOTED) : JSON.stringify(text.slice(0, MAX_QUOTED))
}

/** Undefined if all keys of a set can be used. */
export function findKeySetProblem(text: string): KeySetProblem | undefined {
  const set = readKeySet(text)
  if (typeof set === 'string') return { problem: `${set}; all its tokens are rejected`, isUsable: false }
  const { keys, ignored } = set
  const isUsable = keys.length > 0
  const more = ignored.length > MAX_NAMED ? `, and ${ignored.length - MAX_NAMED} more` : ''
  const named = `${ignored.slice(0, MAX_NAMED).join(', ')}${more}`
  if (isUsable) return ignored.length === 0 ? undefined : { problem: `has keys that are ignored: ${named}; tokens of its other keys are accepted`, isUsable }
  return { problem: `has no key that verifies signatures${named === '' ? '' : ` (${named})`}; all its tokens are rejected`, isUsable }
}
