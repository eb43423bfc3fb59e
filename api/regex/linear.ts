import { CharSet } from './charset.ts'

/**
 * Decides whether a pattern, matched against a whole text, runs in linear time on a backtracking engine, and translates it to
 * the syntax of that engine. Conservative: supports a small part of RE2's syntax and rejects everything else.
 *
 * A pattern is a list of branches. A branch is a list of items: a set of characters with a repetition, or a choice of strings of
 * sets, each of fixed length. A pattern is linear if at most one continuation is possible at every point:
 *  - a repetition of variable length is followed only by characters that it does not contain, so backtracking into it never
 *    succeeds; one exception per branch, with nothing of variable length after it, costs text × pattern;
 *  - at most one of the strings of a choice can match at any position.
 */
interface Repeated {
  readonly kind: 'repeated'
  readonly set: CharSet
  readonly min: number
  readonly max: number
}
interface Choice {
  readonly kind: 'choice'
  readonly strings: readonly (readonly CharSet[])[]
}
type Item = Repeated | Choice

/** Source for `new RegExp(source, 'u')`, anchored at both ends; undefined if the pattern is not provably linear. */
export function toLinearSource(pattern: string): string | undefined {
  const branches = new Parser(pattern).parse()
  if (branches === undefined || !branches.every(isLinear)) return undefined
  return `^(?:${branches.map((items) => items.map(toSource).join('')).join('|')})$`
}

/**
 * As `toLinearSource`, for a search anywhere in the text. A backtracking engine restarts a search at every character, so every
 * branch must be anchored at the start of the text or have a small fixed length.
 */
export function toLinearPrefixSource(pattern: string): string | undefined {
  const parser = new Parser(pattern)
  const branches = parser.parse()
  if (branches === undefined || !branches.every(isLinear)) return undefined
  const sources = branches.map((items, i) => {
    const { isAtStart = false, isAtEnd = false } = parser.anchors[i] ?? {}
    return isAtStart || isShort(items) ? `${isAtStart ? '^' : ''}${items.map(toSource).join('')}${isAtEnd ? '$' : ''}` : undefined
  })
  return sources.includes(undefined) ? undefined : `(?:${sources.join('|')})`
}

/** Whether a branch has a fixed length of at most MAX_TAIL. */
function isShort(items: readonly Item[]): boolean {
  let length = 0
  for (const item of items) {
    if (item.kind === 'repeated' && item.min !== item.max) return false
    length += item.kind === 'choice' ? Math.max(...item.strings.map((string) => string.length)) : item.max
  }
  return length <= MAX_TAIL
}

/** Maximum number of characters after the one ambiguous repetition of a branch. */
const MAX_TAIL = 128

function isLinear(items: readonly Item[]): boolean {
  let tail = 0
  for (const [i, item] of [...items.entries()].reverse()) {
    if (item.kind === 'choice') {
      if (!isExclusive(item.strings)) return false
      tail += Math.max(...item.strings.map((string) => string.length))
    } else if (item.min === item.max) {
      tail += item.max
    } else {
      if (tail > MAX_TAIL && overlapsNext(item.set, items, i + 1)) return false
      // Nothing of variable length may follow an ambiguous repetition.
      tail = Infinity
    }
  }
  return true
}

/** Whether text that follows a repetition could also belong to it. */
function overlapsNext(set: CharSet, items: readonly Item[], start: number): boolean {
  for (let i = start; i < items.length; i++) {
    const item = items[i]
    if (item === undefined) break
    if (item.kind === 'choice') return item.strings.some(([first]) => first === undefined || first.overlaps(set))
    if (item.max > 0 && item.set.overlaps(set)) return true
    if (item.min > 0) return false
  }
  return false
}

/** Whether no two strings can match at the same position: they differ within the length of the shorter one. */
function isExclusive(strings: Choice['strings']): boolean {
  return strings.every((a, i) => strings.slice(i + 1).every((b) => a.some((set, at) => b[at] !== undefined && !set.overlaps(b[at]))))
}

function toSource(item: Item): string {
  if (item.kind === 'choice') return `(?:${item.strings.map((string) => string.map((set) => set.source).join('')).join('|')})`
  const { min, max } = item
  if (min === 1 && max === 1) return item.set.source
  return `${item.set.source}{${min},${max === Infinity ? '' : max}}`
}

