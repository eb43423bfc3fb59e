const WILDCARD = '*.'

/** Values by hostname, looked up by host from the most to the least specific hostname. */
export class HostTable<T> {
  readonly #exact = new Map<string, T>()
  /** By suffix with its leading dot. */
  readonly #wildcards = new Map<string, T>()
  #longestSuffix = 0
  #any: T | undefined = undefined

  /** '' or undefined stands for every host. */
  get(hostname: string | undefined): T | undefined {
    if (!hostname) return this.#any
    return hostname.startsWith(WILDCARD) ? this.#wildcards.get(hostname.slice(1)) : this.#exact.get(hostname)
  }

  set(hostname: string | undefined, value: T): void {
    if (!hostname) {
      this.#any = value
    } else if (hostname.startsWith(WILDCARD)) {
      this.#wildcards.set(hostname.slice(1), value)
      this.#longestSuffix = Math.max(this.#longestSuffix, hostname.length - 1)
    } else {
      this.#exact.set(hostname, value)
    }
  }

  *values(): IterableIterator<T> {
    yield* this.#exact.values()
    yield* this.#wildcards.values()
    if (this.#any !== undefined) yield this.#any
  }

  /** The value of the most specific hostname of a host (lower case, no port). */
  lookup(host: string): T | undefined {
    return this.find(host, (value) => value, undefined)
  }

  /**
   * Calls `probe` with the values of all hostnames that match a host, most specific first, until it returns a result.
   * `argument` is passed to `probe`, to save the caller a closure per request.
   */
  find<A, R>(host: string, probe: (value: T, argument: A) => R | undefined, argument: A): R | undefined {
    const exact = this.#exact.get(host)
    if (exact !== undefined) {
      const found = probe(exact, argument)
      if (found !== undefined) return found
    }
    // Skip suffixes longer than any known one: a host made of dots must not cost quadratic time.
    if (this.#longestSuffix > 0) {
      let dot = host.indexOf('.', Math.max(1, host.length - this.#longestSuffix))
      for (; dot !== -1; dot = host.indexOf('.', dot + 1)) {
        const wildcard = this.#wildcards.get(host.slice(dot))
        const found = wildcard === undefined ? undefined : probe(wildcard, argument)
        if (found !== undefined) return found
      }
    }
    return this.#any === undefined ? undefined : probe(this.#any, argument)
  }
}
