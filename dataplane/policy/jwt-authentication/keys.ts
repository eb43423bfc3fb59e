import { createPublicKey, type KeyObject } from 'node:crypto'
import { findKeySetProblem, typeOfKey } from '#api/credentials/key-set.ts'
import type { JWTProvider } from '#gen/config/types.ts'

/** A key that tokens may be signed with, and what the provider it belongs to demands of them. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly algorithms: readonly string[]
  readonly issuer: string | undefined
  readonly audiences: readonly string[] | undefined
}

/** Whose tokens are accepted; without an issuer, those of any. */
export type TokenProvider = Pick<JWTProvider, 'audiences' | 'jwks'> & { readonly issuer?: string | undefined }

interface KeyType {
  readonly algorithms: readonly string[]
  /** Members of the public key (RFC 7518 §6); nothing else is taken from a key set. */
  readonly members: readonly string[]
}

/** What is expected of a key in a set; anything else that stands there matches no type and no algorithm. */
interface Jwk extends Readonly<Record<string, unknown>> {
  readonly kid?: string
  readonly kty?: string
  readonly crv?: string
  readonly alg?: string
}

/** By `kty` and, where there is one, curve. Symmetric keys are missing on purpose: whoever can check with them can sign. */
const keyTypes: ReadonlyMap<string, KeyType> = new Map([
  ['RSA', { algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'], members: ['kty', 'n', 'e'] }],
  ['EC P-256', { algorithms: ['ES256'], members: ['kty', 'crv', 'x', 'y'] }],
  ['EC P-384', { algorithms: ['ES384'], members: ['kty', 'crv', 'x', 'y'] }],
  ['OKP Ed25519', { algorithms: ['EdDSA', 'Ed25519'], members: ['kty', 'crv', 'x'] }],
])

/** RFC 7518 §3.3. */
const MIN_RSA_BITS = 2048

/**
 * Keys of all providers by `kid`; of two keys with one name the first counts. A key set that cannot be relied on adds nothing:
 * its provider's tokens are all refused.
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
    // Identity providers publish their encryption keys in the same set.
    const ofSignatures = keys.filter(({ use }) => use !== 'enc')
    return ofSignatures.map((jwk) => [jwk.kid ?? '', { ...readKey(jwk), issuer, audiences }])
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
