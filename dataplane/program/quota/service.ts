import { setTimeout as waitMs } from 'node:timers/promises'
import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  RateLimitQuotaService,
  type RateLimitQuotaResponse,
  type RateLimitQuotaUsageReportsSchema,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { openStream, type GrpcStream } from '../../net/callout/grpc.ts'
import { backoffDelay, withJitter } from '../../runtime/backoff.ts'
import type { QuotaServiceRef } from '../../runtime/quotas.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { readActions } from './assignment.ts'
import type { BucketUsage, QuotaBuckets } from './buckets.ts'

export interface QuotaServiceOptions {
  readonly service: QuotaServiceRef
  readonly destination: Destination
  readonly buckets: QuotaBuckets
  /** The service responds, for the first time or again. */
  onConnected(): void
  onDisconnected(cause: string): void
  /** Actions on buckets that are not subscribed, or that the protocol does not have. */
  onIgnored(count: number): void
}

const BACKOFF = { initialMs: 100, maxMs: 5_000 }
/** A stream that has lasted for so long has not failed at once: the next delay is the first one again. */
const STABLE_MS = 5_000
/** Requests do not wait for a service that has not responded on a stream for so long. */
const SILENT_MS = 3_000
/** Milliseconds between reports that do not wait for the interval. */
const HURRY_MS = 50
/** A service has so long to receive the last report. */
const CLOSE_MS = 200

/** Reports the use of buckets to a rate limit quota service, which assigns what may be used, until `close`. */
export class QuotaServiceStream {
  readonly #options: QuotaServiceOptions
  readonly #abort = new AbortController()
  #endpoints: ReadonlySet<string>
  #running: Promise<void> | undefined
  #failures = 0
  /** The stream was ended because another one takes its place. */
  #isMoving = false
  /** Ends the stream that is open. */
  #end: ((cause: string) => void) | undefined
  /** Reports what is due; undefined: no stream is open. */
  #hurry: (() => void) | undefined

  constructor(options: QuotaServiceOptions) {
    this.#options = options
    this.#endpoints = this.#readEndpoints()
  }

  /** Reports what is due soon. Opens the stream if this is the first report. */
  hurry(): void {
    // Opening the stream calls this again.
    this.#running ??= Promise.resolve().then(() => this.#run())
    this.#hurry?.()
  }

  /** The destination was changed. If it has lost an endpoint, which may be that of the stream, another stream is opened. */
  update(): void {
    const before = this.#endpoints
    this.#endpoints = this.#readEndpoints()
    if (before.isSubsetOf(this.#endpoints) && before.size > 0) return
    this.#failures = 0
    this.#isMoving = this.#end !== undefined
    this.#end?.('the endpoints of the backend were changed')
  }

  async close(): Promise<void> {
    this.#abort.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort
    const { buckets, onDisconnected } = this.#options
    while (!signal.aborted) {
      const cause = await this.#connect()
      this.#hurry = this.#end = undefined
      if (signal.aborted) break
      if (this.#isMoving) {
        this.#isMoving = false
        continue
      }
      buckets.offline()
      onDisconnected(cause)
      await waitMs(withJitter(backoffDelay(this.#failures++, BACKOFF), Math.random), undefined, { signal, ref: false }).catch(() => undefined)
    }
    buckets.offline()
  }

  /** Runs one stream until it ends; returns the cause. */
  async #connect(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const { service, buckets, onConnected, onDisconnected } = this.#options
    const startMs = performance.now()
    let isSilent = true
    let isFull = false
    const stream = openStream(this.#options.destination, RateLimitQuotaService.method.streamRateLimitQuotas, {
      onMessage: (response) => {
        if (isSilent) {
          buckets.online()
          onConnected()
        }
        isSilent = false
        if (performance.now() - startMs > STABLE_MS) this.#failures = 0
        this.#apply(response)
      },
      onEnd: (error) => resolve(error?.message ?? 'the service ended the stream'),
      onDrain: () => (isFull = false),
      onOpen: () => buckets.online(),
    })
    let isFirst = true
    let silence: NodeJS.Timeout | undefined
    const send = (usages: readonly BucketUsage[]): void => {
      isFull = !stream.send({ ...(isFirst && { domain: service.domain }), bucketQuotaUsages: usages.map(toUsage) })
      isFirst = false
      silence ??= setTimeout(() => {
        if (!isSilent) return
        buckets.offline()
        onDisconnected(`no response within ${SILENT_MS} ms`)
      }, SILENT_MS)
    }
    const stop = this.#schedule(stream, send, () => isFull)
    this.#end = (cause) => {
      resolve(cause)
      stream.cancel(new Error(cause))
    }
    buckets.connected()
    const cause = await promise
    clearTimeout(silence)
    stop()
    return cause
  }

  /** Sends reports: each interval, soon if something is due, and once at the end. Returns a function that stops it. */
  #schedule(stream: GrpcStream<Report>, send: (usages: readonly BucketUsage[]) => void, isFull: () => boolean): () => void {
    const { service, buckets } = this.#options
    const { signal } = this.#abort
    let isReporting = false
    // Usage that is not reported stays in memory.
    const reportAll = async (): Promise<void> => {
      if (isReporting || isFull()) return
      isReporting = true
      for await (const usages of buckets.takeAll()) send(usages)
      isReporting = false
    }
    let hurried: NodeJS.Timeout | undefined
    let sentMs = -Infinity
    this.#hurry = () => {
      hurried ??= setTimeout(
        () => {
          hurried = undefined
          if (isFull()) return
          sentMs = performance.now()
          const usages = buckets.takeDue()
          if (usages.length > 0) send(usages)
        },
        Math.max(0, sentMs + HURRY_MS - performance.now()),
      )
    }
    const interval = setInterval(() => void reportAll(), service.intervalMs).unref()
    const finish = (): void => {
      void reportAll().then(() => stream.end())
      setTimeout(() => this.#end?.('closed'), CLOSE_MS)
    }
    signal.addEventListener('abort', finish)
    return () => {
      signal.removeEventListener('abort', finish)
      clearInterval(interval)
      clearTimeout(hurried)
    }
  }

  #readEndpoints(): ReadonlySet<string> {
    return new Set(this.#options.destination.endpoints.flatMap(({ label, draining }) => (draining ? [] : [label])))
  }

  #apply(response: RateLimitQuotaResponse): void {
    const { buckets, onIgnored } = this.#options
    const { actions, invalid } = readActions(response)
    const ignored = buckets.apply(actions) + invalid
    if (ignored > 0) onIgnored(ignored)
  }
}

type Report = MessageInitShape<typeof RateLimitQuotaUsageReportsSchema>

const toUsage = ({ id, allowed, denied, elapsedMs }: BucketUsage): NonNullable<Report['bucketQuotaUsages']>[number] => ({
  bucketId: { bucket: { ...id } },
  timeElapsed: { seconds: BigInt(Math.floor(elapsedMs / 1000)), nanos: Math.round((elapsedMs % 1000) * 1e6) },
  numRequestsAllowed: BigInt(allowed),
  numRequestsDenied: BigInt(denied),
})
