const ASCII = 128
const NAMED: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  d: [['0', '9']],
  w: [
    ['0', '9'],
    ['A', 'Z'],
    ['a', 'z'],
    ['_', '_'],
  ],
  // White space of RE2: that of ASCII without the vertical tab.
  s: [
    ['\t', '\n'],
    ['\f', '\r'],
    [' ', ' '],
  ],
}

/** A set of ASCII characters that also contains either all or none of the other characters. Immutable. */
export class CharSet {
  readonly #has: Uint8Array
  readonly #hasOthers: boolean

  constructor(has: Uint8Array = new Uint8Array(ASCII), hasOthers = false) {
    this.#has = has
    this.#hasOthers = hasOthers
  }

  static of(char: string): CharSet {
    return CharSet.range(char, char) ?? new CharSet()
  }

  /** Undefined if the ends are in the wrong order. */
  static range(from: string, to: string): CharSet | undefined {
    const start = from.charCodeAt(0)
    const end = to.charCodeAt(0)
    return start > end ? undefined : new CharSet(new Uint8Array(ASCII).fill(1, start, end + 1))
  }

  /** The set of `\d`, `\w`, `\s` or their negations, by letter; undefined for other letters. */
  static named(letter: string): CharSet | undefined {
    const ranges = NAMED[letter.toLowerCase()]
    if (ranges === undefined) return undefined
    let set = new CharSet()
    for (const [from, to] of ranges) set = set.union(CharSet.range(from, to) ?? set)
    return letter === letter.toLowerCase() ? set : set.invert()
  }

  union(other: CharSet): CharSet {
    return new CharSet(
      this.#has.map((bit, i) => bit | (other.#has[i] ?? 0)),
      this.#hasOthers || other.#hasOthers,
    )
  }

  invert(): CharSet {
    return new CharSet(
      this.#has.map((bit) => 1 - bit),
      !this.#hasOthers,
    )
  }

  overlaps(other: CharSet): boolean {
    return (this.#hasOthers && other.#hasOthers) || this.#has.some((bit, i) => bit === 1 && other.#has[i] === 1)
  }

  /** The character, if the set contains exactly one; otherwise undefined. */
  get only(): string | undefined {
    const first = this.#has.indexOf(1)
    return !this.#hasOthers && first !== -1 && first === this.#has.lastIndexOf(1) ? String.fromCharCode(first) : undefined
  }

  /** The set as a character class of a native pattern with the `u` flag. */
  get source(): string {
    let out = ''
    for (let start = this.#has.indexOf(1); start !== -1;) {
      let end = start
      while (this.#has[end + 1] === 1) end++
      out += start === end ? escape(start) : `${escape(start)}-${escape(end)}`
      start = this.#has.indexOf(1, end + 1)
    }
    return `[${out}${this.#hasOthers ? '\\u{80}-\\u{10ffff}' : ''}]`
  }
}

function escape(code: number): string {
  return `\\x${code.toString(16).padStart(2, '0')}`
}
