import { grantedOf, othersOf, readUse, takeWanted, writeShare } from '../../policy/budgets/share.ts'
import { steadyClock } from '../../runtime/time.ts'
import type { ShareBucket, ShareMemory, Shares } from '../../runtime/shares.ts'

/** Requests that wait for a share at once. Further ones are handled as if there were no server. */
const MAX_WAITING = 10_000
/** Buckets whose use is reported. Beyond it the one that was asked for longest ago is forgotten, and its share expires. */
const MAX_BUCKETS = 20_000
/** Buckets that are looked at for one report, so that it takes less than a millisecond. */
const MAX_SCANNED = 2_000
/** Requests wait so long for units that others have. */
const WAIT_MS = 1_000
/** Unused buckets are not renewed. */
const IDLE_MS = 60_000
/** Time after the end of a window in which requests that began in it may end. */
const LATE_MS = 60_000

/** Usage of a bucket for a report. */
export interface BucketUse {
  readonly bucket: ShareBucket
  /** Used for good since the last report on this stream; in the first one since the window began. */
  readonly used: number
  readonly reserved: number
  readonly wanted: number
  /** In the first report on a stream: what other replicas had used by the last response. An operator that lost its counters does not know. */
  readonly others?: number
}

/** Share of a bucket from a response. */
export interface BucketShare {
  readonly limit: string
  readonly key: string
  readonly index: number
  /** Undefined: the server knows no such limit. */
  readonly granted: number | undefined
  readonly isLast: boolean
  /** What all replicas use. */
  readonly total: number
  readonly ttlMs: number
}

interface Waiter {
  readonly untilMs: number
  resolve(hasResponse: boolean): void
}

interface Tracked {
  readonly bucket: ShareBucket
  readonly memory: () => ShareMemory | undefined
  /** Undefined: not reported on this stream. */
  reported: { spent: number; reserved: number } | undefined
  expiresMs: number
  usedMs: number
  /** Report it even if it is unchanged. */
  isDue: boolean
  /** Requests that wait for a larger share, and what they lacked at the last report. */
  readonly waiting: Waiter[]
  unmet: number
  /** What was left of the share when the last request began to wait. */
  left: number
}

export interface KeeperOptions {
  /** Memory of counters by name, for those of workers. */
  readonly findMemory?: (counter: string) => ShareMemory | undefined
  /** Called when something is to be reported at once. */
  readonly onUrgent: () => void
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number
}

/**
 * The shares of this data plane: which buckets are in use, what to report of them, and the requests that wait for more. Independent of the
 * transport. Requests themselves touch only the memory of counters.
 */
