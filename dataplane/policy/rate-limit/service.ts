import type { MessageInitShape } from '@bufbuild/protobuf'
import type { GlobalRateLimit } from '#gen/config/types.ts'
import type { HeaderValue } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import {
  RateLimitResponse_Code as Code,
  RateLimitService,
  type RateLimitRequestSchema,
  type RateLimitResponse,
} from '#gen/proto/envoy/service/ratelimit/v3/rls_pb.js'
import { callUnary, isCallFailure } from '../../net/callout/grpc.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { beginCall } from '../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { fieldOf } from '../mutations.ts'
import type { Allowance } from './bucket.ts'
import type { Descriptor } from './descriptors.ts'

/** Timeout of charges, whose result is not awaited. */
const CHARGE_TIMEOUT_MS = 10_000

/** The service's decision about a request. Headers are validated: names in lower case, values as stored in heads. */
export interface Verdict {
  readonly isAdmitted: boolean
  readonly requestHeaders: readonly Field[]
  readonly responseHeaders: readonly Field[]
  readonly body: Buffer
  /** Allowance of the counter with the least left; undefined if no counter has a limit. */
  readonly allowance: Allowance | undefined
}

type Field = readonly [name: string, value: string]

/** Client of a rate limit service for one policy (`envoy.service.ratelimit.v3`). */
export class LimitService {
  readonly #destination: Destination
  readonly #section: Pick<GlobalRateLimit, 'domain' | 'failureMode'>
  readonly #registry: Registry

  constructor(destination: Destination, section: Pick<GlobalRateLimit, 'domain' | 'failureMode'>, registry: Registry) {
    this.#destination = destination
    this.#section = section
    this.#registry = registry
  }

  /** Undefined if the call failed and the failure mode admits the request. Rejects with a ProxyError otherwise. */
  async check(exchange: Exchange, descriptors: readonly Descriptor[]): Promise<Verdict | undefined> {
    const method = RateLimitService.method.shouldRateLimit
    const call = beginCall(this.#registry, exchange, 'Policy', 'RateLimit', { host: this.#destination.name, path: `/${method.parent.typeName}/${method.name}` })
    try {
      const metadata = call.traceparent === undefined ? undefined : new HeaderList(['traceparent', call.traceparent])
      const response = await callUnary(this.#destination, method, this.#requestOf(descriptors), { exchange, metadata })
      call.end({ status: 200 })
      return this.#read(response)
    } catch (error) {
      call.end({ error: error as Error })
      if (!isCallFailure(error)) throw error
      return this.#giveWay(error)
    }
  }

  /** Charges counters for what was spent already. Response and errors are ignored. */
  charge(descriptors: readonly Descriptor[], hits: number): void {
    const request = this.#requestOf(withHits(descriptors, hits))
    callUnary(this.#destination, RateLimitService.method.shouldRateLimit, request, { timeoutMs: CHARGE_TIMEOUT_MS }).catch(() => undefined)
  }

  #requestOf(descriptors: readonly Descriptor[]): MessageInitShape<typeof RateLimitRequestSchema> {
    return { domain: this.#section.domain, descriptors: [...descriptors] }
  }

  #read(response: RateLimitResponse): Verdict | undefined {
    const { overallCode, requestHeadersToAdd, responseHeadersToAdd, rawBody } = response
    if (overallCode !== Code.OK && overallCode !== Code.OVER_LIMIT) return this.#giveWay(new Error('the rate limit service does not say whether to admit'))
    return {
      isAdmitted: overallCode === Code.OK,
      requestHeaders: fieldsOf(requestHeadersToAdd),
      responseHeaders: fieldsOf(responseHeadersToAdd),
      body: Buffer.from(rawBody),
      allowance: tightestOf(response),
    }
  }

  #giveWay(cause: unknown): undefined {
    if (this.#section.failureMode !== 'FailOpen') throw new ProxyError('RATE_LIMIT_SERVICE', { cause })
  }
}

/** Most hits of a descriptor, by the protocol. */
const MAX_HITS = 1_000_000_000

/** The same descriptors with a cost; 0 reads the counters only. */
export function withHits(descriptors: readonly Descriptor[], hits: number): Descriptor[] {
  return descriptors.map((descriptor) => ({ ...descriptor, hitsAddend: BigInt(Math.min(MAX_HITS, Math.max(0, Math.trunc(hits)))) }))
}

function fieldsOf(headers: readonly HeaderValue[]): Field[] {
  return headers.flatMap((header) => {
    const field = fieldOf(header)
    return field === undefined || field.name.startsWith(':') || field.name === 'host' ? [] : [[field.name, field.value] as const]
  })
}

function tightestOf({ statuses }: RateLimitResponse): Allowance | undefined {
  let tightest: Allowance | undefined
  for (const { code, currentLimit, limitRemaining, durationUntilReset } of statuses) {
    if (currentLimit === undefined || (tightest !== undefined && tightest.remaining <= limitRemaining)) continue
    const resetMs = Number(durationUntilReset?.seconds ?? 0n) * 1000
    tightest = { isAdmitted: code === Code.OK, limit: currentLimit.requestsPerUnit, remaining: limitRemaining, resetMs }
  }
  return tightest
}
