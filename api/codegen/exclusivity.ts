import type { Schema, ValidationRule } from '../schema.ts'

/** The meaning of a rule that `exactlyOneOf`, `atMostOneOf` or `atLeastOneOf` of api/schema.ts created. */
export interface Exclusivity {
  kind: 'exactlyOne' | 'atMostOne' | 'atLeastOne'
  fields: string[]
}

const tails: Readonly<Record<string, Exclusivity['kind']>> = {
  '.exists_one(x,x)': 'exactlyOne',
  '.filter(x,x).size() <= 1': 'atMostOne',
  '.exists(x,x)': 'atLeastOne',
}

/** Parses such a rule; undefined for other rules. */
export function readExclusivity(rule: ValidationRule): Exclusivity | undefined {
  const match = /^\[((?:has\(self\.\w+\),?)+)\](.*)$/.exec(rule.rule)
  const kind = match ? tails[match[2] ?? ''] : undefined
  if (!match || !kind) return undefined
  return { kind, fields: [...(match[1] ?? '').matchAll(/self\.(\w+)/g)].map(([, field]) => field ?? '') }
}

/**
 * Removes the defaults of mutually exclusive fields from an object schema. The API server and Ajv apply defaults before they check
 * the rules, so that `{}` would become valid. The readers of the object apply these defaults.
 */
export function withoutExclusiveDefaults(schema: Schema): Schema {
  const fields = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) => readExclusivity(rule)?.fields ?? [])
  if (!schema.properties || fields.length === 0) return schema
  const properties = Object.entries(schema.properties).map(([name, property]) => {
    const { default: _, ...rest } = property
    return [name, fields.includes(name) ? rest : property]
  })
  return { ...schema, properties: Object.fromEntries(properties) }
}
