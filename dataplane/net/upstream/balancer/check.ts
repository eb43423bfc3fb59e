/** Compiled `health.active`: requests of the gateway that find out whether an endpoint is healthy. */
export interface HealthCheck {
  /** Equal for equal checks. */
  readonly key: string
  readonly intervalMs: number
  /** Random time before the first check, and beyond each interval, at most. */
  readonly jitterMs: number
  readonly timeoutMs: number
  /** Checks in a row. */
  readonly unhealthyThreshold: number
  readonly healthyThreshold: number
  readonly probe: Probe
}

export type Probe =
  | {
      readonly type: 'http'
      readonly path: string
      /** Undefined: as in requests of clients. */
      readonly hostname: string | undefined
      readonly statuses: ReadonlySet<number>
      readonly text: string | undefined
    }
  | { readonly type: 'tcp' }
  | { readonly type: 'grpc'; readonly service: string }

/** The result of the checks of an endpoint. */
export interface EndpointCheck {
  readonly isDown: boolean
  /** Why, in the worker that makes the checks. */
  readonly problem: string | undefined
}
