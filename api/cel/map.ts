import { chargeLength } from './budget.ts'
import { CelError, badKey, duplicateKey } from './error.ts'
import { Special } from './special.ts'
import { Double, HostMap, HostText, Uint, store } from './values.ts'
import type { Stored, Value } from './values.ts'

/** Keys of maps, with int and uint as one, as equality sees them. */
export type Key = string | boolean | bigint

/** A map made by an expression. */
export class CelMap extends Special {
  readonly entries = new Map<Key, Stored>()
  /** Keys that were written as uint. */
  #uints: Set<Key> | undefined

  /** Adds an entry of a key and a value as evaluated; gives the error when the key is no key, or there already. */
  add(key: Value, value: Value): CelError | undefined {
    if (key instanceof CelError) return key
    if (value instanceof CelError) return value
    const plain = typeof key === 'number' ? undefined : toKey(key)
    if (plain === undefined) return badKey
    if (this.entries.has(plain)) return duplicateKey
    this.set(key, store(value))
    return undefined
  }

  /** As `add`, replacing; the key must be one. */
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

/** The key that a value is, undefined for values that equal no key. */
export function toKey(value: Value): Key | undefined {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined
  if (value instanceof Uint) return value.value
  if (value instanceof Double) return toKey(value.value)
  return value instanceof HostText ? value.text : undefined
}

const hasOwn: (this: object, name: string) => boolean = Object.prototype.hasOwnProperty

/**
 * Value of a field; undefined when it is absent or `container` has no fields. Only own properties are fields: nothing
 * inherited, such as `constructor`, and nothing of lists, bytes and the engine's own classes.
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

/** As `getField`, for names that `isPlainName` holds of: lists and bytes have no own properties of these names. */
export function getMember(container: Stored, name: string): Stored {
  if (typeof container !== 'object' || container === null) return undefined
  if (container instanceof Special) return container instanceof HostMap ? container.get(name) : getField(container, name)
  if (hasOwn.call(container, name)) return (container as Record<string, Stored>)[name]
  return container instanceof Map ? container.get(name) : undefined
}

export function isPlainName(name: string): boolean {
  return name !== 'length' && !/^\d/.test(name)
}

/** Value of any key; undefined when there is none. */
export function getKey(container: Stored, key: Key): Stored {
  if (typeof key === 'string') return getField(container, key)
  if (container instanceof CelMap) return container.entries.get(key)
  if (!(container instanceof Map)) return undefined
  return container.get(key) ?? (typeof key === 'bigint' ? container.get(Number(key)) : undefined)
}

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

export function sizeOfMap(map: object): number {
  if (map instanceof CelMap) return map.entries.size
  return map instanceof Map ? map.size : keysOf(map).length
}
