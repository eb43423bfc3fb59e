import type { HeaderList } from '../../../http/headers.ts'
import type { Eviction, HealthPolicy } from '../../../net/upstream/balancer/health.ts'

/** A larger `x-ratelimit-reset` is a Unix time, not a number of seconds. */
const RESET_SECONDS_LIMIT = 30 * 86_400

/**
 * Whether and for how long an unhealthy response evicts its provider (llm.md §15.2). A policy without `eviction` evicts for the time
 * that a 429 response requests, or else for the route's retry backoff.
 */
export function evictionOf(
  policy: HealthPolicy | undefined,
  response: { status: number; headers: HeaderList } | undefined,
  backoffMs: number | undefined,
  epochMs: number,
): Eviction | undefined {
  if (policy === undefined) return undefined
  if (policy.eviction !== undefined) return policy.eviction
  const durationMs = (response?.status === 429 ? retryAfterMs(response.headers, epochMs) : undefined) ?? (backoffMs || undefined)
  return durationMs === undefined ? undefined : { durationMs, restoreHealth: undefined, consecutiveFailures: undefined, healthThreshold: undefined }
}

/** The delay in milliseconds that a 429 response requests: `retry-after-ms`, `retry-after`, `x-ratelimit-reset` or `x-ratelimit-reset-*`. */
export function retryAfterMs(headers: HeaderList, epochMs: number): number | undefined {
  const precise = positive(headers.get('retry-after-ms'))
  if (precise !== undefined) return precise
  const after = headers.get('retry-after')
  if (after !== undefined) {
    const seconds = positive(after)
    if (seconds !== undefined) return seconds * 1000
    const date = Date.parse(after)
    if (!Number.isNaN(date)) return Math.max(0, date - epochMs) || undefined
  }
  const reset = positive(headers.get('x-ratelimit-reset'))
  if (reset !== undefined) return reset < RESET_SECONDS_LIMIT ? reset * 1000 : Math.max(0, reset * 1000 - epochMs) || undefined
  const resets = ['requests', 'tokens'].flatMap((kind) => spanMs(headers.get(`x-ratelimit-reset-${kind}`)) ?? [])
  return resets.length === 0 ? undefined : Math.min(...resets)
}

function positive(text: string | undefined): number | undefined {
  const number = text === undefined || text.trim() === '' ? NaN : Number(text)
  return number > 0 && Number.isFinite(number) ? number : undefined
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses a duration such as `1m30s` or `250ms`, or a number of seconds. */
function spanMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const plain = positive(text)
  if (plain !== undefined) return plain * 1000
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) sum += Number(amount) * (unitMs[unit ?? 's'] ?? 0)
  return sum || undefined
}
