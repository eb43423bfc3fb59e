import { charge, chargeLength, withBudget } from './budget.ts'
import { CelError } from './error.ts'
import { asJson, asText, type WriteInteger } from './json.ts'
import { CelMap, getField, getKey, isMap, keysOf, toKey } from './map.ts'
import { Double, HostText, Opaque, Optional, Uint, types } from './values.ts'
import type { Stored, Type, Value } from './values.ts'

/** An object without prototype, so that keys from a request cannot reach inherited properties. */
function emptyObject(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

/**
 * Converts a value for the host: int and uint to numbers (beyond 2^53 to what `integers` returns, decimal text by default), lists to arrays, maps to objects without
 * prototype, secrets to `<redacted>`, timestamps, durations and addresses to text, an empty optional to null; bytes stay bytes.
 * The result is a copy. Undefined if it would be too large: a value that contains the same part many times grows when copied.
 */
export function toHost(value: Value, integers = asText): unknown {
  return attempt(() => convert(value, { bytes: (bytes) => bytes, integers }))
}

/** The JSON text of a value, with all digits of integers and with bytes in base64. Undefined if it would be too large. */
export function toJsonText(value: Value): string | undefined {
  return attempt(() => JSON.stringify(toJsonValue(value)))
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return withBudget(work)
  } catch {
    return undefined
  }
}

/** As `toHost` for JSON: with all digits of integers and with bytes in base64. Throws when the budget is exhausted. */
export function toJsonValue(value: Value, integers = asJson): unknown {
  return convert(value, { bytes: (bytes) => Buffer.from(bytes).toString('base64'), integers })
}

interface Conversions {
  readonly bytes: (bytes: Uint8Array) => unknown
  readonly integers: WriteInteger
}

function convert(value: Stored, to: Conversions): unknown {
  switch (typeof value) {
    case 'string':
      chargeLength(value.length)
      return value
    case 'bigint':
      return to.integers(value, false)
    case 'object':
      break
    default:
      return value
  }
  if (value === null) return null
  charge(1)
  if (value instanceof Uint) return to.integers(value.value, true)
  if (value instanceof Double) return value.value
  if (value instanceof HostText) return value.text
  if (value instanceof Opaque) return value.toString()
  if (value instanceof Uint8Array) {
    chargeLength(value.length)
    return to.bytes(value)
  }
  if (value instanceof Optional) return value.value === undefined ? null : convert(value.value, to)
  if (Array.isArray(value)) return value.map((item) => convert(item, to))
  if (!isMap(value)) return value
  const result = emptyObject()
  for (const key of keysOf(value)) {
    const plain = toKey(key)
    const member = plain === undefined ? undefined : getKey(value, plain)
    // A view of the host may fail for a single member: leave it out.
    if (member !== undefined && !(member instanceof CelError)) result[String(plain)] = convert(member, to)
  }
  return result
}

/** Result of `flatten(x)`: a log field `name` becomes one field `name.<key>` for each member of the value. */
export class Flattened extends Opaque {
  readonly value: Value
  readonly isRecursive: boolean

  constructor(value: Value, isRecursive: boolean) {
    super()
    this.value = value
    this.isRecursive = isRecursive
  }

  get type(): Type {
    return types.map
  }

  equals(): boolean {
    return false
  }

  override toString(): string {
    return JSON.stringify(toJsonValue(this.value))
  }

  /** Field names and values, converted for the host. Only `name` if the value has no members; empty if the result would be too large. */
  expand(name: string): [string, unknown][] {
    return attempt(() => [...expand(name, this.value, this.isRecursive ? 32 : 1)]) ?? []
  }
}

function* expand(name: string, value: Stored, levels: number): IterableIterator<[string, unknown]> {
  charge(1)
  if (levels > 0 && Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* expand(`${name}.${i}`, item, levels - 1)
  } else if (levels > 0 && isMap(value)) {
    for (const stored of keysOf(value)) {
      const key = toKey(stored)
      if (key !== undefined) yield* expand(`${name}.${String(key)}`, getKey(value, key), levels - 1)
    }
  } else {
    yield [name, toJsonValue(value, asText)]
  }
}

/** Merges maps into one; entries of later maps win. */
export function mergeMaps(...maps: readonly object[]): CelMap {
  const merged = new CelMap()
  for (const map of maps) {
    for (const stored of keysOf(map)) {
      const key = toKey(stored)
      if (key !== undefined) merged.set(stored, typeof key === 'string' ? getField(map, key) : getKey(map, key))
    }
  }
  return merged
}
