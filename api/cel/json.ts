import { hasLongDigits, isRawNumber, parseJson, parseJsonInSteps, rawNumber, type JsonLimits, type NumberMode } from '../json/index.ts'
import { Uint, isInt64, isUint64 } from './values.ts'
import type { Stored } from './values.ts'

/** A JSON number as a stored value; see `celNumbers`. */
function readNumber(source: string): Stored {
  const double = Number(source)
  if (Number.isSafeInteger(double) || source.length > 20 || !/^-?\d+$/.test(source)) return double
  const integer = BigInt(source)
  if (isInt64(integer)) return integer
  return isUint64(integer) ? new Uint(integer) : double
}

/** Reads integers of up to 64 bits exactly: beyond 2^53 they are stored as bigint or, above the greatest int, as uint. Others are doubles. */
const celNumbers: NumberMode = { mayNeedCare: (text) => text.length >= 16 && hasLongDigits(text), read: readNumber }

/** Parses JSON within the default limits (traffic.md §9.1); undefined if it is invalid, repeats a name in an object or exceeds one. */
export function parseStored(text: string): Stored {
  try {
    return parseJson(text, { numbers: celNumbers, rejectsDuplicates: true })
  } catch {
    return undefined
  }
}

/** As `parseStored`, in steps. */
export function* parseStoredInSteps(text: string, limits: JsonLimits): Generator<undefined, Stored, undefined> {
  try {
    return yield* parseJsonInSteps(text, { numbers: celNumbers, limits, rejectsDuplicates: true })
  } catch {
    return undefined
  }
}

/**
 * Replaces numbers that are kept as text (`RawNumber`) in parsed JSON by stored values, so that expressions can compare them. Returns the same
 * object if there are none.
 */
export function fromJson(value: unknown): Stored {
  if (typeof value !== 'object' || value === null) return value
  if (isRawNumber(value)) return readNumber(value.rawJSON)
  if (Array.isArray(value)) {
    const items = value.map(fromJson)
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const entries = Object.entries(value).map(([key, member]) => [key, fromJson(member)] as const)
  return entries.some(([key, member]) => member !== (value as Record<string, unknown>)[key]) ? Object.fromEntries(entries) : value
}

/** How the host receives integers that a double cannot represent. */
export type WriteInteger = (value: bigint, isUint: boolean) => unknown

/** As decimal text. */
export const asText: WriteInteger = (value) => toNumber(value) ?? value.toString()
/** As a number that `JSON.stringify` prints with all digits. */
export const asJson: WriteInteger = (value) => toNumber(value) ?? rawNumber(value.toString())
/** As a stored value, for variables of later expressions. */
export const asStored: WriteInteger = (value, isUint) => toNumber(value) ?? (isUint ? new Uint(value) : value)

function toNumber(value: bigint): number | undefined {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : undefined
}
