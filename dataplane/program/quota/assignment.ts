import type { Duration } from '@bufbuild/protobuf/wkt'
import type { RateLimitQuotaResponse } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitStrategy_BlanketRule, type RateLimitStrategy } from '#gen/proto/envoy/type/v3/ratelimit_strategy_pb.js'
import { RateLimitUnit } from '#gen/proto/envoy/type/v3/ratelimit_unit_pb.js'
import type { Strategy } from '../../policy/budgets/quota.ts'

/** An action of a response of a rate limit quota service. */
export interface BucketAction {
  /** Canonical form of the bucket id; see `toName`. */
  readonly name: string
  /** `abandon`: the bucket is to be forgotten. */
  readonly action: 'abandon' | { readonly strategy: Strategy; readonly ttlMs: number }
}

const DAY_MS = 86_400_000
/** Milliseconds of units; months and years have 30 and 365 days. */
const UNIT_MS: Readonly<Partial<Record<RateLimitUnit, number>>> = {
  [RateLimitUnit.SECOND]: 1000,
  [RateLimitUnit.MINUTE]: 60_000,
  [RateLimitUnit.HOUR]: 3_600_000,
  [RateLimitUnit.DAY]: DAY_MS,
  [RateLimitUnit.MONTH]: 30 * DAY_MS,
  [RateLimitUnit.YEAR]: 365 * DAY_MS,
}
/** Tokens of a bucket; larger numbers mean no limit in practice. */
const MAX_TOKENS = 2 ** 32 - 1

/** The same text for ids with the same entries, whatever their order. */
export const toName = (id: Readonly<Record<string, string>>): string => JSON.stringify(Object.entries(id).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Reads the actions of a response in their order. `invalid` counts those that the protocol does not have. */
export function readActions({ bucketAction }: RateLimitQuotaResponse): { readonly actions: readonly BucketAction[]; readonly invalid: number } {
  const actions: BucketAction[] = []
  for (const { bucketId, bucketAction: action } of bucketAction) {
    if (bucketId === undefined) continue
    const name = toName(bucketId.bucket)
    if (action.case === 'abandonAction') actions.push({ name, action: 'abandon' })
    if (action.case !== 'quotaAssignmentAction') continue
    const { assignmentTimeToLive: ttl, rateLimitStrategy } = action.value
    const strategy = readStrategy(rateLimitStrategy)
    if (strategy !== undefined) actions.push({ name, action: { strategy, ttlMs: ttl === undefined ? Infinity : Math.max(0, Number(toNs(ttl)) / 1e6) } })
  }
  return { actions, invalid: bucketAction.length - actions.length }
}

/** Undefined: the protocol has no such strategy. An absent one allows all requests. */
function readStrategy(message: RateLimitStrategy | undefined): Strategy | undefined {
  const strategy = message?.strategy
  switch (strategy?.case) {
    case undefined:
      return 'allow'
    case 'blanketRule':
      if (strategy.value === RateLimitStrategy_BlanketRule.ALLOW_ALL) return 'allow'
      return strategy.value === RateLimitStrategy_BlanketRule.DENY_ALL ? 'deny' : undefined
    case 'requestsPerTimeUnit': {
      const { requestsPerTimeUnit: requests, timeUnit } = strategy.value
      const unitMs = UNIT_MS[timeUnit]
      return unitMs === undefined ? undefined : toBucket(Number(requests), Number(requests), BigInt(unitMs) * 1_000_000n)
    }
    case 'tokenBucket': {
      const { maxTokens, tokensPerFill = 1, fillInterval } = strategy.value
      const intervalNs = fillInterval === undefined ? 0n : toNs(fillInterval)
      return intervalNs > 0n ? toBucket(maxTokens, tokensPerFill, intervalNs) : undefined
    }
  }
}

function toBucket(size: number, tokens: number, intervalNs: bigint): Strategy {
  if (size === 0) return 'deny'
  // A bucket that is never filled, as far as 64 bits go.
  const periodNs = tokens === 0 ? 2n ** 60n : (intervalNs + BigInt(tokens) / 2n) / BigInt(tokens)
  // More than one token in a nanosecond.
  return periodNs === 0n ? 'allow' : { size: Math.min(size, MAX_TOKENS), periodNs: periodNs > 2n ** 60n ? 2n ** 60n : periodNs }
}

const toNs = ({ seconds, nanos }: Duration): bigint => seconds * 1_000_000_000n + BigInt(nanos)
