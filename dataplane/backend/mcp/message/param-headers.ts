import { encodeValue } from './headers.ts'
import { isObject, type JsonObject } from './json.ts'

/** An argument of a tool that clients repeat in a header (`x-mcp-header`). */
export interface ParamHeader {
  /** Header name in lower case: `mcp-param-<name>`. */
  readonly header: string
  /** Names of the properties from the root of the arguments to the value. */
  readonly path: readonly string[]
}

const KEYWORD = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const PRIMITIVES: ReadonlySet<unknown> = new Set(['integer', 'string', 'boolean'])
/** Servers choose schemas. */
const MAX_HEADERS = 100
const MAX_LEVELS = 64

/**
 * The arguments that clients repeat in headers. Undefined if the schema breaks a rule for them: clients must not offer such a tool. An
 * annotation may be on properties of the root and of its nested objects only.
 */
export function paramHeaders(inputSchema: unknown): readonly ParamHeader[] | undefined {
  const found: ParamHeader[] = []
  const names = new Set<string>()
  if (!isObject(inputSchema) || !collect(inputSchema, [], found, names)) return undefined
  return found.length > MAX_HEADERS || countAnnotations(inputSchema, 0) !== found.length ? undefined : found
}

/** Whether an annotation occurs at all: a cheap check for schemas without. */
export const mayHaveParamHeaders = (text: string): boolean => text.includes(KEYWORD)

function collect(schema: JsonObject, path: readonly string[], found: ParamHeader[], names: Set<string>): boolean {
  const { properties } = schema
  if (!isObject(properties) || path.length > MAX_LEVELS) return true
  return Object.entries(properties).every(([name, property]) => {
    if (!isObject(property)) return true
    const own = [...path, name]
    const annotation = property[KEYWORD]
    if (annotation !== undefined) {
      if (typeof annotation !== 'string' || !TOKEN.test(annotation) || !PRIMITIVES.has(property['type'])) return false
      const header = `mcp-param-${annotation.toLowerCase()}`
      if (names.has(header)) return false
      names.add(header)
      found.push({ header, path: own })
    }
    return collect(property, own, found, names)
  })
}

/** Number of annotations anywhere in a schema. Those in examples and defaults are data, and properties may have the name of the keyword. */
function countAnnotations(value: unknown, level: number): number {
  if (level > 2 * MAX_LEVELS) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countAnnotations(item, level + 1), 0)
  if (!isObject(value)) return 0
  let count = 0
  for (const [key, member] of Object.entries(value)) {
    if (key === KEYWORD) count++
    else if (key === 'properties' && isObject(member)) for (const property of Object.values(member)) count += countAnnotations(property, level + 1)
    else if (!DATA.has(key)) count += countAnnotations(member, level + 1)
  }
  return count
}

const DATA: ReadonlySet<string> = new Set(['default', 'examples', 'const', 'enum'])

/** The headers of a call with these arguments, names and values in turn. An argument that is absent, null or of another type has none. */
export function paramHeaderValues(headers: readonly ParamHeader[], args: unknown): [string, string][] {
  return headers.flatMap(({ header, path }): [string, string][] => {
    const value = textOf(path.reduce<unknown>((current, name) => (isObject(current) && Object.hasOwn(current, name) ? current[name] : undefined), args))
    return value === undefined ? [] : [[header, encodeValue(value)]]
  })
}

/** Numbers beyond doubles are objects that keep their text. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'number') return String(value)
  return undefined
}
