import { GROUP, VERSION } from '../names.ts'
import { mapChildren, reachableFrom, refName, type Definitions, type Schema } from '../schema.ts'
import type { Kind } from '../v1alpha1/kinds.ts'

/** OpenAPI 3.0 ignores siblings of `$ref`, so a reference with siblings becomes an `allOf` with one element. */
function toComponent(schema: Schema): object {
  if (schema.$ref === undefined) return mapChildren(schema, (child) => toComponent(child))
  const { $ref, ...use } = schema
  const reference = { $ref: `#/components/schemas/${refName($ref)}` }
  return Object.keys(use).length === 0 ? reference : { ...use, allOf: [reference] }
}

/** One OpenAPI 3.0 document with every schema of the kinds. */
export function toOpenApiDocument(definitions: Definitions, kinds: readonly Kind[]): string {
  const names = reachableFrom(
    definitions,
    kinds.map(({ kind }) => kind),
  )
  const schemas = names.map((name) => {
    const isKind = kinds.some(({ kind }) => kind === name)
    const groupVersionKind = isKind ? { 'x-kubernetes-group-version-kind': [{ group: GROUP, version: VERSION, kind: name }] } : {}
    return [name, { ...toComponent(definitions[name] ?? {}), ...groupVersionKind }]
  })
  const document = {
    openapi: '3.0.3',
    info: { title: `${GROUP}/${VERSION}`, version: VERSION, description: `Custom resources of the group ${GROUP}.` },
    paths: {},
    components: { schemas: Object.fromEntries(schemas) },
  }
  return `${JSON.stringify(document, null, 1)}\n`
}
