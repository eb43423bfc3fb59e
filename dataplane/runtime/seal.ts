import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Keys for texts that only this gateway may read or write: the first encrypts, all decrypt (rotation). Without keys, texts are plain, for development only. */
export type SessionKeys = readonly Buffer[]

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** A key for one use, from a secret with others (RFC 5869). */
export const deriveKey = (secret: Buffer, use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', `proxy.dev/${use}`, 32))

/** Encrypts a text for the same context. Without keys it is encoded only. */
export function seal([key]: SessionKeys, context: string, content: string | Buffer): string {
  const bytes = Buffer.from(content)
  if (key === undefined) return bytes.toString('base64url')
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  cipher.setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]).toString('base64')
}

/** The content of a sealed text; undefined if it was changed, or is of another context. Without keys, the context is not checked. */
export const unseal = (keys: SessionKeys, context: string, sealed: string): Buffer | undefined =>
  keys.length === 0 ? decodePlain(sealed) : decrypt(keys, context, sealed)

/** Rejects other spellings of the same bytes: each session has exactly one id, or a deleted id could be used again. */
function decodePlain(id: string): Buffer | undefined {
  const bytes = Buffer.from(id, 'base64url')
  return bytes.toString('base64url') === id ? bytes : undefined
}

function decrypt(keys: SessionKeys, context: string, id: string): Buffer | undefined {
  const bytes = Buffer.from(id, 'base64')
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== id) return undefined
  for (const key of keys) {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      // Try the next key.
    }
  }
  return undefined
}
