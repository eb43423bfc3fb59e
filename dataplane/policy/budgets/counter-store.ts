import type { ScriptOutcome } from '../../runtime/value-store.ts'

/** Where counters are that several replicas share. */
export type StoreKind = 'redis' | 'postgres'

/** A reservation from one limit. Amounts are integers in the unit of the counter. */
export interface StoreLimit {
  /** Digest of limit and key. */
  readonly counter: string
  /** Number of the window. */
  readonly index: number
  readonly amount: number
  readonly limit: number
  /** The part of the previous window that counts; -1: it never counts. */
  readonly part: number
  /** Whether the reservation is made even if the limit is reached. */
  readonly isForced: boolean
  /** Whether it is settled later. */
  readonly isSettled: boolean
  /** Milliseconds that a new counter of this window stays. */
  readonly stayMs: number
}

/** What a store returns of a limit. */
export interface StoreReading {
  /** Whether the window is the one after that of the request, because the clock of another replica is ahead. */
  readonly isNext: boolean
  readonly isAdmitted: boolean
  /** Amounts before the reservation. */
  readonly current: number
  readonly previous: number
  /** Id of the reservation that created the counter of the window: another one if the data was lost since. */
  readonly origin: string
}

export interface StoreReservation {
  readonly isReserved: boolean
  readonly limits: readonly StoreReading[]
}

/** The settlement of a reservation. */
export interface StoreSettlement {
  readonly counter: string
  readonly index: number
  /** Id of the reservation. Empty: it has none, and `used` is a change. */
  readonly id: string
  readonly used: number
  /** That of the reservation. Empty: its response was lost, so that it may not have been made. */
  readonly origin: string
  readonly stayMs: number
}

/** Counters that several replicas share. Nothing else changes them while one of these operations runs. None rejects. */
export interface CounterStore {
  /** Reserves from all limits, or from none if one rejects. */
  reserve(id: string, limits: readonly StoreLimit[]): Promise<ScriptOutcome<StoreReservation>>
  /**
   * Settles reservations, each once, however often it is sent. If a counter was lost with its reservation, what was used is added.
   * Resolves with the amounts of the windows.
   */
  settle(settlements: readonly StoreSettlement[]): Promise<ScriptOutcome<readonly number[]>>
  /** Claims an alert of a window. Resolves with false if it, or a higher one, was claimed. */
  claimAlert(counter: string, index: number, percent: number): Promise<ScriptOutcome<boolean>>
}
