/**
 * The schema language that every contract of this project is written in: JSON Schema constants in the structural
 * subset that Kubernetes accepts, plus named definitions (`$defs`) which the generator inlines for CRDs.
 *
 * Exclusivity is always a CEL rule, never `oneOf`: structural schemas forbid `oneOf` over properties and the generated
 * types would be unreadable.
 */

/** One `x-kubernetes-validations` entry. `rule` is CEL over `self`; `message` is what kubectl prints. */
export interface ValidationRule {
  rule: string
  message: string
  fieldPath?: string
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

export interface Schema {
  /** `#/$defs/<Name>`; siblings other than `description` and `default` are not allowed. */
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
  'x-kubernetes-validations'?: readonly ValidationRule[]
  'x-kubernetes-int-or-string'?: true
  'x-kubernetes-preserve-unknown-fields'?: true
  'x-kubernetes-embedded-resource'?: true
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: readonly string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
}

/** Named definitions; the key is the generated TypeScript type's name. */
export type Definitions = Readonly<Record<string, Schema>>

/** A reference to a named definition. `description` replaces the definition's own where the use needs other words. */
export function ref(name: string, description?: string): Schema {
  return description === undefined ? { $ref: `#/$defs/${name}` } : { $ref: `#/$defs/${name}`, description }
}

const hasEach = (fields: readonly string[]): string => fields.map((field) => `has(self.${field})`).join(',')

/** A rule that holds when exactly one of `fields` is set. */
export function exactlyOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].exists_one(x,x)`, message: `exactly one of the fields in [${fields.join(' ')}] must be set` }
}

/** A rule that holds when at most one of `fields` is set. */
export function atMostOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].filter(x,x).size() <= 1`, message: `at most one of the fields in [${fields.join(' ')}] may be set` }
}

/** A rule that rejects the empty object. */
export function atLeastOneOf(...fields: string[]): ValidationRule {
  return { rule: `[${hasEach(fields)}].exists(x,x)`, message: `at least one of the fields in [${fields.join(' ')}] must be set` }
}