export class ShareKeeper implements Shares {
  readonly #options: KeeperOptions
  readonly #epochMs: () => number
  /** In order of the last `want`. */
  readonly #tracked = new Map<string, Tracked>()
  /** Buckets with requests that wait. */
  readonly #hungry = new Set<Tracked>()
  #waiting = 0
  /** Buckets that are to be looked at for the next report. */
  readonly #urgent = new Set<Tracked>()
  #scan: IterableIterator<Tracked> = this.#tracked.values()
  #isOffline = false

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#epochMs = steadyClock(options.epochMs ?? (() => Date.now()))
  }

  /** Number of buckets in use. */
  get size(): number {
    return this.#tracked.size
  }

  /** Whether a report should be sent without delay. */
  get isUrgent(): boolean {
    return this.#urgent.size > 0
  }

  /** Whether requests wait for shares that others have. */
  get isHungry(): boolean {
    return this.#hungry.size > 0
  }

  want(bucket: ShareBucket, memory?: () => ShareMemory | undefined): Promise<boolean> {
    const name = nameOf(bucket)
    let tracked = this.#tracked.get(name)
    if (tracked === undefined) {
      const find = memory ?? (() => this.#options.findMemory?.(bucket.counter))
      tracked = { bucket, memory: find, reported: undefined, expiresMs: 0, usedMs: this.#epochMs(), isDue: true, waiting: [], unmet: 0, left: 0 }
    } else this.#tracked.delete(name)
    this.#tracked.set(name, tracked)
    const [oldest] = this.#tracked.keys()
    if (this.#tracked.size > MAX_BUCKETS && oldest !== undefined) this.#tracked.delete(oldest)
    tracked.isDue = true
    this.#urgent.add(tracked)
    const { waiting } = tracked
    if (this.#waiting >= MAX_WAITING) return Promise.resolve(false)
    this.#options.onUrgent()
    if (this.#isOffline) return Promise.resolve(false)
    this.#hungry.add(tracked)
    this.#waiting++
    const known = tracked.memory()
    tracked.left = known === undefined ? 0 : leftOf(known, bucket.index)
    const untilMs = this.#epochMs() + WAIT_MS
    return new Promise((resolve) => waiting.push({ untilMs, resolve }))
  }

  /** A stream is open: shares are given back, and the next reports have all that was used. */
  connected(): void {
    this.#isOffline = false
    for (const tracked of this.#tracked.values()) {
      tracked.reported = undefined
      tracked.isDue = true
      const memory = tracked.memory()
      if (memory === undefined) continue
      const { index } = tracked.bucket
      const { spent, reserved } = readUse(memory, index)
      const granted = grantedOf(memory, index)
      if (granted !== undefined && granted > spent + reserved)
        writeShare(memory, { index, granted: spent + reserved, isLast: false, expiresMs: tracked.expiresMs, others: othersOf(memory, index) })
    }
  }

  /** The server responds again on the same stream. */
  resumed(): void {
    this.#isOffline = false
  }

  /** There is no stream, or the server does not respond. Requests do not wait until it does. */
  disconnected(): void {
    this.#isOffline = true
    for (const tracked of this.#hungry) this.#wake(tracked, false)
  }

  /** What is to be reported now: what changed, what is asked for, and shares that expire soon. */
  takeReport(): BucketUse[] {
    const uses: BucketUse[] = []
    // Each once: a second usage of a bucket would replace the first.
    const looked = new Set([...this.#urgent, ...this.#hungry])
    this.#urgent.clear()
    for (let count = 0; count < Math.min(MAX_SCANNED, this.#tracked.size); count++) {
      let next = this.#scan.next()
      if (next.done === true) next = (this.#scan = this.#tracked.values()).next()
      if (next.done === true) break
      looked.add(next.value)
    }
    for (const tracked of looked) this.#report(tracked, uses)
    return uses
  }

  /** Puts the shares of a response in force. */
  apply(shares: readonly BucketShare[]): void {
    const nowMs = this.#epochMs()
    for (const share of shares) {
      const { index, granted, isLast, total, ttlMs } = share
      const tracked = this.#tracked.get(nameOf(share))
      const memory = tracked?.memory()
      if (tracked === undefined) continue
      if (memory === undefined || granted === undefined) {
        this.#wake(tracked, false)
        continue
      }
      // A window that is over does not replace the share of the current one.
      if (this.#tracked.has(nameOf({ ...share, index: index + 1 }))) continue
      const before = grantedOf(memory, index) ?? 0
      tracked.expiresMs = nowMs + ttlMs
      const own = tracked.reported === undefined ? 0 : tracked.reported.spent + tracked.reported.reserved
      writeShare(memory, { index, granted, isLast, expiresMs: tracked.expiresMs, others: Math.max(0, total - own) })
      if (isLast || leftOf(memory, index) > tracked.left) this.#wake(tracked, true)
      if (granted >= before) continue
      // The next report confirms that no more is used.
      tracked.isDue = true
      this.#urgent.add(tracked)
    }
  }

  /** Ends the wait of requests that could not get their units in time. Called now and then. */
  endWaits(): void {
    const nowMs = this.#epochMs()
    for (const tracked of this.#hungry) {
      const { waiting } = tracked
      for (let first = waiting[0]; first !== undefined && first.untilMs <= nowMs; first = waiting[0]) {
        waiting.shift()
        this.#waiting--
        first.resolve(true)
      }
      if (waiting.length === 0) this.#wake(tracked, true)
    }
  }

  #wake(tracked: Tracked, hasResponse: boolean): void {
    this.#hungry.delete(tracked)
    tracked.unmet = 0
    this.#waiting -= tracked.waiting.length
    for (const { resolve } of tracked.waiting.splice(0)) resolve(hasResponse)
  }

  #report(tracked: Tracked, uses: BucketUse[]): void {
    const { bucket, reported } = tracked
    const nowMs = this.#epochMs()
    const memory = tracked.memory()
    if (memory === undefined || nowMs > bucket.endMs + LATE_MS) {
      this.#tracked.delete(nameOf(bucket))
      return
    }
    const { spent, reserved } = readUse(memory, bucket.index)
    const taken = takeWanted(memory)
    // Requests that wait lack as much as before.
    const wanted = tracked.unmet + taken
    if (tracked.waiting.length > 0) tracked.unmet = wanted
    const isChanged = reported === undefined || spent > reported.spent || reserved !== reported.reserved || wanted > 0
    if (isChanged) tracked.usedMs = nowMs
    const isExpiring = nowMs - tracked.usedMs < IDLE_MS && tracked.expiresMs - nowMs < 15_000
    if (!isChanged && !tracked.isDue && !isExpiring) return
    tracked.isDue = false
    // What was returned is subtracted from what is used next.
    const before = reported?.spent ?? 0
    tracked.reported = { spent: Math.max(before, spent), reserved }
    const others = reported === undefined ? othersOf(memory, bucket.index) : 0
    uses.push({ bucket, used: Math.max(0, spent - before), reserved, wanted, ...(others > 0 && { others }) })
  }
}

const leftOf = (memory: ShareMemory, index: number): number => {
  const { spent, reserved } = readUse(memory, index)
  return Math.max(0, (grantedOf(memory, index) ?? 0) - spent - reserved)
}

const nameOf = ({ limit, key, index }: Pick<ShareBucket, 'limit' | 'key' | 'index'>): string => `${limit} ${key} ${index}`
