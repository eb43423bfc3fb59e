import type { Windows } from '#api/budget-window.ts'

/** Milliseconds for which a share is valid without another response. */
export const SHARE_MS = 30_000
/** Difference of the time at which a share ends at the replica and here: the way of the response. */
const GRACE_MS = 2_000
/** A share covers the demand of so many milliseconds. */
const AHEAD_MS = 2_000
/** The demand of a first report is that of so many milliseconds. */
const FIRST_MS = 1_000
/** What a replica has asked for is not taken back before it could use it. */
const KEPT_MS = 250
/** Time during which shares are taken back for a replica that lacks some. */
const CONTENDED_MS = 1_000
/** Buckets of one Gateway. Beyond it the one that was not reported for the longest time is dropped. */
const MAX_BUCKETS = 50_000
/** Windows of other clocks are at most one apart. */
const CLOCK_WINDOWS = 1

/** A limit of a budget, in the unit of its counters. */
export interface QuotaLimit {
  readonly amount: number
  readonly windows: Windows
  /** Percentages that are reported when they are reached, the highest first. */
  readonly alertAt?: readonly number[]
}

/** The counter of one key of a limit in one window. */
export interface BucketId {
  /** Name of the limit. */
  readonly limit: string
  /** Digest of the key; `all` for a limit without key. */
  readonly key: string
  /** Number of the window. */
  readonly index: number
}

/** Usage of a bucket by one replica. */
export interface Usage extends BucketId {
  /** Used since the last report on this stream; in the first one since the window began. */
  readonly used: number
  /** Reserved for requests under way. */
  readonly reserved: number
  /** Demand that the share did not cover. */
  readonly wanted: number
  /** In the first report of a stream: what other replicas had used, as far as this one knows. */
  readonly others?: number
}

/** The share of one replica. */
export interface Share extends BucketId {
  /** The replica may use and reserve so much in the window, all in all. Undefined: there is no such limit. */
  readonly granted: number | undefined
  /** Whether nothing can be added to it now. */
  readonly isLast: boolean
  /** What all replicas use and reserve. */
  readonly total: number
}

/** What is known of the use of a bucket by one replica. */
interface Lease {
  used: number
  reserved: number
  wanted: number
  /** Time of the last demand. */
  wantedMs: number
  /** Units a second. */
  rate: number
  reportedMs: number
  /** The share that was sent last. */
  granted: number
  /** The most that the replica may use until it confirms a smaller share. */
  held: number
  expiresMs: number
}

interface Bucket {
  readonly id: BucketId
  /** The highest percentage that was reported; 0: none. */
  alerted: number
  readonly leases: Map<string, Lease>
  /** Some replica lacks units that others may have until then. */
  contendedUntilMs: number
  /** What an earlier operator knew to be used, and this one does not: not free until those that used it have reported, or their shares have expired. */
  missing: number
  missingUntilMs: number
}

/** A percentage of a limit that the use of one key has reached. */
export interface QuotaAlert {
  readonly limit: string
  readonly percent: number
}

/** One stream of a replica. */
export interface Connection {
  readonly replica: string
  /** Buckets that were reported on the stream. */
  readonly known: Set<string>
  /** Buckets whose share was made smaller by the last response. */
  unconfirmed: Set<string>
}

/** A bucket as it is stored: id, then for each replica what it used and what it may use. */
export type StoredBucket = readonly [limit: string, key: string, index: number, leases: readonly (readonly [replica: string, current: number, held: number])[]]

/**
 * Divides the limits of one Gateway among its replicas. What a replica may use is counted as used until it says otherwise, so that all
 * together never get more than the limit. Times are milliseconds since 1970.
 *
 * A replica answers each response by a report, and applies a response before that. So its next report confirms smaller shares.
 */
export class QuotaPool {
  readonly #findLimit: (name: string) => QuotaLimit | undefined
  /** In order of the last report. */
  readonly #buckets = new Map<string, Bucket>()
  readonly #contended = new Set<Bucket>()
  readonly #connections = new Map<string, Connection>()
  #alerts: QuotaAlert[] = []
  /** Counts changes that are worth storing. */
  changes = 0

