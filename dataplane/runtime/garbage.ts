import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'

/** Time between checks for load, by default. */
const CHECK_MS = 5000
/** Share of the time that the event loop of a quiet thread runs, at most. */
const QUIET = 0.05
/** Collections after a load. The second shrinks the space of young objects, and V8 keeps free pages for 8 s until a further one. */
const COLLECTIONS = 4

const findCollector = (): NodeJS.GCFunction | undefined => (globalThis as { gc?: NodeJS.GCFunction }).gc

/**
 * Collects garbage and returns the free memory of the calling thread to the system. After a start that is 10 MiB of a thread that allocates little. Pauses
 * the thread, so call it where no traffic waits. Does nothing unless Node runs with `--expose-gc`, as in the image.
 */
export function releaseMemory(): void {
  // This flavor also shrinks the pages of the heap.
  findCollector()?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/**
 * Returns memory of the calling thread to the system when a load has ended, in 15 s and in steps of some milliseconds. V8 leaves the heap as it is while nothing is allocated: 30 to
 * 70 MiB more than after the start. Does nothing without `--expose-gc`, and does not keep the process alive.
 */
export function releaseMemoryWhenQuiet(checkMs = CHECK_MS): void {
  const collect = findCollector()
  if (collect === undefined) return
  const collectYoung = (): void => void collect({ type: 'minor', execution: 'sync' })
  const collector = new QuietCollector((isFirst) => (isFirst ? startMarking(collectYoung) : collectYoung()))
  let last = performance.eventLoopUtilization()
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    collector.check(performance.eventLoopUtilization(now, last).utilization)
    last = now
  }, checkMs).unref()
}

/** Lets V8 collect old objects in steps. It checks after a minor collection whether to start, by default when the heap has grown to a limit. */
function startMarking(collectYoung: () => void): void {
  setFlagsFromString('--incremental-marking-hard-trigger=1')
  try {
    collectYoung()
  } finally {
    setFlagsFromString('--incremental-marking-hard-trigger=0')
  }
}

/** Decides when to collect: not under load, and not again before the next load. */
export class QuietCollector {
  readonly #collect: (isFirst: boolean) => void
  #left = 0

  constructor(collect: (isFirst: boolean) => void) {
    this.#collect = collect
  }

  /** @param utilization of the event loop since the last check, 0 to 1 */
  check(utilization: number): void {
    if (utilization > QUIET) this.#left = COLLECTIONS
    else if (this.#left > 0) {
      this.#collect(this.#left === COLLECTIONS)
      this.#left -= 1
    }
  }
}
