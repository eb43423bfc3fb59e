import { charge, chargeLength } from '../budget.ts'
import { compareOrder } from '../compare.ts'
import { toBool, toBytes, toDouble, toDuration, toInt, toText, toTimestamp, toUint, typeOf } from '../convert.ts'
import { badArgument, noSuchKey, repeatedHeader } from '../error.ts'
import { RepeatedHeader } from '../headers.ts'
import { isMap, sizeOfMap } from '../map.ts'
import { estimateWork } from '../../regex/index.ts'
import { compileSearch, isRegexError } from '../../regex/search.ts'
import type { Search } from '../../regex/search.ts'
import { Optional, Secret, Uint, load, none, store } from '../values.ts'
import type { Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

function size(value: Value): Value {
  if (value instanceof RepeatedHeader) return repeatedHeader
  if (typeof value === 'string') return BigInt(countCodePoints(value))
  if (Array.isArray(value) || value instanceof Uint8Array) return BigInt(value.length)
  return isMap(value) ? BigInt(sizeOfMap(value)) : undefined
}

const SURROGATE = /[\ud800-\udfff]/

/** Whether a string contains surrogates, so that its length in code points differs. */
export function hasSurrogates(text: string): boolean {
  chargeLength(text.length)
  return SURROGATE.test(text)
}

function countCodePoints(text: string): number {
  return hasSurrogates(text) ? [...text].length : text.length
}

const searches = new Map<string, Search>()

/** Compiles a pattern that is known only at run time. Caches the last 64 patterns of the process. */
export function findSearch(pattern: string): Search | undefined {
  const known = searches.get(pattern)
  if (known) return known
  charge(64 + 16 * estimateWork(pattern))
  const search = compileSearch(pattern)
  if (isRegexError(search)) return undefined
  if (searches.size >= 64) searches.delete(searches.keys().next().value ?? '')
  searches.set(pattern, search)
  return search
}

function matches(text: Value, pattern: Value): Value {
  if (typeof text !== 'string' || typeof pattern !== 'string') return undefined
  const search = findSearch(pattern)
  if (search === undefined) return badArgument
  chargeLength(text.length * search.cost)
  return search.test(text)
}

function startsWith(text: Value, prefix: Value): Value {
  return typeof text === 'string' && typeof prefix === 'string' ? text.startsWith(prefix) : undefined
}

function endsWith(text: Value, suffix: Value): Value {
  return typeof text === 'string' && typeof suffix === 'string' ? text.endsWith(suffix) : undefined
}

function contains(text: Value, part: Value): Value {
  if (typeof text !== 'string' || typeof part !== 'string') return undefined
  chargeLength(text.length)
  return text.includes(part)
}

/** `max(a, b, …)` and `max([…])`; the first of several equal values. */
function pick(direction: 1 | -1): (...values: Value[]) => Value {
  return (...values) => {
    const list: readonly Value[] = values.length === 1 && Array.isArray(values[0]) ? values[0].map(load) : values
    if (list.length === 0) return badArgument
    chargeLength(list.length)
    let best = list[0]
    for (const value of list) {
      const order = compareOrder(value, best)
      if (order === undefined) return undefined
      if (order * direction > 0) best = value
    }
    return best
  }
}

export const standardFunctions: FunctionTable = {
  'size/1': size,
  'dyn/1': (value: Value) => value,
  'type/1': typeOf,
  'bool/1': toBool,
  'bytes/1': toBytes,
  'double/1': toDouble,
  'duration/1': toDuration,
  'int/1': toInt,
  'string/1': toText,
  'timestamp/1': toTimestamp,
  'uint/1': toUint,
  'matches/2': matches,
  'max/*': pick(1),
  'min/*': pick(-1),
  'optional.none/0': () => none,
  'optional.of/1': (value: Value) => new Optional(store(value)),
  'optional.ofNonZeroValue/1': (value: Value) => (isZero(value) ? none : new Optional(store(value))),
}

export const standardMethods: FunctionTable = {
  'size/0': size,
  'startsWith/1': startsWith,
  'endsWith/1': endsWith,
  'contains/1': contains,
  'matches/1': matches,
  'hasValue/0': (optional: Value) => (optional instanceof Optional ? optional.value !== undefined : undefined),
  'value/0': (optional: Value) => {
    if (!(optional instanceof Optional)) return undefined
    return optional.value === undefined ? noSuchKey : load(optional.value)
  },
  'unredacted/0': (secret: Value) => (secret instanceof Secret ? secret.reveal() : typeof secret === 'string' ? secret : undefined),
}

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '' || value === 0 || value === 0n) return true
  if (value instanceof Uint) return value.value === 0n
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length === 0
  if (value instanceof Optional) return value.value === undefined
  return isMap(value) && sizeOfMap(value) === 0
}
