import { isRawNumber } from './numbers.ts'

/** Steps between two pauses: characters, and more for each value. */
const STEPS = 65_536
const STEPS_PER_VALUE = 16
/** Values of at most so many steps are printed by one call of `JSON.stringify`. */
const SMALL = 4 * STEPS
/** Characters of a string that are printed at once. */
const PIECE = 65_536

interface Level {
  readonly keys: readonly string[] | undefined
  readonly values: readonly unknown[] | Readonly<Record<string, unknown>>
  next: number
  isFirst: boolean
}

/** Returns what is left of `steps` after a visit of all of the value; negative if it is larger. */
function subtract(steps: number, value: unknown): number {
  if (typeof value === 'string') return steps - value.length - STEPS_PER_VALUE
  if (typeof value !== 'object' || value === null) return steps - STEPS_PER_VALUE
  let left = steps - STEPS_PER_VALUE
  if (Array.isArray(value)) {
    for (const item of value) {
      left = subtract(left, item)
      if (left < 0) break
    }
  } else {
    for (const key in value) {
      left = subtract(left - key.length, (value as Record<string, unknown>)[key])
      if (left < 0) break
    }
  }
  return left
}

/**
 * Prints parsed JSON as `JSON.stringify` does, in pieces. Yields about every millisecond, so that other requests can be served meanwhile. Run it
 * with `runCooperatively`. The values must be JSON: `toJSON` is not called.
 */
export function* printJsonInSteps(value: unknown): Generator<undefined, readonly string[], undefined> {
  if (subtract(SMALL, value) >= 0) return [JSON.stringify(value)]
  const pieces: string[] = []
  const levels: Level[] = []
  let left = STEPS
  let piece = ''
  let current = value
  for (;;) {
    if ((left -= STEPS_PER_VALUE) < 0 || piece.length >= PIECE) {
      left = STEPS
      pieces.push(piece)
      piece = ''
      yield
    }
    if (typeof current === 'string' && current.length > 1024) {
      piece += '"'
      for (let at = 0; at < current.length;) {
        const end = endOfPiece(current, at)
        piece += JSON.stringify(current.slice(at, end)).slice(1, -1)
        at = end
        if (at === current.length) break
        pieces.push(piece)
        piece = ''
        yield
      }
      left -= current.length % PIECE
      piece += '"'
    } else if (typeof current !== 'object' || current === null || isRawNumber(current)) {
      const text = JSON.stringify(current) ?? 'null'
      left -= text.length
      piece += text
    } else {
      const isArray = Array.isArray(current)
      piece += isArray ? '[' : '{'
      levels.push({ keys: isArray ? undefined : Object.keys(current), values: current as Level['values'], next: 0, isFirst: true })
    }
    // Find the next value, and close what ends before it.
    let isFound = false
    while (!isFound) {
      const level = levels.at(-1)
      if (level === undefined) {
        pieces.push(piece)
        return pieces
      }
      const { keys, values } = level
      if (level.next === (keys ?? (values as readonly unknown[])).length) {
        piece += keys === undefined ? ']' : '}'
        levels.pop()
        continue
      }
      const at = level.next++
      const key = keys?.[at]
      current = key === undefined ? (values as readonly unknown[])[at] : (values as Readonly<Record<string, unknown>>)[key]
      if (key !== undefined && current === undefined) continue
      if (!level.isFirst) piece += ','
      level.isFirst = false
      if (key !== undefined) {
        piece += `${JSON.stringify(key)}:`
        left -= key.length
      }
      isFound = true
    }
  }
}

/** The end of the next piece, which is not between two surrogates. */
function endOfPiece(text: string, start: number): number {
  const end = start + PIECE
  if (end >= text.length) return text.length
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
