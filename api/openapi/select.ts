import { createHash } from 'node:crypto'
import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { McpOpenApi, McpOpenApiMatch } from '#gen/v1alpha1/types.ts'

/** Names of an operation. */
export interface OperationName {
  /** `METHOD /path`, as in the document. */
  readonly key: string
  readonly id: string | undefined
  readonly tags: readonly string[]
}

type Matches = (operation: OperationName) => boolean

/** Compiles `include` and `exclude`. */
export function compileSelection({ include, exclude = [] }: Pick<McpOpenApi, 'include' | 'exclude'>): Matches {
  const included = include?.map(compileMatch)
  const excluded = exclude.map(compileMatch)
  return (operation) => (included === undefined || included.some((matches) => matches(operation))) && !excluded.some((matches) => matches(operation))
}

/** Compiles one entry: all fields that are set must match. */
export function compileMatch({ operationId, tag, path }: McpOpenApiMatch): Matches {
  const id = operationId === undefined ? undefined : compileGlob(operationId, '(?s:.*)')
  const tagged = tag === undefined ? undefined : compileGlob(tag, '(?s:.*)')
  const located = path === undefined ? undefined : compileGlob(path, '[^/]*')
  return (operation) =>
    (id === undefined || (operation.id !== undefined && id(operation.id))) &&
    (tagged === undefined || operation.tags.some(tagged)) &&
    (located === undefined || located(operation.key))
}

/** A pattern of a glob: `*` is `any`, `**` any text. Matching takes linear time. */
function compileGlob(glob: string, any: string): (text: string) => boolean {
  const parts = glob.split(/(\*+)/).map((part) => (part.startsWith('*') ? (part.length > 1 ? '(?s:.*)' : any) : part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')))
  const regex = compileRegex(parts.join(''))
  // Globs are literal text and wildcards, within the limits of patterns.
  return (text) => !isRegexError(regex) && regex.test(text)
}

/** Names that LLM APIs accept for tools. */
const MAX_NAME = 64

/** A stable name of a tool: the operationId, or method and path. Longer ones end in a digest. */
export function toolName({ id, key }: OperationName): string {
  const name = clean(id ?? key.replace(/^[A-Z]+/, (method) => method.toLowerCase()))
  if (name === '') return `tool_${digest(key)}`
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 9)}_${digest(id ?? key)}` : name
}

/** The name of a tool whose name another operation has too. It depends on no other operation. */
export const distinctName = (name: string, { key }: OperationName): string => `${name.slice(0, MAX_NAME - 9)}_${digest(key)}`

const clean = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]+/g, '_').replaceAll(/^_+|_+$/g, '')
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)
