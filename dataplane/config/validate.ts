import { withCode, type MessageCode } from '#api/messages/code.ts'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { DataValidationCxt } from 'ajv/dist/types/index.js'
import { DURATION_PATTERN } from '#api/duration.ts'
import { isSecretPath } from '#api/secret-fields.ts'
import { suggest } from '#api/suggest.ts'
import schema from '#gen/config/schema.json' with { type: 'json' }

/** A violation of the schema. */
export interface SchemaProblem {
  /** Property names and indexes from the root of the value. */
  readonly path: readonly (string | number)[]
  /** What is wrong, with the offending value if it is short; never a complete secret. */
  readonly text: string
  readonly code: MessageCode
}

/** Text to show instead of the value at a path; undefined: show the value. */
export type SourceOf = (path: SchemaProblem['path']) => string | undefined

/** Keyword that replaces `$ref`, which Ajv would resolve at compile time. */
const LATER = 'later'

// useDefaults writes the defaults of the schema into the value, as the API server does for objects in a cluster. Formats are
// documentation; bounds and patterns are the contract. Optimizing the generated code takes Ajv longer than it saves.
const ajv = new Ajv({ allErrors: true, verbose: true, useDefaults: true, validateFormats: false, strictTypes: false, code: { optimize: false } })
ajv.addKeyword({
  keyword: LATER,
  schemaType: 'string',
  errors: false,
  validate(definition: string, value: unknown, _schema?: unknown, context?: DataValidationCxt) {
    check(definition, value, context)
    return true
  },
})
ajv.addSchema(deferReferences(schema), 'config')
const compiled = new Map<string, ValidateFunction>()
/** Errors of the current value and its parts. */
let found: ErrorObject[] = []

/**
 * Checks `value` against a definition of gen/config/schema.json and fills in its defaults. Compiles a definition when its first
 * value arrives: the policy sections are large, and a process without policies should spend neither time nor memory on them.
 * `sourceOf` hides values that come from placeholders.
 */
export function validate(definition: string, value: unknown, sourceOf: SourceOf = () => undefined): readonly SchemaProblem[] {
  found = []
  check(definition, value)
  return found.length === 0 ? [] : toProblems(value, found, definition === 'Secret' ? describeKind : describeValue, sourceOf)
}

function check(definition: string, value: unknown, context?: DataValidationCxt): void {
  let isValid = compiled.get(definition)
  if (isValid === undefined) {
    isValid = ajv.compile({ $ref: `config#/$defs/${definition}` })
    compiled.set(definition, isValid)
  }
  if (!isValid(value, context)) found.push(...(isValid.errors ?? []))
}

/**
 * Replaces references, so that they are resolved when a value is checked. There is none under oneOf, anyOf or not, which would
 * need the result at once.
 */
function deferReferences<T>(node: T): T {
  const replace = (name: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && '$ref' in value && typeof value.$ref === 'string'
      ? { ...value, $ref: undefined, [LATER]: value.$ref.slice(value.$ref.lastIndexOf('/') + 1) }
      : value
  return JSON.parse(JSON.stringify(node, replace)) as T
}

/** `binds[0].listeners[1].tls.cert`; the root is `.`. */
export function formatPath(path: readonly (string | number)[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[\w-]+$/.test(part)) text += text === '' ? part : `.${part}`
    else text += `[${JSON.stringify(part)}]`
  }
  return text === '' ? '.' : text
}

export const formatProblem = ({ path, text, code }: SchemaProblem): string => withCode(`${formatPath(path)}: ${text}`, code)

type Show = (value: unknown) => string

function toProblems(value: unknown, errors: readonly ErrorObject[], show: Show, sourceOf: SourceOf): SchemaProblem[] {
  // An exclusivity rule is a oneOf, anyOf or not of `required`s, with its message in $comment. Report the rule, not its branches.
  const rules = errors.filter((error) => commentOf(error) !== undefined)
  const isBranch = (error: ErrorObject): boolean =>
    error.keyword === 'required' &&
    rules.some((rule) => rule !== error && rule.instancePath === error.instancePath && error.schemaPath.startsWith(`${rule.schemaPath}/`))
  // A misspelt field is also missing under its right name: report it once.
  const meant = new Set(errors.flatMap((error) => meantField(error) ?? []))
  const isConsequence = (error: ErrorObject): boolean => missingFields(error).some((field) => meant.has(`${error.instancePath}/${field}`))
  const problems = new Map<string, SchemaProblem>()
  for (const error of errors) {
    if (isBranch(error) || isConsequence(error)) continue
    const problem = toProblem(value, error, show, sourceOf)
    problems.set(formatProblem(problem), problem)
  }
  return [...problems.values()]
}

