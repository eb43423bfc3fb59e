import type { Windows } from '#api/budget-window.ts'
import type { QuotaMemory } from '../../runtime/quotas.ts'
import { Counter, type MemoryOf, type Reservation } from './counter.ts'

/** Words of an assignment: its kind in the low two bits, above them the size of its token bucket. */
const RULE = 0
/** Nanoseconds in which one token is added. */
const PERIOD = 1
/** End of the assignment, milliseconds since 1970. */
const EXPIRES = 2
/** Time at which the token bucket is full, nanoseconds since 1970. */
const FULL_AT = 3
/** Requests since the last report. */
const ALLOWED = 4
const DENIED = 5
export const QUOTA_WORDS = 6

const NONE = 0
const ALLOW = 1
const DENY = 2
const BUCKET = 3

/** Window number of reservations from an assignment, which has no windows. */
const ASSIGNED = -1
/** A request that is rejected without a time at which the bucket has a token is to be repeated then. */
const RETRY_MS = 1000
const NS_PER_MS = 1_000_000n
/** Assignments without an end. */
const NEVER = 2n ** 62n
/** Limit of the time in which a token bucket becomes full, about 73 years: sums of it and the time stay within 64 bits. */
const MAX_FILL_NS = 2n ** 61n

/** What a service assigns: everything, nothing, or a token bucket that begins full. */
export type Strategy = 'allow' | 'deny' | { readonly size: number; readonly periodNs: bigint }

export interface Assignment {
  readonly strategy: Strategy
  /** Milliseconds since 1970; Infinity: it does not expire. */
  readonly expiresMs: number
}

/** A counter of requests whose limit a rate limit quota service assigns. The memory is that of all workers. */
export class QuotaCounter extends Counter {
  readonly #quota: MemoryOf

  constructor(memory: MemoryOf, quota: MemoryOf, windows: Windows) {
    super(memory, windows)
    this.#quota = quota
  }

  get memory(): QuotaMemory {
    return this.#quota()
  }

  /** `isShort`: no assignment is in force. */
  override reserve(epochMs: number, limit: number, amount: number, needed: number, isForced = false): Reservation {
    void limit
    void needed
    const { words } = this.#quota()
    const { kind, size, period } = readRule(words, epochMs)
    if (kind === NONE) return { isAdmitted: false, isShort: true, taken: 0, index: ASSIGNED, used: 0, resetMs: RETRY_MS }
    if (kind === ALLOW) return { isAdmitted: true, taken: 0, index: ASSIGNED, used: 0, resetMs: 0, assigned: Infinity }
    if (kind === DENY) return this.#denied({ used: 0, resetMs: RETRY_MS, assigned: 0 }, isForced)
    const nowNs = toNs(epochMs)
    const added = period * BigInt(amount)
    const latest = nowNs + BigInt(size) * period
    for (;;) {
      const word = Atomics.load(words, FULL_AT)
      if (word > latest) {
        // The clock was set back, or the bucket became smaller: it is empty, and fills from now on.
        Atomics.compareExchange(words, FULL_AT, word, latest)
        continue
      }
      const from = within(nowNs, word, latest)
      const fullAt = from + added
      const used = size - Number((latest - from) / period)
      if (fullAt > latest) return this.#denied({ used, resetMs: toMs(fullAt - latest), assigned: size }, isForced)
      if (Atomics.compareExchange(words, FULL_AT, word, fullAt) !== word) continue
      return { isAdmitted: true, taken: amount, index: ASSIGNED, used, resetMs: toMs(fullAt - nowNs), assigned: size }
    }
  }

  /** Reserves from the limit of the budget, as if no service assigned anything. */
  reserveAlone(...args: Parameters<Counter['reserve']>): Reservation {
    const reservation = super.reserve(...args)
    if (!reservation.isAdmitted && args[4] !== true) this.deny()
    return reservation
  }

