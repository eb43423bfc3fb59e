import { isJsonObject, isRawNumber } from '#api/json/index.ts'
import { compileRegex, isRegexError, type Regex } from '#api/regex/index.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { JsonObject } from '../message/json.ts'

/** Checks of one value. Alternatives of alternatives multiply them. */
const MAX_CHECKS = 200_000
/** Checks between two steps: a fraction of a millisecond. */
const CHECKS_PER_STEP = 500
/** Patterns are not checked on longer strings: the API does. */
const MAX_PATTERN_TEXT = 4096
const MAX_DEPTH = 128

class TooComplexError extends Error {}

/** The path of a value in messages: `arguments.body.tags[0]`. */
interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
}

/**
 * Validates JSON against a schema of JSON Schema 2020-12 with local references. `format` and unknown keywords are annotations. The work is bounded, and patterns take linear time.
 */
export class SchemaValidator {
  readonly #root: JsonObject
  readonly #patterns = new Map<string, Regex | undefined>()

  constructor(schema: JsonObject) {
    this.#root = schema
  }

  /** Returns the first problem, undefined if the value is valid. `name` is what messages call the value. */
  *check(value: unknown, name: string): Cooperative<string | undefined> {
    const state = { checks: 0 }
    try {
      return yield* this.#check(this.#root, value, { parent: undefined, key: name }, 0, state)
    } catch (error) {
      if (error instanceof TooComplexError) return `${name} are too complex to be checked`
      throw error
    }
  }

  *#check(schema: unknown, value: unknown, place: Place, depth: number, state: { checks: number }): Cooperative<string | undefined> {
    if (schema === false) return `${show(place)} is not allowed`
    if (!isJsonObject(schema)) return undefined
    if (++state.checks > MAX_CHECKS || depth > MAX_DEPTH) throw new TooComplexError()
    if (state.checks % CHECKS_PER_STEP === 0) yield
    const own = this.#checkSimple(schema, value)
    if (own !== undefined) return `${show(place)} ${own}`
    if (typeof schema['$ref'] === 'string') {
      const problem = yield* this.#check(this.#lookUp(schema['$ref']), value, place, depth + 1, state)
      if (problem !== undefined) return problem
    }
    if (Array.isArray(value)) {
      const problem = yield* this.#checkItems(schema, value, place, depth, state)
      if (problem !== undefined) return problem
    } else if (isJsonObject(value)) {
      const problem = yield* this.#checkMembers(schema, value, place, depth, state)
      if (problem !== undefined) return problem
    }
    return yield* this.#checkCombined(schema, value, place, depth, state)
  }

  #lookUp(pointer: string): unknown {
    return findReference(this.#root, pointer)
  }

  #checkSimple(schema: JsonObject, value: unknown): string | undefined {
    const { type, enum: values, const: only } = schema
    if (type !== undefined) {
      const types = (Array.isArray(type) ? type : [type]) as string[]
      if (!types.some((one) => hasType(value, one))) return `must be ${types.map(withArticle).join(' or ')}, and is ${withArticle(typeOf(value))}`
    }
    if (only !== undefined && !isEqual(value, only)) return `must be ${quote(only)}`
    if (Array.isArray(values) && !values.some((one) => isEqual(value, one))) return `must be one of ${values.slice(0, 20).map(quote).join(', ')}`
    if (typeof value === 'string') return this.#checkText(schema, value)
    const number = numberOf(value)
    return number === undefined ? undefined : checkNumber(schema, number)
  }

  #checkText({ minLength, maxLength, pattern }: JsonObject, value: string): string | undefined {
    const length = numberOf(minLength) === undefined && numberOf(maxLength) === undefined ? 0 : lengthOf(value)
    if (length < (numberOf(minLength) ?? 0)) return `must have at least ${numberOf(minLength)} characters`
    if (length > (numberOf(maxLength) ?? Infinity)) return `must have at most ${numberOf(maxLength)} characters`
    if (typeof pattern !== 'string' || value.length > MAX_PATTERN_TEXT) return undefined
    let regex = this.#patterns.get(pattern)
    if (!this.#patterns.has(pattern)) {
      // Patterns of JSON Schema match anywhere. Those that RE2 does not have are left to the API.
      const compiled = compileRegex(`(?s:.*)(?:${pattern})(?s:.*)`)
      this.#patterns.set(pattern, (regex = isRegexError(compiled) ? undefined : compiled))
    }
    return regex?.test(value) === false ? `must match ${quote(pattern)}` : undefined
  }

  *#checkItems(schema: JsonObject, value: readonly unknown[], place: Place, depth: number, state: { checks: number }): Cooperative<string | undefined> {
    const { items, prefixItems, minItems, maxItems, uniqueItems } = schema
    if (value.length < (numberOf(minItems) ?? 0)) return `${show(place)} must have at least ${numberOf(minItems)} items`
    if (value.length > (numberOf(maxItems) ?? Infinity)) return `${show(place)} must have at most ${numberOf(maxItems)} items`
    const first = Array.isArray(prefixItems) ? prefixItems : []
    for (const [index, item] of value.entries()) {
      const problem = yield* this.#check(index < first.length ? first[index] : items, item, { parent: place, key: index }, depth + 1, state)
      if (problem !== undefined) return problem
    }
    if (uniqueItems !== true) return undefined
    const seen = new Set<string>()
    for (const item of value) {
      if (++state.checks % CHECKS_PER_STEP === 0) yield
      seen.add(JSON.stringify(item))
    }
    return seen.size < value.length ? `${show(place)} must have no item twice` : undefined
  }

  *#checkMembers(schema: JsonObject, value: JsonObject, place: Place, depth: number, state: { checks: number }): Cooperative<string | undefined> {
    const { properties, additionalProperties, required, minProperties, maxProperties } = schema
    const known = isJsonObject(properties) ? properties : {}
    for (const name of Array.isArray(required) ? required : [])
      if (typeof name === 'string' && !Object.hasOwn(value, name)) return `${show({ parent: place, key: name })} is required`
    const names = Object.keys(value)
    if (names.length < (numberOf(minProperties) ?? 0)) return `${show(place)} must have at least ${numberOf(minProperties)} members`
    if (names.length > (numberOf(maxProperties) ?? Infinity)) return `${show(place)} must have at most ${numberOf(maxProperties)} members`
    const others = isJsonObject(schema['patternProperties']) ? true : additionalProperties
    for (const name of names) {
      const isKnown = Object.hasOwn(known, name)
      if (!isKnown && others === false)
        return `${show({ parent: place, key: name })} is unknown: the members are ${Object.keys(known).slice(0, 50).join(', ') || 'none'}`
      const problem = yield* this.#check(isKnown ? known[name] : others, value[name], { parent: place, key: name }, depth + 1, state)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  *#checkCombined(schema: JsonObject, value: unknown, place: Place, depth: number, state: { checks: number }): Cooperative<string | undefined> {
    const { allOf, anyOf, oneOf, not } = schema
    for (const part of Array.isArray(allOf) ? allOf : []) {
      const problem = yield* this.#check(part, value, place, depth + 1, state)
      if (problem !== undefined) return problem
    }
    for (const [alternatives, isOne] of [
      [anyOf, false],
      [oneOf, true],
    ] as const) {
      if (!Array.isArray(alternatives)) continue
      let valid = 0
      let first: string | undefined
      for (const part of alternatives) {
        const problem = yield* this.#check(part, value, place, depth + 1, state)
        if (problem === undefined) valid++
        else first ??= problem
        if (valid === 1 && !isOne) break
      }
      if (valid === 0 && alternatives.length > 0)
        return alternatives.length === 1 ? first : `${show(place)} matches none of its alternatives; of the first one: ${first}`
      if (isOne && valid > 1) return `${show(place)} matches several alternatives, and must match one`
    }
    if (not !== undefined && (yield* this.#check(not, value, place, depth + 1, state)) === undefined) return `${show(place)} is not allowed`
    return undefined
  }
}

/** The subschema that a local reference such as `#/$defs/Pet` leads to; undefined if there is none. */
export function findReference(root: JsonObject, pointer: string): unknown {
  if (!pointer.startsWith('#')) return undefined
  let found: unknown = root
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(found)) found = found[Number(key)]
    else found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }
  return found
}

function checkNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: JsonObject, value: number): string | undefined {
  if (value < (numberOf(minimum) ?? -Infinity)) return `must be at least ${numberOf(minimum)}`
  if (value > (numberOf(maximum) ?? Infinity)) return `must be at most ${numberOf(maximum)}`
  if (value <= (numberOf(exclusiveMinimum) ?? -Infinity)) return `must be greater than ${numberOf(exclusiveMinimum)}`
  if (value >= (numberOf(exclusiveMaximum) ?? Infinity)) return `must be less than ${numberOf(exclusiveMaximum)}`
  const step = numberOf(multipleOf)
  if (step === undefined || step <= 0) return undefined
  const quotient = value / step
  return Math.abs(quotient - Math.round(quotient)) > 1e-9 * Math.max(1, Math.abs(quotient)) ? `must be a multiple of ${step}` : undefined
}

/** Numbers are doubles, or text where a double would change them. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return isRawNumber(value) ? Number(value.rawJSON) : undefined
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return numberOf(value) === undefined ? typeof value : 'number'
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(numberOf(value))
  return typeOf(value) === type
}

/** Numbers are compared as numbers, the members of objects in any order. */
function isEqual(a: unknown, b: unknown): boolean {
  const number = numberOf(a)
  if (number !== undefined) return number === numberOf(b)
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, index) => isEqual(item, b[index]))
  if (!isJsonObject(a)) return a === b
  if (!isJsonObject(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]))
}

/** Characters as JSON Schema counts them. Long texts are counted in code units, which is faster and at most twice as many. */
const lengthOf = (text: string): number => (text.length > MAX_PATTERN_TEXT ? text.length : [...text].length)

const withArticle = (type: string): string => (type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`)

function quote(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 97).toWellFormed()}...` : text
}

function show({ parent, key }: Place): string {
  const text = parent === undefined ? String(key) : typeof key === 'number' ? `${show(parent)}[${key}]` : `${show(parent)}.${key.slice(0, 100).toWellFormed()}`
  return text.length > 300 ? `...${text.slice(-297).toWellFormed()}` : text
}
