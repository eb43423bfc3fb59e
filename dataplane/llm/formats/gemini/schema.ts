import { isObject } from '../json.ts'
import { compact, inside, listOf, objectOf, objectsOf, textOf } from '../read.ts'
import { FormatError, type JsonObject } from '../types.ts'

/** Members that Gemini's schema dialect knows and that need no change. */
const plain = [
  'title',
  'description',
  'default',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'propertyOrdering',
]
const formats = new Set(['enum', 'date-time'])
/** Deeper schemas are cut: recursive references have no end. */
const DEEPEST = 24
/** References let a short schema mean an endless one. */
const MOST_NODES = 5000

interface Definitions {
  readonly schemas: JsonObject
  nodesLeft: number
}

/** JSON Schema as Gemini takes it (llm.md §7.11): no references, no allOf, nullable instead of null. */
export function normaliseSchema(schema: JsonObject): JsonObject {
  return normalise(schema, { schemas: { ...inside(schema['definitions']), ...inside(schema['$defs']) }, nodesLeft: MOST_NODES }, 0)
}

function normalise(given: unknown, defs: Definitions, depth: number): JsonObject {
  if (depth > DEEPEST) return { type: 'object' }
  if (--defs.nodesLeft < 0)
    throw new FormatError('unsupported', `unsupported conversion: a schema has more than ${MOST_NODES} parts with its references; make it smaller`)
  const inner = (schema: unknown): JsonObject => normalise(schema, defs, depth + 1)
  const schema = flatten(resolve(inside(given), defs, 0), defs, depth)
  const types = typesOf(schema)
  const known = types.filter((type) => type !== 'null')
  const choices = [...objectsOf(schema['anyOf']), ...objectsOf(schema['oneOf'])].map((choice) => resolve(choice, defs, 0))
  const real = choices.filter((choice) => choice['type'] !== 'null')
  const isNullable = schema['nullable'] === true || types.includes('null') || real.length < choices.length ? true : undefined
  const [only] = real
  if (only && real.length === 1) return compact({ ...pick(schema), ...inner(only), nullable: isNullable })
  if (real.length > 1) return compact({ ...pick(schema), anyOf: real.map(inner), nullable: isNullable })
  if (known.length > 1) return compact({ ...pick(schema), anyOf: known.map((type) => inner({ ...schema, type, nullable: undefined })), nullable: isNullable })
  const type = known[0] ?? guessType(schema)
  const properties = objectOf(schema['properties'])
  const words = schema['const'] === undefined ? listOf(schema['enum']) : [schema['const']]
  const texts = words.filter((word) => typeof word === 'string')
  return compact({
    ...pick(schema),
    type,
    nullable: isNullable,
    enum: type === 'string' && texts.length > 0 ? texts : undefined,
    items: type === 'array' ? inner(objectOf(schema['items']) ?? { type: 'string' }) : undefined,
    properties: properties && Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, inner(property)])),
    required: Array.isArray(schema['required']) ? schema['required'] : undefined,
  })
}

function pick(schema: JsonObject): JsonObject {
  const format = textOf(schema['format'])
  return {
    ...Object.fromEntries(plain.filter((key) => schema[key] !== undefined).map((key) => [key, schema[key]])),
    ...(format !== undefined && formats.has(format) && { format }),
  }
}

function typesOf(schema: JsonObject): string[] {
  const { type } = schema
  return (Array.isArray(type) ? listOf(type) : [type]).filter((name) => typeof name === 'string')
}

function guessType(schema: JsonObject): string {
  if (schema['items'] !== undefined) return 'array'
  return [...listOf(schema['enum']), schema['const']].some((word) => typeof word === 'string') ? 'string' : 'object'
}

/** The target of a reference, with what stands beside the reference. */
function resolve(schema: JsonObject, defs: Definitions, depth: number): JsonObject {
  const name = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(textOf(schema['$ref']) ?? '')?.[1]
  if (name === undefined || depth > DEEPEST) return schema
  const { $ref: _, ...beside } = schema
  return { ...resolve(inside(Object.hasOwn(defs.schemas, name) ? defs.schemas[name] : undefined), defs, depth + 1), ...beside }
}

/** allOf as one schema. */
function flatten(schema: JsonObject, defs: Definitions, depth: number): JsonObject {
  if (!Array.isArray(schema['allOf']) || depth > DEEPEST || --defs.nodesLeft < 0) return schema
  const { allOf, ...rest } = schema
  return objectsOf(allOf)
    .map((part) => flatten(resolve(part, defs, 0), defs, depth + 1))
    .reduce<JsonObject>((merged, part) => merge(part, merged), rest)
}

function merge(part: JsonObject, into: JsonObject): JsonObject {
  const required = [...new Set([...listOf(part['required']), ...listOf(into['required'])])]
  const hasProperties = isObject(part['properties']) || isObject(into['properties'])
  return {
    ...part,
    ...into,
    ...(hasProperties && { properties: { ...inside(part['properties']), ...inside(into['properties']) } }),
    ...(required.length > 0 && { required }),
  }
}
