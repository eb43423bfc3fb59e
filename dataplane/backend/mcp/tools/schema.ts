import { isObject, type JsonObject } from '../message/json.ts'

/** Members whose schemas apply to the same object. */
const LISTS = ['allOf', 'anyOf', 'oneOf'] as const
const SINGLE = ['if', 'then', 'else'] as const
/** Levels of nested conditions that are searched. */
const MAX_DEPTH = 8

/** A JSON Schema of an object without some of its properties. Other properties are unchanged. */
export function withoutProperties(schema: unknown, names: ReadonlySet<string>, depth = 0): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return schema
  const { properties, required, dependentRequired } = schema
  const copy: JsonObject = { ...schema }
  if (isObject(properties)) copy['properties'] = without(properties, names)
  if (Array.isArray(required)) copy['required'] = required.filter((name) => !names.has(name as string))
  if (isObject(dependentRequired))
    copy['dependentRequired'] = Object.fromEntries(
      Object.entries(without(dependentRequired, names)).map(([name, needed]) => [
        name,
        Array.isArray(needed) ? needed.filter((other) => !names.has(other as string)) : needed,
      ]),
    )
  for (const member of LISTS) {
    const list = schema[member]
    if (Array.isArray(list)) copy[member] = list.map((one) => withoutProperties(one, names, depth + 1))
  }
  for (const member of SINGLE) if (schema[member] !== undefined) copy[member] = withoutProperties(schema[member], names, depth + 1)
  return copy
}

const without = (object: JsonObject, names: ReadonlySet<string>): JsonObject => Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)))
