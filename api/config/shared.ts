import type { Schema } from '../schema.ts'

// Constructors of schemas for the config contract. Unlike those of api/schema.ts they need no bounds and reject unknown fields.

export const string = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
export const integer = (description: string, more: Schema = {}): Schema => ({ type: 'integer', description, ...more })
export const number = (description: string, more: Schema = {}): Schema => ({ type: 'number', description, ...more })
export const boolean = (description: string, more: Schema = {}): Schema => ({ type: 'boolean', description, ...more })
export const list = (items: Schema, description: string, more: Schema = {}): Schema => ({ type: 'array', description, items, ...more })
export const map = (values: Schema, description: string, more: Schema = {}): Schema => ({
  type: 'object',
  description,
  additionalProperties: values,
  ...more,
})
export const object = (description: string, properties: Record<string, Schema>, required: readonly string[] = []): Schema => ({
  type: 'object',
  description,
  properties,
  required,
  additionalProperties: false,
})
export const port = (description: string): Schema => ({ type: 'integer', description, minimum: 1, maximum: 65535 })
/** The key of a message. */
export const key = (shape: string): Schema => ({ type: 'string', description: `Unique among its kind. Shape: \`${shape}\`.`, minLength: 1 })
