import { randomBytes } from 'node:crypto'
import { scriptStores, type ScriptOutcome } from '../../runtime/value-store.ts'
import type { PolicyState } from '../state.ts'
import type { Reservation } from './counter.ts'
import { budgetMetrics } from './metrics.ts'
import type { RemoteCounter } from './remote-counter.ts'
import { CLAIM_ALERT, RESERVE, SETTLE } from './scripts.ts'

/** The largest amount, as that of a counter in memory. */
const MAX_AMOUNT = 2 ** 44 - 1
/** A hash stays for so long after its window: requests that began in it may end, and clocks differ. */
const LATE_MS = 3_600_000
/** Settlements that wait until Redis can be used again. Beyond it the oldest ones are dropped: their estimates stay charged. */
const MAX_WAITING = 10_000
const BATCH = 100
const RETRY_MS = 1000

/** A reservation that is to be made. */
export interface RemoteWanted {
  readonly counter: RemoteCounter
  readonly limit: number
  readonly amount: number
  readonly isForced: boolean
  /** Whether what was used differs from the amount. */
  readonly isSettled: boolean
}

/** A reservation in Redis, with what its settlement needs. */
export interface RemoteReservation extends Reservation {
  /** Id of the reservation; empty if it is not settled. */
  readonly id: string
  /** Id of the hash: another one if the hash was lost since. */
  readonly hash: string
  readonly stayMs: number
}

interface Settlement {
  readonly counter: RemoteCounter
  readonly reservation: Pick<RemoteReservation, 'id' | 'hash' | 'stayMs' | 'index'>
  readonly used: number
}

type State = Pick<PolicyState, 'registry' | 'log'>

/** The counters of budgets with `store: Redis` (traffic.md §8.14), for one thread. */
export class RemoteBudgets {
  readonly #state: State
  readonly #prefix = randomBytes(9).toString('base64url')
  #lastId = 0
  #isFailing = false
  readonly #waiting: Settlement[] = []
  #isRetryDue = false
  #isRetrying = false

  private constructor(state: State) {
    this.#state = state
  }

  /** That of a thread. */
  static of(state: State): RemoteBudgets {
    const known = instances.get(state.registry)
    if (known !== undefined) return known
    const created = new RemoteBudgets(state)
    instances.set(state.registry, created)
    return created
  }

  /**
   * Reserves from all limits, or from none if one of them rejects: then the result says which. Undefined: Redis cannot be used.
   * @param nowMs milliseconds since 1970
   */
  async reserve(nowMs: number, wanted: readonly RemoteWanted[]): Promise<{ isReserved: boolean; reservations: RemoteReservation[] } | undefined> {
    const id = `${this.#prefix}${(++this.#lastId).toString(36)}`
    const keys: string[] = []
    const args = [id]
    const places = wanted.map(({ counter, limit, amount, isForced, isSettled }) => {
      const { index, startMs, endMs } = counter.windowAt(nowMs)
      const stayMs = Math.ceil(endMs - nowMs + 2 * (endMs - startMs) + LATE_MS)
      const taken = Math.min(MAX_AMOUNT, Math.max(0, Math.round(amount)))
      keys.push(counter.keyOf(index - 1), counter.keyOf(index), counter.keyOf(index + 1))
      args.push(String(taken), String(limit), counter.partAt(nowMs).toFixed(9), isForced ? '1' : '0', isSettled ? '1' : '0', String(stayMs))
      return { index, stayMs, taken }
    })
    const outcome = await this.#evaluate(RESERVE, keys, args)
    const values = readValues(outcome, 1 + 5 * wanted.length)
    if (values === undefined) {
      // Of which window it is depends on the clocks of others.
      if (!('error' in outcome) || outcome.mayRun)
        for (const [nth, { counter, isSettled }] of wanted.entries()) {
          const { index = 0, stayMs = 0 } = places[nth] ?? {}
          if (isSettled) for (const each of [index, index + 1]) this.#settleLater([{ counter, used: 0, reservation: { id, hash: '', stayMs, index: each } }])
        }
      return undefined
    }
    const isReserved = values[0] === 1
    const reservations = wanted.map(({ counter, limit, isSettled }, nth): RemoteReservation => {
      const [isNext, isAdmitted, current, previous, hash] = values.slice(1 + 5 * nth, 6 + 5 * nth)
      const { index = 0, stayMs = 0, taken = 0 } = places[nth] ?? {}
      const state = { index: index + Number(isNext), current: Number(current), previous: Number(previous) }
      const reservation = counter.learn(nowMs, state, { limit, taken: isReserved ? taken : 0, isAdmitted: isAdmitted === 1 })
      return { ...reservation, id: isSettled ? id : '', hash: String(hash), stayMs }
    })
    return { isReserved, reservations }
  }

