import { createHash } from 'node:crypto'
import type { Windows } from '#api/budget-window.ts'
import type { StoreKind } from './counter-store.ts'
import { Counter, type CounterReading, type MemoryOf, type Reservation } from './counter.ts'

/** What a replica knows of a counter in a store. */
export interface RemoteState {
  /** Number of the window. */
  readonly index: number
  readonly current: number
  /** Amount of the window before; 0 unless the limit is a rolling one. */
  readonly previous: number
}

/**
 * A counter in a store, as this thread last saw it. Its own memory counts what is reserved while the store cannot be used, and the alerts
 * that this replica has claimed.
 */
export class RemoteCounter extends Counter {
  readonly store: StoreKind
  /** The same in all replicas. */
  readonly id: string
  #known: RemoteState | undefined

  /** @param name the same in all replicas */
  constructor(memory: MemoryOf, windows: Windows, store: StoreKind, name: string) {
    super(memory, windows)
    this.store = store
    this.id = createHash('sha256').update(name).digest('base64url')
  }

  windowAt(epochMs: number): ReturnType<Windows['at']> {
    return this.windows.at(epochMs)
  }

  /** The part of the previous window that counts; -1: it never counts. */
  partAt(epochMs: number): number {
    const { startMs, endMs } = this.windows.at(epochMs)
    return this.windows.isRolling ? 1 - Math.min(1, Math.max(0, (epochMs - startMs) / (endMs - startMs))) : -1
  }

  /** Takes what the store has returned for a reservation. */
  learn(
    epochMs: number,
    state: RemoteState,
    { limit, taken, isAdmitted }: { readonly limit: number; readonly taken: number; readonly isAdmitted: boolean },
  ): Reservation {
    this.#known = { ...state, current: state.current + taken }
    const { startMs, endMs } = this.#windowOf(state.index, epochMs)
    const lengthMs = endMs - startMs
    const elapsed = Math.min(1, Math.max(0, (epochMs - startMs) / lengthMs))
    const used = state.current + state.previous * (1 - elapsed)
    const resetMs = isAdmitted
      ? Math.max(0, endMs - epochMs)
      : this.opensAfterMs({ current: state.current, previous: state.previous, limit, needed: 1, elapsed, lengthMs })
    return { isAdmitted, taken, index: state.index, used, resetMs }
  }

  /** Takes the amount after a settlement. */
  learnAmount(index: number, current: number): void {
    if (this.#known?.index === index) this.#known = { ...this.#known, current }
  }

  override read(epochMs: number): CounterReading | undefined {
    const known = this.#known
    const own = super.read(epochMs)
    if (own === undefined || known === undefined) return own
    const { index, endMs } = this.#windowOf(known.index, epochMs)
    const part = Math.max(0, this.partAt(epochMs))
    const remote =
      known.index === index ? known.current + known.previous * part : known.index === index - 1 && this.windows.isRolling ? known.current * part : 0
    return { used: own.used + remote, endMs }
  }

  /** The window of a time, or the next one if the clock of another replica is ahead. */
  #windowOf(known: number, epochMs: number): ReturnType<Windows['at']> {
    const window = this.windows.at(epochMs)
    return window.index + 1 === known ? this.windows.at(window.endMs) : window
  }
}
