import schema from '#gen/config/schema.json' with { type: 'json' }
import type { MaskedText, Placeholder } from './placeholders.ts'
import type { SchemaProblem } from '../validate.ts'

type Path = (string | number)[]

interface Node {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/** Returns the value of a placeholder in the string at a path. Throws an Error with a message of one line. */
export type Resolve = (placeholder: Placeholder, path: SchemaProblem['path']) => string

/** Fields of the short forms that the expansion parses or computes something from; none of them is a credential. */
const computedFields: ReadonlySet<unknown> = new Set(['url', 'listen', 'openapi', 'usd', 'model'])

/** Keeps placeholders as they are written, except where the expansion needs the value. */
export const keepPlaceholders = (resolve: Resolve): Resolve => {
  return (placeholder, path) => (isComputed(path) ? resolve(placeholder, path) : placeholder.text)
}

const isComputed = (path: SchemaProblem['path']): boolean =>
  computedFields.has(path.at(-1)) || path[0] === 'ledger' || (path[0] === 'mcp' && path[2] === 'rules')

/** A placeholder that has no value. */
interface UnresolvedPlaceholder {
  /** Position of the placeholder in the text of the file. */
  readonly offset: number
  readonly path: SchemaProblem['path']
  readonly text: string
}

/** A document with its placeholders replaced. */
export interface Substituted {
  readonly value: unknown
  readonly problems: readonly UnresolvedPlaceholder[]
  /** Paths of the strings that had placeholders, and those strings as written. With YAML aliases, a value has several paths. */
  sourceOf(path: SchemaProblem['path']): string | undefined
  /** Values of placeholders with the text of the placeholder. */
  readonly values: readonly (readonly [value: string, placeholder: string])[]
}

/**
 * Replaces the placeholders of a parsed document, which is of the definition `ConfigFile`. The result of a placeholder is text; where the schema has a number
 * or a boolean, text in that form is converted. Changes the document in place. `isSymbolic`: the result is
 * written to a config file again, so that `$${` stays.
 */
export function substitute(document: unknown, masked: MaskedText, resolve: Resolve, isSymbolic = false): Substituted {
  const substitution = new Substitution(masked, resolve, isSymbolic)
  const root = { document }
  substitution.step(root, 'document', { $ref: '#/$defs/ConfigFile' })
  return {
    value: root.document,
    problems: substitution.problems,
    values: [...substitution.values],
    sourceOf(path) {
      let parent: unknown = root
      let key: string | number = 'document'
      for (const part of path) {
        parent = memberOf(parent, key)
        key = part
      }
      return typeof parent === 'object' && parent !== null ? substitution.sources.get(parent)?.get(String(key)) : undefined
    },
  }
}

const memberOf = (value: unknown, key: string | number): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<string | number, unknown>)[key] : undefined

class Substitution {
  readonly problems: UnresolvedPlaceholder[] = []
  readonly sources = new Map<object, Map<string, string>>()
  readonly values = new Map<string, string>()
  readonly #masked: MaskedText
  readonly #resolve: Resolve
  readonly #isSymbolic: boolean
  readonly #path: Path = []
  /** With YAML aliases an object can have several parents. */
  readonly #visited = new Set<object>()

  constructor(masked: MaskedText, resolve: Resolve, isSymbolic: boolean) {
    this.#masked = masked
    this.#resolve = resolve
    this.#isSymbolic = isSymbolic
  }

  step(parent: object, key: string | number, node: Node): void {
    const value = memberOf(parent, key)
    const schemaNode = this.#dereference(node)
    if (typeof value === 'string') return this.#replace(parent, key, value, schemaNode)
    if (typeof value !== 'object' || value === null || this.#visited.has(value)) return
    this.#visited.add(value)
    if (Array.isArray(value)) for (const index of value.keys()) this.#descend(value, index, schemaNode.items ?? {})
    else this.#visitMembers(value, schemaNode)
  }

  #visitMembers(value: object, node: Node): void {
    const others = typeof node.additionalProperties === 'object' ? node.additionalProperties : {}
    for (const name of Object.keys(value)) {
      const parts = this.#masked.split(name)
      if (parts === undefined) {
        this.#descend(value, name, (node.properties && Object.hasOwn(node.properties, name) ? node.properties[name] : undefined) ?? others)
        continue
      }
      this.#rename(value, name, parts)
    }
  }

  /** Names of fields cannot be placeholders, but can contain `$${`. */
  #rename(value: object, name: string, parts: readonly (string | Placeholder)[]): void {
    const written = parts.map(textOf).join('')
    const fields = value as Record<string, unknown>
    for (const part of parts)
      if (typeof part !== 'string')
        this.problems.push({ offset: part.offset, path: [...this.#path], text: `${part.text} is the name of a field; placeholders are allowed in values only` })
    fields[written] = fields[name]
    delete fields[name]
    this.#descend(value, written, {})
  }

  #descend(parent: object, key: string | number, node: Node): void {
    this.#path.push(key)
    this.step(parent, key, node)
    this.#path.pop()
  }

  #replace(parent: object, key: string | number, value: string, node: Node): void {
    const parts = this.#masked.split(value)
    if (parts === undefined) return
    const text = parts.map((part) => (typeof part === 'string' ? this.#literal(part) : this.#valueOf(part))).join('')
    Reflect.set(parent, key, convert(text, node.type))
    if (parts.every((part) => typeof part === 'string')) return
    const sources = this.sources.get(parent) ?? new Map<string, string>()
    this.sources.set(parent, sources.set(String(key), parts.map(textOf).join('')))
  }

  #literal(part: string): string {
    return this.#isSymbolic && part === '${' ? '$${' : part
  }

  #valueOf(placeholder: Placeholder): string {
    try {
      const value = this.#resolve(placeholder, this.#path)
      if (value !== placeholder.text) this.values.set(value, placeholder.text)
      return value
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      this.problems.push({ offset: placeholder.offset, path: [...this.#path], text })
      return ''
    }
  }

  #dereference(node: Node): Node {
    return node.$ref === undefined ? node : (definitions[node.$ref.slice(node.$ref.lastIndexOf('/') + 1)] ?? {})
  }
}

const textOf = (part: string | Placeholder): string => (typeof part === 'string' ? part : part.text)

/** Text that is not in the form of the type stays text, which the validation rejects. */
function convert(text: string, type: string | undefined): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
  return text
}
