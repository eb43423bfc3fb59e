/** A counter of one window, of which this replica gets shares. */
export interface ShareBucket {
  /** Name of the limit. */
  readonly limit: string
  /** Digest of the key, or `all`. */
  readonly key: string
  /** Name of the counter in this data plane. */
  readonly counter: string
  /** Number of the window. */
  readonly index: number
  readonly endMs: number
}

/** Memory of a counter and of its share. */
export interface ShareMemory {
  readonly counter: BigInt64Array
  readonly share: BigInt64Array
}

/** Gets shares from the quota server. */
export interface Shares {
  /**
   * Asks for a larger share. Resolves when there is more, when nothing more can be had, or after a second; with false if the server does not respond.
   * @param memory undefined: found by the name of the counter in the memory of all workers
   */
  want(bucket: ShareBucket, memory?: () => ShareMemory | undefined): Promise<boolean>
}
