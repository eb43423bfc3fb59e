import type { Eviction, HealthPolicy } from '../../../net/upstream/balancer/health.ts'
import type { Cause, Verdict } from '../causes/types.ts'

/** Causes that no retry within a request can end: the shortest eviction. A later request finds out whether somebody has paid, or replaced the key. */
const lasting: Partial<Readonly<Record<Cause, number>>> = { Quota: 300_000, Auth: 60_000, ModelNotFound: 60_000 }

/** A provider, as far as it is known which requests fail for its sake. */
export interface Blamable {
  /** Whether all requests ask for one model, which the config names. */
  readonly hasOwnModel: boolean
  /** Whether requests are sent with the credential of the client. */
  readonly hasClientCredential: boolean
}

/**
 * Which other requests a failure says something about: all of the provider, or those for the same model. Failures of one client, or of the model that it
 * names, evict nothing for others (llm.md §15.4).
 */
export function blameOf({ hasOwnModel, hasClientCredential }: Blamable, { cause, scope }: Verdict): 'provider' | 'model' | undefined {
  if (scope === 'endpoint') return 'provider'
  if (scope === 'request' || hasClientCredential) return undefined
  if (scope !== 'model' || hasOwnModel) return 'provider'
  return cause === 'RateLimit' ? 'model' : undefined
}

/**
 * Whether and for how long a failure evicts its provider (llm.md §15.2). A rate limit evicts until the provider accepts requests again, if that is known,
 * and a lasting cause at once. A policy without `eviction` evicts for the retry backoff otherwise.
 */
export function evictionOf(policy: HealthPolicy | undefined, { cause, retryAfterMs }: Verdict, backoffMs: number | undefined): Eviction | undefined {
  if (policy === undefined) return undefined
  const { eviction } = policy
  const at = (durationMs: number): Eviction => ({
    durationMs,
    restoreHealth: eviction?.restoreHealth,
    consecutiveFailures: undefined,
    healthThreshold: undefined,
  })
  if (cause === 'RateLimit' && retryAfterMs !== undefined) return { ...at(retryAfterMs), isExact: true }
  const longMs = lasting[cause]
  if (longMs !== undefined) return at(Math.max(longMs, eviction?.durationMs ?? 0))
  return eviction ?? (backoffMs ? at(backoffMs) : undefined)
}
