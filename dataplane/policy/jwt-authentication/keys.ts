import { createPublicKey, type KeyObject } from 'node:crypto'
import { findKeySetProblem, typeOfKey } from '#api/credentials/key-set.ts'
import type { JWTProvider } from '#gen/config/types.ts'

/** A verification key and the requirements of its provider. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly algorithms: readonly string[]
  readonly issuer: string | undefined
  readonly audiences: readonly string[] | undefined
}

/** A provider whose tokens are accepted. Without an issuer, tokens of any issuer are. */
export type TokenProvider = Pick<JWTProvider, 'audiences' | 'jwks'> & { readonly issuer?: string | undefined }

interface KeyType {
  readonly algorithms: readonly string[]
  /** Members of the public key (RFC 7518 §6). Other members are ignored. */
  readonly members: readonly string[]
}

/** A key in a key set, unchecked. Unexpected values match no key type and no algorithm. */
interface Jwk extends Readonly<Record<string, unknown>> {
  readonly kid?: string
  readonly kty?: string
  readonly crv?: string
  readonly alg?: string
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

/**
 * Keys of all providers by `kid`; of two keys with the same id, the first is used. An invalid key set adds no keys, so that all tokens of
 * its provider are rejected.
 */
export function readKeys(providers: readonly TokenProvider[]): ReadonlyMap<string, VerificationKey> {
  const keys = new Map<string, VerificationKey>()
  for (const provider of providers) for (const [kid, key] of readProvider(provider)) if (!keys.has(kid)) keys.set(kid, key)
  return keys
}

function readProvider({ issuer, audiences, jwks }: TokenProvider): [string, VerificationKey][] {
  const text = jwks.inline ?? jwks.remote?.inline
  if (text === undefined || findKeySetProblem(text) !== undefined) return []
  try {
    const { keys } = JSON.parse(text) as { keys: Jwk[] }
    // Identity providers publish encryption keys in the same set.
    const signatureKeys = keys.filter(({ use }) => use !== 'enc')
    return signatureKeys.map((jwk) => [jwk.kid ?? '', { ...readKey(jwk), issuer, audiences }])
  } catch {
    return []
  }
}

function readKey(jwk: Jwk): Pick<VerificationKey, 'key' | 'algorithms'> {
  const type = keyTypes.get(typeOfKey(jwk))
  if (type === undefined) throw new Error('a key is of a type that cannot be used')
  const key = createPublicKey({ format: 'jwk', key: Object.fromEntries(type.members.map((member) => [member, jwk[member]])) })
  if ((key.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS) < MIN_RSA_BITS) throw new Error('an RSA key is too short')
  return { key, algorithms: jwk.alg === undefined ? type.algorithms : type.algorithms.filter((algorithm) => algorithm === jwk.alg) }
}
