import { duplicateName, MAX_NUMBER_LENGTH, numberTooLong, tooDeep, tooManyMembers, type JsonLimits } from './limits.ts'
import type { NumberMode } from './numbers.ts'

/** Steps between two pauses: characters, and more for each value. Well below a millisecond of work. */
const STEPS = 32_768
/** Steps that a value costs besides its characters. */
const STEPS_PER_VALUE = 16
/** Returned instead of a character's code if white space goes on. */
const MORE_SPACE = -1
/** A string with more escaped quotes is read in pieces. */
const MAX_QUOTES = 256
/** Up to this length, as for keys, a loop is faster than a search. */
const SHORT_STRING = 32
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

type Members = Record<string, unknown>

/**
 * Reads JSON step by step. Has the same results as `JSON.parse` except for numbers, which `mode` reads. Slower than `JSON.parse` for many
 * small values, but can pause anywhere and needs no second pass for numbers.
 */
export class JsonReader {
  readonly #text: string
  readonly #limits: JsonLimits
  readonly #mode: NumberMode
  readonly #rejectsDuplicates: boolean
  #at = 0
  #left = 0
  #members = 0
  /** Open containers, without the current one. */
  readonly #outer: (unknown[] | Members)[] = []
  readonly #outerKeys: string[] = []

  constructor(text: string, limits: JsonLimits, mode: NumberMode, rejectsDuplicates = false) {
    this.#text = text
    this.#limits = limits
    this.#mode = mode
    this.#rejectsDuplicates = rejectsDuplicates
  }

