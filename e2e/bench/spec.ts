/** What a proxy under test serves: `routes` routes `/route-<n>/` and a catch-all, all with the same upstream. */
export interface ProxySpec {
  readonly port: number
  /** nginx 1.22 cannot serve HTTP/1.1 and cleartext HTTP/2 on one port; for the data plane both numbers are equal. */
  readonly http2Port: number
  /** Port of HTTP/1.1 and HTTP/2 over TLS; default none. */
  readonly tlsPort?: number
  readonly upstreamPort: number
  readonly routes: number
  /** Turns off response buffering in nginx. The data plane never buffers. */
  readonly isStreaming?: boolean
  /** Data plane only: rules as in a `-f` file, without backends, placed before all others. */
  readonly rules?: readonly object[]
}

/** A running proxy process. */
export interface RunningProxy {
  /** Root of its process tree. */
  readonly pid: number
  stop(): Promise<void>
}
