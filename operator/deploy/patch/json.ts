export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [field: string]: Json
}

export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
export const isObject = (value: Json | undefined): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)

/** `path.field`, or `path["odd field"]`. */
export const joinPath = (path: string, field: string): string => (/^[\w$/-]+$/.test(field) ? (path === '' ? field : `${path}.${field}`) : `${path}["${field}"]`)

/** A value as messages show it: short, on one line. */
export function showValue(value: Json): string {
  const text = JSON.stringify(value)
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`
}
