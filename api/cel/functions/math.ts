import { compareOrder, toNumeric } from '../compare.ts'
import { badArgument, overflow } from '../error.ts'
import { Uint, isInt64, load } from '../values.ts'
import type { Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

/** Greatest or least of the arguments or of one list; the first of several equal values. */
function pick(direction: 1 | -1): (...values: Value[]) => Value {
  return (...values) => {
    const list: readonly Value[] = values.length === 1 && Array.isArray(values[0]) ? values[0].map(load) : values
    if (list.length === 0) return badArgument
    let best: Value
    for (const value of list) {
      if (toNumeric(value) === undefined) return undefined
      if (best === undefined || (compareOrder(value, best) ?? 0) * direction > 0) best = value
    }
    return best
  }
}

function doubleFunction(compute: (value: number) => Value): (value: Value) => Value {
  return (value) => (typeof value === 'number' ? compute(value) : undefined)
}

function roundAway(value: number): number {
  return Math.sign(value) * Math.round(Math.abs(value))
}

function abs(value: Value): Value {
  if (typeof value === 'number') return Math.abs(value)
  if (value instanceof Uint) return value
  if (typeof value !== 'bigint') return undefined
  const size = value < 0n ? -value : value
  return isInt64(size) ? size : overflow
}

function sign(value: Value): Value {
  if (typeof value === 'number') return Math.sign(value)
  if (value instanceof Uint) return new Uint(value.value > 0n ? 1n : 0n)
  return typeof value === 'bigint' ? (value > 0n ? 1n : value < 0n ? -1n : 0n) : undefined
}

function bitwise(compute: (a: bigint, b: bigint) => bigint): (a: Value, b: Value) => Value {
  return (a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') return compute(a, b)
    return a instanceof Uint && b instanceof Uint ? new Uint(compute(a.value, b.value)) : undefined
  }
}

/** Shifts by 64 or more result in 0. Ints are shifted as 64 bits without sign. */
function shift(compute: (bits: bigint, by: bigint) => bigint): (value: Value, by: Value) => Value {
  return (value, by) => {
    if (typeof by !== 'bigint' || (typeof value !== 'bigint' && !(value instanceof Uint))) return undefined
    if (by < 0n) return badArgument
    const bits = BigInt.asUintN(64, value instanceof Uint ? value.value : value)
    const shifted = by > 63n ? 0n : BigInt.asUintN(64, compute(bits, by))
    return value instanceof Uint ? new Uint(shifted) : BigInt.asIntN(64, shifted)
  }
}

function squareRoot(value: Value): Value {
  const number = toNumeric(value)
  return number === undefined ? undefined : Math.sqrt(Number(number))
}

export const mathFunctions: FunctionTable = {
  'math.greatest/*': pick(1),
  'math.least/*': pick(-1),
  'math.ceil/1': doubleFunction(Math.ceil),
  'math.floor/1': doubleFunction(Math.floor),
  'math.round/1': doubleFunction(roundAway),
  'math.trunc/1': doubleFunction(Math.trunc),
  'math.abs/1': abs,
  'math.sign/1': sign,
  'math.sqrt/1': squareRoot,
  'math.isInf/1': doubleFunction((value) => value === Infinity || value === -Infinity),
  'math.isNaN/1': doubleFunction(Number.isNaN),
  'math.isFinite/1': doubleFunction(Number.isFinite),
  'math.bitAnd/2': bitwise((a, b) => a & b),
  'math.bitOr/2': bitwise((a, b) => a | b),
  'math.bitXor/2': bitwise((a, b) => a ^ b),
  'math.bitNot/1': (value: Value) => {
    if (typeof value === 'bigint') return ~value
    return value instanceof Uint ? new Uint(BigInt.asUintN(64, ~value.value)) : undefined
  },
  'math.bitShiftLeft/2': shift((bits, by) => bits << by),
  'math.bitShiftRight/2': shift((bits, by) => bits >> by),
}
