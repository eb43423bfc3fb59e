import type { Json, Schema } from '#api/schema.ts'

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
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`
const TOKEN = "[A-Za-z0-9!#$%&'*+\\-.^_`|~]+"
const LONG_NAME = { minLength: 1, maxLength: 253 }

export const group = (fallback?: string): Schema =>
  text({ maxLength: 253, pattern: `^$|^${SUBDOMAIN}$`, ...(fallback === undefined ? {} : { default: fallback }) })
export const kind = (fallback?: string): Schema =>
  text({ minLength: 1, maxLength: 63, pattern: '^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$', ...(fallback === undefined ? {} : { default: fallback }) })
export const objectName = text(LONG_NAME)
export const namespace = text({ minLength: 1, maxLength: 63, pattern: `^${LABEL}$` })
export const sectionName = text({ ...LONG_NAME, pattern: `^${SUBDOMAIN}$` })
export const port = integer(1, 65_535)
export const hostname = text({ ...LONG_NAME, pattern: `^(\\*\\.)?${SUBDOMAIN}$` })
export const preciseHostname = text({ ...LONG_NAME, pattern: `^${SUBDOMAIN}$` })
export const controllerName = text({ ...LONG_NAME, pattern: `^${SUBDOMAIN}/[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+$` })
export const duration = text({ pattern: '^([0-9]{1,5}(h|m|s|ms)){1,4}$' })
export const headerName = text({ minLength: 1, maxLength: 256, pattern: `^${TOKEN}$` })
export const headerValue = text({ minLength: 1, maxLength: 4096, pattern: '^[!-~]+([\\t ]?[!-~]+)*$' })

/** LocalObjectReference and PolicyTargetReference: nothing has a default. */
export const localRef = shape({ 'group!': group(), 'kind!': kind(), 'name!': objectName })
export const objectRef = shape({ 'group!': group(), 'kind!': kind(), 'name!': objectName, namespace })
export const secretRef = shape({ group: group(''), kind: kind('Secret'), 'name!': objectName, namespace })

export const labelSelector = shape({
  matchLabels: map(),
  matchExpressions: list(shape({ 'key!': text(), 'operator!': oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist']), values: list(text()) })),
})

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
  annotations: map(),
  finalizers: list(text()),
  ownerReferences: list(anything),
  managedFields: list(anything),
  selfLink: text(),
})

/** Envelope of a kind; `status` is not ours to check. */
export const envelope = (fields: Readonly<Record<string, Schema>>): Schema =>
  shape({ 'apiVersion!': text(), 'kind!': text(), 'metadata!': metadata, ...fields, status: anything })
