import { createHash } from 'node:crypto'

/** Random bytes of a key. */
export const KEY_BYTES = 32
/** Keys are recognizable, so that scanners find them in code. */
const KEY_PREFIX = 'pxk_'

/** An API key of `KEY_BYTES` random bytes, and its digest as a `keyHash`. */
export function newKey(random: Uint8Array): { readonly key: string; readonly keyHash: string } {
  const key = KEY_PREFIX + Buffer.from(random).toString('base64url')
  return { key, keyHash: `sha256:${createHash('sha256').update(key).digest('hex')}` }
}
