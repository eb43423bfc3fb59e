import { clearAssignment, isAssigned, takeUsage, writeAssignment, type Assignment, type Strategy } from '../../policy/budgets/quota.ts'
import { Slice } from '../../runtime/cooperative.ts'
import type { QuotaBucket, QuotaMemory } from '../../runtime/quotas.ts'
import { toName, type BucketAction } from './assignment.ts'

/** Buckets that are subscribed. Beyond it the one that was unused for the longest time is forgotten. */
const MAX_BUCKETS = 20_000
/** Buckets in one report, as services limit its length. */
const MAX_REPORTED = 500
/** Requests that wait for an assignment at once. */
const MAX_WAITING = 10_000
/** Requests wait so long for an assignment; after that they do not wait until there is one. */
const WAIT_MS = 1_000
/** Buckets that were unused for so long are not reported. */
const IDLE_MS = 60_000

/** Requests of a bucket since its last report. */
export interface BucketUsage {
  readonly id: Readonly<Record<string, string>>
  readonly allowed: number
  readonly denied: number
  readonly elapsedMs: number
}

interface Tracked {
  readonly name: string
  readonly bucket: QuotaBucket
  readonly memory: () => QuotaMemory | undefined
  assignment: Assignment | undefined
  /** First request since the bucket has no assignment. */
  askedMs: number | undefined
  reportedMs: number
  /** Last use that is known. */
  usedMs: number
  readonly waiting: ((hasAssignment: boolean) => void)[]
  timer: NodeJS.Timeout | undefined
}

export interface QuotaBucketsOptions {
  /** Memory of assignments by the name of their counter, for those of workers. */
  readonly findMemory: (counter: string) => QuotaMemory | undefined
  /** Called when something is to be reported at once. */
  readonly onUrgent: () => void
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number
}

/** The buckets of one rate limit quota service that this data plane uses, independent of the transport. Requests touch only the memory of assignments. */
export class QuotaBuckets {
  readonly #options: QuotaBucketsOptions
  readonly #epochMs: () => number
  /** By name, in order of use. */
  readonly #tracked = new Map<string, Tracked>()
  readonly #due = new Set<Tracked>()
  #waiting = 0
  #isOffline = false

  constructor(options: QuotaBucketsOptions) {
    this.#options = options
    this.#epochMs = options.epochMs ?? (() => Date.now())
  }

  get size(): number {
    return this.#tracked.size
  }

