import { charge, chargeLength, withBudget } from './budget.ts'
import { CelError } from './error.ts'
import { CelMap, getField, getKey, isMap, keysOf, toKey } from './map.ts'
import { Double, HostText, Opaque, Optional, Uint, types } from './values.ts'
import type { Stored, Type, Value } from './values.ts'

/** Own properties only and no prototype, so that no key of a request can reach one. */
function emptyObject(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

/**
 * The host's form of a value: int and uint as number (decimal text beyond 2^53), lists as arrays, maps as objects without
 * prototype, secrets as `<redacted>`, timestamps, durations and addresses as text, bytes as they are, none as null.
 * A copy; changing it changes nothing that expressions see. Undefined when it would be too large: results that share parts
 * may be far larger for the host than they were to make.
 */
export function toHost(value: Value): unknown {
  return attempt(() => convert(value, (bytes) => bytes))
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return withBudget(work)
  } catch {
    return undefined
  }
}

/** As `toHost`, with bytes in base64. */
export function toJsonValue(value: Value): unknown {
  return convert(value, (bytes) => Buffer.from(bytes).toString('base64'))
}

function convert(value: Stored, convertBytes: (bytes: Uint8Array) => unknown): unknown {
  switch (typeof value) {
    case 'string':
      chargeLength(value.length)
      return value
    case 'bigint':
      return toNumber(value)
    case 'object':
      break
    default:
      return value
  }
  if (value === null) return null
  charge(1)
  if (value instanceof Uint) return toNumber(value.value)
  if (value instanceof Double) return value.value
  if (value instanceof HostText) return value.text
  if (value instanceof Opaque) return value.toString()
  if (value instanceof Uint8Array) {
    chargeLength(value.length)
    return convertBytes(value)
  }
  if (value instanceof Optional) return value.value === undefined ? null : convert(value.value, convertBytes)
  if (Array.isArray(value)) return value.map((item) => convert(item, convertBytes))
  if (!isMap(value)) return value
  const result = emptyObject()
  for (const key of keysOf(value)) {
    const plain = toKey(key)
    const member = plain === undefined ? undefined : getKey(value, plain)
    // Views of header lists may fail on one member; it is left out.
    if (member !== undefined && !(member instanceof CelError)) result[String(plain)] = convert(member, convertBytes)
  }
  return result
}

function toNumber(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

/** Fields and elements of a value that logs spread out: `flatten(x)` as `name` gives `name.key`, recursively or not. */
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

  /** Names and values in the host's form; `name` alone when there is nothing to spread, nothing when it is too much. */
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
    yield [name, toJsonValue(value)]
  }
}

/** A map of the language with the entries of several; later ones win. */
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
