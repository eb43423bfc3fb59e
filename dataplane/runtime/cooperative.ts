import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long background work may block the event loop. */
const SLICE_MS = 3

/**
 * A time slice of background work, so that requests are not delayed.
 * @example if (slice.isOver) await slice.next()
 */
export class Slice {
  #endMs = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endMs
  }

  /** Lets other events be processed, then begins the next slice. */
  async next(): Promise<void> {
    await nextTurn()
    this.#endMs = performance.now() + SLICE_MS
  }
}

/** Work in steps: it yields where other events may be processed in between. */
export type Cooperative<Result> = Generator<undefined, Result, undefined>

/** Runs the work synchronously. */
export function runSync<Result>(work: Cooperative<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Runs the work in slices of a few milliseconds and lets requests be processed in between. */
export async function runCooperatively<Result>(work: Cooperative<Result>): Promise<Result> {
  const slice = new Slice()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (slice.isOver) await slice.next()
  }
}
