import { charge } from '../budget.ts'
import { chargeNew } from '../arithmetic.ts'
import { compareOrder, toNumeric } from '../compare.ts'
import { decodeText, toText } from '../convert.ts'
import { badArgument, outOfRange } from '../error.ts'
import { getKey, isMap, keysOf, toKey } from '../map.ts'
import { Uint, isError, load } from '../values.ts'
import type { Value } from '../values.ts'

const MAX_PRECISION = 100

/** `format` of the strings extension: `%s %d %f %e %b %o %x %X`, `%.3f`, `%%`. */
export function formatText(pattern: Value, args: Value): Value {
  if (typeof pattern !== 'string' || !Array.isArray(args)) return undefined
  const clauses = /%(?:\.(\d{1,4}))?([\s\S]?)/g
  let result = ''
  let from = 0
  let next = 0
  for (let found = clauses.exec(pattern); found !== null; found = clauses.exec(pattern)) {
    const [whole, precision, letter = ''] = found
    result += pattern.slice(from, found.index)
    from = found.index + whole.length
    if (whole === '%%') result += '%'
    else {
      if (next >= args.length) return outOfRange
      const text = formatClause(letter, precision === undefined ? undefined : Number(precision), load(args[next++]))
      if (typeof text !== 'string') return text
      result += text
      chargeNew(result.length)
    }
  }
  return result + pattern.slice(from)
}

function formatClause(letter: string, precision: number | undefined, value: Value): Value {
  if (precision !== undefined && (precision > MAX_PRECISION || (letter !== 'f' && letter !== 'e'))) return badArgument
  switch (letter) {
    case 's':
      return toDisplay(value)
    case 'd':
      return formatDecimal(value)
    case 'f':
      return formatFixed(value, precision ?? 6)
    case 'e':
      return formatScientific(value, precision ?? 6)
    case 'b':
      return typeof value === 'boolean' ? (value ? '1' : '0') : formatRadix(value, 2)
    case 'o':
      return formatRadix(value, 8)
    case 'x':
      return formatHex(value)
    case 'X': {
      const text = formatHex(value)
      return typeof text === 'string' ? text.toUpperCase() : text
    }
    default:
      return badArgument
  }
}

/** Text of a value for `%s`; lists and maps with all their members, keys sorted by their text. */
function toDisplay(value: Value): Value {
  charge(1)
  if (value === null) return 'null'
  if (value instanceof Uint8Array) return decodeText(value) ?? badArgument
  if (Array.isArray(value))
    return collect(
      value.map((item) => toDisplay(load(item))),
      '[',
      ']',
    )
  if (!isMap(value)) return toText(value)
  const entries = keysOf(value).map((stored): { key: string; text: Value } => {
    const key = toKey(stored)
    return { key: String(key), text: key === undefined ? undefined : toDisplay(load(getKey(value, key))) }
  })
  entries.sort((a, b) => compareOrder(a.key, b.key) ?? 0)
  return collect(
    entries.map(({ key, text }) => (typeof text === 'string' ? `${key}: ${text}` : text)),
    '{',
    '}',
  )
}

/** Joins the texts. If one is an error or undefined, that is the result. */
function collect(texts: readonly Value[], open: string, close: string): Value {
  const index = texts.findIndex((text) => typeof text !== 'string')
  if (index >= 0) return isError(texts[index]) ? texts[index] : undefined
  const result = `${open}${texts.join(', ')}${close}`
  chargeNew(result.length)
  return result
}

function formatDecimal(value: Value): Value {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Uint) return value.value.toString()
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : undefined
}

function formatRadix(value: Value, radix: number): Value {
  if (typeof value === 'bigint') return value.toString(radix)
  return value instanceof Uint ? value.value.toString(radix) : undefined
}

function formatHex(value: Value): Value {
  if (typeof value === 'string') return Buffer.from(value).toString('hex')
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  return formatRadix(value, 16)
}

function toFloat(value: Value): number | undefined {
  const number = toNumeric(value)
  return number === undefined ? undefined : Number(number)
}

function formatFixed(value: Value, precision: number): Value {
  const number = toFloat(value)
  if (number === undefined) return undefined
  if (!Number.isFinite(number) || Math.abs(number) >= 1e21) return Number.isFinite(number) ? fixedInteger(number, precision) : String(number)
  return isHalf(number, precision) ? roundHalfEven(number, precision) : number.toFixed(precision)
}

/** Replaces `toFixed`, which uses the exponential form from 1e21 on. Such doubles are integers. */
function fixedInteger(number: number, precision: number): string {
  return BigInt(number).toString() + (precision > 0 ? `.${'0'.repeat(precision)}` : '')
}

/** Whether the number is exactly halfway between two results: only then `toFixed` does not round as IEEE 754 requires. */
function isHalf(number: number, precision: number): boolean {
  const scaled = Math.abs(number) * 10 ** precision
  return (
    precision <= 15 &&
    Number.isFinite(scaled) &&
    scaled - Math.floor(scaled) === 0.5 &&
    scaled / 10 ** precision === Math.abs(number) &&
    isDyadic(number, precision)
  )
}

/** Halves of powers of ten are exact doubles only when few binary digits are needed. */
function isDyadic(number: number, precision: number): boolean {
  return Number.isInteger(number * 2 ** (precision + 1))
}

function roundHalfEven(number: number, precision: number): string {
  const down = Math.floor(Math.abs(number) * 10 ** precision)
  const even = down % 2 === 0 ? down : down + 1
  const text = (even / 10 ** precision).toFixed(precision)
  return number < 0 ? `-${text}` : text
}

function formatScientific(value: Value, precision: number): Value {
  const number = toFloat(value)
  if (number === undefined) return undefined
  if (!Number.isFinite(number)) return String(number)
  const [mantissa, exponent = '+0'] = number.toExponential(precision).split('e')
  return `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
}
