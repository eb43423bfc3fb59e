import { isObject } from '../../common/json.ts'
import { compact, inside, listOf, objectOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'
import { refer } from './references.ts'

/** Members of Google's schemas that are as in JSON Schema (@google/genai 3.1.0, type Schema). */
const KEPT = [
  'title',
  'description',
  'default',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
]
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
}
/** Schemas that references may add: a reference to one that refers to others twice doubles them at each step. */
const MAX_ADDED = 1000
/** References in references. */
const MAX_DEPTH = 100

/**
 * A JSON Schema in Google's subset of OpenAPI schemas (llm.md §7.11): references are replaced by their targets, a recursive one by any object; unions
 * become `anyOf`, which stands alone (anomalyco/opencode#14788); `null` becomes `nullable`; enums have texts only. What the subset cannot say is left
 * out, so that the schema accepts more.
 */
export function toGoogleSchema(schema: JsonObject): JsonObject {
  return new Writer(schema).write(schema)
}

class Writer {
  readonly #root: JsonObject
  /** References that are being replaced. */
  readonly #open: string[] = []
  #added = 0

  constructor(root: JsonObject) {
    this.#root = root
  }

  write(given: unknown): JsonObject {
    const schema = inside(given)
    const reference = textOf(schema['$ref'])
    if (reference !== undefined) return this.#referred(schema, reference)
    if (this.#open.length > 0) this.#added++
    const all = objectsOf(schema['allOf'])
    if (all.length > 0) return this.#all(schema, all)
    const union = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])]
    if (union.length > 0) return this.#union(schema, union)
    const { type } = schema
    if (Array.isArray(type))
      return this.#union(
        schema,
        type.map((one) => ({ ...schema, type: one as unknown })),
        true,
      )
    return this.#plain(schema)
  }

  #referred(schema: JsonObject, reference: string): JsonObject {
    const target = this.#target(reference)
    const { description } = schema
    if (target === undefined) return compact({ type: 'object', description })
    this.#open.push(reference)
    const written = this.write(target)
    this.#open.pop()
    return description === undefined || 'anyOf' in written ? written : { ...written, description }
  }

  #all(schema: JsonObject, all: readonly JsonObject[]): JsonObject {
    const references: string[] = []
    const { allOf: _, ...own } = schema
    const joined = all.reduce((one, part) => this.#join(one, part, references), own)
    this.#open.push(...references)
    const written = this.write(joined)
    this.#open.length -= references.length
    return written
  }

  /** A schema with one of its `allOf`. `references` are those that were replaced. */
  #join(schema: JsonObject, part: JsonObject, references: string[]): JsonObject {
    const { $ref: reference, allOf, ...own } = part
    this.#added++
    let joined: JsonObject = {
      ...own,
      ...schema,
      properties: { ...inside(own['properties']), ...inside(schema['properties']) },
      required: [...new Set([...listOf(schema['required']), ...listOf(own['required'])])],
    }
    for (const inner of objectsOf(allOf)) joined = this.#join(joined, inner, references)
    if (typeof reference !== 'string' || references.includes(reference)) return joined
    const target = this.#target(reference)
    if (target === undefined) return joined
    references.push(reference)
    return this.#join(joined, target, references)
  }

  /** The target of a reference; undefined if it is unknown, recursive, or one too many. */
  #target(reference: string): JsonObject | undefined {
    const isClosed = !this.#open.includes(reference) && this.#open.length < MAX_DEPTH && this.#added < MAX_ADDED
    return isClosed ? refer(reference, this.#root) : undefined
  }

  /** `isList`: a list of types, whose branches are complete. */
  #union(schema: JsonObject, branches: readonly unknown[], isList = false): JsonObject {
    const filled = branches.filter((branch) => !isNull(branch))
    const isNullable = filled.length < branches.length || schema['nullable'] === true
    const { anyOf: _, oneOf: __, ...own } = schema
    const written = filled.map((branch) => this.write(isList ? branch : { ...own, ...inside(branch) }))
    const [first] = written
    if (first === undefined) return this.#plain({ ...own, type: 'string', nullable: true })
    const nullable = isNullable ? written.map((one) => ('anyOf' in one ? one : { ...one, nullable: true })) : written
    return nullable.length === 1 && nullable[0] ? nullable[0] : { anyOf: nullable }
  }

  #plain(schema: JsonObject): JsonObject {
    const type = typeOf(schema)
    const values = schema['const'] === undefined ? listOf(schema['enum']) : [schema['const']]
    const isEnum = values.length > 0 && values.every((value) => value === null || (typeof value === 'string' && value !== ''))
    const written: Record<string, unknown> = { type }
    for (const key of KEPT) if (schema[key] !== undefined && schema[key] !== null) written[key] = schema[key]
    const format = textOf(schema['format'])
    if (format !== undefined && FORMATS[type]?.includes(format) === true) written['format'] = format
    if (schema['nullable'] === true || values.includes(null)) written['nullable'] = true
    if (isEnum && type === 'string') written['enum'] = values.filter((value) => value !== null)
    else if (values.length > 0) written['description'] = [textOf(schema['description']), `One of ${JSON.stringify(values)}.`].filter(Boolean).join(' ')
    if (type === 'array') written['items'] = this.#items(schema)
    if (type === 'object' && isObject(schema['properties'])) {
      const properties = Object.fromEntries(Object.entries(schema['properties']).map(([name, one]) => [name, this.write(one)]))
      written['properties'] = properties
      const required = listOf(schema['required']).filter((name) => typeof name === 'string' && Object.hasOwn(properties, name))
      if (required.length > 0) written['required'] = required
    }
    return written
  }

  #items(schema: JsonObject): JsonObject {
    const items = objectOf(schema['items'])
    const tuple = listOf(schema['prefixItems'] ?? schema['items'])
    if (items === undefined && tuple.length > 0) return this.#union({}, tuple)
    return items === undefined || Object.keys(items).length === 0 ? { type: 'string' } : this.write(items)
  }
}

const isNull = (schema: unknown): boolean => schema === 'null' || inside(schema)['type'] === 'null' || inside(schema)['const'] === null

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])

/** The type, or the one that the other members tell; any object for none. */
function typeOf(schema: JsonObject): string {
  const type = textOf(schema['type'])?.toLowerCase()
  if (type !== undefined && TYPES.has(type)) return type
  const [value] = schema['const'] === undefined ? listOf(schema['enum']) : [schema['const']]
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value
  if (value !== undefined && value !== null) return Number.isInteger(value) ? 'integer' : 'number'
  if (schema['items'] !== undefined || schema['prefixItems'] !== undefined) return 'array'
  return schema['pattern'] !== undefined || schema['minLength'] !== undefined || schema['maxLength'] !== undefined ? 'string' : 'object'
}
