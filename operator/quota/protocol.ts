import { create } from '@bufbuild/protobuf'
import { DurationSchema } from '@bufbuild/protobuf/wkt'
import type { RateLimitQuotaResponse, RateLimitQuotaUsageReports } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import {
  BucketIdSchema,
  RateLimitQuotaResponse_BucketActionSchema,
  RateLimitQuotaResponse_BucketAction_QuotaAssignmentActionSchema,
  RateLimitQuotaResponseSchema,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitStrategy_BlanketRule, RateLimitStrategySchema } from '#gen/proto/envoy/type/v3/ratelimit_strategy_pb.js'
import { SHARE_MS, type Share, type Usage } from './pool.ts'

/** A report as a replica sends it. */
export interface Report {
  /** Id of the process; another one after a restart. */
  readonly replica: string | undefined
  readonly usages: readonly Usage[]
}

type Action = RateLimitQuotaResponse['bucketAction'][number]

/**
 * Reads a report. Its first bucket is `{replica}`; the others are `{limit, key, window}`, and with `of: reserved` what is reserved for
 * requests under way, which the protocol has no field for, with `of: others` what other replicas had used. Buckets with other ids are ignored.
 */
export function readReport({ bucketQuotaUsages }: RateLimitQuotaUsageReports): Report {
  let replica: string | undefined
  const usages = new Map<string, { -readonly [K in keyof Usage]: Usage[K] }>()
  for (const { bucketId, numRequestsAllowed, numRequestsDenied } of bucketQuotaUsages) {
    const { replica: own, limit, key, window, of } = bucketId?.bucket ?? {}
    replica ??= own
    const index = Number(window)
    if (limit === undefined || key === undefined || !Number.isSafeInteger(index)) continue
    const name = JSON.stringify([limit, key, window])
    let usage = usages.get(name)
    if (usage === undefined) usages.set(name, (usage = { limit, key, index, used: 0, reserved: 0, wanted: 0 }))
    if (of === 'reserved') usage.reserved = Number(numRequestsAllowed)
    else if (of === 'others') usage.others = Number(numRequestsAllowed)
    else {
      usage.used = Number(numRequestsAllowed)
      usage.wanted = Number(numRequestsDenied)
    }
  }
  return { replica, usages: [...usages.values()] }
}

/**
 * Encodes the response to a report: of each bucket the share, followed by DENY_ALL if it is the last one, and with `of: all` what all
 * replicas use. The action of `{replica}` comes first, so that there is always one.
 */
export function toResponse(replica: string, shares: readonly Share[]): RateLimitQuotaResponse {
  return create(RateLimitQuotaResponseSchema, {
    bucketAction: [toAction({ replica }, { case: 'blanketRule', value: RateLimitStrategy_BlanketRule.ALLOW_ALL }), ...shares.flatMap(toActions)],
  })
}

function toActions({ limit, key, index, granted, isLast, total }: Share): Action[] {
  const bucket = { limit, key, window: String(index) }
  if (granted === undefined)
    return [
      create(RateLimitQuotaResponse_BucketActionSchema, { bucketId: create(BucketIdSchema, { bucket }), bucketAction: { case: 'abandonAction', value: {} } }),
    ]
  return [
    toAction({ ...bucket, of: 'all' }, toAmount(total)),
    toAction(bucket, toAmount(granted)),
    ...(isLast ? [toAction(bucket, { case: 'blanketRule', value: RateLimitStrategy_BlanketRule.DENY_ALL } as const)] : []),
  ]
}

type Strategy = Parameters<typeof create<typeof RateLimitStrategySchema>>[1] & {}

const toAmount = (amount: number): NonNullable<Strategy['strategy']> => ({
  case: 'requestsPerTimeUnit',
  value: { requestsPerTimeUnit: BigInt(Math.round(amount)) },
})

function toAction(bucket: Record<string, string>, strategy: NonNullable<Strategy['strategy']>): Action {
  return create(RateLimitQuotaResponse_BucketActionSchema, {
    bucketId: create(BucketIdSchema, { bucket }),
    bucketAction: {
      case: 'quotaAssignmentAction',
      value: create(RateLimitQuotaResponse_BucketAction_QuotaAssignmentActionSchema, {
        assignmentTimeToLive: create(DurationSchema, { seconds: BigInt(SHARE_MS / 1000) }),
        rateLimitStrategy: create(RateLimitStrategySchema, { strategy }),
      }),
    },
  })
}