/** Pointer to the known field that an unknown one probably stands for. */
function meantField(error: ErrorObject): string | undefined {
  if (error.keyword !== 'additionalProperties') return undefined
  const near = findMeant(unknownField(error), knownFields(error))
  return near === undefined ? undefined : `${error.instancePath}/${near}`
}

/** The fields of which an object lacks one or all. */
function missingFields({ keyword, params, schema: rule }: ErrorObject): string[] {
  if (keyword === 'required') return [(params as { missingProperty: string }).missingProperty]
  if (keyword !== 'oneOf' && keyword !== 'anyOf') return []
  const { passingSchemas } = params as { passingSchemas?: unknown }
  // Set if several fields are there, rather than none.
  if (Array.isArray(passingSchemas)) return []
  return (rule as { required?: string[] }[]).flatMap(({ required = [] }) => required)
}

const unknownField = (error: ErrorObject): string => (error.params as { additionalProperty: string }).additionalProperty

const commentOf = (error: ErrorObject): string | undefined => (error.parentSchema as { $comment?: string } | undefined)?.$comment

function toProblem(root: unknown, error: ErrorObject, describe: Show, sourceOf: SourceOf): SchemaProblem {
  const path = toPath(root, error.instancePath)
  const source = sourceOf(path)
  const isSecret = isSecretPath(root, path)
  const show = (value: unknown): string => source ?? (isSecret ? describeKind(value) : describe(value))
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'additionalProperties':
      return { path: [...path, unknownField(error)], text: describeUnknown(unknownField(error), knownFields(error)), code: 'PX3005' }
    case 'required':
      return { path, text: `${String(params['missingProperty'])} is missing`, code: 'PX3006' }
    case 'type':
      return { path, text: `must be ${describeType(params['type'])}, is ${show(error.data)}`, code: 'PX3007' }
    case 'enum':
      return {
        path,
        text: `must be one of ${(params['allowedValues'] as unknown[]).map(String).join(', ')}, is ${show(error.data)}${isSecret ? '' : hintOf(error, source)}`,
        code: 'PX3007',
      }
    case 'pattern':
      return { path, text: `${patternHints[String(params['pattern'])] ?? error.message ?? 'is invalid'}, is ${show(error.data)}`, code: 'PX3007' }
    case 'oneOf':
    case 'anyOf':
    case 'not':
      return { path, text: commentOf(error) ?? error.message ?? 'is invalid', code: 'PX3007' }
    default:
      return { path, text: `${error.message ?? 'is invalid'}, is ${show(error.data)}`, code: 'PX3007' }
  }
}

const knownFields = (error: ErrorObject): string[] => Object.keys((error.parentSchema as { properties?: object } | undefined)?.properties ?? {})

function describeUnknown(name: string, known: readonly string[]): string {
  const near = findMeant(name, known)
  if (near !== undefined) return `unknown field; did you mean ${near}?`
  return `unknown field; known here: ${known.length === 0 ? 'none' : known.join(', ')}`
}

/** Fields with another name in other places: `host` of a backend is `address` of a backendRef. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['host', 'address'],
  ['address', 'host'],
])

function findMeant(name: string, known: readonly string[]): string | undefined {
  const other = otherNames.get(name)
  return suggest(name, known) ?? (other !== undefined && known.includes(other) ? other : undefined)
}

/** Patterns that are explained better by an example. */
const patternHints: Readonly<Record<string, string>> = {
  [DURATION_PATTERN]: 'must be a duration such as 500ms, 10s or 1m30s',
  '^https?://': 'must be a URL that starts with http:// or https://',
}

/** The allowed value that is probably meant. Not for values of placeholders: the hint would say what they contain. */
function hintOf({ data, params }: ErrorObject, source: string | undefined): string {
  if (typeof data !== 'string' || source !== undefined) return ''
  const near = suggest(data, (params as { allowedValues: unknown[] }).allowedValues.map(String))
  return near === undefined ? '' : `; did you mean ${near}?`
}

const describeType = (type: unknown): string => {
  const name = Array.isArray(type) ? type.join(' or ') : String(type)
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}

/** Describes a value for an error: scalars cut at 60 characters; only the kind of PEM texts, lists and objects. */
function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'nothing'
  if (text.includes('-----BEGIN')) return 'PEM text'
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** Describes key material: the type of the value only. */
const describeKind = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value)

/** JSON Pointer to path; a number where the value holds a list. */
function toPath(root: unknown, pointer: string): (string | number)[] {
  let at: unknown = root
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      const isIndex = Array.isArray(at)
      at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined
      return isIndex ? Number(name) : name
    })
}
