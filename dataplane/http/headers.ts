/**
 * A header section as a flat list: name, value, name, value, in the order received. Names are lower case: HTTP/2 requires
 * it, HTTP/1.1 ignores case, and lookups become plain comparisons. Values are Latin-1 text without surrounding white space.
 * The codecs read and write flat lists; most requests are forwarded without a single lookup.
 *
 * `set` and `remove` also remove the spellings of a name with underscores (`x_user` for `x-user`), because CGI and WSGI servers read both as one
 * header; and they record the name, so that trailers cannot bring the field back (see trailers.ts).
 */
export class HeaderList {
  readonly raw: string[]
  /** Names that were set or removed; undefined: none. */
  #changed: string[] | undefined = undefined
  /** Names and values that `add` added; undefined: none. */
  #added: string[] | undefined = undefined
  /** Whether a name holds an underscore; undefined: unknown. Determined at the first change. */
  #hasUnderscores: boolean | undefined = undefined

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

  /** Adds a field line that is the gateway's own, as `ownValues` reports. */
  add(name: string, value: string): void {
    this.raw.push(name, value)
    if (this.#added === undefined) this.#added = [name, value]
    else this.#added.push(name, value)
  }

  /** Values of `name` that were set or added here, and are not those of the sender. */
  ownValues(name: string): string[] {
    if (this.#changed?.includes(name) === true) return this.getAll(name)
    return (this.#added ?? []).filter((_, i, added) => i % 2 === 1 && added[i - 1] === name)
  }

  /** Replaces all field lines of that name with one, at the position of the first. */
  set(name: string, value: string): void {
    this.#change(name)
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
    this.#change(name)
    this.#removeFrom(0, name, matches)
  }

  /** Removes the field lines whose name matches, in one pass however many there are. Trailers may bring them back. */
  removeWhere(matches: (name: string) => boolean): void {
    const raw = this.raw
    let to = 0
    for (let from = 0; from < raw.length; from += 2) {
      const name = raw[from] ?? ''
      if (matches(name)) continue
      if (to !== from) {
        raw[to] = name
        raw[to + 1] = raw[from + 1] ?? ''
      }
      to += 2
    }
    if (to !== raw.length) raw.length = to
  }

  /** Whether a field of that name, in any spelling with underscores, was set or removed. */
  isChanged(name: string): boolean {
    return this.#changed?.some((changed) => changed === name || toDashes(changed) === toDashes(name)) === true
  }

  #change(name: string): void {
    if (this.#changed === undefined) this.#changed = [name]
    else if (!this.#changed.includes(name)) this.#changed.push(name)
    if (!name.includes('-') || !(this.#hasUnderscores ??= hasUnderscoredName(this.raw))) return
    const spellings = this.raw.filter((other, i) => isUnderscoredName(other, i) && other !== name && toDashes(other) === toDashes(name))
    // A spelling that was set itself is intended.
    for (const spelling of spellings) if (!this.#changed.includes(spelling)) this.#removeFrom(0, spelling)
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
    const copy = new HeaderList(this.raw.slice())
    copy.#changed = this.#changed?.slice()
    copy.#added = this.#added?.slice()
    copy.#hasUnderscores = this.#hasUnderscores
    return copy
  }

  *[Symbol.iterator](): IterableIterator<[string, string]> {
    for (let i = 0; i < this.raw.length; i += 2) yield [this.raw[i] ?? '', this.raw[i + 1] ?? '']
  }
}

/** Says that a response depends on these request headers: caches must store it per value of each. */
export function addVary(headers: HeaderList, required: readonly string[]): void {
  const names = new Set(headers.getAll('vary').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase())))
  if (names.has('*')) return
  const missing = required.filter((name) => !names.has(name.toLowerCase()))
  if (missing.length > 0) headers.append('vary', missing.join(', '))
}

/** The spelling of a field name (lower case) with dashes for underscores. */
export function toDashes(name: string): string {
  return name.includes('_') ? name.replaceAll('_', '-') : name
}

function hasUnderscoredName(raw: readonly string[]): boolean {
  for (let i = 0; i < raw.length; i += 2) if (raw[i]?.includes('_') === true) return true
  return false
}

function isUnderscoredName(text: string, index: number): boolean {
  return index % 2 === 0 && text.includes('_')
}
