import type { LocalRateLimit } from '#gen/config/types.ts'
import type { Policy } from '../../context.ts'
import { ProxyError } from '../../error.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../state.ts'
import { Bucket, type Allowance } from './bucket.ts'

const unitMs = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000 } as const

/**
 * Local rate limits for requests (traffic.md §8.9). The list is that of one policy on one target, which keeps its budgets over
 * config versions and shares them among all its routes. Entries are asked in order; those before one that refuses have been
 * charged. Entries for tokens are for LLM traffic. Undefined: nothing here concerns requests.
 */
export function compileLocalRateLimit(entries: readonly LocalRateLimit[], { kept, monotonicMs }: PolicyState): Policy | undefined {
  const buckets = kept.get(entries, [], () => createBuckets(entries, monotonicMs()))
  if (buckets.length === 0) return undefined
  return async (c, next) => {
    const tightest = takeAll(buckets, monotonicMs())
    if (!tightest.isAdmitted) throw new ProxyError('RATE_LIMIT', { headers: headersOf(tightest) })
    await next()
    const headers = c.var.exchange.response?.headers
    if (headers !== undefined) addHeaders(headers, tightest)
  }
}

function createBuckets(entries: readonly LocalRateLimit[], nowMs: number): readonly Bucket[] {
  return entries.flatMap(({ requests, unit, burst = 0 }) =>
    requests === undefined ? [] : new Bucket({ amount: requests, burst, unitMs: unitMs[unit], nowMs }),
  )
}

/** Of all that were asked, the one that refused, or the one with the least left. */
function takeAll(buckets: readonly Bucket[], nowMs: number): Allowance {
  let tightest: Allowance | undefined
  for (const bucket of buckets) {
    const allowance = bucket.take(nowMs)
    if (!allowance.isAdmitted) return allowance
    if (tightest === undefined || allowance.remaining < tightest.remaining) tightest = allowance
  }
  return tightest ?? { isAdmitted: true, limit: 0, remaining: 0, resetMs: 0 }
}

function headersOf({ limit, remaining, resetMs }: Allowance): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining), 'x-ratelimit-reset': String(Math.ceil(resetMs / 1000)) }
}

/** All or none: an upstream that limits by itself knows better, and a mix of both would say nothing. */
function addHeaders(headers: HeaderList, allowance: Allowance): void {
  const own = headersOf(allowance)
  for (const name in own) if (headers.has(name)) return
  for (const name in own) headers.append(name, own[name] ?? '')
}
