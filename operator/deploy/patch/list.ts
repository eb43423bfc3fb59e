import { readDirectives, settle, settleFields } from './directives.ts'
import { isList, isObject, showValue, type Json, type JsonObject } from './json.ts'
import { isSubsequence, orderItems } from './order.ts'
import { findShape, type Field, type Shape } from './shape.ts'

type Items = readonly Json[]
/** Merges a patch item into its counterpart. */
type MergeItem = (original: JsonObject, patch: JsonObject, shape: Shape | undefined, path: string, errors: string[]) => JsonObject

/** Merges `patch` into a list that is there already. */
export function mergeList(original: Items, patch: Items, field: Field | undefined, path: string, errors: string[], mergeItem: MergeItem): Items {
  if (field?.mergeKey !== undefined) return mergeByKey(original, patch, field.mergeKey, field, path, errors, mergeItem)
  if (field?.isUnion) {
    const union = [...new Set([...original, ...patch])]
    return orderItems(union, patch, original, (item) => item)
  }
  for (const [index, item] of patch.entries()) {
    if (isObject(item) && item['$patch'] === 'delete') {
      errors.push(`${path}[${index}].$patch is "delete", but items of this list have no merge key; give the whole list as it should be`)
    }
  }
  return asList(settle(patch, path, errors))
}

const asList = (value: Json | undefined): Items => (isList(value) ? value : [])

function mergeByKey(original: Items, patch: Items, key: string, field: Field, path: string, errors: string[], mergeItem: MergeItem): Items {
  const keyOf = (item: Json): Json | undefined => (isObject(item) ? item[key] : undefined)
  const shape = findShape(field.type)
  const added: { readonly item: JsonObject; readonly at: string }[] = []
  let kept = [...original]
  let isReplaced = false

  for (const [index, item] of patch.entries()) {
    const at = `${path}[${index}]`
    if (!isObject(item)) {
      errors.push(`${at} is ${showValue(item)}; give an object with ${key}`)
      continue
    }
    const { action } = '$patch' in item ? readDirectives(item, at, errors) : { action: 'merge' }
    const value = item[key] ?? undefined
    if (action === 'replace') isReplaced = true
    else if (value === undefined && (action === 'delete' || !field.isKeyOptional))
      errors.push(`${at} has no ${key}, by which the items of this list are merged; set it`)
    else if (action === 'delete') kept = kept.filter((each) => keyOf(each) !== value)
    else added.push({ item, at })
  }
  if (isReplaced) return added.map(({ item, at }) => settleItem(item, at, errors))

  const merged = [...kept]
  const keyless: Json[] = []
  for (const { item, at } of added) {
    const value = keyOf(item)
    const index = value === undefined ? -1 : merged.findIndex((each) => keyOf(each) === value)
    const counterpart = merged[index]
    if (value === undefined) keyless.push(settleItem(item, at, errors))
    else if (isObject(counterpart)) merged[index] = mergeItem(counterpart, item, shape, at, errors)
    else merged.push(settleItem(item, at, errors))
  }
  const patchOrder = added.flatMap(({ item }) => keyOf(item) ?? [])
  return [
    ...orderItems(
      merged,
      patchOrder,
      kept.map((each) => keyOf(each) ?? null),
      keyOf,
    ),
    ...keyless,
  ]
}

const settleItem = (item: JsonObject, path: string, errors: string[]): Json => settleFields(readDirectives(item, path, errors).fields, path, errors)

/** `$deleteFromPrimitiveList/<field>`: the list without these values. */
export function removeValues(list: Json | undefined, values: Items, path: string, errors: string[]): Json | undefined {
  if (!isList(list)) return list
  if (list.some((item) => typeof item === 'object')) errors.push(`$deleteFromPrimitiveList for ${path}, a list of objects; use $patch: delete in an item`)
  return list.filter((item) => !values.includes(item))
}

/** `$setElementOrder/<field>`: `list` (merged already) in that order; `original` and `patch` are the list before, and what was merged into it. */
export function setOrder(list: Items, order: Items, original: Items, patch: Items, field: Field | undefined, path: string, errors: string[]): Items {
  const key = field?.mergeKey
  const keyOf = (item: Json): Json | undefined => (key !== undefined && isObject(item) ? item[key] : item)
  const keys = order.map((item) => keyOf(item) ?? null)
  if (keys.some((each) => typeof each === 'object')) {
    errors.push(
      `$setElementOrder for ${path}: ${key === undefined ? 'items of this list have no merge key; give the list itself in order' : `give objects with ${key}`}`,
    )
    return list
  }
  const patchKeys = patch.filter((item) => !isObject(item) || !('$patch' in item)).map((item) => keyOf(item) ?? null)
  if (keys.length > 0 && !isSubsequence(patchKeys, keys)) {
    errors.push(`${path}: its items are not in the order of $setElementOrder; list every item of the patch there, in the same order`)
  }
  return orderItems(list, keys, placesBefore(original, patch, keyOf), keyOf)
}

/** Keys in the order of before. Kubernetes counts added items as there before, as far as they fill the places of deleted ones. */
function placesBefore(original: Items, patch: Items, keyOf: (item: Json) => Json | undefined): Json[] {
  const isDeletion = (item: Json): boolean => isObject(item) && item['$patch'] === 'delete'
  const deleted = patch.filter(isDeletion).map(keyOf)
  const kept = original.map(keyOf).filter((key) => !deleted.includes(key))
  const added = patch.filter((item) => !isDeletion(item)).map(keyOf)
  return [...new Set([...kept, ...added])].slice(0, original.length).map((key) => key ?? null)
}
