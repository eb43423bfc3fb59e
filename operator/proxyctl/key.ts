import { createHash, randomBytes } from 'node:crypto'

/** Keys are recognizable, so that scanners find them in code. */
const KEY_PREFIX = 'pxk_'
const KEY_BYTES = 32

/** A random API key and its digest. */
export function createKey(): { readonly key: string; readonly keyHash: string } {
  const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url')
  return { key, keyHash: `sha256:${createHash('sha256').update(key).digest('hex')}` }
}
