import { chargeNew, fits } from '../arithmetic.ts'
import { chargeLength } from '../budget.ts'
import { badArgument, outOfRange, overflow } from '../error.ts'
import type { Value } from '../values.ts'
import { formatText } from './format.ts'
import { findSearch, hasSurrogates } from './standard.ts'
import type { FunctionTable } from './table.ts'

/** A string indexed by code points. A string without surrogates, the usual case, is used as it is. */
interface Characters {
  readonly length: number
  slice(from: number, to?: number): string
  indexOf(part: string, from: number): number
  lastIndexOf(part: string, from: number): number
}

function toCharacters(text: string): Characters {
  if (!hasSurrogates(text)) return text
  const points = [...text]
  chargeLength(points.length * 8)
  const unitsBefore = (index: number): number => points.slice(0, index).join('').length
  const countBefore = (unit: number): number => (unit < 0 ? -1 : Array.from(text.slice(0, unit)).length)
  return {
    length: points.length,
    slice: (from, to) => points.slice(from, to).join(''),
    indexOf: (part, from) => countBefore(text.indexOf(part, unitsBefore(from))),
    lastIndexOf: (part, from) => countBefore(text.lastIndexOf(part, unitsBefore(from))),
  }
}

/** An index from 0 to `length`. */
function toIndex(value: Value, length: number): number | undefined {
  return typeof value === 'bigint' && value >= 0n && value <= BigInt(length) ? Number(value) : undefined
}

function charAt(text: Value, at: Value): Value {
  if (typeof text !== 'string' || typeof at !== 'bigint') return undefined
  const characters = toCharacters(text)
  const index = toIndex(at, characters.length)
  return index === undefined ? outOfRange : characters.slice(index, index + 1)
}

function indexOf(text: Value, part: Value, from: Value = 0n): Value {
  if (typeof text !== 'string' || typeof part !== 'string' || typeof from !== 'bigint') return undefined
  const characters = toCharacters(text)
  const index = toIndex(from, characters.length)
  return index === undefined ? outOfRange : BigInt(characters.indexOf(part, index))
}

function lastIndexOf(text: Value, part: Value, from?: Value): Value {
  if (typeof text !== 'string' || typeof part !== 'string' || (from !== undefined && typeof from !== 'bigint')) return undefined
  const characters = toCharacters(text)
  const index = from === undefined ? characters.length : toIndex(from, characters.length)
  return index === undefined ? outOfRange : BigInt(characters.lastIndexOf(part, index))
}

function substring(text: Value, from: Value, to?: Value): Value {
  if (typeof text !== 'string' || typeof from !== 'bigint' || (to !== undefined && typeof to !== 'bigint')) return undefined
  const characters = toCharacters(text)
  const start = toIndex(from, characters.length)
  const end = to === undefined ? characters.length : toIndex(to, characters.length)
  return start === undefined || end === undefined || start > end ? outOfRange : characters.slice(start, end)
}

function replace(text: Value, from: Value, to: Value, limit: Value = -1n): Value {
  if (typeof text !== 'string' || typeof from !== 'string' || typeof to !== 'string' || typeof limit !== 'bigint') return undefined
  const parts = splitText(text, from)
  const count = limit < 0n ? parts.length - 1 : Math.min(Number(limit), parts.length - 1)
  if (!fits(text.length + count * Math.max(0, to.length - from.length))) return overflow
  return (
    parts.slice(0, count + 1).join(to) +
    parts
      .slice(count + 1)
      .map((part) => from + part)
      .join('')
  )
}

/** Splits at each separator. An empty one matches before, between and after the code points. */
function splitText(text: string, separator: string): string[] {
  chargeLength(text.length)
  const parts = separator === '' ? ['', ...text, ''] : text.split(separator)
  chargeNew(parts.length * 4)
  return parts
}

function split(text: Value, separator: Value, limit: Value = -1n): Value {
  if (typeof text !== 'string' || typeof separator !== 'string' || typeof limit !== 'bigint') return undefined
  if (limit === 0n) return []
  const parts = separator === '' ? splitText(text, '').slice(1, -1) : splitText(text, separator)
  if (limit < 0n || limit >= BigInt(parts.length)) return parts
  const count = Number(limit)
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)]
}

function join(list: Value, separator: Value = ''): Value {
  if (!Array.isArray(list) || typeof separator !== 'string') return undefined
  let length = list.length * separator.length
  for (const item of list as unknown[]) {
    if (typeof item !== 'string') return undefined
    length += item.length
  }
  return fits(length + list.length) ? list.join(separator) : overflow
}

function mapText(change: (text: string) => Value): (text: Value) => Value {
  return (text) => {
    if (typeof text !== 'string') return undefined
    chargeNew(text.length)
    return change(text)
  }
}

// Unicode's White_Space property, which differs slightly from the characters that String.trim removes.
const LEADING_SPACE = /^\p{White_Space}+/u
const trim = mapText((text) => {
  const rest = text.replace(LEADING_SPACE, '')
  let end = rest.length
  // Not a regex: `\s+$` is quadratic on texts full of spaces.
  while (end > 0 && LEADING_SPACE.test(rest[end - 1] ?? '')) end--
  return rest.slice(0, end)
})

const ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}
// oxlint-disable-next-line no-control-regex -- quoting escapes control characters
const ESCAPED = /[\x07-\x0d\\"]/g

function stripPrefix(text: Value, prefix: Value): Value {
  if (typeof text !== 'string' || typeof prefix !== 'string') return undefined
  return text.startsWith(prefix) ? text.slice(prefix.length) : text
}

function stripSuffix(text: Value, suffix: Value): Value {
  if (typeof text !== 'string' || typeof suffix !== 'string') return undefined
  return suffix !== '' && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text
}

function regexReplace(text: Value, pattern: Value, replacement: Value): Value {
  if (typeof text !== 'string' || typeof pattern !== 'string' || typeof replacement !== 'string') return undefined
  const search = findSearch(pattern)
  if (search === undefined) return badArgument
  chargeLength(text.length * (64 + search.cost))
  // Each group reference may expand to the whole text.
  if (!fits(text.length * (1 + (replacement.split('$').length - 1)) + replacement.length)) return overflow
  return search.replaceFirst(text, replacement)
}

export const stringMethods: FunctionTable = {
  'charAt/1': charAt,
  'indexOf/1': indexOf,
  'indexOf/2': indexOf,
  'lastIndexOf/1': lastIndexOf,
  'lastIndexOf/2': lastIndexOf,
  'substring/1': substring,
  'substring/2': substring,
  'replace/2': replace,
  'replace/3': replace,
  'split/1': split,
  'split/2': split,
  'join/0': join,
  'join/1': join,
  'lowerAscii/0': mapText((text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
  'upperAscii/0': mapText((text) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())),
  'trim/0': trim,
  'format/1': formatText,
  'stripPrefix/1': stripPrefix,
  'stripSuffix/1': stripSuffix,
  'regexReplace/2': regexReplace,
}

export const stringFunctions: FunctionTable = {
  'strings.quote/1': mapText((text) => `"${text.toWellFormed().replace(ESCAPED, (char) => ESCAPES[char] ?? char)}"`),
}