const repetition = /\{(\d{1,4})(?:(,)(\d{0,4}))?\}/y
const SYNTAX = new Set('\\^$.|?*+()[]{}')
const PUNCTUATION = /^[!-/:-@[-`{-~]$/
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }

/** Thrown and caught by the parser: the pattern uses unsupported syntax. */
const beyond = new Error('beyond the linear subset')

class Parser {
  readonly #text: string
  #at = 0
  /** The anchors of each branch. */
  readonly anchors: { isAtStart: boolean; isAtEnd: boolean }[] = []

  constructor(text: string) {
    this.#text = text
  }

  parse(): Item[][] | undefined {
    try {
      const branches = [this.#parseBranch(true)]
      while (this.#accept('|')) branches.push(this.#parseBranch(true))
      return this.#at === this.#text.length ? branches : undefined
    } catch (thrown) {
      if (thrown === beyond) return undefined
      throw thrown
    }
  }

  get #next(): string {
    return this.#text[this.#at] ?? ''
  }

  #accept(char: string): boolean {
    if (this.#next !== char) return false
    this.#at++
    return true
  }

  #parseBranch(isTop: boolean): Item[] {
    const items: Item[] = []
    // Anchors at the ends of a branch matter only for a search.
    const anchor = { isAtStart: isTop && this.#accept('^'), isAtEnd: false }
    if (isTop) this.anchors.push(anchor)
    while (this.#next !== '' && this.#next !== '|' && this.#next !== ')') {
      if (isTop && this.#next === '$' && [undefined, '|'].includes(this.#text[this.#at + 1])) {
        this.#at++
        anchor.isAtEnd = true
      } else if (this.#accept('(')) items.push(...this.#parseGroup())
      else items.push(this.#parseRepeated(this.#parseSet()))
    }
    return items
  }

  /** Parses a group without repetition. A single branch is inlined, several become a choice. */
  #parseGroup(): Item[] {
    if (this.#accept('?')) {
      if (!this.#accept(':')) throw beyond
    }
    const branches = [this.#parseBranch(false)]
    while (this.#accept('|')) branches.push(this.#parseBranch(false))
    if (!this.#accept(')') || (this.#next !== '' && '*+?{'.includes(this.#next))) throw beyond
    const [only] = branches
    return branches.length === 1 && only ? only : [{ kind: 'choice', strings: branches.map(toString) }]
  }

  #parseRepeated(set: CharSet): Repeated {
    const [min, max] = this.#parseCounts()
    // Lazy: matches the same texts as the greedy repetition.
    if (min !== max || this.#text[this.#at - 1] === '}') this.#accept('?')
    return { kind: 'repeated', set, min, max }
  }

  #parseCounts(): [number, number] {
    if (this.#accept('*')) return [0, Infinity]
    if (this.#accept('+')) return [1, Infinity]
    if (this.#accept('?')) return [0, 1]
    if (this.#next !== '{') return [1, 1]
    repetition.lastIndex = this.#at
    const found = repetition.exec(this.#text)
    if (found === null) throw beyond
    this.#at = repetition.lastIndex
    const min = Number(found[1])
    return [min, found[2] === undefined ? min : found[3] ? Number(found[3]) : Infinity]
  }

  #parseSet(): CharSet {
    const char = this.#take()
    if (char === '.') return CharSet.of('\n').invert()
    if (char === '[') return this.#parseClass()
    if (char === '\\') return this.#parseEscape()
    if (SYNTAX.has(char)) throw beyond
    return CharSet.of(char)
  }

  /** Consumes the next character, which must be ASCII. */
  #take(): string {
    const char = this.#next
    if (char === '' || char > '~') throw beyond
    this.#at++
    return char
  }

  #parseEscape(): CharSet {
    const char = this.#take()
    const control = CONTROLS[char]
    if (control !== undefined) return CharSet.of(control)
    if (PUNCTUATION.test(char)) return CharSet.of(char)
    return CharSet.named(char) ?? giveUp()
  }

  #parseClass(): CharSet {
    const isInverted = this.#accept('^')
    let set = new CharSet()
    for (let isFirst = true; isFirst || this.#next !== ']'; isFirst = false) {
      const from = this.#parseClassItem()
      if (this.#next === '-' && this.#text[this.#at + 1] !== ']') {
        this.#at++
        set = set.union(CharSet.range(from.only ?? giveUp(), this.#parseClassItem().only ?? giveUp()) ?? giveUp())
      } else {
        set = set.union(from)
      }
    }
    this.#at++
    return isInverted ? set.invert() : set
  }

  #parseClassItem(): CharSet {
    const char = this.#take()
    if (char === '\\') return this.#parseEscape()
    // Engines differ on `[[:alpha:]]` and on a leading `]`.
    if (char === '[' || char === ']') throw beyond
    return CharSet.of(char)
  }
}

function giveUp(): never {
  throw beyond
}

/** A branch of fixed length as a list of sets. */
function toString(items: readonly Item[]): CharSet[] {
  return items.flatMap((item) => {
    if (item.kind === 'choice' || item.min !== item.max || item.max > 64) throw beyond
    return Array.from({ length: item.max }, () => item.set)
  })
}
