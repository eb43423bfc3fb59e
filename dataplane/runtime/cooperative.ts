/** How long background work may block the event loop. */
const SLICE_MS = 3
/** How long new work may run while other work waits for its turn: short work need not wait. */
const FIRST_SLICE_MS = 1

/** Slices that wait for their turn. */
const waiting: (() => void)[] = []

/** Resolves in a turn of the event loop that no other slice has: otherwise many concurrent pieces of work would block it as one. */
async function takeTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(releaseTurn)
  })
}

function releaseTurn(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(releaseTurn)
}

/**
 * A time slice of background work, so that requests are not delayed.
 * @example if (slice.isOver) await slice.next()
 */
export class Slice {
  #endMs: number

  constructor(lengthMs = SLICE_MS) {
    this.#endMs = performance.now() + lengthMs
  }

  get isOver(): boolean {
    return performance.now() >= this.#endMs
  }

  /** Lets other events be processed, then begins the next slice. */
  async next(): Promise<void> {
    await takeTurn()
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

/**
 * Runs the work in slices of a few milliseconds and lets requests be processed in between. `checkpoint` is called before each further slice
 * and may throw, to stop work that nobody needs any more.
 */
export async function runCooperatively<Result>(work: Cooperative<Result>, checkpoint?: () => void): Promise<Result> {
  const slice = new Slice(waiting.length > 0 ? FIRST_SLICE_MS : SLICE_MS)
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (!slice.isOver) continue
    await slice.next()
    checkpoint?.()
  }
}