  /** Settles reservations, now or when Redis can be used again. Resolves with the amounts of their windows; undefined: later. */
  async settle(settlements: readonly Settlement[]): Promise<readonly number[] | undefined> {
    const amounts = await this.#settle(settlements)
    // A return without an id that is sent twice would count twice.
    if (amounts === undefined) this.#settleLater(settlements.filter(({ reservation }) => reservation.id !== ''))
    return amounts
  }

  /** Whether this replica is the first one that reports an alert of a window. */
  async claimAlert(counter: RemoteCounter, index: number, percent: number): Promise<boolean> {
    const outcome = await this.#evaluate(CLAIM_ALERT, [counter.keyOf(index)], [String(percent)])
    return 'error' in outcome || outcome.value === 1
  }

  async #settle(settlements: readonly Settlement[]): Promise<readonly number[] | undefined> {
    const keys = settlements.map(({ counter, reservation }) => counter.keyOf(reservation.index))
    const args = settlements.flatMap(({ reservation: { id, hash, stayMs }, used }) => [
      id,
      String(Math.max(-MAX_AMOUNT, Math.min(MAX_AMOUNT, Math.round(used)))),
      hash,
      String(stayMs),
    ])
    const amounts = readValues(await this.#evaluate(SETTLE, keys, args), settlements.length)?.map(Number)
    for (const [nth, { counter, reservation }] of settlements.entries()) {
      const amount = amounts?.[nth]
      if (amount !== undefined) counter.learnAmount(reservation.index, amount)
    }
    return amounts
  }

  #settleLater(settlements: readonly Settlement[]): void {
    this.#waiting.push(...settlements)
    const excess = this.#waiting.length - MAX_WAITING
    if (excess > 0) {
      this.#waiting.splice(0, excess)
      budgetMetrics(this.#state.registry).unsettled.value += excess
    }
    if (this.#isRetryDue) return
    this.#isRetryDue = true
    setTimeout(() => {
      this.#isRetryDue = false
      void this.#retry()
    }, RETRY_MS).unref()
  }

  async #retry(): Promise<void> {
    if (this.#isRetrying) return
    this.#isRetrying = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH)
      if ((await this.#settle(batch)) !== undefined) continue
      this.#settleLater(batch)
      break
    }
    this.#isRetrying = false
  }

  /** Runs a script. The first failure is logged. */
  async #evaluate(...args: Parameters<NonNullable<ReturnType<typeof scriptStores.get>>['evaluate']>): Promise<ScriptOutcome> {
    const store = scriptStores.get(this.#state.registry)
    const outcome: ScriptOutcome = store === undefined ? { error: 'config.redis is not set', mayRun: false } : await store.evaluate(...args)
    const { log } = this.#state
    if ('error' in outcome) {
      if (!this.#isFailing) log?.warn('budgets cannot be charged in Redis', { code: 'PX4037', error: outcome.error })
      this.#isFailing = true
      return outcome
    }
    if (this.#isFailing) log?.info('budgets can be charged in Redis again')
    this.#isFailing = false
    return outcome
  }
}

/** By the registry of the thread. */
const instances = new WeakMap<PolicyState['registry'], RemoteBudgets>()

/** The values of a script; undefined if there are not as many as there should be. Texts are Buffers. */
function readValues(outcome: ScriptOutcome, count: number): readonly (number | string)[] | undefined {
  const value = 'value' in outcome ? outcome.value : undefined
  if (!Array.isArray(value) || value.length !== count) return undefined
  return value.map((each: unknown) => (typeof each === 'number' ? each : String(each)))
}
