import { isJsonObject, isRawNumber } from '#api/json/index.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { JsonObject } from '../message/json.ts'
import { findReference, SchemaValidator } from './validator.ts'

/** Subschemas that are considered for one value. */
const MAX_SCHEMAS = 64
const MAX_DEPTH = 128
const VALUES_PER_STEP = 256

/** Values for strings of a format, without any content of the original. */
const samples: Readonly<Record<string, string>> = {
  date: '1970-01-01',
  'date-time': '1970-01-01T00:00:00Z',
  time: '00:00:00Z',
  duration: 'PT0S',
  email: 'masked@masked.invalid',
  'idn-email': 'masked@masked.invalid',
  hostname: 'masked.invalid',
  'idn-hostname': 'masked.invalid',
  ipv4: '0.0.0.0',
  ipv6: '::',
  uri: 'https://masked.invalid/',
  iri: 'https://masked.invalid/',
  url: 'https://masked.invalid/',
  'uri-reference': 'masked',
  uuid: '00000000-0000-0000-0000-000000000000',
}

/**
 * Adapts a value in which strings and numbers were replaced by labels such as `<EMAIL_ADDRESS>` to the schema that the original conforms to:
 * where a label does not fit, a neutral value of the same type and format takes its place. Returns undefined if no such value fits.
 */
export function* fitMasked(schema: JsonObject, original: unknown, masked: unknown): Cooperative<{ readonly value: unknown } | undefined> {
  const value = yield* fit({ root: schema, visited: 0 }, [schema], original, masked, 0)
  return (yield* new SchemaValidator(schema).check(value, 'result')) === undefined ? { value } : undefined
}

interface Walk {
  readonly root: JsonObject
  visited: number
}

function* fit(walk: Walk, schemas: readonly unknown[], original: unknown, masked: unknown, depth: number): Cooperative<unknown> {
  if (depth > MAX_DEPTH || original === masked) return masked
  if (++walk.visited % VALUES_PER_STEP === 0) yield
  const known = expand(walk.root, schemas)
  if (Array.isArray(masked) && Array.isArray(original)) {
    const items: unknown[] = []
    for (const [index, item] of masked.entries())
      items.push(
        yield* fit(
          walk,
          known.map((one) => itemSchema(one, index)),
          original[index],
          item,
          depth + 1,
        ),
      )
    return items
  }
  if (isJsonObject(masked) && isJsonObject(original)) {
    const members: [string, unknown][] = []
    for (const [key, item] of Object.entries(masked))
      members.push([
        key,
        Object.hasOwn(original, key)
          ? yield* fit(
              walk,
              known.map((one) => memberSchema(one, key)),
              original[key],
              item,
              depth + 1,
            )
          : item,
      ])
    return Object.fromEntries(members)
  }
  return typeof masked === 'string' ? fitLeaf(known, original, masked) : masked
}

/** The schemas with those that they refer to or combine. */
function expand(root: JsonObject, schemas: readonly unknown[]): JsonObject[] {
  const found: JsonObject[] = []
  const open = [...schemas]
  for (let schema = open.shift(); found.length < MAX_SCHEMAS && (open.length > 0 || schema !== undefined); schema = open.shift()) {
    if (!isJsonObject(schema) || found.includes(schema)) continue
    found.push(schema)
    if (typeof schema['$ref'] === 'string') open.push(findReference(root, schema['$ref']))
    for (const key of ['allOf', 'anyOf', 'oneOf']) if (Array.isArray(schema[key])) open.push(...(schema[key] as unknown[]))
    open.push(schema['then'], schema['else'])
  }
  return found
}

function itemSchema({ prefixItems, items }: JsonObject, index: number): unknown {
  return Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items
}

function memberSchema({ properties, additionalProperties }: JsonObject, key: string): unknown {
  return isJsonObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
}

function fitLeaf(schemas: readonly JsonObject[], original: unknown, label: string): unknown {
  if (typeof original === 'number' || isRawNumber(original)) return takesText(schemas) ? label : neutralNumber(schemas)
  const format = schemas.map((schema) => samples[String(schema['format'])]).find((sample) => sample !== undefined)
  if (format !== undefined) return format
  const most = Math.min(...schemas.map(({ maxLength }) => (typeof maxLength === 'number' ? maxLength : Infinity)))
  const least = Math.max(0, ...schemas.map(({ minLength }) => (typeof minLength === 'number' ? minLength : 0)))
  // A label is shorter than any text that is worth padding.
  const padded = least > MAX_PADDED ? label : label.padEnd(least, '*')
  return padded.length > most ? padded.slice(0, most) : padded
}

const MAX_PADDED = 4096

/** No schema requires another type than text. */
const takesText = (schemas: readonly JsonObject[]): boolean =>
  schemas.every(({ type }) => type === undefined || type === 'string' || (Array.isArray(type) && type.includes('string')))

/** Zero, or the number next to it that the bounds allow. */
function neutralNumber(schemas: readonly JsonObject[]): number {
  const bounds = (key: string): number[] => schemas.flatMap((schema) => (typeof schema[key] === 'number' ? [schema[key]] : []))
  const least = Math.max(-Infinity, ...bounds('minimum'), ...bounds('exclusiveMinimum').map((bound) => Math.floor(bound) + 1))
  const most = Math.min(Infinity, ...bounds('maximum'), ...bounds('exclusiveMaximum').map((bound) => Math.ceil(bound) - 1))
  return Math.min(Math.max(0, least), most)
}