  /** Counts a request that was rejected because no assignment is in force. */
  deny(): void {
    Atomics.add(this.#quota().words, DENIED, 1n)
  }

  /** Whether the next request would be rejected. */
  isUsedUp(epochMs: number): boolean {
    const { words } = this.#quota()
    const { kind, size, period } = readRule(words, epochMs)
    if (kind !== BUCKET) return kind === DENY
    const latest = toNs(epochMs) + BigInt(size) * period
    return within(toNs(epochMs), Atomics.load(words, FULL_AT), latest) + period > latest
  }

  override settle(index: number, change: number): number | undefined {
    if (index !== ASSIGNED) return super.settle(index, change)
    const { words } = this.#quota()
    Atomics.add(words, FULL_AT, Atomics.load(words, PERIOD) * BigInt(change))
    return undefined
  }

  override spend(index: number, amount: number): void {
    void index
    Atomics.add(this.#quota().words, ALLOWED, BigInt(amount))
  }

  #denied(state: { readonly used: number; readonly resetMs: number; readonly assigned: number }, isForced: boolean): Reservation {
    if (!isForced) this.deny()
    return { ...state, isAdmitted: false, taken: 0, index: ASSIGNED }
  }
}

/** Puts an assignment in force. A token bucket that replaces another one keeps what was used of it. */
export function writeAssignment({ words }: QuotaMemory, { strategy, expiresMs }: Assignment, epochMs: number): void {
  if (typeof strategy === 'object') {
    const period = strategy.periodNs
    const before = Atomics.load(words, PERIOD)
    const size = Math.min(strategy.size, Number(MAX_FILL_NS / period))
    Atomics.store(words, PERIOD, period)
    if (before > 0n) rescale(words, toNs(epochMs), before, period, BigInt(size))
    Atomics.store(words, EXPIRES, toExpiry(expiresMs))
    Atomics.store(words, RULE, BigInt(size) * 4n + BigInt(BUCKET))
    return
  }
  Atomics.store(words, EXPIRES, toExpiry(expiresMs))
  Atomics.store(words, RULE, BigInt(strategy === 'allow' ? ALLOW : DENY))
}

/** Removes the assignment, and what was not reported. */
export function clearAssignment({ words }: QuotaMemory): void {
  for (const word of [RULE, PERIOD, EXPIRES, FULL_AT, ALLOWED, DENIED]) Atomics.store(words, word, 0n)
}

/** Whether an assignment is in force. */
export const isAssigned = ({ words }: QuotaMemory, epochMs: number): boolean => readRule(words, epochMs).kind !== NONE

/** Returns the requests since the last call. */
export function takeUsage({ words }: QuotaMemory): { readonly allowed: number; readonly denied: number } {
  const allowed = Number(Atomics.exchange(words, ALLOWED, 0n))
  // A request that was reported was returned since.
  if (allowed < 0) Atomics.add(words, ALLOWED, BigInt(allowed))
  return { allowed: Math.max(0, allowed), denied: Number(Atomics.exchange(words, DENIED, 0n)) }
}

function readRule(words: BigInt64Array, epochMs: number): { readonly kind: number; readonly size: number; readonly period: bigint } {
  const rule = Number(Atomics.load(words, RULE))
  const period = Atomics.load(words, PERIOD)
  const kind = rule % 4
  const isInForce = Atomics.load(words, EXPIRES) > Math.floor(epochMs) && (kind !== BUCKET || period > 0n)
  return { kind: isInForce ? kind : NONE, size: Math.floor(rule / 4), period }
}

/** Keeps the tokens that are used when one takes another time. */
function rescale(words: BigInt64Array, nowNs: bigint, before: bigint, period: bigint, size: bigint): void {
  for (;;) {
    const word = Atomics.load(words, FULL_AT)
    if (word <= nowNs) return
    const rest = ((word - nowNs) * period) / before
    const most = size * period
    if (Atomics.compareExchange(words, FULL_AT, word, nowNs + (rest < most ? rest : most)) === word) return
  }
}

const within = (from: bigint, time: bigint, latest: bigint): bigint => (time < from ? from : time > latest ? latest : time)
const toNs = (epochMs: number): bigint => BigInt(Math.floor(epochMs)) * NS_PER_MS
const toMs = (ns: bigint): number => Math.max(1, Math.ceil(Number(ns) / Number(NS_PER_MS)))
const toExpiry = (expiresMs: number): bigint => (expiresMs === Infinity ? NEVER : BigInt(Math.floor(expiresMs)))
