import { isObject } from '../../common/json.ts'
import { define } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** Limits that JSON of protobuf writes as texts. */
const COUNTS = new Set(['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'])
/** Members of Google's schemas in snake case. */
const SNAKES: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_length: 'minLength',
  max_length: 'maxLength',
  min_properties: 'minProperties',
  max_properties: 'maxProperties',
}
/** Members that JSON Schema does not have. */
const DROPPED = new Set(['propertyOrdering', 'property_ordering', 'example', 'nullable'])

/** A schema of Google's subset of OpenAPI as JSON Schema: types in lower case, `nullable` as a type, limits as numbers. */
export function fromGoogleSchema(schema: JsonObject): JsonObject {
  const out: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    const name = Object.hasOwn(SNAKES, key) ? (SNAKES[key] ?? key) : key
    if (DROPPED.has(key)) continue
    define(out, name, COUNTS.has(name) && typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : readMember(name, value))
  }
  if (schema['nullable'] === true && typeof out['type'] === 'string') out['type'] = [out['type'], 'null']
  if (out['format'] === 'enum') delete out['format']
  return out
}

function readMember(name: string, value: unknown): unknown {
  if (name === 'type') return Array.isArray(value) ? (value as unknown[]).map(lower) : lower(value)
  if (name === 'properties' && isObject(value)) {
    const out: Record<string, unknown> = {}
    for (const [key, property] of Object.entries(value)) define(out, key, isObject(property) ? fromGoogleSchema(property) : property)
    return out
  }
  if (name === 'items' && isObject(value)) return fromGoogleSchema(value)
  if (name === 'anyOf' && Array.isArray(value)) return (value as unknown[]).map((one) => (isObject(one) ? fromGoogleSchema(one) : one))
  return value
}

const lower = (type: unknown): unknown => (typeof type === 'string' ? type.toLowerCase() : type)
