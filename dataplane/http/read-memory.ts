/** Memory limit of a cgroup up to which the process is small. */
const SMALL_BYTES = 768 * 1024 * 1024
/** Bytes that a thread of a small process reads from clients between two collections. */
const COLLECT_BYTES = 8 * 1024 * 1024

const findCollector = (): NodeJS.GCFunction | undefined => (globalThis as { gc?: NodeJS.GCFunction }).gc

/** Counts the bytes that were read from clients, and collects the buffers that are no longer in use. */
export class ReadMemory {
  readonly #collect: (() => void) | undefined
  #bytes = 0

  /** `constrained`: memory limit of the cgroup; 0: none. `collect`: collects young objects in about a millisecond. */
  constructor(constrained: number, collect: (() => void) | undefined) {
    this.#collect = constrained > 0 && constrained <= SMALL_BYTES ? collect : undefined
  }

  add(bytes: number): void {
    if (this.#collect === undefined) return
    this.#bytes += bytes
    if (this.#bytes < COLLECT_BYTES) return
    this.#bytes = 0
    this.#collect()
  }
}

const collector = findCollector()

/**
 * The reads of this thread. V8 collects the memory of buffers when they have grown by 64 MiB in each thread: with bodies of many clients at once, of which
 * most are rejected and skipped, that is more than a small container has. Does nothing unless Node runs with `--expose-gc`, as in the image.
 */
export const readMemory: ReadMemory = new ReadMemory(process.constrainedMemory(), collector && (() => void collector({ type: 'minor', execution: 'sync' })))
