import { isIPv4, isIPv6 } from 'node:net'
import type { MessageCode } from '#api/messages/code.ts'
import { DURATION_PATTERN } from '#api/duration.ts'
import { compileSearch, isRegexError, type Search } from '#api/regex/search.ts'
import { REDACTED } from '#api/names.ts'
import { findSecrets, isSecretPath } from '#api/secret-fields.ts'
import { refName, type Json, type Schema, type ValidationRule } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { ENDPOINTS_PATTERN, HOST_PATTERN } from '#api/v1alpha1/shared.ts'
import { isAboutPresence, isBroken } from './cel-rules.ts'
import { suggest } from '#api/suggest.ts'

export type Path = readonly (string | number)[]

/** A mistake at one field of an object; the message names the fix. */
export interface CodedIssue {
  readonly path: Path
  readonly message: string
  /** The code of the message. */
  readonly code: MessageCode
}

/** Shorter values occur in messages by chance. */
const MIN_CONCEALED = 4
/** More mistakes than these in one object have one cause, or were made to take time. */
const MAX_ISSUES = 100

/** One validation: the mistakes so far, and whether there is anything to find. */
interface Run {
  readonly issues: CodedIssue[]
  /** Whether an API server has checked the object, so that only defaults are of interest. */
  readonly isChecked: boolean
}

/** Checks `value` against `schema` as an API server would, and fills in defaults. Unknown fields are issues, not dropped. The value is copied where it changes. */
export function validate(schema: Schema, value: unknown): { readonly value: unknown; readonly issues: readonly CodedIssue[] } {
  const run: Run = { issues: [], isChecked: false }
  const visited = visit(schema, value, [], run)
  return { value: visited, issues: run.issues.length === 0 ? run.issues : concealIn(run.issues.slice(0, MAX_ISSUES), value) }
}

/** The issues without the credentials that are written into the object: messages become statuses and lines of logs. */
function concealIn(issues: readonly CodedIssue[], root: unknown): CodedIssue[] {
  const secrets = findSecrets(root).filter(({ length }) => length >= MIN_CONCEALED)
  return issues.map((issue) => {
    const value = isSecretPath(root, issue.path)
      ? issue.path.reduce<unknown>((at, part) => (isObject(at) || Array.isArray(at) ? at[part as never] : at), root)
      : undefined
    const own = value === undefined ? [] : [show(value)]
    return { ...issue, message: [...own, ...secrets].reduce((text, secret) => text.replaceAll(secret, REDACTED), issue.message) }
  })
}

