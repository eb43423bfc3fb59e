import { isObject } from '../../common/json.ts'
import { inside, listOf, objectsOf, without } from '../../common/read.ts'
import type { JsonObject } from '../../common/types.ts'
import { toCurrentDraft } from './draft.ts'
import { toGoogleSchema } from './google.ts'
import { refer } from './references.ts'
import type { SchemaRule } from './rule.ts'

const UNIONS = ['oneOf', 'anyOf', 'allOf']
/** Unions in unions deeper than this are left out. */
const MAX_DEPTH = 8

/** The schema of a tool's input as a target accepts it; the same object if it is accepted as it is. */
export function fitSchema(schema: JsonObject | undefined, rule: SchemaRule): JsonObject | undefined {
  const { isNeeded, needsObject, needsProperties, needsItems, isChecked, hasRootUnions, dialect, rootDrops } = rule
  if (schema === undefined) return isNeeded ? { type: 'object' } : undefined
  const current = isChecked ? toCurrentDraft(schema, needsItems) : schema
  const flat = hasRootUnions ? current : flattenRoot(current)
  let fitted = dialect === 'google' ? toGoogleSchema(flat) : rootDrops.length > 0 ? without(flat, ...rootDrops) : flat
  const { type, properties } = fitted
  if (type !== 'object' && (needsObject || (Array.isArray(type) && type.includes('object')))) fitted = { ...fitted, type: 'object' }
  const lacksProperties = properties === null || (properties === undefined && needsProperties && fitted['type'] === 'object')
  return lacksProperties ? { ...fitted, properties: {} } : fitted
}

/**
 * A schema without unions at its root, whose branches become properties of the root: required are those of all branches of `allOf`, and what each branch
 * of `oneOf` or `anyOf` requires. It accepts what the given one accepts, and more.
 */
function flattenRoot(schema: JsonObject): JsonObject {
  if (!UNIONS.some((union) => schema[union] !== undefined)) return schema
  const { properties, required } = membersOf(schema, schema, MAX_DEPTH)
  const open = without(schema, ...UNIONS, 'additionalProperties', 'unevaluatedProperties')
  return { ...open, type: 'object', properties, ...(required.length > 0 && { required }) }
}

interface Members {
  readonly properties: JsonObject
  readonly required: readonly string[]
}

function membersOf(schema: JsonObject, root: JsonObject, depth: number): Members {
  let properties: JsonObject = inside(schema['properties'])
  const required = new Set(listOf(schema['required']).filter((name) => typeof name === 'string'))
  const target = depth > 0 ? refer(schema['$ref'], root) : undefined
  const parts = [...(target ? [target] : []), ...(depth > 0 ? objectsOf(schema['allOf']) : [])]
  for (const one of parts.map((part) => membersOf(part, root, depth - 1))) {
    properties = join(properties, one.properties)
    for (const name of one.required) required.add(name)
  }
  for (const union of ['oneOf', 'anyOf']) {
    const branches = depth > 0 ? objectsOf(schema[union]).map((part) => membersOf(part, root, depth - 1)) : []
    for (const branch of branches) properties = join(properties, branch.properties)
    for (const name of branches[0]?.required ?? []) if (branches.every((branch) => branch.required.includes(name))) required.add(name)
  }
  return { properties, required: [...required] }
}

/** The properties of both; one of both with different schemas has either. */
function join(properties: JsonObject, more: JsonObject): JsonObject {
  const joined: Record<string, unknown> = { ...properties }
  for (const [name, schema] of Object.entries(more)) {
    const given = Object.hasOwn(joined, name) ? joined[name] : undefined
    const branches = isObject(given) && Array.isArray(given['anyOf']) && Object.keys(given).length === 1 ? listOf(given['anyOf']) : [given]
    const isKnown = given !== undefined && branches.some((one) => JSON.stringify(one) === JSON.stringify(schema))
    joined[name] = given === undefined ? schema : isKnown ? given : { anyOf: [...branches, schema] }
  }
  return joined
}
