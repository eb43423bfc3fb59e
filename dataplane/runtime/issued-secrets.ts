/** Secrets that wait for the reader, at most; without texts to redact, none reads them. */
const MAX_WAITING = 1000

/**
 * Secrets of this thread that are not in a Secret of the config: tokens that a cloud or an authorization server issued, session keys, passwords of
 * stores, credentials within the config itself. They are redacted wherever text leaves the thread (traffic.md §11).
 */
class IssuedSecrets {
  #waiting: string[] = []

  add(secret: string): void {
    if (this.#waiting.push(secret) > MAX_WAITING) this.#waiting.shift()
  }

  get hasNew(): boolean {
    return this.#waiting.length > 0
  }

  /** The secrets since the last call. */
  take(): readonly string[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }
}

/** Of this thread. */
export const issuedSecrets = new IssuedSecrets()
