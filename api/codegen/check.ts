import { refName, type Definitions, type Schema } from '../schema.ts'

const types = new Set(['object', 'array', 'string', 'integer', 'number', 'boolean'])

/** Mistakes in definitions that would otherwise reach generated files: `Definition.field: problem`. */
export function findSchemaMistakes(definitions: Definitions): readonly string[] {
  const mistakes: string[] = []
  const visit = (schema: Schema, path: string, isField: boolean): void => {
    if (schema.$ref !== undefined && !Object.hasOwn(definitions, refName(schema.$ref)))
      mistakes.push(`${path}: definition ${refName(schema.$ref)} does not exist; write it, or correct the reference`)
    if (schema.type !== undefined && !types.has(schema.type)) mistakes.push(`${path}: type ${schema.type} is none of ${[...types].join(', ')}`)
    if (isField && schema.$ref === undefined && (schema.description ?? '') === '') mistakes.push(`${path}: has no description`)
    for (const [name, child] of Object.entries(schema.properties ?? {})) visit(child, `${path}.${name}`, true)
    for (const name of schema.required ?? []) if (schema.properties?.[name] === undefined) mistakes.push(`${path}: requires ${name}, which is no field of it`)
    if (schema.items) visit(schema.items, `${path}[]`, false)
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties, `${path}.*`, false)
  }
  for (const [name, schema] of Object.entries(definitions)) visit(schema, name, true)
  return mistakes
}
