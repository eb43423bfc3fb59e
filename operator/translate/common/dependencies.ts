/** A read-only lookup by key, such as a Map. */
export interface Lookup<V> {
  get(key: string): V | undefined
}

/**
 * Records what computations read, so that only those whose input changed run again. Input is named by tokens: a reader calls `read`, a source that
 * changed calls `change`.
 */
export class Dependencies {
  readonly #readers = new Map<string, Set<Reader>>()
  #reads: Set<string> | undefined

  /** Records that the running computation depends on `token`, also if there is nothing under it yet. */
  readonly read = (token: string): void => void this.#reads?.add(token)

  /** Marks the computations that depend on `token` as stale. */
  readonly change = (token: string): void => {
    for (const { stale, key } of this.#readers.get(token) ?? []) stale.add(key)
  }

  /** A lookup that records each key as token `<prefix><key>`. */
  track<V>(prefix: string, lookup: () => Lookup<V>): Lookup<V> {
    return {
      get: (key) => {
        this.read(prefix + key)
        return lookup().get(key)
      },
    }
  }

  /** Runs a computation in place of the previous one of the same reader. */
  run<V>(reader: Reader, compute: () => V): V {
    this.forget(reader)
    const reads = new Set<string>()
    this.#reads = reads
    try {
      return compute()
    } finally {
      this.#reads = undefined
      reader.reads = reads
      for (const token of reads) {
        const readers = this.#readers.get(token)
        if (readers) readers.add(reader)
        else this.#readers.set(token, new Set([reader]))
      }
    }
  }

  forget(reader: Reader): void {
    for (const token of reader.reads) {
      const readers = this.#readers.get(token)
      readers?.delete(reader)
      if (readers?.size === 0) this.#readers.delete(token)
    }
    reader.reads = new Set()
  }
}

interface Reader {
  readonly key: string
  /** Keys of the cells that have to be computed again. */
  readonly stale: Set<string>
  reads: ReadonlySet<string>
}

/** Results of one computation by key, with their dependencies. */
export class Cells<V> implements Lookup<V> {
  /** Keys to compute: those that are new, and those whose input changed. */
  readonly stale = new Set<string>()
  readonly #cells = new Map<string, { readonly reader: Reader; value: V }>()
  readonly #dependencies: Dependencies

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  get(key: string): V | undefined {
    return this.#cells.get(key)?.value
  }

  compute(key: string, run: () => V): V {
    const reader = this.#cells.get(key)?.reader ?? { key, stale: this.stale, reads: new Set() }
    const value = this.#dependencies.run(reader, run)
    this.#cells.set(key, { reader, value })
    return value
  }

  delete(key: string): void {
    const cell = this.#cells.get(key)
    if (cell) this.#dependencies.forget(cell.reader)
    this.#cells.delete(key)
  }

  /** The stale keys, which count as fresh from now on. */
  takeStale(): string[] {
    const keys = [...this.stale]
    this.stale.clear()
    return keys
  }
}
