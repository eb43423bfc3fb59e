/**
 * The schema language of all contracts in this project: JSON Schema in the structural subset that Kubernetes accepts, plus
 * named definitions (`$defs`), which the generator inlines for CRDs.
 *
 * Exclusivity is always a CEL rule, never `oneOf`: structural schemas do not allow `oneOf` over properties, and the generated
 * types would be unreadable.
 */

/** One `x-kubernetes-validations` entry. `rule` is CEL over `self`; kubectl prints `message`. */
export interface ValidationRule {
  rule: string
  message: string
  fieldPath?: string
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
}

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A JSON Schema with the extensions of Kubernetes. */
export interface Schema {
  /** `#/$defs/<Name>`; siblings other than `description`, `default` and `x-kubernetes-validations` (added to the definition's own) are not allowed. */
  $ref?: string
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  description?: string
  default?: Json
  enum?: readonly Json[]
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  additionalProperties?: Schema | boolean
  minProperties?: number
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  minimum?: number
  maximum?: number
  /** In CRDs of others only. */
  oneOf?: readonly Schema[]
  anyOf?: readonly Schema[]
  not?: Schema
  'x-kubernetes-validations'?: readonly ValidationRule[]
  'x-kubernetes-int-or-string'?: true
  'x-kubernetes-preserve-unknown-fields'?: true
  'x-kubernetes-embedded-resource'?: true
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: readonly string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
}

/** Named definitions; the key is the name of the generated TypeScript type. */
export type Definitions = Readonly<Record<string, Schema>>

/** A reference to a named definition. `description` replaces that of the definition. */
export function ref(name: string, description?: string): Schema {
  return description === undefined ? { $ref: `#/$defs/${name}` } : { $ref: `#/$defs/${name}`, description }
}

const hasEach = (fields: readonly string[]): string => fields.map((field) => `has(self.${field})`).join(',')

/** A rule that requires exactly one of `fields`. */
export function exactlyOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].exists_one(x,x)`, message: `exactly one of the fields in [${fields.join(' ')}] must be set` }
}

/** A rule that permits at most one of `fields`. */
export function atMostOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].filter(x,x).size() <= 1`, message: `at most one of the fields in [${fields.join(' ')}] may be set` }
}

/** A rule that rejects the empty object. */
export function atLeastOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].exists(x,x)`, message: `at least one of the fields in [${fields.join(' ')}] must be set` }
}

// Constructors of schemas: `string('Name of the user.', { maxLength: 9 })`.

export const string = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
export const integer = (description: string, minimum: number, maximum?: number, more: Schema = {}): Schema => ({
  type: 'integer',
  format: maximum === undefined || maximum > 2_147_483_647 ? 'int64' : 'int32',
  description,
  minimum,
  ...(maximum === undefined ? {} : { maximum }),
  ...more,
})
export const boolean = (description: string, more: Schema = {}): Schema => ({ type: 'boolean', description, ...more })
export const choice = (values: readonly string[], description: string, more: Schema = {}): Schema => ({ type: 'string', enum: values, description, ...more })
export const list = (items: Schema, description: string, minItems?: number, maxItems?: number, more: Schema = {}): Schema => ({
  type: 'array',
  description,
  items,
  ...(minItems === undefined ? {} : { minItems }),
  ...(maxItems === undefined ? {} : { maxItems }),
  ...more,
})
export const map = (values: Schema, description: string, minProperties?: number, maxProperties?: number): Schema => ({
  type: 'object',
  description,
  additionalProperties: values,
  ...(minProperties === undefined ? {} : { minProperties }),
  ...(maxProperties === undefined ? {} : { maxProperties }),
})
export const object = (
  description: string,
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
  rules: readonly ValidationRule[] = [],
): Schema => ({
  type: 'object',
  description,
  properties,
  ...(required.length > 0 ? { required } : {}),
  ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}),
})
/** An object of any content. */
export const anyObject = (description: string): Schema => ({ type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true })
/** Any JSON value but null, which the API server treats as absent. */
export const anyJson = (description: string): Schema => ({ description, 'x-kubernetes-preserve-unknown-fields': true })
/** A list whose items are unique scalars. */
export const set = (items: Schema, description: string, minItems?: number, maxItems?: number): Schema =>
  list(items, description, minItems, maxItems, { 'x-kubernetes-list-type': 'set' })
/** A list whose items are unique by one of their fields. */
export const keyedList = (key: string, items: Schema, description: string, minItems?: number, maxItems?: number): Schema =>
  list(items, description, minItems, maxItems, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] })

/** The name of the definition that a `$ref` points to. */
export const refName = (pointer: string): string => pointer.slice('#/$defs/'.length)

/** Returns a copy of `schema` with `change` applied to each of its direct children. */
export function mapChildren(schema: Schema, change: (child: Schema) => Schema): Schema {
  const copy: Schema = { ...schema }
  if (schema.properties) copy.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, child]) => [name, change(child)]))
  if (schema.items) copy.items = change(schema.items)
  if (typeof schema.additionalProperties === 'object') copy.additionalProperties = change(schema.additionalProperties)
  return copy
}

/** Names of the definitions that are reachable from `roots`, including `roots`, in the order of `definitions`. Throws for an unknown name. */
export function reachableFrom(definitions: Definitions, roots: readonly string[]): string[] {
  const seen = new Set<string>()
  const visit = (schema: Schema): Schema => {
    if (schema.$ref !== undefined) enter(refName(schema.$ref))
    return mapChildren(schema, visit)
  }
  const enter = (name: string): void => {
    if (seen.has(name)) return
    seen.add(name)
    const schema = definitions[name]
    if (!schema) throw new Error(`definition ${name} does not exist; it is referred to but not written`)
    visit(schema)
  }
  for (const root of roots) enter(root)
  return Object.keys(definitions).filter((name) => seen.has(name))
}
