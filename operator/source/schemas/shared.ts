import { ENDPOINTS_ANNOTATION } from '#api/names.ts'
import type { Json, Schema } from '#api/schema.ts'
import { ENDPOINTS_PATTERN } from '#api/v1alpha1/shared.ts'

/** Constructors of schemas of kinds that we read but do not define. */
export const text = (more: Schema = {}): Schema => ({ type: 'string', ...more })
export const integer = (minimum?: number, maximum?: number, more: Schema = {}): Schema => ({
  type: 'integer',
  ...(minimum === undefined ? {} : { minimum }),
  ...(maximum === undefined ? {} : { maximum }),
  ...more,
})
export const flag: Schema = { type: 'boolean' }
export const oneOf = (values: readonly Json[], more: Schema = {}): Schema => ({
  type: typeof values[0] === 'number' ? 'integer' : 'string',
  enum: values,
  ...more,
})
export const list = (items: Schema, minItems?: number, maxItems?: number, more: Schema = {}): Schema => ({
  type: 'array',
  items,
  ...(minItems === undefined ? {} : { minItems }),
  ...(maxItems === undefined ? {} : { maxItems }),
  ...more,
})
export const keyed = (key: string, items: Schema, minItems?: number, maxItems?: number): Schema =>
  list(items, minItems, maxItems, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] })
export const map = (values: Schema = text()): Schema => ({ type: 'object', additionalProperties: values })
export const anything: Schema = { 'x-kubernetes-preserve-unknown-fields': true }
/** Field names that end in `!` are required. */
export function shape(fields: Readonly<Record<string, Schema>>, more: Schema = {}): Schema {
  const names = Object.keys(fields)
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name.replace(/!$/, ''), schema])),
    required: names.filter((name) => name.endsWith('!')).map((name) => name.slice(0, -1)),
    ...more,
  }
}

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const objectName = text({ minLength: 1, maxLength: 253 })
const namespace = text({ minLength: 1, maxLength: 63, pattern: `^${LABEL}$` })
export const port = integer(1, 65_535)

export const metadata = shape({
  'name!': objectName,
  generateName: text(),
  namespace,
  uid: text(),
  resourceVersion: text(),
  generation: integer(),
  creationTimestamp: text({ format: 'date-time' }),
  deletionTimestamp: text(),
  deletionGracePeriodSeconds: integer(),
  labels: map(),
  annotations: { ...map(), properties: { [ENDPOINTS_ANNOTATION]: text({ pattern: ENDPOINTS_PATTERN }) } },
  finalizers: list(text()),
  ownerReferences: list(anything),
  managedFields: list(anything),
  selfLink: text(),
})

/** Envelope of a kind; `status` is not ours to check. */
export const envelope = (fields: Readonly<Record<string, Schema>>): Schema =>
  shape({ 'apiVersion!': text(), 'kind!': text(), 'metadata!': metadata, ...fields, status: anything })
