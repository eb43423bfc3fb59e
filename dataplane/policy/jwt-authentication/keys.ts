import { readKeySet, type SigningKey } from '#api/credentials/key-set.ts'
import type { JWTProvider } from '#gen/config/types.ts'

/** A verification key and the requirements of its provider. */
export interface VerificationKey extends SigningKey {
  readonly issuer: string | undefined
  readonly audiences: readonly string[] | undefined
}

/** A provider whose tokens are accepted. Without an issuer, tokens of any issuer are. */
export type TokenProvider = Pick<JWTProvider, 'audiences' | 'jwks'> & { readonly issuer?: string | undefined }

/** Keys of all providers by `kid`; of two keys with the same id, the first is used. All tokens of a provider without usable keys are rejected. */
export function readKeys(providers: readonly TokenProvider[]): ReadonlyMap<string, VerificationKey> {
  const keys = new Map<string, VerificationKey>()
  for (const { issuer, audiences, jwks } of providers) {
    const text = jwks?.inline ?? jwks?.remote?.inline
    const set = text === undefined ? '' : readKeySet(text)
    if (typeof set === 'string') continue
    for (const key of set.keys) if (!keys.has(key.kid)) keys.set(key.kid, { ...key, issuer, audiences })
  }
  return keys
}