  /** Yields where other work may be done. Throws a SyntaxError or a JsonLimitError. */
  *read(): Generator<undefined, unknown, undefined> {
    let container: unknown[] | Members | undefined
    let key = ''
    this.#left = STEPS
    for (;;) {
      // A value is expected.
      if ((this.#left -= STEPS_PER_VALUE) < 0) yield this.#pause()
      let code = this.#skipSpace()
      if (code === MORE_SPACE) code = yield* this.#skipLongSpace()
      let value: unknown
      if (code === 0x7b || code === 0x5b) {
        this.#at++
        const isObject = code === 0x7b
        const opened: unknown[] | Members = isObject ? {} : []
        if (this.#outer.length + (container === undefined ? 1 : 2) > this.#limits.maxDepth) throw tooDeep(this.#limits)
        code = this.#skipSpace()
        if (code === MORE_SPACE) code = yield* this.#skipLongSpace()
        if (code !== (isObject ? 0x7d : 0x5d)) {
          if (container !== undefined) {
            this.#outer.push(container)
            this.#outerKeys.push(key)
          }
          container = opened
          this.#countMember()
          if (isObject) key = yield* this.#readKey()
          continue
        }
        this.#at++
        value = opened
      } else if (code === 0x22) value = this.#readShortString() ?? (yield* this.#readString())
      else value = this.#readScalar(code)
      // A value is complete: add it, and close the containers that end with it.
      for (;;) {
        if (container === undefined) {
          if (!Number.isNaN(yield* this.#skipLongSpace())) throw this.#unexpected()
          return value
        }
        const isArray: boolean = Array.isArray(container)
        if (isArray) (container as unknown[]).push(value)
        else {
          if (this.#rejectsDuplicates && Object.hasOwn(container, key)) throw duplicateName()
          setMember(container as Members, key, value)
        }
        code = this.#skipSpace()
        if (code === MORE_SPACE) code = yield* this.#skipLongSpace()
        if (code === 0x2c) {
          this.#at++
          this.#countMember()
          if (!isArray) key = yield* this.#readKey()
          break
        }
        if (code !== (isArray ? 0x5d : 0x7d)) throw this.#unexpected()
        this.#at++
        value = container
        container = this.#outer.pop()
        key = this.#outerKeys.pop() ?? ''
      }
    }
  }

  #pause(): undefined {
    this.#left = STEPS
  }

  #countMember(): void {
    if (++this.#members > this.#limits.maxMembers) throw tooManyMembers(this.#limits)
  }

  #unexpected(): SyntaxError {
    const what = this.#at >= this.#text.length ? 'end' : `token ${JSON.stringify(this.#text[this.#at])}`
    return new SyntaxError(`Unexpected ${what} in JSON at position ${this.#at}`)
  }

  /** Code of the next character; NaN at the end; MORE_SPACE to continue after a pause. */
  #skipSpace(): number {
    const text = this.#text
    const start = this.#at
    const stop = start + STEPS
    let at = start
    let code = text.charCodeAt(at)
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      if (++at === stop) break
      code = text.charCodeAt(at)
    }
    this.#left -= at - start
    this.#at = at
    return at === stop ? MORE_SPACE : code
  }

  *#skipLongSpace(): Generator<undefined, number, undefined> {
    for (;;) {
      const code = this.#skipSpace()
      if (code !== MORE_SPACE) return code
      yield this.#pause()
    }
  }

  *#readKey(): Generator<undefined, string, undefined> {
    if ((yield* this.#skipLongSpace()) !== 0x22) throw this.#unexpected()
    const key = this.#readShortString() ?? (yield* this.#readString())
    if ((yield* this.#skipLongSpace()) !== 0x3a) throw this.#unexpected()
    this.#at++
    return key
  }

  /** Reads a string of less than 32,768 characters; undefined if it is longer or has many escaped quotes. */
  #readShortString(): string | undefined {
    const text = this.#text
    const start = this.#at + 1
    let end = start
    for (const stop = start + SHORT_STRING; end < stop; end++) {
      const code = text.charCodeAt(end)
      if (code === 0x22) {
        this.#at = end + 1
        return text.slice(start, end)
      }
      // Not (>= 0x20): the code is NaN past the end.
      if (code === 0x5c || !(code >= 0x20)) break
    }
    end = text.indexOf('"', end)
    for (let quotes = 0; end !== -1 && end - start < STEPS && quotes < MAX_QUOTES; quotes++) {
      let slashes = 0
      while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
      if (slashes % 2 === 0) {
        this.#at = end + 1
        this.#left -= end - start
        return JSON.parse(text.slice(start - 1, end + 1)) as string
      }
      end = text.indexOf('"', end + 1)
    }
    return undefined
  }

  /** Reads any string, in pieces. */
  *#readString(): Generator<undefined, string, undefined> {
    const text = this.#text
    let read = ''
    let hasEscape = false
    let start = ++this.#at
    let at = start
    for (;;) {
      const stop = at + STEPS
      let code = 0
      for (; at < stop; at++) {
        code = text.charCodeAt(at)
        if (code === 0x22 || !(code >= 0x20)) break
        if (code !== 0x5c) continue
        hasEscape = true
        // A piece ends between escapes.
        at += text.charCodeAt(at + 1) === 0x75 ? 5 : 1
      }
      const isEnd = code === 0x22 && at < stop
      if (!isEnd && at < stop) {
        this.#at = at
        throw this.#unexpected()
      }
      if (hasEscape) {
        read += JSON.parse(`"${text.slice(start, at)}"`) as string
        start = at
      }
      if (isEnd) {
        this.#at = at + 1
        return hasEscape ? read : text.slice(start, at)
      }
      yield this.#pause()
    }
  }

  #readScalar(code: number): unknown {
    const text = this.#text
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.#readNumber()
    const word = code === 0x74 ? 'true' : code === 0x66 ? 'false' : 'null'
    if (!text.startsWith(word, this.#at)) throw this.#unexpected()
    this.#at += word.length
    return code === 0x74 ? true : code === 0x66 ? false : null
  }

  #readNumber(): unknown {
    const text = this.#text
    const start = this.#at
    let end = start
    let isInteger = true
    for (; ; end++) {
      const code = text.charCodeAt(end)
      if (code >= 0x30 && code <= 0x39) continue
      // `.`, `+`, `-`, `e` and `E`. Past the end of the text the code is NaN.
      if (code !== 0x2e && code !== 0x2b && code !== 0x2d && (code | 0x20) !== 0x65) break
      isInteger &&= code === 0x2d
    }
    if (end - start > MAX_NUMBER_LENGTH) throw numberTooLong()
    const source = text.slice(start, end)
    if (!NUMBER.test(source)) throw this.#unexpected()
    this.#at = end
    this.#left -= end - start
    return isInteger && source.length < 16 && source !== '-0' ? Number(source) : this.#mode.read(source)
  }
}

/** Defines the member also if its name is `__proto__`. */
function setMember(object: Members, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}
