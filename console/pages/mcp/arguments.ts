import type { Schema } from './item.ts'

/** The texts of the fields. */
export type Values = Readonly<Record<string, string>>

export const isNumber = ({ type }: Schema): boolean => type === 'integer' || type === 'number'
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The arguments that the fields describe. Throws an error that names a field. Empty fields are left out. */
export function readArguments({ properties = {} }: Schema, values: Values): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => (values[name] ?? '') !== '')
      .map(([name, field]) => [name, readField(name, field, values[name] ?? '')]),
  )
}

function readField(name: string, field: Schema, text: string): unknown {
  if (Array.isArray(field.enum)) return (field.enum as unknown[]).find((choice) => textOf(choice) === text)
  if (isNumber(field)) {
    if (text.trim() === '' || !Number.isFinite(Number(text))) throw new Error(`${name}: is not a number`)
    return Number(text)
  }
  if (field.type === 'boolean') return text === 'true'
  if (field.type === 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    // Without a type, text is a string.
    if (field.type === undefined) return text
    throw new Error(`${name}: is not valid JSON`)
  }
}
