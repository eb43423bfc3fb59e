import { isObject } from '../common/json.ts'
import { doubles, parseJsonInSteps } from '#api/json/index.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { ToolCallFact } from '../common/types.ts'

/** Characters of a text that are compared: the first ones. */
const MAX_LENGTH = 65_536
/** N-grams that are counted in about half a millisecond. */
const GRAMS_PER_STEP = 2048
/** Calls of tools that are compared. */
const MAX_CALLS = 64
/** Depth of arguments that are compared as values. */
const MAX_DEPTH = 64

/**
 * How similar two texts are, from 0 to 1: the share of character trigrams that they have in common (Dice coefficient of the multisets). Space is
 * normalized.
 */
export function* similarityOf(first: string, second: string): Cooperative<number> {
  const a = normalize(first)
  const b = normalize(second)
  if (a === b) return 1
  if (a.length < 3 || b.length < 3) return 0
  const counts = new Map<number, number>()
  for (let at = 0; at + 3 <= a.length; at++) {
    if (at % GRAMS_PER_STEP === GRAMS_PER_STEP - 1) yield
    const gram = gramAt(a, at)
    counts.set(gram, (counts.get(gram) ?? 0) + 1)
  }
  let common = 0
  for (let at = 0; at + 3 <= b.length; at++) {
    if (at % GRAMS_PER_STEP === GRAMS_PER_STEP - 1) yield
    const gram = gramAt(b, at)
    const left = counts.get(gram) ?? 0
    if (left === 0) continue
    counts.set(gram, left - 1)
    common++
  }
  return (2 * common) / (a.length + b.length - 4)
}

const normalize = (text: string): string => text.slice(0, MAX_LENGTH).replace(/\s+/g, ' ').trim()
/** Three UTF-16 units as an exact number. */
const gramAt = (text: string, at: number): number => (text.charCodeAt(at) * 65_536 + text.charCodeAt(at + 1)) * 65_536 + text.charCodeAt(at + 2)

/** The JSON value of a text; undefined if it is none. */
export function* parsed(text: string): Cooperative<{ readonly value: unknown } | undefined> {
  try {
    return { value: yield* parseJsonInSteps(text, { numbers: doubles }) }
  } catch {
    return undefined
  }
}

/** Whether two values are objects with the same members at the top, or neither is an object. */
export const hasSameMembers = (a: unknown, b: unknown): boolean => (isObject(a) && isObject(b) ? membersOf(a) === membersOf(b) : isObject(a) === isObject(b))
const membersOf = (object: object): string => JSON.stringify(Object.keys(object).toSorted())

/** How calls of tools differ: not at all, by their arguments, or by their names, number or order. */
export type ToolDifference = 'none' | 'arguments' | 'names'

export function* compareTools(a: readonly ToolCallFact[], b: readonly ToolCallFact[]): Cooperative<ToolDifference> {
  if (a.length !== b.length || a.some(({ name }, index) => name !== b[index]?.name)) return 'names'
  for (const [index, call] of a.slice(0, MAX_CALLS).entries()) {
    const other = b[index]?.arguments ?? ''
    if (call.arguments === other) continue
    const [left, right] = [yield* parsed(call.arguments), yield* parsed(other)]
    if (left === undefined || right === undefined || !(yield* isEqual(left.value, right.value, 0))) return 'arguments'
  }
  return 'none'
}

/** Whether two JSON values are equal, whatever the order of members. */
function* isEqual(a: unknown, b: unknown, depth: number): Cooperative<boolean> {
  yield
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return false
    for (const [index, item] of a.entries()) if (!(yield* isEqual(item, b[index], depth + 1))) return false
    return true
  }
  if (!isObject(a) || !isObject(b)) return Object.is(a, b)
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  for (const key of keys) if (!Object.hasOwn(b, key) || !(yield* isEqual(a[key], b[key], depth + 1))) return false
  return true
}
