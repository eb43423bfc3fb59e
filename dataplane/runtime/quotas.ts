import type { BackendRef } from '#gen/config/types.ts'

/** A stream to a rate limit quota service that is not the operator. */
export interface QuotaServiceRef {
  readonly backendRef: BackendRef
  readonly domain: string
  /** Milliseconds between reports. */
  readonly intervalMs: number
}

/** A bucket of such a service. */
export interface QuotaBucket {
  readonly service: QuotaServiceRef
  readonly id: Readonly<Record<string, string>>
  /** Name of the counter in this data plane. */
  readonly counter: string
}

/** Memory of the assignment of a bucket. */
export interface QuotaMemory {
  readonly words: BigInt64Array
}

/** Gets assignments from rate limit quota services. */
export interface Quotas {
  /**
   * Asks for the assignment of a bucket that has none in force. Resolves with true when there is one, with false if none arrives in time.
   * @param memory undefined: found by the name of the counter in the memory of all workers
   */
  assign(bucket: QuotaBucket, memory?: () => QuotaMemory | undefined): Promise<boolean>
}
