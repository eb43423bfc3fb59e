import { chargeLength } from './budget.ts'
import { badArgument, overflow } from './error.ts'
import { isMap } from './map.ts'
import { Duration, Timestamp } from './time.ts'
import { Opaque, Optional, Uint, isInt64, isUint64, types } from './values.ts'
import type { Value } from './values.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Decodes UTF-8; undefined if the bytes are not valid. */
export function decodeText(bytes: Uint8Array): string | undefined {
  chargeLength(bytes.length)
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

function encodeText(text: string): Uint8Array {
  chargeLength(text.length)
  return encoder.encode(text)
}

/** The UTF-8 bytes of a string, or the bytes themselves; undefined for other types. */
export function toBytes(value: Value): Uint8Array | undefined {
  if (typeof value === 'string') return encodeText(value)
  return value instanceof Uint8Array ? value : undefined
}

// Conversions of the standard library. They return undefined for types that they do not accept, and an error for invalid values.

export function typeOf(value: Value): Value {
  switch (typeof value) {
    case 'string':
      return types.string
    case 'bigint':
      return types.int
    case 'number':
      return types.double
    case 'boolean':
      return types.bool
    default:
  }
  if (value === null) return types.null_type
  if (value instanceof Opaque) return value.type
  if (value instanceof Uint) return types.uint
  if (value instanceof Uint8Array) return types.bytes
  if (value instanceof Optional) return types.optional_type
  if (Array.isArray(value)) return types.list
  return isMap(value) ? types.map : undefined
}

export function toInt(value: Value): Value {
  if (typeof value === 'bigint') return value
  // Both ends are excluded: the double nearest to the greatest int is beyond it (cel-go).
  if (typeof value === 'number') return value > -(2 ** 63) && value < 2 ** 63 ? BigInt(Math.trunc(value)) : overflow
  if (value instanceof Uint) return isInt64(value.value) ? value.value : overflow
  if (value instanceof Timestamp) return value.seconds
  if (typeof value !== 'string') return undefined
  if (!/^[+-]?\d{1,20}$/.test(value)) return badArgument
  const int = BigInt(value.replace('+', ''))
  return isInt64(int) ? int : overflow
}

export function toUint(value: Value): Value {
  if (value instanceof Uint) return value
  if (typeof value === 'bigint') return isUint64(value) ? new Uint(value) : overflow
  if (typeof value === 'number') return value > -1 && value < 2 ** 64 ? new Uint(BigInt(Math.trunc(value))) : overflow
  if (typeof value !== 'string') return undefined
  if (!/^\d{1,20}$/.test(value)) return badArgument
  const uint = BigInt(value)
  return isUint64(uint) ? new Uint(uint) : overflow
}

export function toDouble(value: Value): Value {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Uint) return Number(value.value)
  if (typeof value !== 'string') return undefined
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value) && value.length < 400) return Number(value)
  const special = /^([+-]?)(?:(nan)|(inf|infinity))$/i.exec(value)
  if (special === null) return badArgument
  return special[2] ? NaN : special[1] === '-' ? -Infinity : Infinity
}

export function toBool(value: Value): Value {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return undefined
  if (['true', 'True', 'TRUE', 't', '1'].includes(value)) return true
  return ['false', 'False', 'FALSE', 'f', '0'].includes(value) ? false : badArgument
}

export function toText(value: Value): Value {
  switch (typeof value) {
    case 'string':
      return value
    case 'bigint':
    case 'number':
    case 'boolean':
      return String(value)
    default:
  }
  if (value instanceof Uint) return value.value.toString()
  if (value instanceof Uint8Array) return decodeText(value) ?? badArgument
  return value instanceof Opaque ? value.toString() : undefined
}

export function toTimestamp(value: Value): Value {
  if (value instanceof Timestamp) return value
  if (typeof value === 'bigint') return Timestamp.of(value * 1_000_000_000n) ?? overflow
  if (typeof value !== 'string') return undefined
  return value.length > 64 ? badArgument : (Timestamp.parse(value) ?? badArgument)
}

export function toDuration(value: Value): Value {
  if (value instanceof Duration) return value
  if (typeof value === 'bigint') return Duration.of(value * 1_000_000_000n) ?? overflow
  return typeof value === 'string' ? (Duration.parse(value) ?? badArgument) : undefined
}
