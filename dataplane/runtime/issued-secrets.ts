/** Secrets of one kind that wait for the reader, and that are kept: the latest ones. */
const MAX_KEPT = { process: 10_000, users: 1000 } as const

/** Secrets of the process: its own are few, and those of users many, so that the ones never displace the others. */
type SecretKind = keyof typeof MAX_KEPT

/**
 * Secrets of this thread that are not written into the config: tokens that a cloud or an authorization server issued, session keys, passwords of
 * stores. They are redacted wherever text leaves the thread (traffic.md §11).
 */
class IssuedSecrets {
  /** The oldest first. */
  readonly #kept: Readonly<Record<SecretKind, Set<string>>> = { process: new Set(), users: new Set() }
  #added: string[] = []
  /** Since the reader read all. */
  #forgotten = 0
  #isStale = false

  add(secret: string, kind: SecretKind = 'process'): void {
    const kept = this.#kept[kind]
    // At the end: it is in use.
    if (!kept.delete(secret)) this.#added.push(secret)
    kept.add(secret)
    for (const oldest of kept) {
      if (kept.size <= MAX_KEPT[kind]) break
      kept.delete(oldest)
      this.#forgotten++
    }
    // Without texts to redact, none reads them.
    if (this.#added.length <= MAX_KEPT.users && this.#forgotten <= MAX_KEPT.users) return
    this.#added = []
    this.#forgotten = 0
    this.#isStale = true
  }

  get hasNew(): boolean {
    return this.#isStale || this.#added.length > 0
  }

  /** The secrets since the last call; undefined: all have to be read, because they are too many, or most of those that were read are forgotten. */
  take(): readonly string[] | undefined {
    const added = this.#isStale ? undefined : this.#added
    this.#added = []
    this.#isStale = false
    return added
  }

  /** All that are kept. */
  *[Symbol.iterator](): Generator<string, void> {
    yield* this.#kept.process
    yield* this.#kept.users
  }
}

/** Of this thread. */
export const issuedSecrets = new IssuedSecrets()
