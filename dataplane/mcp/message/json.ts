/** JSON.parse source text access (TC39): V8 has it, TypeScript's library does not yet. */
const json = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
  rawJSON(text: string): unknown
}

/** A number that a double may not hold exactly or would print differently. Digits in strings match too, which only costs time. */
const INEXACT_NUMBER = /(?:^|[[:,\s])(?:-0|-?\d{16}|-?\d+\.(?:\d{15}|\d*0\b)|-?\d+(?:\.\d+)?[eE])/

/**
 * Matches wherever INEXACT_NUMBER does, except for the "2.0" of every message. It starts at digits, which are rare: five times as fast on
 * a list of tools.
 */
const HAS_CANDIDATE = /\d(?:\.\d|[eE]|\d{15})(?<!"2\.0)|-0/

/**
 * Parses JSON so that `JSON.stringify` writes every number as it was: schemas hold bounds such as
 * 18446744073709551615, and a gateway must not round them. Throws a SyntaxError.
 */
export function parseJson(text: string): unknown {
  if (!HAS_CANDIDATE.test(text) || !INEXACT_NUMBER.test(text)) return JSON.parse(text) as unknown
  return json.parse(text, (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? json.rawJSON(source) : value,
  )
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether arrays and objects nest deeper than `limit`. Deep nesting is cheap to send and expensive to process recursively. */
export function isNestedDeeper(bytes: Buffer, limit: number): boolean {
  if (bytes.length <= limit) return false
  let depth = 0
  let isString = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (isString) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) isString = false
    } else if (byte === QUOTE) isString = true
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > limit) return true
    } else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return false
}

/** A JSON object with members of any type. */
export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('rawJSON' in value && Object.getPrototypeOf(value) === null)
}
