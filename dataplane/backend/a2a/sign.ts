import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { JsonObject } from '#api/json/index.ts'
import type { A2ACardSigning } from '#gen/config/types.ts'
import { canonicalCard } from './canonical.ts'

/** Adds a signature of the gateway to a card. Those that the card has must still be valid. Rejects if the key cannot sign. */
export type SignCard = (card: JsonObject) => Promise<JsonObject>

/** Signatures of recent cards: most requests get the same card. */
const MAX_KNOWN = 64
const MIN_RSA_BITS = 2048
const CURVES: Readonly<Record<string, readonly [alg: string, hash: string]>> = {
  prime256v1: ['ES256', 'sha256'],
  secp384r1: ['ES384', 'sha384'],
  secp521r1: ['ES512', 'sha512'],
}
/** Members of a JWK that its thumbprint is computed from (RFC 7638 §3.2). */
const THUMBPRINT: Readonly<Record<string, readonly string[]>> = { EC: ['crv', 'kty', 'x', 'y'], RSA: ['e', 'kty', 'n'], OKP: ['crv', 'kty', 'x'] }

const signAsync = promisify(sign)

/** Compiles the signer of cards (JWS, RFC 7515). `pem` is the private key. Throws an error that names the problem. */
export function compileSigner({ keyId, jwksUrl }: A2ACardSigning, pem: string): SignCard {
  const key = readKey(pem)
  const [alg, hash] = algorithmOf(key)
  const header = { alg, typ: 'JOSE', kid: keyId ?? thumbprintOf(key), ...(jwksUrl !== undefined && { jku: jwksUrl }) }
  const protectedHeader = Buffer.from(JSON.stringify(header)).toString('base64url')
  const known = new Map<string, Promise<string>>()
  const signText = async (text: string): Promise<string> =>
    (await signAsync(hash ?? null, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })).toString('base64url')
  return async (card) => {
    const text = `${protectedHeader}.${Buffer.from(canonicalCard(card)).toString('base64url')}`
    const digest = createHash('sha256').update(text).digest('base64url')
    let signed = known.get(digest)
    if (signed === undefined) {
      if (known.size >= MAX_KNOWN) known.clear()
      known.set(digest, (signed = signText(text)))
      signed.catch(() => known.delete(digest))
    }
    const kept = Array.isArray(card['signatures']) ? (card['signatures'] as unknown[]) : []
    return { ...card, signatures: [...kept, { protected: protectedHeader, signature: await signed }] }
  }
}

function readKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    throw new Error('the signing key is no unencrypted private key in PEM')
  }
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): readonly [alg: string, hash: string | undefined] {
  const curve = CURVES[details.namedCurve ?? '']
  if (type === 'ec' && curve !== undefined) return curve
  if (type === 'ed25519') return ['EdDSA', undefined]
  if (type === 'rsa' && (details.modulusLength ?? 0) >= MIN_RSA_BITS) return ['RS256', 'sha256']
  throw new Error(`the signing key is of type ${type ?? 'unknown'}; usable are EC P-256, P-384 and P-521, Ed25519, and RSA of at least ${MIN_RSA_BITS} bits`)
}

function thumbprintOf(key: KeyObject): string {
  const jwk = createPublicKey(key).export({ format: 'jwk' })
  const members = (THUMBPRINT[jwk.kty ?? ''] ?? []).map((name) => [name, (jwk as Record<string, unknown>)[name]])
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url')
}
