/** Raw bytes (Latin-1) from a client, with the required outcome. A probe request follows them on the same connection. */
export interface DownstreamCase {
  readonly name: string
  readonly bytes: string
  /**
   * Requests that reach the handler before the probe, as `METHOD authority target body`. The probe follows as the last one,
   * unless `refused` or `isClosed` is set.
   */
  readonly served?: readonly string[]
  /** Status of the error response that follows; the connection closes and the probe is not read. */
  readonly refused?: number
  /** The connection closes after the served requests: the probe is not read. */
  readonly isClosed?: true
}

/** Raw bytes (Latin-1) of an upstream's response, with the required outcome. A probe call follows on the same pool. */
export interface UpstreamCase {
  readonly name: string
  readonly bytes: string
  /** Method of the request; GET when absent. */
  readonly method?: string
  /** The upstream closes its side after the bytes. */
  readonly closes?: true
  /** Sent 20 ms later, on a connection that the pool may hold. */
  readonly late?: string
  /** What the caller receives: `status body`, trailers as ` name: value`. */
  readonly response?: string
  /** The call rejects with this failure, or, with `response`, its body ends with it. */
  readonly fails?: 'protocol' | 'reset' | 'upgrade'
  /** The probe call goes out on the same connection. */
  readonly isReused?: true
}
