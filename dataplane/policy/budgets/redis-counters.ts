import { scriptStores, type Script, type ScriptOutcome } from '../../runtime/value-store.ts'
import type { CounterStore, StoreLimit, StoreReservation, StoreSettlement } from './counter-store.ts'
import { CLAIM_ALERT, RESERVE, SETTLE } from './scripts.ts'

/** Key of a window. The braces keep the windows of a counter together in a cluster. */
const keyOf = (counter: string, index: number): string => `proxy:budget:{${counter}}:${index}`

/** Counters in Redis, for one thread. */
export class RedisCounters implements CounterStore {
  readonly #registry: object

  constructor(registry: object) {
    this.#registry = registry
  }

  async reserve(id: string, limits: readonly StoreLimit[]): Promise<ScriptOutcome<StoreReservation>> {
    const keys = limits.flatMap(({ counter, index }) => [keyOf(counter, index - 1), keyOf(counter, index), keyOf(counter, index + 1)])
    const args = limits.flatMap(({ amount, limit, part, isForced, isSettled, stayMs }) => [
      String(amount),
      String(limit),
      part.toFixed(9),
      isForced ? '1' : '0',
      isSettled ? '1' : '0',
      String(stayMs),
    ])
    const outcome = await this.#evaluate(RESERVE, keys, [id, ...args], 1 + 5 * limits.length)
    if ('error' in outcome) return outcome
    const { value } = outcome
    const readings = limits.map((_, nth) => {
      const [isNext, isAdmitted, current, previous, origin] = value.slice(1 + 5 * nth, 6 + 5 * nth)
      return { isNext: isNext === 1, isAdmitted: isAdmitted === 1, current: Number(current), previous: Number(previous), origin: String(origin) }
    })
    return { value: { isReserved: value[0] === 1, limits: readings } }
  }

  async settle(settlements: readonly StoreSettlement[]): Promise<ScriptOutcome<readonly number[]>> {
    const keys = settlements.map(({ counter, index }) => keyOf(counter, index))
    const args = settlements.flatMap(({ id, used, origin, stayMs }) => [id, String(used), origin, String(stayMs)])
    const outcome = await this.#evaluate(SETTLE, keys, args, settlements.length)
    return 'error' in outcome ? outcome : { value: outcome.value.map(Number) }
  }

  async claimAlert(counter: string, index: number, percent: number): Promise<ScriptOutcome<boolean>> {
    const outcome = await this.#run(CLAIM_ALERT, [keyOf(counter, index)], [String(percent)])
    return 'error' in outcome ? outcome : { value: outcome.value === 1 }
  }

  /** Runs a script that returns a list. Texts of the list are Buffers. */
  async #evaluate(script: Script, keys: readonly string[], args: readonly string[], count: number): Promise<ScriptOutcome<readonly (number | string)[]>> {
    const outcome = await this.#run(script, keys, args)
    if ('error' in outcome) return outcome
    const { value } = outcome
    if (!Array.isArray(value) || value.length !== count) return { error: 'the script returned something else', mayRun: true }
    return { value: value.map((each: unknown) => (typeof each === 'number' ? each : String(each))) }
  }

  async #run(...args: [script: Script, keys: readonly string[], args: readonly string[]]): Promise<ScriptOutcome> {
    return (await scriptStores.get(this.#registry)?.evaluate(...args)) ?? { error: 'config.redis is not set', mayRun: false }
  }
}
