import { createHash } from 'node:crypto'
import type { SharedCell, SharedCells } from '../../runtime/shared-cells.ts'
import { steadyClock } from '../../runtime/time.ts'
import type { QuotaMemory } from '../../runtime/quotas.ts'
import type { ShareMemory } from '../../runtime/shares.ts'
import type { PolicyState } from '../state.ts'
import { Counter, COUNTER_WORDS, SAVED_WORD, type CounterMemory, type MemoryOf } from './counter.ts'
import type { StoreKind } from './counter-store.ts'
import { budgetMetrics } from './metrics.ts'
import { QUOTA_WORDS, QuotaCounter } from './quota.ts'
import { RemoteCounter } from './remote-counter.ts'
import { SHARE_WORDS, ShareCounter } from './share.ts'
import type { Windows } from '#api/budget-window.ts'

/** Keys of one limit whose counters a thread keeps. */
const MAX_KEYS = 10_000
/** Longer keys are replaced by a digest. */
const MAX_KEY_LENGTH = 256

/** Of this replica, of all replicas by shares from the operator, by assignments of a rate limit quota service, or in a store. */
export type CounterKind = 'own' | 'shared' | 'assigned' | StoreKind

function kindOf(counter: Counter): CounterKind {
  if (counter instanceof ShareCounter) return 'shared'
  if (counter instanceof QuotaCounter) return 'assigned'
  return counter instanceof RemoteCounter ? counter.store : 'own'
}

/** Ledgers by the registry of their thread. */
const ledgers = new WeakMap<PolicyState['registry'], Ledger>()

type State = Pick<PolicyState, 'budgetCells' | 'epochMs' | 'kept' | 'monotonicMs' | 'registry' | 'shared'>

/**
 * The counters of all budgets, by names that do not change when a policy is edited, so that what was spent is kept. With several workers
 * the counters are cells of shared memory, and also if they outlive the process.
 */
export class Ledger {
  /** Counters of a limit by key, in order of use. */
  readonly #limits = new Map<string, Map<string, Counter>>()
  readonly #state: State
  #countedInCells = 0
  /** Milliseconds since 1970. Setting the system's clock back opens no window again. */
  readonly epochMs: () => number

  private constructor(state: State) {
    this.#state = state
    this.epochMs = steadyClock(state.epochMs, state.monotonicMs)
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

  /** Name of a counter in all workers, and the digest of its key that other processes may know. */
  namesOf(limit: string, key: string | undefined): { readonly limit: string; readonly key: string; readonly counter: string } {
    const id = toId(key)
    return { limit, key: key === undefined ? id : createHash('sha256').update(id).digest('base64url').slice(0, 22), counter: `${limit} ${id}` }
  }

  /** The key as other processes may know it, at most 256 characters: longer ones are a digest. Undefined: there is none. */
  labelOf(key: string | undefined): string | undefined {
    return key === undefined ? undefined : (keyOfId(toId(key)) ?? undefined)
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
  find(limit: string, key: string | undefined, windows: Windows, kind: CounterKind = 'own'): Counter {
    let counters = this.#limits.get(limit)
    if (counters === undefined) this.#limits.set(limit, (counters = new Map()))
    const id = toId(key)
    let counter = counters.get(id)
    // Scope and store of a budget may change; what was used is kept only with several workers, where it is in shared memory.
    if (counter === undefined || kindOf(counter) !== kind) counter = this.#create(counters, `${limit} ${id}`, windows, kind)
    // The order decides only which counter is dropped. A Map is in order of insertion.
    else if (counters.size < MAX_KEYS / 2) return counter
    else counters.delete(id)
    counters.set(id, counter)
    return counter
  }

  #create(counters: Map<string, Counter>, name: string, windows: Windows, kind: CounterKind): Counter {
    const { registry, shared } = this.#state
    const cells = shared?.budgetCells ?? this.#state.budgetCells
    const { evicted } = budgetMetrics(registry)
    if (counters.size >= MAX_KEYS) {
      counters.delete(counters.keys().next().value ?? '')
      // A shared counter stays in its cell.
      if (cells === undefined) evicted.value++
    }
    const savedWord = kind === 'own' ? 1n : 0n
    const cell = cells?.open(`spent ${name}`, (content) => void (content[SAVED_WORD] = savedWord))
    if (cell !== undefined) Atomics.store(cell.content, SAVED_WORD, savedWord)
    if (cells !== undefined) {
      evicted.value += cells.evictions - this.#countedInCells
      this.#countedInCells = cells.evictions
    }
    const memory = cell === undefined ? ownMemory(COUNTER_WORDS) : sharedMemory(cell)
    if (kind === 'own') return new Counter(memory, windows)
    if (kind === 'assigned') {
      const quota = cells?.open(`quota ${name}`, () => undefined)
      return new QuotaCounter(memory, quota === undefined ? ownMemory(QUOTA_WORDS) : sharedMemory(quota), windows)
    }
    if (kind !== 'shared') return new RemoteCounter(memory, windows, kind, name)
    const share = cells?.open(`share ${name}`, () => undefined)
    return new ShareCounter(memory, share === undefined ? ownMemory(SHARE_WORDS) : sharedMemory(share), windows)
  }
}

/** The memory of a counter and its share that workers have opened, by the name of the counter. */
export function findShareMemory(cells: Pick<SharedCells, 'find'>, name: string): ShareMemory | undefined {
  const counter = cells.find(`spent ${name}`)
  const share = cells.find(`share ${name}`)
  return counter && share && { counter: counter.content, share: share.content }
}

/** The memory of an assignment that workers have opened, by the name of its counter. */
export function findQuotaMemory(cells: Pick<SharedCells, 'find'>, name: string): QuotaMemory | undefined {
  const cell = cells.find(`quota ${name}`)
  return cell && { words: cell.content }
}

function ownMemory(words: number): MemoryOf {
  const memory: CounterMemory = { words: new BigInt64Array(words) }
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