/** An object that an API server has checked, with the defaults of `schema`, which may be newer, and without fields that it does not know. */
export function fillDefaults(schema: Schema, value: unknown): unknown {
  return visit(schema, value, [], { issues: [], isChecked: true })
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

function visit(unresolved: Schema, value: unknown, path: Path, run: Run): unknown {
  if (run.issues.length >= MAX_ISSUES) return value
  const schema = resolve(unresolved)
  const report = (message: string, code: MessageCode = 'PX2005'): unknown => {
    add(run, path, message, code)
    return value
  }
  if (schema['x-kubernetes-int-or-string'])
    return typeof value === 'string' || Number.isInteger(value) ? value : report(`expected an integer or a string, got ${show(value)}`)
  switch (schema.type) {
    case 'object':
      return isObject(value) ? visitObject(schema, value, path, run) : report(`expected an object, got ${show(value)}`)
    case 'array':
      return Array.isArray(value) ? visitArray(schema, value, path, run) : report(`expected a list, got ${show(value)}; start each item with "- "`)
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
  if (run.isChecked) return value
  const problem = checkScalar(schema, value as string | number | boolean)
  if (problem !== undefined) return report(problem, 'PX2006')
  checkRules(rulesOf(schema), value, path, run)
  return value
}

function add({ issues, isChecked }: Run, path: Path, message: string, code: MessageCode): void {
  if (!isChecked) issues.push({ path, message, code })
}

const rulesOf = (schema: Schema): readonly ValidationRule[] => schema['x-kubernetes-validations'] ?? []

/** The CEL rules of a schema, evaluated only on objects that pass all other checks, so that their messages make sense. */
function checkRules(rules: readonly ValidationRule[], value: unknown, path: Path, run: Run): void {
  for (const rule of rules) {
    if (run.isChecked || !isBroken(rule, value)) continue
    const at = rule.fieldPath?.split('.').filter((part) => part !== '') ?? findItem(rule, value)
    add(run, [...path, ...at], rule.message, 'PX2008')
  }
}

/** The item of a list with which a rule of the list is first broken, such as the second of two that are equal. */
function findItem(rule: ValidationRule, value: unknown): Path {
  if (!Array.isArray(value)) return []
  const index = value.findIndex((_, at) => isBroken(rule, value.slice(0, at + 1)))
  return index < 0 ? [] : [index]
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

const patternHints: Readonly<Record<string, string>> = {
  [DURATION_PATTERN]: 'write a duration such as 500ms, 10s or 1m30s',
  [HOST_PATTERN]: 'write a host name or an IP address, without scheme, user, port and path',
  [ENDPOINTS_PATTERN]: 'write addresses such as 10.0.0.1, 10.0.0.2:8080 or api.example.com, separated by commas',
}
/** Patterns recur for each field, compiling them does not have to. Texts are input, so the engine is linear, except for patterns that are too large for it. */
const patterns = new Map<string, Pick<Search, 'test'>>()
function toSearch(pattern: string): Pick<Search, 'test'> {
  let known = patterns.get(pattern)
  if (known) return known
  const compiled = compileSearch(pattern)
  patterns.set(pattern, (known = isRegexError(compiled) ? new RegExp(pattern) : compiled))
  return known
}

/** Formats that an API server checks, with the fix. */
const formats: Readonly<Record<string, readonly [isValid: (text: string) => boolean, message: string]>> = {
  ipv4: [isIPv4, 'is not an IPv4 address'],
  ipv6: [isIPv6, 'is not an IPv6 address'],
  byte: [(text) => /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text), 'is not base64; write plain text under stringData'],
}

/** Length as an API server counts it. */
const lengthOf = (text: string): number => {
  let length = 0
  for (const _ of text) length++
  return length
}

function checkScalar(schema: Schema, value: string | number | boolean): string | undefined {
  if (schema.enum && !schema.enum.includes(value)) {
    const choices = schema.enum.map((choice) => (typeof choice === 'string' ? choice : show(choice)))
    const near = typeof value === 'string' ? suggest(value, choices) : undefined
    return `${show(value)} is not one of ${choices.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  if (typeof value === 'string') return checkText(schema, value)
  if (typeof value === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema
    if (value < minimum || value > maximum) return `${value} is out of range; allowed: ${minimum} to ${maximum === Infinity ? 'any' : maximum}`
  }
  return undefined
}

function checkText({ minLength = 0, maxLength = Infinity, pattern, format = '' }: Schema, value: string): string | undefined {
  const length = lengthOf(value)
  if (length < minLength) return minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters, has ${length}`
  if (length > maxLength) return `must have at most ${maxLength} characters, has ${length}`
  if (pattern !== undefined && !toSearch(pattern).test(value)) return `${show(value)} is not valid; ${patternHints[pattern] ?? `it must match ${pattern}`}`
  const [isValid, message] = formats[format] ?? []
  return isValid?.(value) === false ? message : undefined
}

function visitArray(schema: Schema, value: readonly unknown[], path: Path, run: Run): unknown {
  const before = run.issues.length
  const { items, minItems = 0, maxItems = Infinity } = schema
  if (value.length < minItems) add(run, path, `needs at least ${minItems} ${minItems === 1 ? 'item' : 'items'}, has ${value.length}`, 'PX2007')
  if (value.length > maxItems && !run.isChecked) {
    add(run, path, `takes at most ${maxItems} items, has ${value.length}`, 'PX2007')
    return value
  }
  const result = items ? value.map((item, index) => visit(items, item, [...path, index], run)) : value
  const keys = schema['x-kubernetes-list-map-keys']
  if (keys) checkUnique(keys.join(', '), (item) => (isObject(item) ? keys.map((key) => item[key]) : item), result, path, run)
  else if (schema['x-kubernetes-list-type'] === 'set') checkUnique('value', (item) => item, result, path, run)
  if (run.issues.length === before) checkRules(rulesOf(schema), result, path, run)
  return result
}

function checkUnique(name: string, keyOf: (item: unknown) => unknown, items: readonly unknown[], path: Path, run: Run): void {
  if (run.isChecked) return
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const id = JSON.stringify(keyOf(item))
    if (seen.has(id)) add(run, [...path, index], `${name} ${show(keyOf(item))} is already used by an earlier item; items must differ`, 'PX2007')
    seen.add(id)
  }
}

function visitObject(schema: Schema, value: Record<string, unknown>, path: Path, run: Run): unknown {
  const before = run.issues.length
  const { properties, additionalProperties, required = [] } = schema
  if (!properties && typeof additionalProperties !== 'object') return value
  const known = properties ?? {}
  const result: Record<string, unknown> = {}
  for (const [field, child] of Object.entries(value)) {
    // An empty field ("ports:") counts as not set, as it does for kubectl.
    if (child === null || child === undefined) {
      if (properties && !Object.hasOwn(known, field) && !additionalProperties) add(run, [...path, field], unknownField(field, known), 'PX2003')
      continue
    }
    const inner = Object.hasOwn(known, field) ? known[field] : typeof additionalProperties === 'object' ? additionalProperties : undefined
    if (inner) result[field] = visit(inner, child, [...path, field], run)
    else if (schema['x-kubernetes-preserve-unknown-fields']) result[field] = child
    else add(run, [...path, field], unknownField(field, known), 'PX2003')
    if (run.issues.length >= MAX_ISSUES) return value
  }
  for (const field of required) {
    const isWritten = Object.hasOwn(value, field)
    if ((isWritten && value[field] !== null && value[field] !== undefined) || (known[field] && resolve(known[field]).default !== undefined)) continue
    if (isWritten) add(run, [...path, field], 'is required and empty; fill it in', 'PX2004')
    else add(run, path, `${field} is required; add it`, 'PX2004')
  }
  const written = { ...result }
  for (const [field, child] of Object.entries(known)) {
    const fallback: Json | undefined = result[field] === undefined ? resolve(child).default : undefined
    // A default may leave out inner defaults, so it is visited like a written value.
    if (fallback !== undefined) result[field] = visit(child, structuredClone(fallback), [...path, field], run)
  }
  if (run.isChecked) return result
  const { minProperties = 0, maxProperties = Infinity } = schema
  const size = Object.keys(result).length
  if (size < minProperties || size > maxProperties)
    add(run, path, `has ${size} entries; allowed: ${minProperties} to ${maxProperties === Infinity ? 'any number' : maxProperties}`, 'PX2007')
  if (schema.oneOf && run.issues.length === before) checkChoice(schema.oneOf, result, path, run)
  const rules = rulesOf(schema)
  checkRules(rules.filter(isAboutPresence), written, path, run)
  if (run.issues.length === before)
    checkRules(
      rules.filter((rule) => !isAboutPresence(rule)),
      result,
      path,
      run,
    )
  return result
}

/** The only `oneOf` of the CRDs is the address of a Gateway: the type decides about the format of the value. */
function checkChoice(choices: readonly Schema[], value: Record<string, unknown>, path: Path, run: Run): void {
  if (choices.filter((choice) => conforms(choice, value)).length === 1) return
  const near = choices.find(({ properties = {} }) => Object.entries(properties).some(([name, field]) => field.enum && conforms(field, value[name])))
  const wrong = Object.entries(near?.properties ?? {}).find(([name, field]) => value[name] !== undefined && !conforms(field, value[name]))?.[0]
  const wanted = [near?.properties?.[wrong ?? '']]
    .flatMap((field) => field?.anyOf ?? field ?? [])
    .map(({ format, enum: values }) => format ?? JSON.stringify(values))
  add(
    run,
    wrong === undefined ? path : [...path, wrong],
    `${show(wrong === undefined ? value : value[wrong])} is not valid; it must be ${wanted.join(' or ')}`,
    'PX2006',
  )
}

/** Whether a value has the form of a schema within `oneOf`, which says nothing about types and unknown fields. */
function conforms(schema: Schema, value: unknown): boolean {
  const { properties = {}, oneOf, anyOf, not } = schema
  if (typeof value === 'string' && checkScalar(schema, value) !== undefined) return false
  if (isObject(value) && !Object.entries(properties).every(([name, child]) => value[name] === undefined || conforms(child, value[name]))) return false
  if (oneOf && oneOf.filter((choice) => conforms(choice, value)).length !== 1) return false
  return !(not && conforms(not, value)) && (anyOf?.some((choice) => conforms(choice, value)) ?? true)
}

function unknownField(field: string, known: Readonly<Record<string, Schema>>): string {
  const names = Object.keys(known)
  const near = suggest(field, names)
  return `unknown field; ${near === undefined ? `known here: ${names.join(', ')}` : `did you mean ${near}?`}`
}