  constructor(findLimit: (name: string) => QuotaLimit | undefined) {
    this.#findLimit = findLimit
  }

  get size(): number {
    return this.#buckets.size
  }

  /** A replica has opened a stream. An older stream of it is not used any more. */
  connect(replica: string): Connection {
    const connection: Connection = { replica, known: new Set(), unconfirmed: new Set() }
    this.#connections.set(replica, connection)
    return connection
  }

  disconnect(connection: Connection): void {
    if (this.#connections.get(connection.replica) === connection) this.#connections.delete(connection.replica)
  }

  /** Takes a report and returns the shares for the response: of the reported buckets, and of those that others lack. */
  report(connection: Connection, usages: readonly Usage[], nowMs: number): Share[] {
    const { replica } = connection
    const reported = new Map<string, Bucket>()
    const shares: Share[] = []
    for (const usage of usages) {
      const bucket = this.#open(usage, nowMs)
      if (bucket === undefined) shares.push({ ...idOf(usage), granted: undefined, isLast: true, total: 0 })
      else {
        const name = nameOf(usage)
        reported.set(name, bucket)
        this.#update(bucket, replica, usage, !connection.known.has(name), nowMs)
        this.#checkAlerts(bucket, nowMs)
        connection.known.add(name)
      }
    }
    for (const name of connection.unconfirmed) this.#confirm(this.#buckets.get(name)?.leases.get(replica))
    connection.unconfirmed = new Set()
    for (const bucket of this.#contended) {
      if (bucket.contendedUntilMs < nowMs) this.#contended.delete(bucket)
      else if (bucket.leases.has(replica)) reported.set(nameOf(bucket.id), bucket)
    }
    for (const [name, bucket] of reported) {
      const share = this.#assign(bucket, connection, name, nowMs)
      if (share !== undefined) shares.push(share)
    }
    return shares
  }

  /** The percentages that were reached since the last call, each once for a key and window. */
  takeAlerts(): readonly QuotaAlert[] {
    const alerts = this.#alerts
    if (alerts.length > 0) this.#alerts = []
    return alerts
  }

  /** What all replicas use and reserve; undefined for a bucket that is not known. */
  totalOf(id: BucketId): number | undefined {
    const bucket = this.#buckets.get(nameOf(id))
    return bucket && totalOf(bucket)
  }

  /** Drops buckets of windows that are over. */
  tidy(nowMs: number): void {
    for (const [name, bucket] of this.#buckets) {
      const index = this.#findLimit(bucket.id.limit)?.windows.at(nowMs).index
      // The window before the current one counts in a rolling one.
      if (index === undefined || bucket.id.index < index - 1 - CLOCK_WINDOWS) this.#drop(name, bucket)
    }
  }

  store(): StoredBucket[] {
    return [...this.#buckets.values()].map(({ id, leases }) => [
      id.limit,
      id.key,
      id.index,
      [...leases].map(([replica, lease]) => [replica, currentOf(lease), lease.held] as const),
    ])
  }

  /** Adds what an earlier operator stored. A share that it gave counts as used until the replica reports, or the share has expired. */
  restore(stored: readonly StoredBucket[], nowMs: number): void {
    for (const [limit, key, index, leases] of stored) {
      const bucket = this.#open({ limit, key, index }, nowMs)
      for (const [replica, current, held] of leases) {
        if (bucket === undefined || bucket.leases.has(replica)) continue
        const expiresMs = nowMs + SHARE_MS + GRACE_MS
        bucket.leases.set(replica, { ...emptyLease(nowMs), used: current, granted: held, held: Math.max(held, current), expiresMs })
      }
      // What was stored was reported before.
      if (bucket !== undefined) bucket.alerted = this.#reachedBy(bucket, nowMs)
    }
  }

