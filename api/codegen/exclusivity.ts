import type { Schema, ValidationRule } from '../schema.ts'

/** A rule made by `exactlyOneOf`, `atMostOneOf` or `atLeastOneOf` of api/schema.ts, read back. */
export interface Exclusivity {
  kind: 'exactlyOne' | 'atMostOne' | 'atLeastOne'
  fields: string[]
}

const tails: Readonly<Record<string, Exclusivity['kind']>> = {
  '.exists_one(x,x)': 'exactlyOne',
  '.filter(x,x).size() <= 1': 'atMostOne',
  '.exists(x,x)': 'atLeastOne',
}

/** The exclusivity that a rule states, or undefined when the rule is about something else. */
export function readExclusivity(rule: ValidationRule): Exclusivity | undefined {
  const match = /^\[((?:has\(self\.\w+\),?)+)\](.*)$/.exec(rule.rule)
  const kind = match ? tails[match[2] ?? ''] : undefined
  if (!match || !kind) return undefined
  return { kind, fields: [...(match[1] ?? '').matchAll(/self\.(\w+)/g)].map(([, field]) => field ?? '') }
}

/**
 * An object schema without the defaults of fields of which one must be set: the API server, like Ajv, fills defaults in
 * before it looks at the rules, and would so make `{}` valid. They are documented, and the reader applies them.
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
