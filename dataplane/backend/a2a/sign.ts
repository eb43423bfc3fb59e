import { createHash, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { readSigningKey } from '#api/credentials/signing-key.ts'
import type { JsonObject } from '#api/json/index.ts'
import type { A2ACardSigning } from '#gen/config/types.ts'
import { canonicalCard } from './canonical.ts'

/** Adds a signature of the gateway to a card. Those that the card has must still be valid. Rejects if the key cannot sign. */
export type SignCard = (card: JsonObject) => Promise<JsonObject>

/** Signatures of recent cards: most requests get the same card. */
const MAX_KNOWN = 64
const signAsync = promisify(sign)

/** Compiles the signer of cards (JWS, RFC 7515). `pem` is the private key. Throws an error that names the problem. */
export function compileSigner({ keyId, jwksUrl }: A2ACardSigning, pem: string): SignCard {
  const signing = readSigningKey(pem)
  if (typeof signing === 'string') throw new Error(`the signing key is not usable: it ${signing}`)
  const { key, alg, hash, id } = signing
  const header = { alg, typ: 'JOSE', kid: keyId ?? id, ...(jwksUrl !== undefined && { jku: jwksUrl }) }
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
