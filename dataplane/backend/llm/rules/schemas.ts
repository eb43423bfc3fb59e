import { without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import type { SchemaRule } from './types.ts'

/** The schema of a tool's input as a target accepts it; the same object if it is accepted as it is. */
export function fitSchema(schema: JsonObject | undefined, { needsObject, needsProperties, rootDrops }: SchemaRule): JsonObject | undefined {
  if (schema === undefined) return needsObject ? { type: 'object' } : undefined
  let fitted = rootDrops.length > 0 ? without(schema, ...rootDrops) : schema
  const { type, properties } = fitted
  const isOpen = type === undefined || type === null
  if ((isOpen && needsObject) || (Array.isArray(type) && type.includes('object'))) fitted = { ...fitted, type: 'object' }
  const lacksProperties = properties === null || (properties === undefined && needsProperties && fitted['type'] === 'object')
  return lacksProperties ? { ...fitted, properties: {} } : fitted
}
