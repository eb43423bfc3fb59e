import { mkdir, writeFile } from 'node:fs/promises'
import { compile } from 'json-schema-to-typescript'
import { configDefinitions } from '../config/definitions.ts'
import type { Schema } from '../schema.ts'

function strict(schema: Schema): Schema {
  const s: Record<string, unknown> = { ...schema }
  if (schema.properties) s['properties'] = Object.fromEntries(Object.entries(schema.properties).map(([k, v]) => [k, strict(v)]))
  if (schema.items) s['items'] = strict(schema.items)
  if (schema.$ref) return { $ref: schema.$ref }
  return s as Schema
}
const $defs = Object.fromEntries(Object.entries(configDefinitions).map(([k, v]) => [k, strict(v)]))
const text = await compile({ $defs, title: 'Root', type: 'object', additionalProperties: false } as never, 'Root', {
  unreachableDefinitions: true,
  additionalProperties: false,
  ignoreMinAndMaxItems: true,
  format: false,
  bannerComment: '/** Written by `make generate`. Do not edit. */',
})
await mkdir('gen/config', { recursive: true })
await writeFile(
  'gen/config/types.ts',
  text
    .replace(/export interface Root \{\}\n?/, '')
    .replace(/ \* This interface was referenced by `Root`'s JSON-Schema\n \* via the `definition` "[^"]+"\.\n/g, '')
    .replace(/ \*\n \*\//g, ' */'),
)
