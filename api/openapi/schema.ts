import { isJsonObject, type JsonObject } from '#api/json/index.ts'
import { DocumentError, type OpenApiDocument } from './document.ts'

/**
 * `input`: schemas of requests, which arguments are validated against. `output`: schemas of responses, without the constraints that APIs
 * break most, because clients discard a result that does not conform.
 */
export type Direction = 'input' | 'output'

/** Deepest schema. */
const MAX_DEPTH = 64
/** Schemas in one converted schema. With references in place: beyond it, they become `$defs`. */
const MAX_INLINED = 500
const MAX_NODES = { input: 3000, output: 1000 } as const
/** Schemas of all tools of a document, counted where they are converted. */
const MAX_TOTAL = 500_000
/** Values that are visited to find recursive references. Beyond it, every reference becomes a definition. */
const MAX_VISITED = 1_000_000
const MAX_DESCRIPTION = 1000

/** Keywords with a schema, a list of schemas, and a map of schemas. */
const SCHEMA_KEYWORDS = new Set(['additionalProperties', 'items', 'not', 'contains', 'propertyNames', 'if', 'then', 'else'])
const LIST_KEYWORDS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const MAP_KEYWORDS = new Set(['properties', 'patternProperties', 'dependentSchemas'])
/** Keywords that are copied: annotations, then constraints, which only inputs keep. */
const ANNOTATIONS = new Set(['title', 'default', 'deprecated', 'contentEncoding', 'contentMediaType'])
const CONSTRAINTS = new Set([
  'enum',
  'const',
  'format',
  'pattern',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'required',
  'dependentRequired',
])
/** Keywords that outputs do not have. */
const STRICT = new Set(['not', 'if', 'then', 'else', 'contains', 'propertyNames'])
/** Values that are no schemas, so that references in them mean nothing. */
const OPAQUE = new Set(['example', 'examples', 'default', 'enum', 'const'])

class BudgetError extends Error {}
class DepthError extends DocumentError {}

/** A schema of JSON Schema 2020-12, and the definitions that its references `#/$defs/<name>` need. */
export interface Converted {
  readonly schema: JsonObject
  readonly definitions: JsonObject
}

/** Converts schemas of one document to JSON Schema 2020-12. */
export class SchemaConverter {
  readonly #document: OpenApiDocument
  readonly #references = new Map<string, ReadonlySet<string>>()
  readonly #recursive = new Map<string, boolean>()
  /** Results for references, many of which are used by several operations. */
  readonly #converted: Readonly<Record<Direction, Map<string, { readonly result: Converted | undefined }>>> = { input: new Map(), output: new Map() }
  #total = 0
  #visited = 0

  constructor(document: OpenApiDocument) {
    this.#document = document
  }

