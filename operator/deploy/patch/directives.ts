import { isList, isObject, joinPath, showValue, type Json, type JsonObject } from './json.ts'

const ORDER = '$setElementOrder/'
const REMOVAL = '$deleteFromPrimitiveList/'
const actions = ['delete', 'replace', 'merge'] as const
type Action = (typeof actions)[number]

/** A patch map, its directives apart from its fields. */
export interface Directives {
  /** `merge` is the default without `$patch`. */
  readonly action: Action
  readonly fields: ReadonlyMap<string, Json>
  /** `$retainKeys`: fields of the original that are not listed go. */
  readonly retained?: ReadonlySet<string>
  /** `$setElementOrder/<field>` -> values, or objects with the merge key. */
  readonly orders: ReadonlyMap<string, readonly Json[]>
  /** `$deleteFromPrimitiveList/<field>` -> values. */
  readonly removals: ReadonlyMap<string, readonly Json[]>
}

const isAction = (value: Json): value is Action => actions.some((action) => action === value)

/** Separates the directives from a patch map. Mistakes in them are added to `errors`, with their path. */
export function readDirectives(patch: JsonObject, path: string, errors: string[]): Directives {
  let action: Action = 'merge'
  let retained: Set<string> | undefined
  const fields = new Map<string, Json>()
  const orders = new Map<string, readonly Json[]>()
  const removals = new Map<string, readonly Json[]>()

  for (const [key, value] of Object.entries(patch)) {
    const at = joinPath(path, key)
    if (!key.startsWith('$')) fields.set(key, value)
    else if (key === '$patch') {
      if (isAction(value)) action = value
      else errors.push(`${at} is ${showValue(value)}; use delete, replace or merge`)
    } else if (key === '$retainKeys') {
      if (isList(value) && value.every((name) => typeof name === 'string')) retained = new Set(value)
      else errors.push(`${at} is ${showValue(value)}; give a list of field names`)
    } else if (key.startsWith(ORDER) || key.startsWith(REMOVAL)) {
      const list = key.startsWith(ORDER) ? orders : removals
      if (isList(value)) list.set(key.slice(key.indexOf('/') + 1), value)
      else errors.push(`${at} is ${showValue(value)}; give a list`)
    } else errors.push(`${at} is not a directive; use $patch, $retainKeys, ${ORDER}<field> or ${REMOVAL}<field>`)
  }
  for (const [name, value] of fields) {
    if (retained && value !== null && !retained.has(name)) errors.push(`${joinPath(path, name)} is set but not listed in $retainKeys; list it there`)
  }
  return { action, fields, ...(retained ? { retained } : {}), orders, removals }
}

/**
 * A patch value that has nothing to merge with: directives and nulls taken out. Undefined: nothing is left to add.
 * kubectl drops a map with `$patch: replace` that has no counterpart; part 3 (rule 5) keeps the given keys.
 */
export function settle(value: Json, path: string, errors: string[]): Json | undefined {
  if (isList(value)) {
    return value.flatMap((item, index) => {
      const at = `${path}[${index}]`
      if (isObject(item) && '$patch' in item && readDirectives(item, at, errors).action !== 'merge') return []
      const settled = settle(item, at, errors)
      return settled === undefined ? [] : [settled]
    })
  }
  if (!isObject(value)) return value
  const { action, fields } = readDirectives(value, path, errors)
  if (action === 'delete') return undefined
  return settleFields(fields, path, errors)
}

export function settleFields(fields: ReadonlyMap<string, Json>, path: string, errors: string[]): JsonObject {
  // Entries, not assignments: a field may be called __proto__.
  const entries = [...fields].flatMap(([name, child]): [string, Json][] => {
    const settled = child === null ? undefined : settle(child, joinPath(path, name), errors)
    return settled === undefined ? [] : [[name, settled]]
  })
  return Object.fromEntries(entries)
}
