import { mapChildren, reachableFrom, type Definitions, type Schema, type ValidationRule } from '../schema.ts'
import { readExclusivity, withoutExclusiveDefaults } from './exclusivity.ts'

/** A JSON Schema with keywords that the schema language does not have. */
type JsonSchema = Record<string, unknown>

/** Translates exclusivity rules to JSON Schema. Other CEL rules are checked by the API server and the operator only. */
function toKeywords(rules: readonly ValidationRule[]): JsonSchema[] {
  return rules.flatMap((rule): JsonSchema[] => {
    const exclusivity = readExclusivity(rule)
    if (!exclusivity) return []
    const required = exclusivity.fields.map((field) => ({ required: [field] }))
    if (exclusivity.kind === 'exactlyOne') return [{ $comment: rule.message, oneOf: required }]
    if (exclusivity.kind === 'atLeastOne') return [{ $comment: rule.message, anyOf: required }]
    const pairs = exclusivity.fields.flatMap((left, index) => exclusivity.fields.slice(index + 1).map((right) => ({ required: [left, right] })))
    return pairs.map((pair) => ({ $comment: rule.message, not: pair }))
  })
}

/** Translates to a JSON Schema that rejects unknown fields. With `useDefaults`, Ajv applies the same defaults as the API server. */
function toStrict(schema: Schema): JsonSchema {
  const node = mapChildren(withoutExclusiveDefaults(schema), (child) => toStrict(child))
  const strict: JsonSchema = Object.fromEntries(Object.entries(node).filter(([key]) => !key.startsWith('x-kubernetes-') && key !== 'format'))
  if (schema['x-kubernetes-int-or-string']) strict['anyOf'] = [{ type: 'integer' }, { type: 'string' }]
  if (schema['x-kubernetes-preserve-unknown-fields'] && schema.type === undefined) strict['not'] = { type: 'null' }
  if (schema.properties && !schema['x-kubernetes-preserve-unknown-fields'] && typeof schema.additionalProperties !== 'object')
    strict['additionalProperties'] = false
  if (schema['x-kubernetes-list-type'] === 'set') strict['uniqueItems'] = true
  const keywords = toKeywords(schema['x-kubernetes-validations'] ?? [])
  if (keywords.length > 0) strict['allOf'] = keywords
  return strict
}

/** What a string with a placeholder of the config file contains. */
const PLACEHOLDER = { type: 'string', pattern: '\\$\\{' }
/** Keywords that limit the text of a string. */
const textKeywords = ['enum', 'pattern', 'minLength', 'maxLength']

/** Accepts a placeholder in place of each scalar: editors see the text as it is written. */
function acceptPlaceholders(node: JsonSchema): JsonSchema {
  const copy: JsonSchema = Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      if (key === 'properties') return [key, mapValues(value as Record<string, JsonSchema>, acceptPlaceholders)]
      const isSchema = (key === 'items' || key === 'additionalProperties') && typeof value === 'object'
      return [key, isSchema ? acceptPlaceholders(value as JsonSchema) : value]
    }),
  )
  const { type, description, default: fallback, ...limits } = copy
  const isLimited = type === 'string' && textKeywords.some((keyword) => keyword in limits)
  if (!isLimited && type !== 'integer' && type !== 'number' && type !== 'boolean') return copy
  // The description stays outside, where editors look for it.
  return { ...(description !== undefined && { description }), ...(fallback !== undefined && { default: fallback }), anyOf: [{ type, ...limits }, PLACEHOLDER] }
}

const mapValues = <T, U>(values: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]))

/** Validates a manifest as its kind. Editors then report the fields of that kind only, which `oneOf` would not do. */
const oneOfKinds = (kinds: readonly string[]): JsonSchema => ({
  type: 'object',
  required: ['apiVersion', 'kind'],
  properties: { kind: { type: 'string', enum: kinds } },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  allOf: kinds.map((kind) => ({ if: { required: ['kind'], properties: { kind: { const: kind } } }, then: { $ref: `#/$defs/${kind}` } })),
})

/**
 * A JSON Schema document with every definition that is reachable from `roots`. The document itself validates `root`, so that editors can use it: a definition,
 * or manifests of any of several kinds.
 */
export function toBundle(definitions: Definitions, roots: readonly string[], title: string, root: string | { readonly kinds: readonly string[] }): string {
  return print(definitions, roots, title, root, (schema) => schema)
}

/** A JSON Schema document for editors of the config file, which accepts placeholders where values are expected. */
export function toFileBundle(definitions: Definitions, root: string, title: string): string {
  return print(definitions, [root], title, root, acceptPlaceholders)
}

function print(
  definitions: Definitions,
  roots: readonly string[],
  title: string,
  root: string | { readonly kinds: readonly string[] },
  change: (schema: JsonSchema) => JsonSchema,
): string {
  const names = reachableFrom(definitions, roots)
  const bundle = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    ...(typeof root === 'string' ? { allOf: [{ $ref: `#/$defs/${root}` }] } : oneOfKinds(root.kinds)),
    $defs: Object.fromEntries(names.map((name) => [name, change(toStrict(definitions[name] ?? {}))])),
  }
  return `${JSON.stringify(bundle, null, 1)}\n`
}
