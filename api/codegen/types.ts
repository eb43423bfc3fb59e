import { compile } from 'json-schema-to-typescript'
import { mapChildren, reachableFrom, ref, refName, type Definitions, type Json, type Schema } from '../schema.ts'

const BANNER = '/** Written by `make generate`. Do not edit. */'

const isScalar = (value: Json): boolean => value === null || typeof value !== 'object' || Array.isArray(value)

/** Converts a schema for json-schema-to-typescript: closes objects and adds defaults to the description. */
function toCompilable(schema: Schema): Record<string, unknown> {
  // tsType instead of $ref: a $ref with description would become a separate type (Transform1).
  if (schema.$ref !== undefined) return { tsType: refName(schema.$ref), ...describe(schema) }
  const node = mapChildren(schema, (child) => toCompilable(child))
  if (schema['x-kubernetes-int-or-string']) return { type: ['integer', 'string'], ...describe(schema) }
  if (schema.type === undefined && schema['x-kubernetes-preserve-unknown-fields']) return { tsType: 'unknown', ...describe(schema) }
  const { default: _, 'x-kubernetes-validations': __, ...rest } = node
  const isOpen = schema.type === 'object' && schema.properties === undefined
  return {
    ...rest,
    ...describe(schema),
    // TypeScript has no type for "all other fields".
    ...(schema.properties ? { additionalProperties: typeof schema.additionalProperties === 'object' ? { tsType: 'unknown' } : false } : {}),
    ...(isOpen && schema.additionalProperties === undefined ? { additionalProperties: true } : {}),
  }
}

function describe(schema: Schema): { description?: string } {
  const fallback = schema.default !== undefined && isScalar(schema.default) ? `Default: ${JSON.stringify(schema.default)}.` : undefined
  const description = [schema.description, fallback].filter((part) => part !== undefined && part !== '').join(' ')
  return description === '' ? {} : { description: description.replaceAll('*/', '* /') }
}

/** Types that another generated file already declares: `from` is its module specifier. */
interface DeclaredTypes {
  readonly names: readonly string[]
  readonly from: string
}

/** Names of the definitions whose TypeScript type is the same in both: they are equal, and so is every definition that they refer to. */
export function findSharedTypes(left: Definitions, right: Definitions): string[] {
  const isEqual = (name: string): boolean =>
    name in left && name in right && JSON.stringify(toCompilable(left[name] ?? {})) === JSON.stringify(toCompilable(right[name] ?? {}))
  return Object.keys(left).filter((name) => isEqual(name) && reachableFrom(left, [name]).every(isEqual))
}

/** Source of the TypeScript types of every definition that is reachable from `roots`. Types in `declared` are re-exported instead. */
export async function toTypes(definitions: Definitions, roots: readonly string[], declared: DeclaredTypes = { names: [], from: '' }): Promise<string> {
  const reachable = reachableFrom(definitions, roots)
  const names = reachable.filter((name) => !declared.names.includes(name))
  const reexported = reachable.filter((name) => declared.names.includes(name))
  const schema = {
    title: 'Everything',
    type: 'object',
    additionalProperties: false,
    $defs: Object.fromEntries(names.map((name) => [name, toCompilable(definitions[name] ?? {})])),
  }
  const text = await compile(schema as never, 'Everything', {
    additionalProperties: false,
    bannerComment: [BANNER, ...toReexports(definitions, names, reexported, declared.from)].join('\n'),
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: true,
    style: { bracketSpacing: true, semi: false, singleQuote: true, printWidth: 160 },
  })
  return tidy(text)
}

/** Imports the types that the written ones refer to, and exports all of `reexported`. */
function toReexports(definitions: Definitions, written: readonly string[], reexported: readonly string[], from: string): string[] {
  if (reexported.length === 0) return []
  const sources = JSON.stringify(written.map((name) => definitions[name]))
  const used = reexported.filter((name) => sources.includes(JSON.stringify(ref(name).$ref)))
  const toList = (names: readonly string[]): string => `{\n${names.map((name) => `  ${name},\n`).join('')}} from '${from}'`
  return [...(used.length > 0 ? [`import type ${toList(used)}`] : []), `export type ${toList(reexported)}`]
}

/** Removes the artificial root and the comments about references. */
function tidy(text: string): string {
  return text
    .replace(/export interface Everything \{\s*\}\n?/, '')
    .replace(/ \*\n( \* This interface was referenced by `Everything`'s JSON-Schema\n)/g, '$1')
    .replace(/ \* This interface was referenced by `Everything`'s JSON-Schema\n \* via the `definition` "[^"]+"\.\n/g, '')
    .replace(/\/\*\*\n \*\/\n/g, '')
    .replace(/\n{3,}/g, '\n\n')
}

/** Source of an interface with the type of each message kind, for code that handles messages by kind. */
export function toMessageTypes(messageKinds: Readonly<Record<string, string>>): string {
  const rows = Object.entries(messageKinds).map(([kind, definition]) => `  ${kind}: ${definition}\n`)
  return `/**\n * Type of each kind of message of the config stream.\n */\nexport interface MessageTypes {\n${rows.join('')}}\n`
}
