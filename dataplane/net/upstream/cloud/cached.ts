import { issuedSecrets } from '../../../runtime/issued-secrets.ts'

/** A token or temporary credentials with an expiry. */
export interface Expiring {
  /** Epoch milliseconds; undefined: never. */
  readonly expiresAtMs: number | undefined
}

/** Renewal starts this long before the expiry, or after nine tenths of the lifetime, whichever is later. */
const MARGIN_MS = 5 * 60_000
/** Requests wait this long for a renewal while the cached value is valid; the renewal then continues in the background. */
const PATIENCE_MS = 1000

/**
 * Caches the result of `fetch` until shortly before it expires. Concurrent callers share one fetch. While the cached value is valid, a
 * failed or slow renewal has no effect.
 */
export function cacheUntilExpiry<T extends Expiring>(
  fetch: () => Promise<T>,
  nowMs: () => number = Date.now,
  owner: 'process' | 'users' = 'process',
): () => Promise<T> {
  let kept: { readonly value: T; readonly renewAtMs: number } | undefined
  let pending: Promise<T> | undefined
  const renew = (): Promise<T> =>
    (pending ??= fetch()
      .then((value) => {
        for (const secret of Object.values(value)) if (typeof secret === 'string') issuedSecrets.add(secret, owner)
        const now = nowMs()
        const life = (value.expiresAtMs ?? Infinity) - now
        kept = { value, renewAtMs: now + Math.max(life - MARGIN_MS, life * 0.9) }
        return value
      })
      .finally(() => (pending = undefined)))
  return async () => {
    const now = nowMs()
    if (kept !== undefined && now < kept.renewAtMs) return kept.value
    const good = kept !== undefined && now < (kept.value.expiresAtMs ?? Infinity) ? kept.value : undefined
    if (good === undefined) return renew()
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<T>((resolve) => (timer = setTimeout(() => resolve(good), PATIENCE_MS)))
    return Promise.race([renew().catch(() => good), patience]).finally(() => clearTimeout(timer))
  }
}
