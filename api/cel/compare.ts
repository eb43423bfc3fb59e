import { charge, chargeLength } from './budget.ts'
import { getKey, isMap, keysOf, sizeOfMap, toKey } from './map.ts'
import { Duration, Timestamp } from './time.ts'
import { Double, HostText, Opaque, Optional, Uint } from './values.ts'
import type { Stored } from './values.ts'

/** The numeric value of an int, uint or double; undefined for other types. */
export function toNumeric(value: Stored): number | bigint | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return value
  return value instanceof Double || value instanceof Uint ? value.value : undefined
}

/** Equality of values, stored or not. Values of different types differ, except numbers: ints and doubles compare as doubles (cel-go). */
export function isEqual(a: Stored, b: Stored): boolean {
  if (typeof a === 'string' && typeof b === 'string') {
    chargeLength(a.length)
    return a === b
  }
  if (typeof a === 'boolean' || typeof b === 'boolean' || a === null || b === null) return a === b
  const x = toNumeric(a)
  if (x !== undefined) {
    const y = toNumeric(b)
    return y !== undefined && (typeof x === typeof y ? x === y : Number(x) === Number(y))
  }
  if (a instanceof HostText) return isEqual(a.text, b)
  if (b instanceof HostText) return isEqual(a, b.text)
  if (a instanceof Opaque) return a.equals(b)
  if (b instanceof Opaque) return b.equals(a)
  charge(1)
  if (Array.isArray(a)) return Array.isArray(b) && isEqualList(a, b)
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  if (a instanceof Optional) return b instanceof Optional && (a.value === undefined || b.value === undefined ? a.value === b.value : isEqual(a.value, b.value))
  return isMap(a) && isMap(b) && isEqualMap(a, b)
}

function isEqualList(a: readonly Stored[], b: readonly Stored[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) {
    if (!isEqual(a[i], b[i])) return false
  }
  return true
}

function isEqualMap(a: object, b: object): boolean {
  if (sizeOfMap(a) !== sizeOfMap(b)) return false
  return keysOf(a).every((stored) => {
    const key = toKey(stored)
    if (key === undefined) return false
    const other = getKey(b, key)
    return other !== undefined && isEqual(getKey(a, key), other)
  })
}

/** Less than, equal to or greater than 0; NaN if a double is NaN; undefined if the types have no order. */
export function compareOrder(a: Stored, b: Stored): number | undefined {
  const x = toNumeric(a)
  if (x !== undefined) {
    const y = toNumeric(b)
    if (y === undefined) return undefined
    return typeof x === typeof y ? orderOf(x, y) : orderOf(Number(x), Number(y))
  }
  if (a instanceof HostText) return compareOrder(a.text, b)
  if (b instanceof HostText) return compareOrder(a, b.text)
  if (typeof a === 'string') return typeof b === 'string' ? compareText(a, b) : undefined
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : undefined
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? compareBytes(a, b) : undefined
  if (a instanceof Timestamp && b instanceof Timestamp) return Number(a.nanos > b.nanos) - Number(a.nanos < b.nanos)
  if (a instanceof Duration && b instanceof Duration) return Number(a.nanos > b.nanos) - Number(a.nanos < b.nanos)
  return undefined
}

function orderOf(x: number | bigint, y: number | bigint): number {
  return x < y ? -1 : x > y ? 1 : x === y ? 0 : NaN
}

/** Compares by code points, which differs from UTF-16 order beyond the basic multilingual plane. */
function compareText(a: string, b: string): number {
  chargeLength(Math.min(a.length, b.length))
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    // Of two units that differ, a surrogate stands for the greater code point.
    const isHighX = x >= 0xd800 && x <= 0xdfff
    const isHighY = y >= 0xd800 && y <= 0xdfff
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1
  }
  return a.length - b.length
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  chargeLength(Math.min(a.length, b.length))
  return Buffer.compare(a, b)
}
