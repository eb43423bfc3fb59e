/** Raw bytes (Latin-1) from a client, and what must become of them. A probe request follows them on the same connection. */
export interface DownstreamCase {
  readonly name: string
  readonly bytes: string
  /**
   * Requests that reach the handler before the probe, as `METHOD authority target body`. The probe is the next one, and the only other,
   * unless the case says otherwise.
   */
  readonly served?: readonly string[]
  /** Status of the refusal that follows; the connection closes and the probe is not read. */
  readonly refused?: number
  /** The connection closes after what was served: the probe is not read. */
  readonly isClosed?: true
}

/** Raw bytes (Latin-1) that an upstream answers a request with, and what must become of them. A probe call follows on the same pool. */
export interface UpstreamCase {
  readonly name: string
  readonly bytes: string
  /** Method of the request; GET when absent. */
  readonly method?: string
  /** The upstream closes its side after the bytes. */
  readonly closes?: true
  /** Sent 20 ms later, on a connection that the pool may have kept. */
  readonly late?: string
  /** `status body`, trailers as ` name: value`; what the caller gets. */
  readonly gives?: string
  /** The call is rejected with this failure; or, with `gives`, its body breaks off. */
  readonly fails?: 'protocol' | 'reset' | 'upgrade'
  /** The probe call goes out on the same connection. */
  readonly isReused?: true
}
