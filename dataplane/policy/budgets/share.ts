import type { Windows } from '#api/budget-window.ts'
import type { ShareBucket, ShareMemory } from '../../runtime/shares.ts'
import { amountOf, Counter, INDEX_COUNT, indexOf, toAmount, toTaken, toWord, type CounterReading, type MemoryOf, type Reservation } from './counter.ts'

/** Words of the share of this replica in a counter: the amount it may use, in the window of the word. */
const GRANTED = 0
/** Used for good, in the windows with an even and an odd number. */
const SPENT = [1, 5] as const
/** End of the share, milliseconds since 1970, times two; plus 1 if nothing can be added to it. */
const STATE = 2
/** Demand that the share did not cover, since the last report. */
const WANTED = 3
/** Used by other replicas, in the window of the word. */
const OTHERS = 4
export const SHARE_WORDS = 6

const spentOf = (index: number): number => SPENT[(index & 1) as 0 | 1]

/** Until a share is asked for again, the rejection of a request that it does not cover says so. */
const RETRY_MS = 1000

/** A counter whose limit holds for all replicas together: reservations are made from the share of this replica. */
export class ShareCounter extends Counter {
  readonly #share: MemoryOf

  constructor(memory: MemoryOf, share: MemoryOf, windows: Windows) {
    super(memory, windows)
    this.#share = share
  }

  get memory(): ShareMemory {
    return { counter: this.words, share: this.#share().words }
  }

  /** The bucket of the window at a time. */
  bucketAt(epochMs: number, names: Pick<ShareBucket, 'limit' | 'key' | 'counter'>): ShareBucket {
    const { index, endMs } = this.currentWindow(this.words, epochMs)
    return { ...names, index, endMs }
  }

  /** `alone`: reserves from the full limit, as if this were the only replica. `last`: from what is left of the share, however small. */
  reserveWithout(how: 'last' | 'alone', ...args: Parameters<Counter['reserve']>): Reservation {
    return how === 'alone' ? super.reserve(...args) : this.#reserve(true, ...args)
  }

  override reserve(...args: Parameters<Counter['reserve']>): Reservation {
    return this.#reserve(false, ...args)
  }

  #reserve(takesLast: boolean, epochMs: number, limit: number, amount: number, needed: number, isForced = false): Reservation {
    const { words } = this
    const share = this.#share().words
    const { index, startMs, endMs } = this.currentWindow(words, epochMs)
    const slot = index & 1
    for (;;) {
      const word = Atomics.load(words, slot)
      const current = amountOf(word, index)
      const used = current + amountOf(Atomics.load(share, OTHERS), index)
      const granted = Atomics.load(share, GRANTED)
      const state = Number(Atomics.load(share, STATE))
      const isValid = indexOf(granted) === index % INDEX_COUNT && state / 2 > epochMs
      const left = isValid ? Math.max(0, amountOf(granted, index) - current) : 0
      const isLast = takesLast || (isValid && state % 2 === 1)
      const wanted = Math.min(Math.max(toAmount(amount), needed), limit)
      if (left < wanted && !isLast) {
        Atomics.add(share, WANTED, BigInt(wanted))
        return { isAdmitted: false, isShort: true, taken: 0, index, used, resetMs: RETRY_MS }
      }
      const isAdmitted = left >= needed && left > 0
      // Others may return units that they have reserved: the server is to know who would use them.
      if (left < wanted) Atomics.add(share, WANTED, BigInt(wanted))
      const lengthMs = endMs - startMs
      const elapsed = Math.min(1, Math.max(0, (epochMs - startMs) / lengthMs))
      const isUsedUp = used + needed > limit
      const resetMs = isAdmitted
        ? endMs - epochMs
        : isUsedUp
          ? this.opensAfterMs({ current: used, previous: 0, limit, needed, elapsed, lengthMs })
          : Math.min(RETRY_MS, endMs - epochMs)
      if (!isAdmitted && !isForced) return { isAdmitted, taken: 0, index, used, resetMs }
      const taken = toTaken(amount, current)
      if (Atomics.compareExchange(words, slot, word, toWord(index, current + taken)) === word) return { isAdmitted, taken, index, used, resetMs }
    }
  }

  override read(epochMs: number): CounterReading | undefined {
    const share = this.#share(true)?.words
    const own = super.read(epochMs)
    if (own === undefined || share === undefined) return own
    const { index } = this.currentWindow(this.words, epochMs, true)
    return { ...own, used: own.used + amountOf(Atomics.load(share, OTHERS), index) }
  }

  override settle(index: number, change: number): number | undefined {
    const used = super.settle(index, change)
    return used === undefined ? undefined : used + amountOf(Atomics.load(this.#share().words, OTHERS), index)
  }

  override spend(index: number, amount: number): void {
    const share = this.#share().words
    const slot = spentOf(index)
    for (;;) {
      const word = Atomics.load(share, slot)
      // The window of the request is over for so long that it is not reported any more.
      if (indexOf(word) === (index + 2) % INDEX_COUNT) return
      if (Atomics.compareExchange(share, slot, word, toWord(index, amountOf(word, index) + amount)) === word) return
    }
  }
}

/** What a replica reports of a bucket. */
export interface ShareUse {
  /** Used for good in the window. */
  readonly spent: number
  readonly reserved: number
}

/** Reads what is used of a bucket. Spending is read last: it grows before a reservation is returned. */
export function readUse({ counter, share }: ShareMemory, index: number): ShareUse {
  const current = amountOf(Atomics.load(counter, index & 1), index)
  const spent = amountOf(Atomics.load(share, spentOf(index)), index)
  return { spent, reserved: Math.max(0, current - spent) }
}

/** Returns the demand since the last call. */
export const takeWanted = ({ share }: ShareMemory): number => Number(Atomics.exchange(share, WANTED, 0n))

/** The share of a window in units; undefined: none. */
export function grantedOf({ share }: ShareMemory, index: number): number | undefined {
  const word = Atomics.load(share, GRANTED)
  return indexOf(word) === index % INDEX_COUNT ? amountOf(word, index) : undefined
}

/** What other replicas have used of a window, as of the last response. */
export const othersOf = ({ share }: ShareMemory, index: number): number => amountOf(Atomics.load(share, OTHERS), index)

export interface GrantedShare {
  readonly index: number
  readonly granted: number
  readonly isLast: boolean
  /** Milliseconds since 1970. */
  readonly expiresMs: number
  /** Used by other replicas. */
  readonly others: number
}

/** Puts a share in force. */
export function writeShare({ share }: ShareMemory, { index, granted, isLast, expiresMs, others }: GrantedShare): void {
  Atomics.store(share, OTHERS, toWord(index, others))
  Atomics.store(share, STATE, BigInt(Math.round(expiresMs)) * 2n + (isLast ? 1n : 0n))
  Atomics.store(share, GRANTED, toWord(index, granted))
}
