import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'

type KeyObject = ReturnType<typeof createPrivateKey>

/** A private key that signs tokens or documents, and what verifies them. */
export interface PrivateSigningKey {
  readonly key: KeyObject
  /** Algorithm of JWS (RFC 7518 §3.1, RFC 8037). */
  readonly alg: string
  /** Hash of `node:crypto`; undefined: that of the algorithm. */
  readonly hash: string | undefined
  /** Thumbprint of the public key (RFC 7638). */
  readonly id: string
  /** Public key as an entry of a key set (RFC 7517), without `kid`. */
  readonly publicJwk: Readonly<Record<string, unknown>>
}

const MIN_RSA_BITS = 2048
const CURVES: Readonly<Record<string, readonly [alg: string, hash: string]>> = {
  prime256v1: ['ES256', 'sha256'],
  secp384r1: ['ES384', 'sha384'],
  secp521r1: ['ES512', 'sha512'],
}
/** Members of a JWK that its thumbprint is computed from (RFC 7638 §3.2). */
const THUMBPRINT: Readonly<Record<string, readonly string[]>> = { EC: ['crv', 'kty', 'x', 'y'], RSA: ['e', 'kty', 'n'], OKP: ['crv', 'kty', 'x'] }

/** Reads a private key in PEM. Returns the reason if it cannot sign, to be read after the name of the key. */
export function readSigningKey(pem: string): PrivateSigningKey | string {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    return 'holds no unencrypted private key in PEM'
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: { namedCurve = '', modulusLength = 0 } = {} } = key
  const algorithm =
    type === 'ec'
      ? CURVES[namedCurve]
      : type === 'ed25519'
        ? (['EdDSA', undefined] as const)
        : type === 'rsa' && modulusLength >= MIN_RSA_BITS
          ? (['RS256', 'sha256'] as const)
          : undefined
  if (algorithm === undefined)
    return `holds a key of type ${type ?? 'unknown'}; usable are EC P-256, P-384 and P-521, Ed25519, and RSA of at least ${MIN_RSA_BITS} bits`
  const [alg, hash] = algorithm
  const jwk = createPublicKey(key).export({ format: 'jwk' }) as Record<string, unknown>
  const members = (THUMBPRINT[String(jwk['kty'])] ?? []).map((name) => [name, jwk[name]])
  const id = createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url')
  return { key, alg, hash, id, publicJwk: { ...jwk, alg, use: 'sig' } }
}

/** Entries of a Secret with signing keys: the one that signs, and those that are published beside it while keys are exchanged. */
export const SIGNING_ENTRY = 'key'
export const PUBLISHED_ENTRIES = ['nextKey', 'previousKey'] as const

/** The key set (RFC 7517) of the public keys of a Secret. Returns the reason if the key that signs is not usable; others that are not are left out. */
export function publishKeys(data: Readonly<Record<string, string>>): { readonly text: string } | string {
  const signing = readSigningKey(data[SIGNING_ENTRY] ?? '')
  if (typeof signing === 'string') return `entry ${SIGNING_ENTRY} ${signing}`
  const others = PUBLISHED_ENTRIES.flatMap((entry) => (data[entry] === undefined ? [] : readSigningKey(data[entry]))).filter((key) => typeof key !== 'string')
  const keys = new Map([signing, ...others].map(({ id, publicJwk }) => [id, { ...publicJwk, kid: id }]))
  return { text: JSON.stringify({ keys: [...keys.values()] }) }
}
