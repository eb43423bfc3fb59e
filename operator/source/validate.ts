import type { MessageCode } from '#api/messages/code.ts'
import { DURATION_PATTERN } from '#api/duration.ts'
import { refName, type Json, type Schema, type ValidationRule } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { isAboutPresence, isBroken } from './cel-rules.ts'
import { suggest } from '#api/suggest.ts'

export type Path = readonly (string | number)[]

/** A mistake at one field of an object; the message names the fix. */
export interface Issue {
  readonly path: Path
  readonly message: string
}

/** An issue with the code of its message. */
export interface CodedIssue extends Issue {
  readonly code: MessageCode
}

/** Checks `value` against `schema` as an API server would, and fills in defaults. Unknown fields are issues, not dropped. The value is copied where it changes. */
export function validate(schema: Schema, value: unknown): { readonly value: unknown; readonly issues: readonly CodedIssue[] } {
  const issues: CodedIssue[] = []
  return { value: visit(schema, value, [], issues), issues }
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

function resolve(schema: Schema): Schema {
  let current = schema
  while (current.$ref !== undefined) {
    const { $ref, ...own } = current
    const target = definitions[refName($ref)]
    if (!target) return {}
    // Rules beside a $ref add to those of the definition.
    const rules = [...(target['x-kubernetes-validations'] ?? []), ...(own['x-kubernetes-validations'] ?? [])]
    current = { ...target, ...(own.default === undefined ? {} : { default: own.default }), 'x-kubernetes-validations': rules }
  }
  return current
}

function visit(unresolved: Schema, value: unknown, path: Path, issues: CodedIssue[]): unknown {
  const schema = resolve(unresolved)
  const report = (message: string, code: MessageCode = 'PX2005'): unknown => {
    issues.push({ path, message, code })
    return value
  }
  if (schema['x-kubernetes-int-or-string'])
    return typeof value === 'string' || Number.isInteger(value) ? value : report(`expected an integer or a string, got ${show(value)}`)
  switch (schema.type) {
    case 'object':
      return isObject(value) ? visitObject(schema, value, path, issues) : report(`expected an object, got ${show(value)}`)
    case 'array':
      return Array.isArray(value) ? visitArray(schema, value, path, issues) : report(`expected a list, got ${show(value)}; start each item with "- "`)
    case 'string':
      if (typeof value !== 'string') return report(`expected a string, got ${show(value)}; put it in quotes`)
      break
    case 'boolean':
      if (typeof value !== 'boolean') return report(`expected true or false, got ${show(value)}`)
      break
    case 'integer':
      if (!Number.isInteger(value)) return report(`expected an integer, got ${show(value)}`)
      break
    case 'number':
      if (typeof value !== 'number') return report(`expected a number, got ${show(value)}`)
      break
    default:
      return value
  }
  const problem = checkScalar(schema, value as string | number | boolean)
  if (problem !== undefined) return report(problem, 'PX2006')
  checkRules(rulesOf(schema), value, path, issues)
  return value
}

const rulesOf = (schema: Schema): readonly ValidationRule[] => schema['x-kubernetes-validations'] ?? []

/** The CEL rules of a schema, evaluated only on objects that pass all other checks, so that their messages make sense. */
function checkRules(rules: readonly ValidationRule[], value: unknown, path: Path, issues: CodedIssue[]): void {
  for (const rule of rules) {
    const at = rule.fieldPath?.split('.').filter((part) => part !== '') ?? []
    if (isBroken(rule, value)) issues.push({ path: [...path, ...at], message: rule.message, code: 'PX2008' })
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

const patternHints: Readonly<Record<string, string>> = { [DURATION_PATTERN]: 'write a duration such as 500ms, 10s or 1m30s' }
/** Patterns recur for each field, compiling them does not have to. */
const patterns = new Map<string, RegExp>()
function toRegExp(pattern: string): RegExp {
  let known = patterns.get(pattern)
  if (!known) patterns.set(pattern, (known = new RegExp(pattern)))
  return known
}

function checkScalar(schema: Schema, value: string | number | boolean): string | undefined {
  if (schema.enum && !schema.enum.includes(value)) {
    const choices = schema.enum.map((choice) => (typeof choice === 'string' ? choice : show(choice)))
    const near = typeof value === 'string' ? suggest(value, choices) : undefined
    return `${show(value)} is not one of ${choices.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  if (typeof value === 'string') {
    const { minLength = 0, maxLength = Infinity, pattern } = schema
    if (value.length < minLength) return minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters, has ${value.length}`
    if (value.length > maxLength) return `must have at most ${maxLength} characters, has ${value.length}`
    if (pattern !== undefined && !toRegExp(pattern).test(value)) return `${show(value)} is not valid; ${patternHints[pattern] ?? `it must match ${pattern}`}`
  }
  if (typeof value === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema
    if (value < minimum || value > maximum) return `${value} is out of range; allowed: ${minimum} to ${maximum === Infinity ? 'any' : maximum}`
  }
  return undefined
}

function visitArray(schema: Schema, value: readonly unknown[], path: Path, issues: CodedIssue[]): unknown {
  const before = issues.length
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems)
    issues.push({ path, message: `needs at least ${minItems} ${minItems === 1 ? 'item' : 'items'}, has ${value.length}`, code: 'PX2007' })
  if (value.length > maxItems) issues.push({ path, message: `takes at most ${maxItems} items, has ${value.length}`, code: 'PX2007' })
  const result = items ? value.map((item, index) => visit(items, item, [...path, index], issues)) : value
  const keys = schema['x-kubernetes-list-map-keys'] ?? (schema['x-kubernetes-list-type'] === 'set' ? [''] : undefined)
  if (keys) checkUnique(keys, result, path, issues)
  if (issues.length === before) checkRules(rulesOf(schema), result, path, issues)
  return result
}

function checkUnique(keys: readonly string[], items: readonly unknown[], path: Path, issues: CodedIssue[]): void {
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const id = show(keys[0] === '' ? item : keys.map((key) => (isObject(item) ? item[key] : undefined)))
    if (seen.has(id))
      issues.push({
        path: [...path, index],
        message: `${keys[0] === '' ? 'value' : keys.join(', ')} ${id} is already used by an earlier item; items must differ`,
        code: 'PX2007',
      })
    seen.add(id)
  }
}

function visitObject(schema: Schema, value: Record<string, unknown>, path: Path, issues: CodedIssue[]): unknown {
  const before = issues.length
  const { properties, additionalProperties, required = [] } = schema
  if (!properties && typeof additionalProperties !== 'object') return value
  const known = properties ?? {}
  const result: Record<string, unknown> = {}
  for (const [field, child] of Object.entries(value)) {
    // An empty field ("ports:") counts as not set, as it does for kubectl.
    if (child === null || child === undefined) {
      if (properties && !Object.hasOwn(known, field) && !additionalProperties)
        issues.push({ path: [...path, field], message: unknownField(field, known), code: 'PX2003' })
      continue
    }
    const inner = Object.hasOwn(known, field) ? known[field] : typeof additionalProperties === 'object' ? additionalProperties : undefined
    if (inner) result[field] = visit(inner, child, [...path, field], issues)
    else if (schema['x-kubernetes-preserve-unknown-fields']) result[field] = child
    else issues.push({ path: [...path, field], message: unknownField(field, known), code: 'PX2003' })
  }
  for (const field of required) {
    const isWritten = Object.hasOwn(value, field)
    if ((isWritten && value[field] !== null && value[field] !== undefined) || (known[field] && resolve(known[field]).default !== undefined)) continue
    issues.push(
      isWritten
        ? { path: [...path, field], message: 'is required and empty; fill it in', code: 'PX2004' }
        : { path, message: `${field} is required; add it`, code: 'PX2004' },
    )
  }
  const written = { ...result }
  for (const [field, child] of Object.entries(known)) {
    const fallback: Json | undefined = result[field] === undefined ? resolve(child).default : undefined
    // A default may leave out inner defaults, so it is visited like a written value.
    if (fallback !== undefined) result[field] = visit(child, structuredClone(fallback), [...path, field], issues)
  }
  const { minProperties = 0, maxProperties = Infinity } = schema
  const size = Object.keys(result).length
  if (size < minProperties || size > maxProperties)
    issues.push({
      path,
      message: `has ${size} entries; allowed: ${minProperties} to ${maxProperties === Infinity ? 'any number' : maxProperties}`,
      code: 'PX2007',
    })
  const rules = rulesOf(schema)
  checkRules(rules.filter(isAboutPresence), written, path, issues)
  if (issues.length === before)
    checkRules(
      rules.filter((rule) => !isAboutPresence(rule)),
      result,
      path,
      issues,
    )
  return result
}

function unknownField(field: string, known: Readonly<Record<string, Schema>>): string {
  const names = Object.keys(known)
  const near = suggest(field, names)
  return `unknown field; ${near === undefined ? `known here: ${names.join(', ')}` : `did you mean ${near}?`}`
}
