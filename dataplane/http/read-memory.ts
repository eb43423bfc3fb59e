/** Memory limit of a cgroup up to which the process is small. */
const SMALL_BYTES = 768 * 1024 * 1024
/** Bytes that a thread reads from clients between two collections: in a small process, in others. */
const SMALL_COLLECT_BYTES = 8 * 1024 * 1024
const COLLECT_BYTES = 32 * 1024 * 1024

const findCollector = (): NodeJS.GCFunction | undefined => (globalThis as { gc?: NodeJS.GCFunction }).gc

/** Counts the bytes that were read from clients, and collects the buffers that are no longer in use. */
export class ReadMemory {
  readonly #collect: (() => void) | undefined
  readonly #interval: number
  #bytes = 0

  /** `constrained`: memory limit of the cgroup; 0: none. `collect`: collects young objects in about a millisecond. */
  constructor(constrained: number, collect: (() => void) | undefined) {
    this.#collect = collect
    this.#interval = constrained > 0 && constrained <= SMALL_BYTES ? SMALL_COLLECT_BYTES : COLLECT_BYTES
  }

  add(bytes: number): void {
    if (this.#collect === undefined) return
    this.#bytes += bytes
    if (this.#bytes < this.#interval) return
    this.#bytes = 0
    this.#collect()
  }
}

const collector = findCollector()

/**
 * The reads of this thread. V8 collects the memory of buffers when they have grown by 64 MiB in each thread. Large uploads make that the largest part of the
 * allocator's heap, which stays resident; with bodies of many clients at once, it is more than a small container has. Does nothing unless Node runs with `--expose-gc`, as in the image.
 */
export const readMemory: ReadMemory = new ReadMemory(process.constrainedMemory(), collector && (() => void collector({ type: 'minor', execution: 'sync' })))
