import { randomBytes } from 'node:crypto'
import { Causes } from '../../runtime/causes.ts'
import type { ScriptOutcome } from '../../runtime/value-store.ts'
import type { PolicyState } from '../state.ts'
import { MAX_RESERVED, toAmount, type Reservation } from './counter.ts'
import type { CounterStore, StoreKind } from './counter-store.ts'
import { budgetMetrics } from './metrics.ts'
import { PostgresCounters } from './postgres-counters.ts'
import { RedisCounters } from './redis-counters.ts'
import type { RemoteCounter } from './remote-counter.ts'

/** A counter stays for so long after its window: requests that began in it may end, and clocks differ. */
const LATE_MS = 3_600_000
/** Settlements that wait until the store can be used again. Beyond it the oldest ones are dropped: their estimates stay charged. */
const MAX_WAITING = 10_000
const BATCH = 100
const RETRY_MS = 1000

const STORES = {
  redis: {
    create: (registry: object): CounterStore => new RedisCounters(registry),
    failed: 'budgets cannot be charged in Redis',
    works: 'budgets can be charged in Redis again',
    code: 'PX4037',
  },
  postgres: {
    create: (registry: object): CounterStore => new PostgresCounters(registry),
    failed: 'budgets cannot be charged in PostgreSQL',
    works: 'budgets can be charged in PostgreSQL again',
    code: 'PX4039',
  },
} as const

/** A reservation that is to be made. */
export interface RemoteWanted {
  readonly counter: RemoteCounter
  readonly limit: number
  readonly amount: number
  readonly isForced: boolean
  /** Whether what was used differs from the amount. */
  readonly isSettled: boolean
}

/** A reservation in a store, with what its settlement needs. */
export interface RemoteReservation extends Reservation {
  /** Id of the reservation; empty if it is not settled. */
  readonly id: string
  /** Id of the counter: another one if its data was lost since. */
  readonly origin: string
  readonly stayMs: number
}

interface Settlement {
  readonly counter: RemoteCounter
  readonly reservation: Pick<RemoteReservation, 'id' | 'origin' | 'stayMs' | 'index'>
  readonly used: number
}

type State = Pick<PolicyState, 'registry' | 'log'>

/** The counters of budgets in one store (traffic.md §8.14), for one thread. */
export class RemoteBudgets {
  readonly #state: State
  readonly #texts: (typeof STORES)[StoreKind]
  readonly #store: CounterStore
  readonly #prefix = randomBytes(9).toString('base64url')
  #lastId = 0
  readonly #causes = new Causes()
  readonly #waiting: Settlement[] = []
  #isRetryDue = false
  #isRetrying = false

  private constructor(state: State, kind: StoreKind) {
    this.#state = state
    this.#texts = STORES[kind]
    this.#store = STORES[kind].create(state.registry)
  }

  /** That of a thread. */
  static of(state: State, kind: StoreKind): RemoteBudgets {
    let known = instances.get(state.registry)
    if (known === undefined) instances.set(state.registry, (known = new Map()))
    let found = known.get(kind)
    if (found === undefined) known.set(kind, (found = new RemoteBudgets(state, kind)))
    return found
  }

  /**
   * Reserves from all limits, or from none if one of them rejects: then the result says which. Undefined: the store cannot be used.
   * @param nowMs milliseconds since 1970
   */
  async reserve(nowMs: number, wanted: readonly RemoteWanted[]): Promise<{ isReserved: boolean; reservations: RemoteReservation[] } | undefined> {
    const id = `${this.#prefix}${(++this.#lastId).toString(36)}`
    const limits = wanted.map(({ counter, limit, amount, isForced, isSettled }) => {
      const { index, startMs, endMs } = counter.windowAt(nowMs)
      const stayMs = Math.ceil(endMs - nowMs + 2 * (endMs - startMs) + LATE_MS)
      return { counter: counter.id, index, amount: toAmount(amount), limit, part: counter.partAt(nowMs), isForced, isSettled, stayMs }
    })
    const outcome = this.#note(await this.#store.reserve(id, limits))
    if ('error' in outcome) {
      // Of which window it is depends on the clocks of others.
      if (outcome.mayRun)
        for (const [nth, { counter, isSettled }] of wanted.entries()) {
          const { index = 0, stayMs = 0 } = limits[nth] ?? {}
          if (isSettled) for (const each of [index, index + 1]) this.#settleLater([{ counter, used: 0, reservation: { id, origin: '', stayMs, index: each } }])
        }
      return undefined
    }
    const { isReserved, limits: readings } = outcome.value
    const reservations = readings.flatMap(({ isNext, isAdmitted, current, previous, origin }, nth): RemoteReservation[] => {
      const [each, sent] = [wanted[nth], limits[nth]]
      if (each === undefined || sent === undefined) return []
      const state = { index: sent.index + Number(isNext), current, previous }
      const reservation = each.counter.learn(nowMs, state, { limit: each.limit, taken: isReserved ? sent.amount : 0, isAdmitted })
      return [{ ...reservation, id: each.isSettled ? id : '', origin, stayMs: sent.stayMs }]
    })
    return { isReserved, reservations }
  }

  /** Settles reservations, now or when the store can be used again. Resolves with the amounts of their windows; undefined: later. */
  async settle(settlements: readonly Settlement[]): Promise<readonly number[] | undefined> {
    const amounts = await this.#settle(settlements)
    // A return without an id that is sent twice would count twice.
    if (amounts === undefined) this.#settleLater(settlements.filter(({ reservation }) => reservation.id !== ''))
    return amounts
  }

  /** Whether this replica is the first one that reports an alert of a window. */
  async claimAlert(counter: RemoteCounter, index: number, percent: number): Promise<boolean> {
    const outcome = this.#note(await this.#store.claimAlert(counter.id, index, percent))
    return 'error' in outcome || outcome.value
  }

  async #settle(settlements: readonly Settlement[]): Promise<readonly number[] | undefined> {
    const list = settlements.map(({ counter, used, reservation: { id, index, origin, stayMs } }) => {
      return { counter: counter.id, index, id, used: Math.max(-MAX_RESERVED, Math.min(MAX_RESERVED, Math.round(used))), origin, stayMs }
    })
    const outcome = this.#note(await this.#store.settle(list))
    if ('error' in outcome) return undefined
    for (const [nth, { counter, reservation }] of settlements.entries()) {
      const amount = outcome.value[nth]
      if (amount !== undefined) counter.learnAmount(reservation.index, amount)
    }
    return outcome.value
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

  /** Logs each cause of failures once, and their end. */
  #note<T>(outcome: ScriptOutcome<T>): ScriptOutcome<T> {
    const { log } = this.#state
    const { failed, works, code } = this.#texts
    if ('error' in outcome) {
      if (this.#causes.isNew(outcome.error)) log?.warn(failed, { code, error: outcome.error })
      return outcome
    }
    if (this.#causes.clear()) log?.info(works)
    return outcome
  }
}

/** By the registry of the thread. */
const instances = new WeakMap<PolicyState['registry'], Map<StoreKind, RemoteBudgets>>()