  #open(id: BucketId, nowMs: number): Bucket | undefined {
    const name = nameOf(id)
    const limit = this.#findLimit(id.limit)
    if (limit === undefined) return undefined
    const known = this.#buckets.get(name)
    if (known !== undefined) {
      this.#buckets.delete(name)
      this.#buckets.set(name, known)
      return known
    }
    if (Math.abs(limit.windows.at(nowMs).index - id.index) > 1 + CLOCK_WINDOWS) return undefined
    const [oldest] = this.#buckets
    if (this.#buckets.size >= MAX_BUCKETS && oldest !== undefined) this.#drop(...oldest)
    const bucket: Bucket = { id: idOf(id), alerted: 0, leases: new Map(), contendedUntilMs: 0, missing: 0, missingUntilMs: 0 }
    this.#buckets.set(name, bucket)
    return bucket
  }

  #drop(name: string, bucket: Bucket): void {
    this.#buckets.delete(name)
    this.#contended.delete(bucket)
    this.changes++
  }

  #update(bucket: Bucket, replica: string, { used, reserved, wanted, others = 0 }: Usage, isFirst: boolean, nowMs: number): void {
    let lease = bucket.leases.get(replica)
    if (lease === undefined) bucket.leases.set(replica, (lease = emptyLease(nowMs)))
    const before = currentOf(lease)
    const heldBefore = this.#heldBy(replica, lease, nowMs)
    // The first report of a stream has the total, because reports may have been lost.
    lease.used = isFirst ? Math.max(lease.used, used) : lease.used + used
    lease.reserved = reserved
    lease.wanted = wanted
    if (wanted > 0) lease.wantedMs = nowMs
    // The replica has given back its share before the first report of a stream.
    if (isFirst) lease.held = lease.granted = currentOf(lease)
    lease.held = Math.max(lease.held, currentOf(lease))
    if (isFirst) this.#addMissing(bucket, replica, currentOf(lease) - heldBefore, others, nowMs)
    const seconds = Math.max(0.001, (nowMs - lease.reportedMs) / 1000)
    const weight = 1 - Math.exp(-seconds)
    lease.rate = lease.rate * (1 - weight) + (Math.max(0, currentOf(lease) - before + wanted) / seconds) * weight
    lease.reportedMs = nowMs
    if (currentOf(lease) !== before) this.changes++
  }

  /** A replica has reported what was `found` of its use, and what others had used: some of them may have to report to this operator yet. */
  #addMissing(bucket: Bucket, replica: string, found: number, others: number, nowMs: number): void {
    const before = bucket.missingUntilMs > nowMs ? Math.max(0, bucket.missing - Math.max(0, found)) : 0
    let missing = others
    for (const [other, lease] of bucket.leases) if (other !== replica) missing -= this.#heldBy(other, lease, nowMs)
    bucket.missing = Math.max(before, missing, 0)
    if (missing > 0) bucket.missingUntilMs = nowMs + SHARE_MS + GRACE_MS
  }

  #confirm(lease: Lease | undefined): void {
    if (lease !== undefined) lease.held = Math.max(lease.granted, currentOf(lease))
  }

  #checkAlerts(bucket: Bucket, nowMs: number): void {
    const percent = this.#reachedBy(bucket, nowMs)
    if (percent <= bucket.alerted) return
    bucket.alerted = percent
    this.#alerts.push({ limit: bucket.id.limit, percent })
  }

  /** The highest percentage that is used for good; 0: none. */
  #reachedBy(bucket: Bucket, nowMs: number): number {
    const limit = this.#findLimit(bucket.id.limit)
    if (limit?.alertAt === undefined) return 0
    const used = bucket.leases.values().reduce((sum, lease) => sum + lease.used, 0) + this.#rollingPart(bucket, limit, nowMs)
    return limit.alertAt.find((each) => used * 100 >= limit.amount * each) ?? 0
  }

  /** The share of a replica. Undefined: it need not be sent. */
  #assign(bucket: Bucket, { replica, unconfirmed }: Connection, name: string, nowMs: number): Share | undefined {
    const lease = bucket.leases.get(replica)
    const limit = this.#findLimit(bucket.id.limit)
    if (lease === undefined || limit === undefined) return undefined
    const left = Math.floor(this.#freeOf(bucket, limit, nowMs))
    const free = Math.max(0, left)
    const current = currentOf(lease)
    // While others lack units, nobody gets any for later.
    const later = this.#contended.has(bucket) ? 0 : Math.max(Math.ceil((lease.rate * AHEAD_MS) / 1000), Math.floor(free / (4 * bucket.leases.size)))
    const ahead = Math.max(lease.wanted, later)
    const added = Math.min(free, Math.max(0, current + ahead - lease.held))
    if (added > 0) this.changes++
    lease.held += added
    const lacks = lease.wanted > lease.held - current
    let isLast = false
    if (lacks) {
      isLast = this.#reclaimable(bucket, replica, nowMs) < 1
      if (!isLast) {
        bucket.contendedUntilMs = nowMs + CONTENDED_MS
        this.#contended.add(bucket)
      }
    }
    const isTakenBack = !lacks && this.#contended.has(bucket) && nowMs - lease.wantedMs >= KEPT_MS
    lease.granted = isTakenBack ? Math.min(lease.held, current + lease.wanted) : lease.held
    // An operator that lost its counters has given what others had used already: replicas with units to spare are told to give them back.
    if (left < 0) {
      lease.granted = Math.max(current, Math.min(lease.granted, lease.held + left))
      if (this.#reclaimable(bucket, replica, nowMs) >= 1) {
        bucket.contendedUntilMs = nowMs + CONTENDED_MS
        this.#contended.add(bucket)
      }
    }
    // What the share covers is no demand any more.
    if (!lacks) lease.wanted = 0
    if (lease.granted < lease.held) unconfirmed.add(name)
    lease.expiresMs = nowMs + SHARE_MS + GRACE_MS
    return { ...bucket.id, granted: lease.granted, isLast, total: totalOf(bucket) }
  }

  /** Units that no replica has. */
  #freeOf(bucket: Bucket, limit: QuotaLimit, nowMs: number): number {
    let free = limit.amount
    for (const [replica, lease] of bucket.leases) free -= this.#heldBy(replica, lease, nowMs)
    if (bucket.missingUntilMs > nowMs) free -= bucket.missing
    return free - this.#rollingPart(bucket, limit, nowMs)
  }

  /** What the previous window counts in a rolling one. */
  #rollingPart(bucket: Bucket, { windows }: QuotaLimit, nowMs: number): number {
    const before = windows.isRolling ? this.totalOf({ ...bucket.id, index: bucket.id.index - 1 }) : undefined
    if (before === undefined) return 0
    const { startMs, endMs, index } = windows.at(nowMs)
    // Clocks differ: the window of the bucket may have begun earlier or later than here.
    const elapsed = index === bucket.id.index ? (nowMs - startMs) / (endMs - startMs) : index > bucket.id.index ? 1 : 0
    return before * (1 - Math.min(1, Math.max(0, elapsed)))
  }

  #heldBy(replica: string, lease: Lease, nowMs: number): number {
    if (lease.expiresMs > nowMs) return lease.held
    // Its share has ended; without a stream it gets no other one.
    if (!this.#connections.has(replica)) lease.reserved = 0
    return (lease.held = currentOf(lease))
  }

  /** Units that other replicas have, do not need, and will give back when they are asked. */
  #reclaimable(bucket: Bucket, replica: string, nowMs: number): number {
    let units = 0
    for (const [other, lease] of bucket.leases) {
      if (other === replica || !this.#connections.has(other)) continue
      const left = this.#heldBy(other, lease, nowMs) - currentOf(lease)
      // A replica that lacks units itself keeps what it has.
      if (lease.wanted <= left) units += left - lease.wanted
    }
    return units
  }
}

const emptyLease = (nowMs: number): Lease => ({
  used: 0,
  reserved: 0,
  wanted: 0,
  wantedMs: 0,
  rate: 0,
  reportedMs: nowMs - FIRST_MS,
  granted: 0,
  held: 0,
  expiresMs: 0,
})
const currentOf = ({ used, reserved }: Lease): number => used + reserved
const totalOf = ({ leases }: Bucket): number => leases.values().reduce((sum, lease) => sum + currentOf(lease), 0)
const idOf = ({ limit, key, index }: BucketId): BucketId => ({ limit, key, index })
const nameOf = ({ limit, key, index }: BucketId): string => `${limit} ${key} ${index}`
