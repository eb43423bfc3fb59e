import { statementStores, type ScriptOutcome } from '../../runtime/value-store.ts'
import type { CounterStore, StoreLimit, StoreReading, StoreReservation, StoreSettlement } from './counter-store.ts'
import { CLAIM_ALERT_ROW, COUNTERS, DELETE_EXPIRED, EXPIRED_ROWS, RESERVE_ROWS, SETTLE_ROWS } from './statements.ts'

/** Reservations of one statement. */
const MAX_BATCH = 100
/** Reservations that wait for the statement before theirs. Further ones fail. */
const MAX_QUEUE = 1000
const DELETE_MS = 60_000
const DELETE_TIMEOUT_MS = 5000

interface Waiting {
  readonly id: string
  readonly limits: readonly StoreLimit[]
  resolve(outcome: ScriptOutcome<StoreReservation>): void
}

/**
 * Counters in PostgreSQL, for one thread. One statement reserves at a time; reservations that arrive meanwhile share the next one, so that
 * a counter admits more requests a second than the server can commit transactions one after the other.
 */
export class PostgresCounters implements CounterStore {
  readonly #registry: object
  readonly #waiting: Waiting[] = []
  #isSending = false

  constructor(registry: object) {
    this.#registry = registry
    // All threads of all replicas do it; each at a time of its own.
    setTimeout(() => void this.#deleteExpired(), Math.random() * 1000).unref()
    setInterval(() => void this.#deleteExpired(), DELETE_MS * (0.75 + Math.random() / 2)).unref()
  }

  reserve(id: string, limits: readonly StoreLimit[]): Promise<ScriptOutcome<StoreReservation>> {
    if (this.#waiting.length >= MAX_QUEUE) return Promise.resolve({ error: 'too many requests wait for PostgreSQL', mayRun: false })
    const { promise, resolve } = Promise.withResolvers<ScriptOutcome<StoreReservation>>()
    this.#waiting.push({ id, limits, resolve })
    if (!this.#isSending) void this.#send()
    return promise
  }

  async settle(settlements: readonly StoreSettlement[]): Promise<ScriptOutcome<readonly number[]>> {
    const list = settlements.map(({ counter, index, id, used, origin, stayMs }) => ({ counter, period: index, id, used, origin, stay: stayMs }))
    const outcome = await this.#query(SETTLE_ROWS, [JSON.stringify(list)])
    return readResult(outcome, settlements.length, Number)
  }

  async claimAlert(counter: string, index: number, percent: number): Promise<ScriptOutcome<boolean>> {
    const outcome = await this.#query(CLAIM_ALERT_ROW, [counter, index, percent])
    return 'error' in outcome ? outcome : { value: outcome.value.length > 0 }
  }

  async #send(): Promise<void> {
    this.#isSending = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MAX_BATCH)
      const requests = batch.map(({ id, limits }) => ({ id, limits: limits.map(toRow) }))
      const outcome = readResult(await this.#query(RESERVE_ROWS, [JSON.stringify(requests)]), batch.length, readReservation)
      for (const [nth, { resolve }] of batch.entries()) {
        if ('error' in outcome) resolve(outcome)
        else resolve({ value: outcome.value[nth] ?? { isReserved: false, limits: [] } })
      }
    }
    this.#isSending = false
  }

  /** Windows that are over never count again: a failure only delays. */
  async #deleteExpired(): Promise<void> {
    for (const statement of DELETE_EXPIRED) {
      for (;;) {
        const outcome = await this.#query(statement, [], DELETE_TIMEOUT_MS)
        if ('error' in outcome || outcome.value.length < EXPIRED_ROWS) break
      }
    }
  }

  async #query(text: string, values: readonly unknown[], timeoutMs?: number) {
    return (await statementStores.get(this.#registry)?.query(COUNTERS, text, values, timeoutMs)) ?? { error: 'config.postgres is not set', mayRun: false }
  }
}

const toRow = ({ counter, index, amount, limit, part, isForced, isSettled, stayMs }: StoreLimit) => {
  return { counter, period: index, amount, limit, part: Number(part.toFixed(9)), forced: isForced, settled: isSettled, stay: stayMs }
}

type Rows = ScriptOutcome<readonly Readonly<Record<string, unknown>>[]>

/** Reads the list that a function returns. */
function readResult<T>(outcome: Rows, count: number, read: (value: unknown) => T): ScriptOutcome<readonly T[]> {
  if ('error' in outcome) return outcome
  const list = outcome.value[0]?.['result']
  return Array.isArray(list) && list.length === count ? { value: list.map(read) } : { error: 'the function returned something else', mayRun: true }
}

function readReservation(value: unknown): StoreReservation {
  const [isReserved, rows] = value as [boolean, [boolean, boolean, number, number, string][]]
  const limits = rows.map(([isNext, isAdmitted, current, previous, origin]): StoreReading => ({ isNext, isAdmitted, current, previous, origin }))
  return { isReserved, limits }
}
