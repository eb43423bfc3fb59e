import type { Clock } from '../serve/debounce.ts'
import { ApiError, type KubeConnection } from './connection.ts'

export interface ElectionOptions {
  readonly connection: KubeConnection
  readonly namespace: string
  readonly name: string
  /** Of this replica, unique. */
  readonly identity: string
  readonly clock: Clock
  /** Wall clock, for the times in the Lease; leadership itself is judged by `clock` alone. */
  readonly now: () => Date
  readonly onStart: () => void
  readonly onStop: () => void
  readonly onError: (error: unknown) => void
  /** Default 15 s, 10 s, 2 s: how long a leader is trusted, how long it trusts itself, how often it renews (operator.md §7.1). */
  readonly times?: { readonly leaseMs: number; readonly renewMs: number; readonly retryMs: number }
}

export interface Election {
  /** Whether this replica may write now. */
  isLeader(): boolean
  /** Gives the Lease back, so that another replica need not wait for its end. */
  close(): Promise<void>
}

interface Lease {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion?: string }
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

/** Elects a leader among replicas on a Lease, by compare-and-swap of its resourceVersion. */
export function startElection(options: ElectionOptions): Election {
  const { connection, namespace, name, identity, clock } = options
  const { leaseMs, renewMs, retryMs } = options.times ?? { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 }
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
  let observed: { readonly version: string | undefined; readonly at: number } | undefined
  let current: Lease | undefined
  let renewedAt = -Infinity
  let isLeading = false
  let isClosed = false
  let cancelTick = (): void => {}
  let cancelDeadline = (): void => {}

  const lead = (attemptedAt: number): void => {
    // Counted from before the request: others count from when they see it, which is later.
    renewedAt = attemptedAt
    cancelDeadline()
    cancelDeadline = clock.after(attemptedAt + renewMs - clock.now(), stop)
    if (isLeading) return
    isLeading = true
    options.onStart()
  }
  const stop = (): void => {
    cancelDeadline()
    if (!isLeading) return
    isLeading = false
    options.onStop()
  }
  const toTime = (): string => options.now().toISOString().replace('Z', '000Z')
  const specFor = (lease: Lease | undefined): Lease['spec'] => {
    const isOurs = lease?.spec?.holderIdentity === identity
    const transitions = lease?.spec?.leaseTransitions ?? 0
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      renewTime: toTime(),
      acquireTime: isOurs && isLeading ? (lease.spec?.acquireTime ?? toTime()) : toTime(),
      leaseTransitions: isOurs || lease === undefined ? transitions : transitions + 1,
    }
  }
  const bodyOf = (lease: Lease | undefined, spec: Lease['spec']): Lease => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: lease?.metadata ?? { name, namespace },
    spec: spec ?? {},
  })
  const timeoutMs = Math.max(500, renewMs / 2)

  const attempt = async (): Promise<void> => {
    const attemptedAt = clock.now()
    const lease = await connection.request<Lease>('GET', `${collection}/${name}`, { timeoutMs }).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return undefined
      throw error
    })
    if (isClosed) return
    const version = lease?.metadata.resourceVersion
    if (observed === undefined || observed.version !== version) observed = { version, at: clock.now() }
    const { holderIdentity = '', leaseDurationSeconds = leaseMs / 1000 } = lease?.spec ?? {}
    if (holderIdentity !== '' && holderIdentity !== identity) {
      stop()
      // Times in the Lease are from another machine's clock. The Lease has expired if this replica has seen no change for its duration.
      if (clock.now() < observed.at + leaseDurationSeconds * 1000) return
    }
    const body = bodyOf(lease, specFor(lease))
    current =
      lease === undefined
        ? await connection.request<Lease>('POST', collection, { body, timeoutMs })
        : await connection.request<Lease>('PUT', `${collection}/${name}`, { body, timeoutMs })
    observed = { version: current.metadata.resourceVersion, at: clock.now() }
    // The Lease may have been taken over a deadline; then it is ours again only from the next attempt on.
    if (!isClosed && clock.now() < attemptedAt + renewMs) lead(attemptedAt)
  }

  let attempting: Promise<void> = Promise.resolve()
  const tick = (): void => {
    attempting = attempt()
      .catch((error: unknown) => {
        // Another replica was faster.
        if (!(error instanceof ApiError && error.status === 409)) options.onError(error)
      })
      .then(() => {
        if (!isClosed) cancelTick = clock.after(retryMs, tick)
      })
  }
  tick()

  return {
    isLeader: () => isLeading && clock.now() < renewedAt + renewMs,
    async close() {
      isClosed = true
      cancelTick()
      await attempting
      const wasLeading = isLeading
      stop()
      if (!wasLeading || current === undefined) return
      const spec = { ...current.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: toTime() }
      await connection.request('PUT', `${collection}/${name}`, { body: bodyOf(current, spec), timeoutMs: 2_000 }).catch(options.onError)
    },
  }
}
