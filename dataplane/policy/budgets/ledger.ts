import { createHash } from 'node:crypto'
import type { SharedCell } from '../../runtime/shared-cells.ts'
import type { PolicyState } from '../state.ts'
import { Counter, COUNTER_WORDS, type CounterMemory, type MemoryOf } from './counter.ts'
import { budgetMetrics } from './metrics.ts'
import type { Windows } from './window.ts'

/** Keys of one limit whose counters a thread keeps. */
const MAX_KEYS = 10_000
/** Longer keys are replaced by a digest. */
const MAX_KEY_LENGTH = 256

/** Ledgers by the registry of their thread. */
const ledgers = new WeakMap<PolicyState['registry'], Ledger>()

type State = Pick<PolicyState, 'kept' | 'registry' | 'shared'>

/**
 * The counters of all budgets, by names that do not change when a policy is edited, so that what was spent is kept. With several workers
 * the counters are cells of shared memory.
 */
export class Ledger {
  /** Counters of a limit by key, in order of use. */
  readonly #limits = new Map<string, Map<string, Counter>>()
  readonly #state: State
  #countedInCells = 0

  private constructor(state: State) {
    this.#state = state
  }

  /** The ledger of a data plane. */
  static of(state: State): Ledger {
    // The registry lives as long as the thread.
    return state.kept.get(state.registry, [], () => {
      const ledger = new Ledger(state)
      ledgers.set(state.registry, ledger)
      return ledger
    })
  }

  /** The ledger whose metrics are in the registry; undefined before the first budget. */
  static find(registry: PolicyState['registry']): Ledger | undefined {
    return ledgers.get(registry)
  }

  /** All limits with the counters of their keys, by id. */
  entries(): Iterable<readonly [limit: string, counters: ReadonlyMap<string, Counter>]> {
    return this.#limits
  }

  /**
   * The counter of a limit for a key.
   * @param limit name of the limit; the same in all workers
   * @param key undefined: the limit has one counter
   */
  find(limit: string, key: string | undefined, windows: Windows): Counter {
    let counters = this.#limits.get(limit)
    if (counters === undefined) this.#limits.set(limit, (counters = new Map()))
    const id = toId(key)
    let counter = counters.get(id)
    if (counter === undefined) counter = this.#create(counters, `${limit} ${id}`, windows)
    // The order decides only which counter is dropped. A Map is in order of insertion.
    else if (counters.size < MAX_KEYS / 2) return counter
    else counters.delete(id)
    counters.set(id, counter)
    return counter
  }

  #create(counters: Map<string, Counter>, name: string, windows: Windows): Counter {
    const { registry, shared } = this.#state
    const { evicted } = budgetMetrics(registry)
    if (counters.size >= MAX_KEYS) {
      counters.delete(counters.keys().next().value ?? '')
      // A shared counter stays in its cell.
      if (shared === undefined) evicted.value++
    }
    const cell = shared?.budgetCells.open(`spent ${name}`, () => undefined)
    if (shared !== undefined) {
      evicted.value += shared.budgetCells.evictions - this.#countedInCells
      this.#countedInCells = shared.budgetCells.evictions
    }
    return new Counter(cell === undefined ? ownMemory() : sharedMemory(cell), windows)
  }
}

function ownMemory(): MemoryOf {
  const memory: CounterMemory = { words: new BigInt64Array(COUNTER_WORDS) }
  return () => memory
}

function sharedMemory(cell: SharedCell): MemoryOf {
  let current = cell
  let memory: CounterMemory = { words: cell.content }
  const use = (): CounterMemory => {
    const touched = current.touch() ?? current
    if (touched !== current) memory = { words: (current = touched).content }
    return memory
  }
  // A read must neither keep a cell from being reused nor open another one.
  const read = (): CounterMemory | undefined => (current.isCurrent ? memory : undefined)
  return ((isReading?: true) => (isReading === true ? read() : use())) as MemoryOf
}

/** The key of an id; null for the absent key. Digests begin with `sha256:`. */
export function keyOfId(id: string): string | null {
  if (id === 'all') return null
  return id.startsWith('d') ? `sha256:${id.slice(1)}` : id.slice(1)
}

/** The first letter separates texts, digests and the absent key. */
function toId(key: string | undefined): string {
  if (key === undefined) return 'all'
  return key.length <= MAX_KEY_LENGTH ? `k${key}` : `d${createHash('sha256').update(key).digest('base64')}`
}
