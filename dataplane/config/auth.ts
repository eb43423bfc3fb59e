import type { BackendAuth } from '#gen/config/types.ts'
import type { UpstreamAuth } from '../upstream/auth.ts'
import type { ConfigSnapshot } from './store.ts'

/** Entry of a Secret that secretRef reads. */
const ENTRY = 'Authorization'
const cloudSections = ['cloudA', 'cloudB', 'cloudC'] as const

/**
 * The credentials of a destination: `key`, `secretRef` or `passthrough` (part 2, Backend authentication). What does not resolve,
 * and what this build has not got, is `broken`: an upstream is never asked without the credentials that it was configured with.
 */
export function compileBackendAuth(auth: BackendAuth, secrets: ConfigSnapshot['secrets']): UpstreamAuth {
  if (auth.key !== undefined) return bearer(auth.key, 'key')
  if (auth.passthrough !== undefined) return { kind: 'passthrough' }
  if (auth.secretRef === undefined) {
    const section = cloudSections.find((name) => auth[name] !== undefined)
    return broken(section === undefined ? 'auth is empty: set key, secretRef or passthrough' : `auth.${section} is not supported yet`)
  }
  const secret = auth.secretRef.secret === undefined ? undefined : secrets.get(auth.secretRef.secret)
  if (secret === undefined) return broken('the Secret of secretRef does not resolve')
  const value = secret.data?.[ENTRY]
  if (value === undefined) return broken(`the Secret of secretRef has no entry ${ENTRY}`)
  return bearer(value.trim().replace(/^bearer(?: +|$)/i, ''), 'secretRef')
}

const broken = (reason: string): UpstreamAuth => ({ kind: 'broken', reason })

/** Refuses what would end the header line, or would be other bytes on the wire than in the config. */
function bearer(token: string, field: 'key' | 'secretRef'): UpstreamAuth {
  if (token === '') return broken(`the credential of ${field} is empty`)
  return /^[\x20-\x7e]+$/.test(token) ? { kind: 'bearer', token } : broken(`the credential of ${field} is not printable ASCII`)
}