  /**
   * Converts a schema. References are replaced by what they point to, except for recursive ones and in large schemas; these become
   * definitions. Undefined if the schema is too large. Throws a DocumentError for references that do not resolve.
   */
  convert(schema: unknown, direction: Direction): Converted | undefined {
    const pointer = isJsonObject(schema) && Object.keys(schema).length === 1 ? schema['$ref'] : undefined
    if (typeof pointer !== 'string') return this.#convert(schema, direction)
    const known = this.#converted[direction]
    let converted = known.get(pointer)
    if (converted === undefined) known.set(pointer, (converted = { result: this.#convert(schema, direction) }))
    return converted.result
  }

  #convert(schema: unknown, direction: Direction): Converted | undefined {
    for (const mode of [
      { isInlining: true, limit: MAX_INLINED },
      { isInlining: false, limit: MAX_NODES[direction] },
    ]) {
      if (this.#total > MAX_TOTAL) throw new DocumentError('the schemas of all operations are too large; select fewer with include')
      const walk = new Walk(this.#document, direction, mode.limit, (pointer) => mode.isInlining && !this.#isRecursive(pointer))
      try {
        return walk.run(schema)
      } catch (error) {
        const isOverLimit = error instanceof BudgetError || (mode.isInlining && error instanceof DepthError)
        if (!isOverLimit) throw error
      } finally {
        this.#total += walk.count
      }
    }
    return undefined
  }

  /** Whether a reference leads back to itself. */
  #isRecursive(pointer: string): boolean {
    let known = this.#recursive.get(pointer)
    if (known === undefined) {
      if (this.#visited > MAX_VISITED) return true
      const seen = new Set<string>()
      const open = [...this.#referencesIn(pointer)]
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        if (seen.has(next)) continue
        seen.add(next)
        for (const reference of this.#referencesIn(next)) open.push(reference)
        if (++this.#visited > MAX_VISITED) return true
      }
      this.#recursive.set(pointer, (known = seen.has(pointer)))
    }
    return known
  }

  #referencesIn(pointer: string): ReadonlySet<string> {
    let found = this.#references.get(pointer)
    if (found === undefined) {
      const all = new Set<string>()
      const collect = (value: unknown, depth: number): void => {
        if (typeof value !== 'object' || value === null || depth > MAX_DEPTH * 2 || ++this.#visited > MAX_VISITED) return
        for (const [key, child] of Object.entries(value)) {
          if (key === '$ref' && typeof child === 'string') all.add(child)
          else if (!OPAQUE.has(key)) collect(child, depth + 1)
        }
      }
      collect(this.#document.lookUp(pointer), 0)
      this.#references.set(pointer, (found = all))
    }
    return found
  }
}

/** One conversion. */
class Walk {
  readonly #definitions = new Map<string, JsonObject>()
  /** References whose definitions are not converted yet. */
  readonly #pending: string[] = []
  readonly #document: OpenApiDocument
  readonly #direction: Direction
  readonly #isInlined: (pointer: string) => boolean
  readonly #names = new Map<string, string>()
  readonly #limit: number
  #left: number

  constructor(document: OpenApiDocument, direction: Direction, limit: number, isInlined: (pointer: string) => boolean) {
    this.#document = document
    this.#direction = direction
    this.#limit = limit
    this.#left = limit
    this.#isInlined = isInlined
  }

  /** Schemas that were converted. */
  get count(): number {
    return this.#limit - this.#left
  }

  run(root: unknown): Converted {
    const schema = this.#visit(root, 0)
    for (let pointer = this.#pending.pop(); pointer !== undefined; pointer = this.#pending.pop())
      this.#definitions.set(this.#names.get(pointer) ?? '', this.#visit(this.#document.lookUp(pointer), 0))
    return { schema, definitions: Object.fromEntries(this.#definitions) }
  }

  #visit(schema: unknown, depth: number): JsonObject {
    if (this.#left-- <= 0) throw new BudgetError()
    if (depth > MAX_DEPTH) throw new DepthError(`a schema has more than ${MAX_DEPTH} levels`)
    if (schema === false) return this.#direction === 'output' ? {} : { not: {} }
    if (!isJsonObject(schema)) return {}
    if (typeof schema['$ref'] === 'string') return this.#reference(schema['$ref'], schema, depth)
    const result: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) this.#copy(result, keyword, value, depth)
    this.#dropHidden(schema, result)
    this.#setBounds(schema, result)
    this.#setType(schema, result)
    return withoutWrapper(result)
  }

  #copy(result: Record<string, unknown>, keyword: string, value: unknown, depth: number): void {
    const isOutput = this.#direction === 'output'
    if (keyword === 'description' && typeof value === 'string') result[keyword] = cut(value, MAX_DESCRIPTION)
    else if (ANNOTATIONS.has(keyword) || (CONSTRAINTS.has(keyword) && !isOutput)) result[keyword] = value
    else if (isOutput && STRICT.has(keyword)) return
    else if (SCHEMA_KEYWORDS.has(keyword)) {
      if (typeof value === 'boolean') {
        if (!isOutput) result[keyword] = value
      } else result[keyword] = this.#visit(value, depth + 1)
    } else if (LIST_KEYWORDS.has(keyword) && Array.isArray(value))
      // A value that satisfies several alternatives of a response satisfies none of `oneOf`.
      result[isOutput && keyword === 'oneOf' ? 'anyOf' : keyword] = value.map((item) => this.#visit(item, depth + 1))
    else if (MAP_KEYWORDS.has(keyword) && isJsonObject(value))
      result[keyword] = Object.fromEntries(Object.entries(value).map(([name, child]) => [name, this.#visit(child, depth + 1)]))
  }

  /** In OpenAPI 3.1, keywords beside a reference apply too. */
  #reference(pointer: string, schema: JsonObject, depth: number): JsonObject {
    const { $ref: _, ...siblings } = schema
    const more = this.#document.isVersion30 || Object.keys(siblings).length === 0 ? {} : this.#visit(siblings, depth)
    if (this.#isInlined(pointer)) {
      const target = this.#visit(this.#document.lookUp(pointer), depth + 1)
      const isCombined = Object.keys(more).some((keyword) => keyword !== 'description' && keyword !== 'title' && keyword in target)
      return isCombined ? { ...more, allOf: [target, ...((more['allOf'] as unknown[] | undefined) ?? [])] } : { ...target, ...more }
    }
    return { $ref: `#/$defs/${this.#define(pointer)}`, ...more }
  }

  #define(pointer: string): string {
    const known = this.#names.get(pointer)
    if (known !== undefined) return known
    const base = (pointer.split('/').at(-1) ?? '').replaceAll(/[^A-Za-z0-9_.-]/g, '_')
    let name = base
    for (let number = 2; this.#definitions.has(name); number++) name = `${base}_${number}`
    this.#names.set(pointer, name)
    this.#definitions.set(name, {})
    this.#pending.push(pointer)
    return name
  }

  /** Members that are only read are no part of requests, members that are only written no part of responses. */
  #dropHidden({ properties, required }: JsonObject, result: Record<string, unknown>): void {
    if (!isJsonObject(properties)) return
    const mark = this.#direction === 'input' ? 'readOnly' : 'writeOnly'
    const hidden = Object.entries(properties).flatMap(([name, property]) => (this.#hasMark(property, mark) ? [name] : []))
    if (hidden.length === 0) return
    const shown = Object.entries(result['properties'] as JsonObject).filter(([name]) => !hidden.includes(name))
    result['properties'] = Object.fromEntries(shown)
    if (Array.isArray(result['required'])) result['required'] = (required as unknown[]).filter((name) => !hidden.includes(String(name)))
  }

  #hasMark(property: unknown, mark: string): boolean {
    if (!isJsonObject(property)) return false
    return property[mark] === true || (typeof property['$ref'] === 'string' && this.#document.resolve(property)[mark] === true)
  }

  /** In OpenAPI 3.0, exclusive bounds are flags. */
  #setBounds(schema: JsonObject, result: Record<string, unknown>): void {
    for (const [flag, bound] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const) {
      if (typeof schema[flag] !== 'boolean') continue
      delete result[flag]
      if (schema[flag] && result[bound] !== undefined) {
        result[flag] = result[bound]
        delete result[bound]
      }
    }
  }

  #setType({ type, nullable, enum: values }: JsonObject, result: Record<string, unknown>): void {
    const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string')
    const isNullable = this.#document.isVersion30 && nullable === true
    if (types.length > 0) {
      const admitsNull = (isNullable || this.#direction === 'output') && !types.includes('null')
      const all = admitsNull ? [...types, 'null'] : types
      result['type'] = all.length === 1 ? all[0] : all
      if (isNullable && Array.isArray(values) && result['enum'] !== undefined && !values.includes(null)) result['enum'] = [...values, null]
    } else if (isNullable && (result['allOf'] ?? result['anyOf'] ?? result['oneOf']) !== undefined) {
      const { allOf, anyOf, oneOf, ...others } = result
      const combined = { ...(allOf === undefined ? {} : { allOf }), ...(anyOf === undefined ? {} : { anyOf }), ...(oneOf === undefined ? {} : { oneOf }) }
      for (const keyword of Object.keys(combined)) delete result[keyword]
      Object.assign(result, others, { anyOf: [combined, { type: 'null' }] })
    }
  }
}

/** OpenAPI 3.0 writes keywords beside a reference as an `allOf` of one schema. */
function withoutWrapper(schema: Record<string, unknown>): JsonObject {
  const { allOf, ...own } = schema
  const [part, ...others] = Array.isArray(allOf) ? (allOf as JsonObject[]) : []
  const canMerge =
    part !== undefined && others.length === 0 && Object.keys(own).every((keyword) => keyword === 'description' || keyword === 'title' || !(keyword in part))
  return canMerge ? { ...part, ...own } : schema
}

/** A text with at most `length` characters. */
export const cut = (text: string, length: number): string =>
  text.length > length
    ? `${text
        .slice(0, length - 3)
        .toWellFormed()
        .trimEnd()}...`
    : text
