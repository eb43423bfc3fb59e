/** Copies of one model that wait for others to end. */
const MAX_WAITING = 64
/** Bytes of all requests that wait or are in flight, in a thread. */
const MAX_BYTES = 8 * 1024 * 1024

interface Line<T> {
  running: number
  readonly waiting: T[]
}

/** Runs work for models, some at a time, in the order of its arrival. What exceeds the bounds is not accepted. */
export class ShadowQueue<T extends { readonly bytes: number }> {
  readonly #work: (item: T) => Promise<void>
  readonly #lines = new Map<string, Line<T>>()
  #bytes = 0

  /** `work` reports its failures itself. */
  constructor(work: (item: T) => Promise<void>) {
    this.#work = work
  }

  /** False: too much waits. */
  add(name: string, concurrency: number, item: T): boolean {
    const line = this.#lines.get(name) ?? { running: 0, waiting: [] }
    if (this.#bytes + item.bytes > MAX_BYTES || line.running + line.waiting.length >= concurrency + MAX_WAITING) return false
    this.#lines.set(name, line)
    this.#bytes += item.bytes
    line.waiting.push(item)
    // Never in the turn of the request.
    setImmediate(() => this.#start(name, line, concurrency))
    return true
  }

  #start(name: string, line: Line<T>, concurrency: number): void {
    if (line.running >= concurrency) return
    const item = line.waiting.shift()
    if (item === undefined) return
    line.running++
    const end = (): void => {
      line.running--
      this.#bytes -= item.bytes
      if (line.running === 0 && line.waiting.length === 0) this.#lines.delete(name)
      else this.#start(name, line, concurrency)
    }
    this.#work(item).then(end, end)
  }
}
