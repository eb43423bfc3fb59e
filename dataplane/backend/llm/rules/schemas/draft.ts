import { isObject } from '../../common/json.ts'
import type { JsonObject } from '../../common/types.ts'

/** What the metaschema of draft 2020-12 says of a keyword. Others may have any value. */
type Kind = 'text' | 'number' | 'step' | 'count' | 'flag' | 'list' | 'names' | 'types' | 'schema' | 'schemas' | 'schemasByName'

const kinds = new Map<string, Kind>(
  (
    [
      ['text', 'title,description,format,pattern,$comment,$ref,$id,$anchor,$dynamicRef,$dynamicAnchor,contentEncoding,contentMediaType'],
      ['number', 'minimum,maximum,exclusiveMinimum,exclusiveMaximum'],
      ['step', 'multipleOf'],
      ['count', 'minLength,maxLength,minItems,maxItems,minContains,maxContains,minProperties,maxProperties'],
      ['flag', 'uniqueItems,deprecated,readOnly,writeOnly'],
      ['list', 'enum,examples'],
      ['names', 'required'],
      ['types', 'type'],
      ['schema', 'items,contains,additionalProperties,propertyNames,unevaluatedItems,unevaluatedProperties,not,if,then,else,contentSchema'],
      ['schemas', 'anyOf,oneOf,allOf,prefixItems'],
      ['schemasByName', 'properties,patternProperties,dependentSchemas,$defs,definitions'],
    ] as const
  ).flatMap(([kind, keywords]) => keywords.split(',').map((keyword): [string, Kind] => [keyword, kind])),
)
const TYPES = new Set<unknown>(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])

/**
 * A schema that is valid in draft 2020-12; the same object if it is. Tuples and exclusive bounds of earlier drafts are rewritten, members that
 * are valid in no draft are left out, so that the schema accepts more. `needsItems`: arrays have `items`.
 *
 * @example
 * toCurrentDraft({ minimum: 0, exclusiveMinimum: true }, false) // {exclusiveMinimum: 0}
 */
export function toCurrentDraft(given: JsonObject, needsItems: boolean): JsonObject {
  const schema = withoutOldForms(given)
  const written: Record<string, unknown> = {}
  let isChanged = schema !== given
  for (const [keyword, value] of Object.entries(schema)) {
    const next = valid(kinds.get(keyword), value, needsItems)
    if (next !== undefined) define(written, keyword, next)
    isChanged ||= next !== value
  }
  const { type } = written
  if (needsItems && (type === 'array' || (Array.isArray(type) && type.includes('array'))) && !('items' in written) && !('prefixItems' in written)) {
    written['items'] = {}
    isChanged = true
  }
  return isChanged ? written : given
}

/** Keywords that had another form in earlier drafts: a list of items with `additionalItems`, and `exclusiveMinimum: true` beside `minimum`. */
function withoutOldForms(schema: JsonObject): JsonObject {
  const { items, additionalItems, ...rest } = schema
  let current = schema
  if (Array.isArray(items))
    current = {
      ...rest,
      prefixItems: schema['prefixItems'] ?? items,
      ...((isObject(additionalItems) || additionalItems === false) && { items: additionalItems }),
    }
  for (const [exclusive, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (current[exclusive] !== true || typeof current[bound] !== 'number') continue
    const { [bound]: value, ...others } = current
    current = { ...others, [exclusive]: value }
  }
  return current
}

/** The value of a keyword; undefined if it must be left out. */
function valid(kind: Kind | undefined, value: unknown, needsItems: boolean): unknown {
  switch (kind) {
    case 'text':
      return typeof value === 'string' ? value : undefined
    case 'number':
      return typeof value === 'number' ? value : undefined
    case 'step':
      return typeof value === 'number' && value > 0 ? value : undefined
    case 'count':
      return Number.isInteger(value) && Number(value) >= 0 ? value : undefined
    case 'flag':
      return typeof value === 'boolean' ? value : undefined
    case 'list':
      return Array.isArray(value) ? value : undefined
    case 'names':
      return kept(value, (name, at, all) => typeof name === 'string' && all.indexOf(name) === at)
    case 'types':
      return TYPES.has(value) ? value : kept(value, (type, at, all) => TYPES.has(type) && all.indexOf(type) === at, 1)
    case 'schema':
      return isObject(value) ? toCurrentDraft(value, needsItems) : typeof value === 'boolean' ? value : undefined
    case 'schemas':
      return schemasOf(value, needsItems)
    case 'schemasByName':
      return schemasByName(value, needsItems)
    default:
      return value
  }
}

/** The items that pass; the same list if all do, undefined if it is no list, or fewer than `min` pass. */
function kept(value: unknown, passes: (item: unknown, at: number, all: readonly unknown[]) => boolean, min = 0): readonly unknown[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items = value.filter(passes)
  return items.length < min ? undefined : items.length === value.length ? value : items
}

function schemasOf(value: unknown, needsItems: boolean): unknown {
  const given = kept(value, (one) => isObject(one) || typeof one === 'boolean', 1)
  const written = given?.map((one) => (isObject(one) ? toCurrentDraft(one, needsItems) : one))
  return written?.some((one, at) => one !== given?.[at]) === true ? written : given
}

function schemasByName(value: unknown, needsItems: boolean): JsonObject | undefined {
  if (!isObject(value)) return undefined
  const written: Record<string, unknown> = {}
  let isChanged = false
  for (const [name, one] of Object.entries(value)) {
    const next = valid('schema', one, needsItems)
    if (next !== undefined) define(written, name, next)
    isChanged ||= next !== one
  }
  return isChanged ? written : value
}

/** Sets a member, `__proto__` too. */
function define(object: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true })
}
