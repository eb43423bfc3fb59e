import { inside, listOf, objectOf, textOf } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'

/** Changes of parts of a body that keep the objects of parts that need none. */

/** The list with its objects changed, without those that become undefined; the same list if nothing changed. */
export function mapList(list: unknown, change: (item: JsonObject, at: number) => JsonObject | undefined): unknown {
  if (!Array.isArray(list)) return list
  let changed: unknown[] | undefined
  for (const [at, item] of listOf(list).entries()) {
    const object = objectOf(item)
    const next = object === undefined ? item : change(object, at)
    if (changed === undefined && next !== item) changed = listOf(list).slice(0, at)
    if (next !== undefined || object === undefined) changed?.push(next)
  }
  return changed ?? list
}

/** The object with a text changed; the same object if it stays. */
export function withText(object: JsonObject, key: string, change: (text: string) => string): JsonObject {
  const text = textOf(inside(object)[key])
  if (text === undefined) return object
  const next = change(text)
  return next === text ? object : { ...object, [key]: next }
}

/** The object with a member changed; the same object if it stays. */
export function withMember(object: JsonObject, key: string, change: (member: JsonObject) => JsonObject): JsonObject {
  const member = objectOf(object[key])
  if (member === undefined) return object
  const next = change(member)
  return next === member ? object : { ...object, [key]: next }
}

/** The object with a list changed; the same object if it stays. */
export function withList(object: JsonObject, key: string, change: (item: JsonObject, at: number) => JsonObject | undefined): JsonObject {
  const list = object[key]
  const next = mapList(list, change)
  return next === list ? object : { ...object, [key]: next }
}
