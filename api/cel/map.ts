import { chargeLength } from './budget.ts'
import { CelError, badKey, duplicateKey } from './error.ts'
import { Special } from './special.ts'
import { Double, HostMap, HostText, Uint, store } from './values.ts'
import type { Stored, Value } from './values.ts'

/** A key of a map. int and uint are one type here, because equal numbers are equal keys. */
export type Key = string | boolean | bigint

/** A map created by an expression. */
export class CelMap extends Special {
  readonly entries = new Map<Key, Stored>()
  /** Keys that are of type uint. */
  #uints: Set<Key> | undefined

  /** Adds an evaluated entry. Returns an error if key or value is one, if the key has a type that keys cannot have, or if it exists already. */
  add(key: Value, value: Value): CelError | undefined {
    if (key instanceof CelError) return key
    if (value instanceof CelError) return value
    const plain = typeof key === 'number' ? undefined : toKey(key)
    if (plain === undefined) return badKey
    if (this.entries.has(plain)) return duplicateKey
    this.set(key, store(value))
    return undefined
  }

  /** Sets a stored value and replaces a previous one. Ignores values that cannot be keys. */
  set(key: Value, stored: Stored): void {
    const plain = toKey(key)
    if (plain === undefined) return
    this.entries.set(plain, stored)
    if (key instanceof Uint) (this.#uints ??= new Set()).add(plain)
    else this.#uints?.delete(plain)
  }

  *keys(): IterableIterator<Value> {
    for (const key of this.entries.keys()) yield this.#uints?.has(key) ? new Uint(key as bigint) : key
  }
}

/** Converts a value to a key; undefined for values that cannot equal a key. */
export function toKey(value: Value): Key | undefined {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined
  if (value instanceof Uint) return value.value
  if (value instanceof Double) return toKey(value.value)
  return value instanceof HostText ? value.text : undefined
}

const hasOwn: (this: object, name: string) => boolean = Object.prototype.hasOwnProperty

/**
 * Value of a field; undefined if it is absent or `container` has no fields. Only own properties are fields: not inherited
 * ones such as `constructor`, and not those of lists, bytes and the classes of this package.
 */
export function getField(container: Stored, name: string): Stored {
  if (typeof container !== 'object' || container === null) return undefined
  if (container instanceof Special) {
    if (container instanceof HostMap) return container.get(name)
    return container instanceof CelMap ? container.entries.get(name) : undefined
  }
  if (hasOwn.call(container, name)) return Array.isArray(container) || container instanceof Uint8Array ? undefined : (container as Record<string, Stored>)[name]
  return container instanceof Map ? container.get(name) : undefined
}

/** A faster `getField` for names that satisfy `isPlainName`: lists and bytes have no own properties with such names. */
export function getMember(container: Stored, name: string): Stored {
  if (typeof container !== 'object' || container === null) return undefined
  if (container instanceof Special) return container instanceof HostMap ? container.get(name) : getField(container, name)
  if (hasOwn.call(container, name)) return (container as Record<string, Stored>)[name]
  return container instanceof Map ? container.get(name) : undefined
}

/** Whether neither lists nor bytes have an own property of this name: not `length`, not an index. */
export function isPlainName(name: string): boolean {
  return name !== 'length' && !/^\d/.test(name)
}

/** Value of a key of any type; undefined if there is none. */
export function getKey(container: Stored, key: Key): Stored {
  if (typeof key === 'string') return getField(container, key)
  if (container instanceof CelMap) return container.entries.get(key)
  if (!(container instanceof Map)) return undefined
  return container.get(key) ?? (typeof key === 'bigint' ? container.get(Number(key)) : undefined)
}

/** Whether a value is a map: of the language, of the host, or a plain object. */
export function isMap(value: Stored): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (value instanceof Special) return value instanceof CelMap || value instanceof HostMap
  return !Array.isArray(value) && !(value instanceof Uint8Array)
}

/** Keys as stored values. */
export function keysOf(map: object): Stored[] {
  let keys: Stored[]
  if (map instanceof CelMap || map instanceof HostMap || map instanceof Map) keys = [...map.keys()]
  else keys = Object.keys(map).filter((key) => (map as Record<string, unknown>)[key] !== undefined)
  chargeLength(keys.length)
  return keys
}

/** Number of entries of a map. */
export function sizeOfMap(map: object): number {
  if (map instanceof CelMap) return map.entries.size
  return map instanceof Map ? map.size : keysOf(map).length
}
