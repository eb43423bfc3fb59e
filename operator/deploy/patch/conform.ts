import { suggest } from '#api/suggest.ts'
import { isList, isObject, joinPath, showValue, type Json, type JsonObject } from './json.ts'
import { findShape, type Field, type Shape } from './shape.ts'

/** Mistakes (`errors`) and ignored fields (`warnings`), each with its path. */
export interface Findings {
  readonly errors: string[]
  readonly warnings: string[]
}

/** Returns `object` without fields that its type does not have, as a typed decoder does. Values of a wrong type are errors. */
export function conform(object: JsonObject, shape: Shape | undefined, path: string, findings: Findings): JsonObject {
  if (!shape) return object
  const result: Record<string, Json> = {}
  for (const [name, value] of Object.entries(object)) {
    const at = joinPath(path, name)
    const field = shape.get(name)
    if (field) result[name] = conformField(value, field, at, findings)
    else findings.warnings.push(describeUnknown(at, name, shape))
  }
  return result
}

function describeUnknown(path: string, name: string, shape: Shape): string {
  const near = suggest(name, shape.keys())
  return `${path}: unknown field, ignored${near === undefined ? '' : `; did you mean ${near}?`}`
}

function conformField(value: Json, field: Field, path: string, findings: Findings): Json {
  if (field.container === 'list') {
    if (isList(value)) return value.map((item, index) => conformValue(item, field.type, `${path}[${index}]`, findings))
    findings.errors.push(`${path} is ${showValue(value)}; give a list`)
    return value
  }
  if (field.container === 'map') {
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, conformValue(item, field.type, joinPath(path, key), findings)]))
    findings.errors.push(`${path} is ${showValue(value)}; give an object`)
    return value
  }
  return conformValue(value, field.type, path, findings)
}

const scalars: Readonly<Record<string, { readonly isValid: (value: Json) => boolean; readonly words: string }>> = {
  string: { isValid: (value) => typeof value === 'string', words: 'a string' },
  boolean: { isValid: (value) => typeof value === 'boolean', words: 'true or false' },
  integer: { isValid: (value) => Number.isInteger(value), words: 'an integer' },
  number: { isValid: (value) => typeof value === 'number', words: 'a number' },
  intstr: { isValid: (value) => typeof value === 'string' || Number.isInteger(value), words: 'an integer or a string' },
  quantity: { isValid: (value) => typeof value === 'string' || typeof value === 'number', words: 'a quantity such as 100m or 128Mi' },
}

function conformValue(value: Json, type: string, path: string, findings: Findings): Json {
  const scalar = scalars[type]
  if (scalar) {
    if (!scalar.isValid(value)) findings.errors.push(`${path} is ${showValue(value)}; give ${scalar.words}`)
    // The API server returns strings. Numbers would look changed at every comparison.
    return type === 'quantity' && typeof value === 'number' ? String(value) : value
  }
  if (isObject(value)) return conform(value, findShape(type), path, findings)
  findings.errors.push(`${path} is ${showValue(value)}; give an object`)
  return value
}
