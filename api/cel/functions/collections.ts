import { chargeNew } from '../arithmetic.ts'
import { charge, chargeLength } from '../budget.ts'
import { compareOrder, isEqual } from '../compare.ts'
import { badArgument, outOfRange } from '../error.ts'
import { Flattened, mergeMaps } from '../host.ts'
import { isMap } from '../map.ts'
import type { Stored, Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

function slice(list: Value, from: Value, to: Value): Value {
  if (!Array.isArray(list) || typeof from !== 'bigint' || typeof to !== 'bigint') return undefined
  if (from < 0n || to < from || to > BigInt(list.length)) return outOfRange
  chargeNew(list.length * 4)
  return list.slice(Number(from), Number(to))
}

function range(count: Value): Value {
  if (typeof count !== 'bigint') return undefined
  if (count < 0n || count > 1_000_000n) return badArgument
  charge(Number(count))
  return Array.from({ length: Number(count) }, (_, i) => BigInt(i))
}

function flattenList(list: readonly Stored[], levels: number): Stored[] {
  charge(list.length)
  return list.flatMap((item) => (Array.isArray(item) && levels > 0 ? flattenList(item as Stored[], levels - 1) : [item]))
}

/** Sorts `list` by the parallel list `keys`; undefined if the keys are not of one ordered type. */
export function sortBy(list: readonly Stored[], keys: readonly Stored[]): Stored[] | undefined {
  charge(list.length)
  let isOrdered = true
  const order = list.map((_, i) => i)
  order.sort((a, b) => {
    charge(1)
    const result = compareOrder(keys[a], keys[b])
    if (result === undefined) isOrdered = false
    return result ?? 0
  })
  const isSingleOrdered = keys.length !== 1 || compareOrder(keys[0], keys[0]) !== undefined
  return isOrdered && isSingleOrdered ? order.map((i) => list[i]) : undefined
}

function distinct(list: Value): Value {
  if (!Array.isArray(list)) return undefined
  const seen = new Set<unknown>()
  const result: Stored[] = []
  for (const item of list as Stored[]) {
    charge(1 + (typeof item === 'string' ? 0 : result.length >>> 3))
    if (seen.has(item)) continue
    // The set covers strings, the most common type; other values need a search.
    if (typeof item !== 'string' && result.some((other) => isEqual(other, item))) continue
    seen.add(item)
    result.push(item)
  }
  return result
}

function flatten(value: Value, isRecursive: boolean): Value {
  return Array.isArray(value) || isMap(value) ? new Flattened(value, isRecursive) : undefined
}

export const collectionFunctions: FunctionTable = {
  'lists.range/1': range,
  'flatten/1': (value: Value) => flatten(value, false),
  'flattenRecursive/1': (value: Value) => flatten(value, true),
}

export const collectionMethods: FunctionTable = {
  'slice/2': slice,
  'distinct/0': distinct,
  'sort/0': (list: Value) => (Array.isArray(list) ? sortBy(list, list) : undefined),
  'reverse/0': (value: Value) => {
    if (typeof value !== 'string' && !Array.isArray(value)) return undefined
    chargeNew(value.length * 4)
    return typeof value === 'string' ? [...value].reverse().join('') : value.toReversed()
  },
  // For a list the function of the CEL lists extension, for a map the flattening of log fields.
  'flatten/0': (value: Value) => (Array.isArray(value) ? flattenList(value, 1) : flatten(value, false)),
  'flatten/1': (list: Value, levels: Value) => {
    if (!Array.isArray(list) || typeof levels !== 'bigint') return undefined
    return levels < 0n || levels > 32n ? badArgument : flattenList(list, Number(levels))
  },
  'flattenRecursive/0': (value: Value) => flatten(value, true),
  'merge/1': (map: Value, other: Value) => {
    if (!isMap(map) || !isMap(other)) return undefined
    chargeLength(1024)
    return mergeMaps(map, other)
  },
}
