import { isObject } from '../../common/json.ts'
import { textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'

/** Keywords that limit values, which Claude rejects in schemas that it must follow. Anthropic's SDKs put them into the description, too. */
const LIMITS = new Set(
  (
    'minimum,maximum,exclusiveMinimum,exclusiveMaximum,multipleOf,minLength,maxLength,maxItems,uniqueItems,contains,minContains,maxContains,' +
    'minProperties,maxProperties,patternProperties,propertyNames'
  ).split(','),
)

/**
 * A schema whose objects are closed, with the limits of values in the description; the same object if nothing changes (llm.md §7.15).
 *
 * @example
 * closeSchema({ type: 'integer', minimum: 1 }) // {type: 'integer', description: '{minimum: 1}'}
 */
export function closeSchema(schema: JsonObject): JsonObject {
  const limits: string[] = []
  const closed: Record<string, unknown> = {}
  let isChanged = false
  for (const [key, value] of Object.entries(schema)) {
    if (LIMITS.has(key) || (key === 'minItems' && value !== 0 && value !== 1)) {
      limits.push(`${key}: ${JSON.stringify(value)}`)
      continue
    }
    closed[key] = closeMember(key, value)
    isChanged ||= closed[key] !== value
  }
  const isObjectSchema = schema['type'] === 'object' || (Array.isArray(schema['type']) && schema['type'].includes('object')) || isObject(schema['properties'])
  if (isObjectSchema && schema['additionalProperties'] !== false) {
    closed['additionalProperties'] = false
    isChanged = true
  }
  if (limits.length > 0) closed['description'] = [textOf(schema['description']), `{${limits.join(', ')}}`].filter(Boolean).join('\n\n')
  return isChanged || limits.length > 0 ? closed : schema
}

/** A member of a schema: a schema, a list of schemas, or schemas by name. Other values stay. */
function closeMember(key: string, value: unknown): unknown {
  switch (key) {
    case 'properties':
    case '$defs':
    case 'definitions': {
      if (!isObject(value)) return value
      const entries = Object.entries(value).map(([name, one]): [string, unknown] => [name, isObject(one) ? closeSchema(one) : one])
      return entries.some(([name, one]) => one !== value[name]) ? Object.fromEntries(entries) : value
    }
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
    case 'prefixItems': {
      if (!Array.isArray(value)) return value
      const list: readonly unknown[] = value
      const items = list.map((one) => (isObject(one) ? closeSchema(one) : one))
      return items.some((one, at) => one !== list[at]) ? items : value
    }
    case 'items':
      return isObject(value) ? closeSchema(value) : value
    default:
      return value
  }
}
