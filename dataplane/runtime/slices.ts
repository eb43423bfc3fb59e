import { setImmediate as yieldToTraffic } from 'node:timers/promises'

/** How long work that can wait goes on without giving way to traffic. */
const SLICE_MS = 3

/** A slice of such work: whoever finds it over lets traffic in, and begins the next. */
export class Slice {
  #endMs = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endMs
  }

  async next(): Promise<void> {
    await yieldToTraffic()
    this.#endMs = performance.now() + SLICE_MS
  }
}

/** Work that stops at places where something else may come in between. */
export type Sliced<Result> = Generator<undefined, Result, undefined>

/** For whoever cannot wait. */
export function runAtOnce<Result>(work: Sliced<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** In slices of a few milliseconds, with traffic in between. */
export async function runInSlices<Result>(work: Sliced<Result>): Promise<Result> {
  const slice = new Slice()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (slice.isOver) await slice.next()
  }
}
