import { readDirectives, settle, settleFields } from './directives.ts'
import { isList, isObject, joinPath, type Json, type JsonObject } from './json.ts'
import { mergeList, removeValues, setOrder } from './list.ts'
import { findShape, type Field, type Shape } from './shape.ts'

/**
 * `original` with the strategic merge patch `patch`. Neither is changed. Without a shape (free-form objects, maps of scalars),
 * lists are replaced. What is wrong with the patch goes to `errors`.
 */
export function mergeMap(original: JsonObject, patch: JsonObject, shape: Shape | undefined, path: string, errors: string[]): JsonObject {
  const { action, fields, retained, orders, removals } = readDirectives(patch, path, errors)
  if (action === 'delete') return {}
  if (action === 'replace') return settleFields(fields, path, errors)

  const result = new Map(Object.entries(original).filter(([name]) => retained?.has(name) ?? true))
  for (const name of new Set([...removals.keys(), ...fields.keys(), ...orders.keys()])) {
    const at = joinPath(path, name)
    const field = shape?.get(name)
    const before = result.get(name)
    const removed = removals.get(name)
    const order = orders.get(name)
    const change = fields.get(name)

    let value = removed ? removeValues(before, removed, at, errors) : before
    if (change !== undefined) value = change === null ? undefined : mergeField(value, change, field, at, errors)
    if (order && isList(value)) value = setOrder(value, order, isList(before) ? before : [], isList(change) ? change : [], field, at, errors)
    if (value === undefined) result.delete(name)
    else result.set(name, value)
  }
  return Object.fromEntries(result)
}

function mergeField(original: Json | undefined, patch: Json, field: Field | undefined, path: string, errors: string[]): Json | undefined {
  if (isObject(original) && isObject(patch)) {
    if (field?.isReplaced) return settle(patch, path, errors)
    return mergeMap(original, patch, field?.container === 'none' ? findShape(field.type) : undefined, path, errors)
  }
  if (isList(original) && isList(patch)) return mergeList(original, patch, field, path, errors, mergeMap)
  return settle(patch, path, errors)
}
