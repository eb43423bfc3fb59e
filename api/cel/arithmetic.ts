import { charge, chargeLength } from './budget.ts'
import { divideByZero, overflow } from './error.ts'
import { Duration, Timestamp } from './time.ts'
import { Uint, isInt64, isUint64 } from './values.ts'
import type { Value } from './values.ts'

/** An operator. Returns undefined if it does not apply to the types of the operands. */
export type Arithmetic = (a: Value, b: Value) => Value

/** Maximum length of strings, bytes and lists that an expression creates. */
const MAX_LENGTH = 16 * 1024 * 1024

function int(value: bigint): Value {
  return isInt64(value) ? value : overflow
}

function uint(value: bigint): Value {
  return isUint64(value) ? new Uint(value) : overflow
}

/** Charges for `length` characters or bytes that are created. They cost more time than reading does, and memory. */
export function chargeNew(length: number): void {
  if (length > 64) charge(Math.floor(length / 64))
}

// int and uint results outside of 64 bits, and divisions of them by zero, are errors. Doubles follow IEEE 754.

export const add: Arithmetic = (a, b) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? int(a + b) : undefined
  if (typeof a === 'number') return typeof b === 'number' ? a + b : undefined
  if (typeof a === 'string') return typeof b === 'string' ? concat(a, b) : undefined
  if (a instanceof Uint) return b instanceof Uint ? uint(a.value + b.value) : undefined
  if (Array.isArray(a)) return Array.isArray(b) ? concatLists(a, b) : undefined
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? concatBytes(a, b) : undefined
  if (a instanceof Duration) {
    if (b instanceof Duration) return Duration.of(a.nanos + b.nanos) ?? overflow
    return b instanceof Timestamp ? (Timestamp.of(a.nanos + b.nanos) ?? overflow) : undefined
  }
  return a instanceof Timestamp && b instanceof Duration ? (Timestamp.of(a.nanos + b.nanos) ?? overflow) : undefined
}

function concat(a: string, b: string): Value {
  const length = a.length + b.length
  if (length > MAX_LENGTH) return overflow
  chargeNew(length)
  return a + b
}

function concatLists(a: readonly unknown[], b: readonly unknown[]): Value {
  if (a.length + b.length > MAX_LENGTH) return overflow
  chargeNew((a.length + b.length) * 4)
  return [...a, ...b]
}

function concatBytes(a: Uint8Array, b: Uint8Array): Value {
  if (a.length + b.length > MAX_LENGTH) return overflow
  chargeNew(a.length + b.length)
  const joined = new Uint8Array(a.length + b.length)
  joined.set(a)
  joined.set(b, a.length)
  return joined
}

export const subtract: Arithmetic = (a, b) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? int(a - b) : undefined
  if (typeof a === 'number') return typeof b === 'number' ? a - b : undefined
  if (a instanceof Uint) return b instanceof Uint ? uint(a.value - b.value) : undefined
  if (a instanceof Duration) return b instanceof Duration ? (Duration.of(a.nanos - b.nanos) ?? overflow) : undefined
  if (!(a instanceof Timestamp)) return undefined
  if (b instanceof Timestamp) return Duration.of(a.nanos - b.nanos) ?? overflow
  return b instanceof Duration ? (Timestamp.of(a.nanos - b.nanos) ?? overflow) : undefined
}

export const multiply: Arithmetic = (a, b) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? int(a * b) : undefined
  if (typeof a === 'number') return typeof b === 'number' ? a * b : undefined
  return a instanceof Uint && b instanceof Uint ? uint(a.value * b.value) : undefined
}

export const divide: Arithmetic = (a, b) => {
  if (typeof a === 'bigint') return typeof b !== 'bigint' ? undefined : b === 0n ? divideByZero : int(a / b)
  if (typeof a === 'number') return typeof b === 'number' ? a / b : undefined
  if (!(a instanceof Uint) || !(b instanceof Uint)) return undefined
  return b.value === 0n ? divideByZero : new Uint(a.value / b.value)
}

export const modulo: Arithmetic = (a, b) => {
  if (typeof a === 'bigint') return typeof b !== 'bigint' ? undefined : b === 0n ? divideByZero : a % b
  if (!(a instanceof Uint) || !(b instanceof Uint)) return undefined
  return b.value === 0n ? divideByZero : new Uint(a.value % b.value)
}

export function negate(a: Value): Value {
  if (typeof a === 'bigint') return int(-a)
  return typeof a === 'number' ? -a : undefined
}

/** Whether a result of `length` characters may be created. Charges for it if so. */
export function fits(length: number): boolean {
  if (length > MAX_LENGTH) return false
  chargeLength(length)
  chargeNew(length)
  return true
}
