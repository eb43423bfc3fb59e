/**
 * A header section as a flat list: name, value, name, value, in the order received. Names are lower case: HTTP/2 requires
 * it, HTTP/1.1 ignores case, and lookups become plain comparisons. Values are Latin-1 text without surrounding white space.
 * The codecs read and write flat lists; most requests are forwarded without a single lookup.
 */
export class HeaderList {
  readonly raw: string[]

  /** Owns `raw` from here on. Its names must be lower case. */
  constructor(raw: string[] = []) {
    this.raw = raw
  }

  /** Builds a list from pairs whose names are in any case. */
  static from(entries: Iterable<readonly [string, string]>): HeaderList {
    const list = new HeaderList()
    for (const [name, value] of entries) list.append(name.toLowerCase(), value)
    return list
  }

  /** First value of `name` (lower case), or undefined. */
  get(name: string): string | undefined {
    const raw = this.raw
    for (let i = 0; i < raw.length; i += 2) if (raw[i] === name) return raw[i + 1]
    return undefined
  }

  getAll(name: string): string[] {
    const raw = this.raw
    const values: string[] = []
    for (let i = 0; i < raw.length; i += 2) if (raw[i] === name) values.push(raw[i + 1] ?? '')
    return values
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** Adds a field line. */
  append(name: string, value: string): void {
    this.raw.push(name, value)
  }

  /** Replaces all field lines of that name with one, at the position of the first. */
  set(name: string, value: string): void {
    const raw = this.raw
    for (let i = 0; i < raw.length; i += 2) {
      if (raw[i] !== name) continue
      raw[i + 1] = value
      this.#removeFrom(i + 2, name)
      return
    }
    raw.push(name, value)
  }

  /** Removes all field lines of that name, or only those whose value matches. */
  remove(name: string, matches?: (value: string) => boolean): void {
    this.#removeFrom(0, name, matches)
  }

  #removeFrom(start: number, name: string, matches?: (value: string) => boolean): void {
    const raw = this.raw
    let to = start
    for (let from = start; from < raw.length; from += 2) {
      if (raw[from] === name && (matches === undefined || matches(raw[from + 1] ?? ''))) continue
      if (to !== from) {
        raw[to] = raw[from] ?? ''
        raw[to + 1] = raw[from + 1] ?? ''
      }
      to += 2
    }
    raw.length = to
  }

  clone(): HeaderList {
    return new HeaderList(this.raw.slice())
  }

  *[Symbol.iterator](): IterableIterator<[string, string]> {
    for (let i = 0; i < this.raw.length; i += 2) yield [this.raw[i] ?? '', this.raw[i + 1] ?? '']
  }
}
