import type { OpenApiParameter } from '#gen/config/types.ts'
import { isObject, type JsonObject } from '../message/json.ts'

/** How a value is written into a URL, header or form (OpenAPI 3.1, style values). */
export type Serialization = Pick<OpenApiParameter, 'name' | 'style' | 'explode'> & { readonly allowReserved?: boolean; readonly isJson?: boolean }

/** Levels of objects in `deepObject`. */
const MAX_DEPTH = 8

/** Percent-encodes everything but unreserved characters (RFC 3986 §2.3), so that a value cannot end its part of the URL. */
const encode = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Leaves reserved characters, except for those that end a value, begin another one, or are read as a space. */
const encodeReserved = (text: string): string => encode(text).replaceAll(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/g, decodeURIComponent)

/** A value without structure, as text. Nested values are JSON. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

/** A parameter in a path: `simple`, `label` or `matrix`. */
export function pathValue({ name, style, explode, isJson = false }: Serialization, value: unknown): string {
  if (isJson) return encode(JSON.stringify(value))
  const prefix = style === 'label' ? '.' : style === 'matrix' ? ';' : ''
  if (style === 'matrix') {
    if (explode && Array.isArray(value)) return value.map((item) => `;${encode(name)}=${encode(textOf(item))}`).join('')
    if (!explode || !isObject(value)) return `;${encode(name)}=${joined(value, ',', false)}`
  }
  return prefix + joined(value, explode && prefix !== '' ? prefix : ',', explode)
}

/** A header: `simple`. Nothing is encoded; the caller checks the characters. */
export function headerValue({ explode, isJson = false }: Serialization, value: unknown): string {
  if (isJson) return JSON.stringify(value)
  if (Array.isArray(value)) return value.map(textOf).join(',')
  if (!isObject(value)) return textOf(value)
  return Object.entries(value)
    .map(([key, child]) => `${key}${explode ? '=' : ','}${textOf(child)}`)
    .join(',')
}

/** Fields of a query or form: `form`, `spaceDelimited`, `pipeDelimited` or `deepObject`. Empty arrays and objects have none. */
export function queryFields(how: Serialization, value: unknown): string[] {
  const { name, style, explode, isJson = false, allowReserved = false } = how
  const encodeValue = allowReserved ? encodeReserved : encode
  if (isJson) return [`${encode(name)}=${encodeValue(JSON.stringify(value))}`]
  if (style === 'deepObject' && (isObject(value) || Array.isArray(value))) return deepFields(encode(name), value, encodeValue, 0)
  if (Array.isArray(value)) {
    if (explode) return value.map((item) => `${encode(name)}=${encodeValue(textOf(item))}`)
    const separator = style === 'spaceDelimited' ? '%20' : style === 'pipeDelimited' ? '%7C' : ','
    return value.length === 0 ? [] : [`${encode(name)}=${value.map((item) => encodeValue(textOf(item))).join(separator)}`]
  }
  if (!isObject(value)) return [`${encode(name)}=${encodeValue(textOf(value))}`]
  const members = Object.entries(value)
  if (explode) return members.map(([key, child]) => `${encode(key)}=${encodeValue(textOf(child))}`)
  return members.length === 0 ? [] : [`${encode(name)}=${members.flatMap(([key, child]) => [encode(key), encodeValue(textOf(child))]).join(',')}`]
}

function deepFields(name: string, value: JsonObject | readonly unknown[], encodeValue: (text: string) => string, depth: number): string[] {
  return Object.entries(value).flatMap(([key, child]) => {
    const field = `${name}%5B${encode(key)}%5D`
    if (depth < MAX_DEPTH && (isObject(child) || Array.isArray(child))) return deepFields(field, child, encodeValue, depth + 1)
    return [`${field}=${encodeValue(textOf(child))}`]
  })
}

function joined(value: unknown, separator: string, explode: boolean): string {
  if (Array.isArray(value)) return value.map((item) => encode(textOf(item))).join(separator)
  if (!isObject(value)) return encode(textOf(value))
  return Object.entries(value)
    .map(([key, child]) => `${encode(key)}${explode ? '=' : ','}${encode(textOf(child))}`)
    .join(separator)
}
