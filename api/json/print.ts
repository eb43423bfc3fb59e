import { isRawNumber } from './numbers.ts'
import { isSmallJson, SIZE_PER_VALUE, sizeOfJson, SMALL_SIZE, type LargeJson } from './size.ts'

/** Size between two pauses, if it is not that of one small value. Also the characters of a large string that are printed at once. */
const PIECE_SIZE = 65_536

/** An array or an object that is printed in pieces. */
interface Level {
  readonly keys: readonly string[] | undefined
  readonly values: readonly unknown[] | Readonly<Record<string, unknown>>
  readonly length: number
  next: number
  isFirst: boolean
}

/**
 * Prints parsed JSON as `JSON.stringify` does, in pieces. Yields about every millisecond, so that other requests can be served meanwhile; only
 * the keys of an object are read at once. Run it with `runCooperatively`. The values must be JSON: `toJSON` is not called.
 */
export function* printJsonInSteps(value: unknown): Generator<undefined, readonly string[], undefined> {
  const large: LargeJson = new Map()
  if (isSmallJson(value, large)) return [JSON.stringify(value)]
  yield
  return yield* new JsonPrinter(large).print(value)
}

class JsonPrinter {
  readonly #large: LargeJson
  readonly #levels: Level[] = []
  readonly #pieces: string[] = []
  #piece = ''
  /** Size that is left until the next pause. */
  #left = PIECE_SIZE

  constructor(large: LargeJson) {
    this.#large = large
  }

  /** Prints a value that is larger than a piece. */
  *print(value: unknown): Generator<undefined, readonly string[], undefined> {
    let current = value
    for (;;) {
      if (typeof current === 'string') yield* this.#printString(current)
      else if (typeof current === 'object' && current !== null && !isRawNumber(current)) this.#open(current)
      else this.#piece += JSON.stringify(current)
      // Print what is small up to the next large value, and close what ends before it.
      for (;;) {
        const level = this.#levels.at(-1)
        if (level === undefined) {
          this.#pieces.push(this.#piece)
          return this.#pieces
        }
        if (level.next === level.length) {
          this.#piece += level.keys === undefined ? ']' : '}'
          this.#levels.pop()
          continue
        }
        const end = this.#endOfSmall(level)
        const isLarge = end === level.next
        if (!isLarge) this.#printSmall(level, end)
        if (this.#left <= 0) yield this.#pause()
        if (!isLarge) continue
        this.#separate(level)
        const key = level.keys?.[level.next]
        current = valueAt(level, level.next++)
        if (key !== undefined) {
          yield* this.#printString(key)
          this.#piece += ':'
        }
        break
      }
    }
  }

  #open(values: object): void {
    const keys = Array.isArray(values) ? undefined : (this.#large.get(values) ?? Object.keys(values))
    this.#piece += keys === undefined ? '[' : '{'
    this.#levels.push({ keys, values: values as Level['values'], length: (keys ?? (values as readonly unknown[])).length, next: 0, isFirst: true })
  }

  /** The end of the next values that are printed at once; it is their start if the next value is large. */
  #endOfSmall(level: Level): number {
    let end = level.next
    for (; end < level.length && this.#left > 0; end++) {
      const value = valueAt(level, end)
      // A member without a value is not printed.
      const keySize = value === undefined ? 0 : (level.keys?.[end]?.length ?? 0)
      const isContainer = typeof value === 'object' && value !== null
      const isKnown = isContainer && this.#large.has(value)
      const size = isKnown ? Infinity : keySize + sizeOfJson(value, this.#large)
      if (size > SMALL_SIZE) {
        // The first visit of a large array or object takes time.
        this.#left -= isContainer && !isKnown ? PIECE_SIZE : SIZE_PER_VALUE
        break
      }
      this.#left -= size
    }
    return end
  }

  #printSmall(level: Level, end: number): void {
    const { keys, values, next } = level
    const text = keys === undefined ? JSON.stringify((values as readonly unknown[]).slice(next, end)).slice(1, -1) : printMembers(level, keys.slice(next, end))
    level.next = end
    if (text === '') return
    this.#separate(level)
    this.#piece += text
  }

  #separate(level: Level): void {
    if (!level.isFirst) this.#piece += ','
    level.isFirst = false
  }

  *#printString(text: string): Generator<undefined, void, undefined> {
    this.#piece += '"'
    for (let at = 0; ;) {
      const end = endOfPiece(text, at)
      this.#piece += JSON.stringify(text.slice(at, end)).slice(1, -1)
      this.#left -= end - at
      at = end
      if (at === text.length) break
      yield this.#pause()
    }
    this.#piece += '"'
  }

  #pause(): undefined {
    this.#pieces.push(this.#piece)
    this.#piece = ''
    this.#left = PIECE_SIZE
  }
}

const valueAt = ({ keys, values }: Level, at: number): unknown =>
  keys === undefined ? (values as readonly unknown[])[at] : (values as Readonly<Record<string, unknown>>)[keys[at] ?? '']

/** Members are printed one by one, which is faster than an object of them. */
function printMembers({ values }: Level, keys: readonly string[]): string {
  const members: string[] = []
  for (const key of keys) {
    const value = (values as Readonly<Record<string, unknown>>)[key]
    if (value !== undefined) members.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`)
  }
  return members.join(',')
}

/** The end of the next piece, which is not between two surrogates. */
function endOfPiece(text: string, start: number): number {
  const end = start + PIECE_SIZE
  if (end >= text.length) return text.length
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
