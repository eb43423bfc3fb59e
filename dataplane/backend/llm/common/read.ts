import { isObject, isRawNumber } from './json.ts'
import type { JsonObject } from './types.ts'

/** Lenient accessors for JSON of unknown shape: a value of the wrong type reads as absent. */

/** The string; undefined for other types. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The string; undefined if it is empty. */
export function filledText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The finite number; undefined for other types, and for raw numbers. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** A number to pass on unchanged, raw or not. */
export function anyNumber(value: unknown): unknown {
  return typeof value === 'number' || isRawNumber(value) ? value : undefined
}

/** The boolean; undefined for other types. */
export function booleanOf(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined
}

/** The JSON object; undefined for other types. */
export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined
}

const nothing: JsonObject = Object.freeze({})

/** The object, or an empty one, for chains such as `inside(inside(body).usage).details`. */
export function inside(value: unknown): JsonObject {
  return isObject(value) ? value : nothing
}

/** The list, or an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}

/** The objects in a list; other items are skipped. */
export function objectsOf(value: unknown): JsonObject[] {
  return listOf(value).filter(isObject)
}

/** A copy without undefined members. */
export function compact(members: JsonObject): JsonObject {
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(members)) if (members[key] !== undefined) define(out, key, members[key])
  return out
}

/** Assigns a member; `__proto__` is treated as any other key. */
export function define(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

/** A copy without some keys; the same object if it has none of them. */
export function without(body: JsonObject, ...keys: string[]): JsonObject {
  if (!keys.some((key) => Object.hasOwn(body, key))) return body
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(body)) if (!keys.includes(key)) define(out, key, body[key])
  return out
}
