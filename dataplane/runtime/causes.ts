/** Causes of one outage that are logged: texts of a server may differ each time. */
const MAX_CAUSES = 10

/** Causes of failures of a server, each of which is logged once until it works again. */
export class Causes {
  readonly #known = new Set<string>()

  /** Whether a cause is to be logged. */
  isNew(cause: string): boolean {
    if (this.#known.size >= MAX_CAUSES || this.#known.has(cause)) return false
    this.#known.add(cause)
    return true
  }

  /** The server works. Returns whether it had failed. */
  clear(): boolean {
    const hadFailed = this.#known.size > 0
    this.#known.clear()
    return hadFailed
  }
}
