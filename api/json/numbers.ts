/** A number kept as source text, because a double cannot represent it exactly (ECMA-262 `JSON.rawJSON`). */
export interface RawNumber {
  readonly rawJSON: string
}

// "JSON.parse source text access" of ECMA-262: in Node since version 21; not yet in TypeScript's library.
const engine = JSON as unknown as { rawJSON(text: string): RawNumber; isRawJSON(value: unknown): value is RawNumber }

/** Creates a number from its source text. `JSON.stringify` prints it unchanged. */
export const rawNumber = (source: string): RawNumber => engine.rawJSON(source)

/** Whether a value is a number kept as text. Checks the member first, because `isRawJSON` is a call into the engine. */
export function isRawNumber(value: unknown): value is RawNumber {
  return typeof value === 'object' && value !== null && 'rawJSON' in value && engine.isRawJSON(value)
}

/** How numbers are read. */
export interface NumberMode {
  /** Whether the text may have a number that `read` must read. Must be fast. If not, all numbers are doubles. */
  readonly mayNeedCare: (text: string) => boolean
  /** Reads a number, except for integers of at most 15 digits. */
  readonly read: (source: string) => unknown
}

/** All numbers become doubles. For text whose values are not printed again, and whose integers are not compared. */
export const doubles: NumberMode = { mayNeedCare: () => false, read: Number }

/** Numbers that a double cannot represent become a `RawNumber`: printed JSON has their value. */
export const exactNumbers: NumberMode = {
  mayNeedCare: mayBeInexact,
  read(source) {
    const value = Number(source)
    return isExact(value, source) ? value : rawNumber(source)
  },
}

/** Numbers that would be printed differently become a `RawNumber`, such as `1.0`: printed JSON has their text. */
export const verbatimNumbers: NumberMode = {
  mayNeedCare: (text) => HAS_CANDIDATE.test(text) && CHANGED_NUMBER.test(text),
  read(source) {
    const value = Number(source)
    return String(value) === source ? value : rawNumber(source)
  },
}

/** A number that a double may not hold exactly or would print differently. Digits in strings match too, which only costs time. */
const CHANGED_NUMBER = /(?:^|[[:,\s])(?:-0|-?\d{16}|-?\d+\.(?:\d{15}|\d*0\b)|-?\d+(?:\.\d+)?[eE])/

/**
 * Matches wherever CHANGED_NUMBER does, except for the "2.0" of every JSON-RPC message. Dates have no "-0" that starts a number. It starts at digits, which are rare: five times as
 * fast on a list of tools.
 */
const HAS_CANDIDATE = /\d(?:\.\d|[eE]|\d{15})(?<!"2\.0)|-0(?<!\d-0)/

/**
 * Matches numbers with more digits than a double holds, or with an exponent that may overflow. A match inside a string only makes parsing
 * slower. V8 skips text quickly in this form: 0.02 ms for 256 KB; `\d{16}` alone takes 0.19 ms.
 */
const MAYBE_INEXACT = /[\d.]{16}|\d[eE][+-]?\d{3}/
const LONG_EXPONENT = /\d[eE][+-]?\d{3}/
/** Up to this length, such as for stream events, the manual search is faster than the regular expression. */
const SHORT = 512
const PROBES = 32

/** Lists of numbers use the manual search: on them the regular expression takes twelve times as long as parsing. */
function mayBeInexact(text: string): boolean {
  return text.length <= SHORT || isMostlyNumbers(text) ? hasLongDigits(text) || LONG_EXPONENT.test(text) : MAYBE_INEXACT.test(text)
}

/** Whether more than a quarter of sampled characters are digits. */
function isMostlyNumbers(text: string): boolean {
  const step = Math.floor(text.length / PROBES)
  let digits = 0
  for (let at = 0; at < text.length; at += step) if (isDigit(text.charCodeAt(at))) digits++
  return digits > PROBES / 4
}

/** Whether the text has a run of 16 digits and dots. Looks at every 16th character, and at its surroundings if it is one. */
export function hasLongDigits(text: string): boolean {
  for (let at = 15; at < text.length; at += 16) {
    if (!isDigit(text.charCodeAt(at))) continue
    let start = at
    while (isDigit(text.charCodeAt(start - 1))) start--
    while (isDigit(text.charCodeAt(at + 1))) at++
    if (at - start >= 15) return true
  }
  return false
}

/** A digit or a dot. */
const isDigit = (code: number): boolean => (code >= 0x30 && code <= 0x39) || code === 0x2e

/** Whether the double has the same digits as the source. Trailing zeros and the spelling of exponents do not matter. */
function isExact(value: number, source: string): boolean {
  if (source.length < 16 && !/[eE]/.test(source)) return true
  return Number.isFinite(value) && digitsOf(String(value)) === digitsOf(source)
}

function digitsOf(number: string): string {
  const mantissa = /^-?([\d.]*)/.exec(number)?.[1] ?? ''
  return mantissa.replace('.', '').replace(/^0+|0+$/g, '')
}
