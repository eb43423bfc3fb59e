import { create } from '@bufbuild/protobuf'
import { DurationSchema, type Duration } from '@bufbuild/protobuf/wkt'
import type { RateLimitQuotaResponse, RateLimitQuotaUsageReports } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import {
  BucketIdSchema,
  RateLimitQuotaUsageReports_BucketQuotaUsageSchema,
  RateLimitQuotaUsageReportsSchema,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitStrategy_BlanketRule } from '#gen/proto/envoy/type/v3/ratelimit_strategy_pb.js'
import type { BucketShare, BucketUse } from './keeper.ts'

type Entry = RateLimitQuotaUsageReports['bucketQuotaUsages'][number]

/**
 * Encodes a report. The bucket `{replica}` comes first: a report has at least one, and the server tells processes apart by it. What is
 * reserved for requests under way has a bucket of its own, because it may shrink.
 */
export function toReport(domain: string, replica: string, uses: readonly BucketUse[], elapsedMs: number): RateLimitQuotaUsageReports {
  const timeElapsed = create(DurationSchema, { seconds: BigInt(Math.floor(elapsedMs / 1000)), nanos: Math.max(1, Math.round((elapsedMs % 1000) * 1e6)) })
  return create(RateLimitQuotaUsageReportsSchema, {
    domain,
    bucketQuotaUsages: [toEntry({ replica }, timeElapsed), ...uses.flatMap((use) => toEntries(use, timeElapsed))],
  })
}

function toEntries({ bucket: { limit, key, index }, used, reserved, wanted, others = 0 }: BucketUse, timeElapsed: Duration): Entry[] {
  const bucket = { limit, key, window: String(index) }
  const entries = [toEntry(bucket, timeElapsed, used, wanted)]
  if (reserved > 0) entries.push(toEntry({ ...bucket, of: 'reserved' }, timeElapsed, reserved))
  // Before the others: an operator that does not know it takes it for the use, which the next entry replaces.
  if (others > 0) entries.unshift(toEntry({ ...bucket, of: 'others' }, timeElapsed, others))
  return entries
}

const toEntry = (bucket: Record<string, string>, timeElapsed: Duration, allowed = 0, denied = 0): Entry =>
  create(RateLimitQuotaUsageReports_BucketQuotaUsageSchema, {
    bucketId: create(BucketIdSchema, { bucket }),
    timeElapsed,
    numRequestsAllowed: BigInt(allowed),
    numRequestsDenied: BigInt(denied),
  })

/** Reads the shares of a response; actions with other buckets than those of `toReport` are ignored. */
export function readResponse({ bucketAction }: RateLimitQuotaResponse): BucketShare[] {
  const shares = new Map<string, { -readonly [K in keyof BucketShare]: BucketShare[K] }>()
  for (const { bucketId, bucketAction: action } of bucketAction) {
    const { limit, key, window, of } = bucketId?.bucket ?? {}
    const index = Number(window)
    if (limit === undefined || key === undefined || !Number.isSafeInteger(index)) continue
    const name = JSON.stringify([limit, key, window])
    let share = shares.get(name)
    if (share === undefined) shares.set(name, (share = { limit, key, index, granted: undefined, isLast: false, total: 0, ttlMs: 0 }))
    if (action.case !== 'quotaAssignmentAction') continue
    const { assignmentTimeToLive: ttl, rateLimitStrategy } = action.value
    const strategy = rateLimitStrategy?.strategy
    if (of === 'all') share.total = strategy?.case === 'requestsPerTimeUnit' ? Number(strategy.value.requestsPerTimeUnit) : 0
    else if (strategy?.case === 'requestsPerTimeUnit') {
      share.granted = Number(strategy.value.requestsPerTimeUnit)
      share.ttlMs = Number(ttl?.seconds ?? 0n) * 1000
    } else if (strategy?.case === 'blanketRule') share.isLast = strategy.value === RateLimitStrategy_BlanketRule.DENY_ALL
  }
  return [...shares.values()]
}
