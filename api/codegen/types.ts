import { compile } from 'json-schema-to-typescript'
import { mapChildren, reachableFrom, refName, type Definitions, type Json, type Schema } from '../schema.ts'

const BANNER = '/** Written by `make generate`. Do not edit. */'

const isScalar = (value: Json): boolean => value === null || typeof value !== 'object' || Array.isArray(value)

/** A schema in the words of json-schema-to-typescript: closed objects, defaults told in the comment. */
function toCompilable(schema: Schema): Record<string, unknown> {
  // tsType rather than $ref: a described $ref would become a type of its own (Transform1).
  if (schema.$ref !== undefined) return { tsType: refName(schema.$ref), ...describe(schema) }
  const node = mapChildren(schema, (child) => toCompilable(child))
  if (schema['x-kubernetes-int-or-string']) return { type: ['integer', 'string'], ...describe(schema) }
  const { default: _, 'x-kubernetes-validations': __, ...rest } = node
  const isOpen = schema.type === 'object' && schema.properties === undefined
  return {
    ...rest,
    ...describe(schema),
    ...(schema.properties ? { additionalProperties: false } : {}),
    ...(isOpen && schema.additionalProperties === undefined ? { additionalProperties: true } : {}),
  }
}

function describe(schema: Schema): { description?: string } {
  const fallback = schema.default !== undefined && isScalar(schema.default) ? `Default: ${JSON.stringify(schema.default)}.` : undefined
  const description = [schema.description, fallback].filter((part) => part !== undefined && part !== '').join(' ')
  return description === '' ? {} : { description: description.replaceAll('*/', '* /') }
}

/** TypeScript types of every definition that `roots` lead to. */
export async function toTypes(definitions: Definitions, roots: readonly string[]): Promise<string> {
  const names = reachableFrom(definitions, roots)
  const schema = {
    title: 'Everything',
    type: 'object',
    additionalProperties: false,
    $defs: Object.fromEntries(names.map((name) => [name, toCompilable(definitions[name] ?? {})])),
  }
  const text = await compile(schema as never, 'Everything', {
    additionalProperties: false,
    bannerComment: BANNER,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    style: { semi: false, singleQuote: true, printWidth: 160 },
  })
  return tidy(text)
}

/** Drops the artificial root, and the notes about who refers to what. */
function tidy(text: string): string {
  return text
    .replace(/export interface Everything \{\s*\}\n?/, '')
    .replace(/ \*\n( \* This interface was referenced by `Everything`'s JSON-Schema\n)/g, '$1')
    .replace(/ \* This interface was referenced by `Everything`'s JSON-Schema\n \* via the `definition` "[^"]+"\.\n/g, '')
    .replace(/\/\*\*\n \*\/\n/g, '')
    .replace(/\n{3,}/g, '\n\n')
}

/** The table of message kinds as an interface of their types, for who handles messages by kind. */
export function toMessageTypes(messageKinds: Readonly<Record<string, string>>): string {
  const rows = Object.entries(messageKinds).map(([kind, definition]) => `  ${kind}: ${definition}\n`)
  return `/**\n * Type of each kind of message of the config stream.\n */\nexport interface MessageTypes {\n${rows.join('')}}\n`
}
