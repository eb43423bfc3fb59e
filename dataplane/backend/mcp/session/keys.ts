import type { SessionKeys } from '../../../runtime/seal.ts'

/** Invalid value of an environment variable. The message names the variable and the fix. */
class SessionKeyError extends Error {}

/** Reads SESSION_KEY and SESSION_KEY_PREVIOUS, each 64 hexadecimal digits. Throws a SessionKeyError. */
export function readSessionKeys(env: Readonly<Record<string, string | undefined>>): SessionKeys {
  return ['SESSION_KEY', 'SESSION_KEY_PREVIOUS'].flatMap((name) => {
    const text = env[name]?.trim() ?? ''
    if (text === '') return []
    if (!/^[0-9a-fA-F]{64}$/.test(text)) throw new SessionKeyError(`${name} is not 64 hexadecimal digits: make one with openssl rand -hex 32`)
    return [Buffer.from(text, 'hex')]
  })
}
