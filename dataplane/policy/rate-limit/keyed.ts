import { createHash } from 'node:crypto'
import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'
import type { PolicyState } from '../state.ts'
import type { Budget, BudgetTerms } from './bucket.ts'
import { createBudget } from './create.ts'

/** Keys of one entry whose budgets a thread keeps. */
export const MAX_KEYS = 10_000
/** Longer keys are replaced by a digest, so that clients cannot fill the memory. */
const MAX_KEY_LENGTH = 256

/** Metrics of limits by key. With several workers, an eviction in shared memory is counted when the thread creates its next budget. */
const keyMetrics = defineMetrics((registry) => ({
  evicted: registry.counter('proxy_rate_limit_evicted_keys_total', 'Keys of local rate limits whose budgets were dropped for other keys.').series(),
  countedInCells: 0,
}))

/** The budgets of one entry of a local rate limit by key (traffic.md §8.9). A budget starts full with the first request of its key. */
export class KeyedBudgets {
  /** In order of use. */
  readonly #byKey = new Map<string, Budget>()
  readonly #terms: Omit<BudgetTerms, 'nowMs'>
  readonly #state: Pick<PolicyState, 'monotonicMs' | 'shared' | 'registry'>
  readonly #name: string

  /** @param name distinguishes the entry from others; the same in all workers */
  constructor(terms: Omit<BudgetTerms, 'nowMs'>, state: Pick<PolicyState, 'monotonicMs' | 'shared' | 'registry'>, name: string) {
    this.#terms = terms
    this.#state = state
    this.#name = name
  }

  /** The budget of a key; undefined is the one of all requests without a key. */
  find(key: string | undefined): Budget {
    const id = toId(key)
    const known = this.#byKey.get(id)
    if (known !== undefined) this.#byKey.delete(id)
    const budget = known ?? this.#create(id)
    this.#byKey.set(id, budget)
    return budget
  }

  #create(id: string): Budget {
    const { monotonicMs, shared, registry } = this.#state
    const metrics = keyMetrics(registry)
    if (this.#byKey.size >= MAX_KEYS) {
      this.#byKey.delete(this.#byKey.keys().next().value ?? '')
      // A shared budget stays in its cell.
      if (shared === undefined) metrics.evicted.value++
    }
    const budget = createBudget({ ...this.#terms, nowMs: monotonicMs() }, shared && { cells: shared.keyedCells }, `${this.#name} ${id}`)
    if (shared !== undefined) {
      const { evictions } = shared.keyedCells
      metrics.evicted.value += evictions - metrics.countedInCells
      metrics.countedInCells = evictions
    }
    return budget
  }
}

/** The first letter separates texts, digests and the absent key. */
function toId(key: string | undefined): string {
  if (key === undefined) return 'none'
  return key.length <= MAX_KEY_LENGTH ? `k${key}` : `d${createHash('sha256').update(key).digest('base64')}`
}
