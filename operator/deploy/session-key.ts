import { failParameters, type DeployFailure, type SecretData } from './types.ts'

/** Variable of the data plane, and the key of the Secret that it is set from. */
export const SESSION_KEY = 'SESSION_KEY'
export const SESSION_KEY_ENTRY = 'key'
const IS_KEY = /^[0-9a-fA-F]{64}$/

/** The key to keep in the session Secret: that of the live one, which is never overwritten, else a new one. 64 hex digits. */
export function chooseSessionKey(
  live: SecretData | undefined,
  secretName: string,
  generate: () => string,
): { readonly ok: true; readonly key: string } | DeployFailure {
  if (!live) return { ok: true, key: generate() }
  const key = Buffer.from(live.data?.[SESSION_KEY_ENTRY] ?? '', 'base64')
    .toString('utf8')
    .trim()
  // The value is secret: the message describes the format and does not quote the value.
  if (!IS_KEY.test(key))
    return failParameters(
      `Secret ${secretName} has no usable session key: ${SESSION_KEY_ENTRY} must be 32 bytes in hex; correct it, or delete the Secret to get a new one`,
      'PX1026',
    )
  return { ok: true, key }
}