  /** Subscribes a bucket that has no assignment in force. Resolves with whether it has one. */
  assign(bucket: QuotaBucket, memory?: () => QuotaMemory | undefined): Promise<boolean> {
    const nowMs = this.#epochMs()
    const tracked = this.#track(bucket, memory, nowMs)
    const own = tracked.memory()
    if (own === undefined) return Promise.resolve(false)
    if (isAssigned(own, nowMs)) return Promise.resolve(true)
    // The memory was given to another counter meanwhile.
    if (tracked.assignment !== undefined && tracked.assignment.expiresMs > nowMs) {
      writeAssignment(own, tracked.assignment, nowMs)
      return Promise.resolve(true)
    }
    tracked.askedMs ??= nowMs
    this.#due.add(tracked)
    this.#options.onUrgent()
    if (this.#isOffline || nowMs - tracked.askedMs > WAIT_MS || this.#waiting >= MAX_WAITING) return Promise.resolve(false)
    tracked.timer ??= setTimeout(() => this.#wake(tracked, false), WAIT_MS)
    this.#waiting++
    return new Promise((resolve) => void tracked.waiting.push(resolve))
  }

  /** A stream is open: buckets are subscribed again. */
  connected(): void {
    const nowMs = this.#epochMs()
    for (const tracked of this.#tracked.values()) {
      if (tracked.waiting.length === 0) tracked.askedMs = undefined
      if (nowMs - tracked.usedMs < IDLE_MS) this.#due.add(tracked)
    }
    if (this.#due.size > 0) this.#options.onUrgent()
  }

  /** The service responds. */
  online(): void {
    this.#isOffline = false
  }

  /** There is no stream, or the service does not respond. Requests do not wait until it does; assignments stay until they expire. */
  offline(): void {
    this.#isOffline = true
    for (const tracked of this.#tracked.values()) this.#wake(tracked, false)
  }

  /** What is to be reported at once; empty: nothing. */
  takeDue(): BucketUsage[] {
    const usages: BucketUsage[] = []
    for (const tracked of this.#due) {
      this.#due.delete(tracked)
      const usage = this.#report(tracked, true)
      if (usage !== undefined) usages.push(usage)
      if (usages.length === MAX_REPORTED) break
    }
    if (this.#due.size > 0) this.#options.onUrgent()
    return usages
  }

  /** The use of all buckets, in parts; the thread does other work between them. */
  async *takeAll(): AsyncGenerator<BucketUsage[]> {
    const slice = new Slice()
    let usages: BucketUsage[] = []
    // Buckets that are in use move to the end.
    for (const tracked of this.#tracked.values().toArray()) {
      if (slice.isOver) await slice.next()
      const usage = this.#tracked.get(tracked.name) === tracked ? this.#report(tracked, false) : undefined
      if (usage !== undefined) usages.push(usage)
      if (usages.length < MAX_REPORTED) continue
      yield usages
      usages = []
    }
    if (usages.length > 0) yield usages
  }

  /** Puts assignments in force. Returns the number of actions on buckets that are not subscribed. */
  apply(actions: readonly BucketAction[]): number {
    const nowMs = this.#epochMs()
    let ignored = 0
    for (const { name, action } of actions) {
      const tracked = this.#tracked.get(name)
      if (tracked === undefined) ignored++
      else if (action === 'abandon') this.#forget(tracked)
      else this.#assign(tracked, { strategy: action.strategy, expiresMs: nowMs + action.ttlMs }, nowMs)
    }
    return ignored
  }

  #assign(tracked: Tracked, assignment: Assignment, nowMs: number): void {
    const memory = tracked.memory()
    if (memory === undefined) return this.#forget(tracked)
    const before = tracked.assignment
    tracked.assignment = assignment
    if (assignment.expiresMs > nowMs) tracked.askedMs = undefined
    // The protocol wants the use until now to be reported when another assignment begins.
    if (before === undefined || before.expiresMs <= nowMs || !isSame(before.strategy, assignment.strategy)) {
      this.#due.add(tracked)
      this.#options.onUrgent()
    }
    writeAssignment(memory, assignment, nowMs)
    this.#wake(tracked, isAssigned(memory, nowMs))
  }

  #track(bucket: QuotaBucket, memory: (() => QuotaMemory | undefined) | undefined, nowMs: number): Tracked {
    const name = toName(bucket.id)
    let tracked = this.#tracked.get(name)
    // A policy whose bucket had another counter before.
    if (tracked !== undefined && tracked.bucket.counter !== bucket.counter) {
      this.#forget(tracked)
      tracked = undefined
    }
    if (tracked === undefined) {
      const find = memory ?? (() => this.#options.findMemory(bucket.counter))
      tracked = { name, bucket, memory: find, assignment: undefined, askedMs: undefined, reportedMs: nowMs, usedMs: nowMs, waiting: [], timer: undefined }
    }
    this.#touch(tracked, nowMs)
    const oldest = this.#tracked.size > MAX_BUCKETS ? this.#tracked.values().next().value : undefined
    if (oldest !== undefined) this.#forget(oldest)
    return tracked
  }

  #touch(tracked: Tracked, nowMs: number): void {
    tracked.usedMs = nowMs
    this.#tracked.delete(tracked.name)
    this.#tracked.set(tracked.name, tracked)
  }

  /** The next request subscribes the bucket again. */
  #forget(tracked: Tracked): void {
    this.#tracked.delete(tracked.name)
    this.#due.delete(tracked)
    const memory = tracked.memory()
    if (memory !== undefined) clearAssignment(memory)
    this.#wake(tracked, false)
  }

  #wake(tracked: Tracked, hasAssignment: boolean): void {
    clearTimeout(tracked.timer)
    tracked.timer = undefined
    this.#waiting -= tracked.waiting.length
    for (const resolve of tracked.waiting.splice(0)) resolve(hasAssignment)
  }

  #report(tracked: Tracked, isDue: boolean): BucketUsage | undefined {
    const nowMs = this.#epochMs()
    const memory = tracked.memory()
    if (memory === undefined) {
      this.#forget(tracked)
      return undefined
    }
    const { allowed, denied } = takeUsage(memory)
    if (allowed + denied > 0) this.#touch(tracked, nowMs)
    else if (!isDue && nowMs - tracked.usedMs > IDLE_MS) return undefined
    this.#due.delete(tracked)
    const elapsedMs = Math.max(1, nowMs - tracked.reportedMs)
    tracked.reportedMs = nowMs
    return { id: tracked.bucket.id, allowed, denied, elapsedMs }
  }
}

const isSame = (a: Strategy, b: Strategy): boolean =>
  typeof a === 'object' && typeof b === 'object' ? a.size === b.size && a.periodNs === b.periodNs : a === b
