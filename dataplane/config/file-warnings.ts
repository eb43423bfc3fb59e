import schema from '#gen/config/schema.json' with { type: 'json' }
import type { SchemaProblem } from './validate.ts'

type Path = SchemaProblem['path']

interface Node {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}

/** Definitions with more to them than the schema says; `file-checks.ts` knows what. */
export const checkedDefinitions = ['CELExpression', 'Regex', 'JWKS', 'BasicAuthentication'] as const
export type CheckedDefinition = (typeof checkedDefinitions)[number]
const isChecked = (name: string): name is CheckedDefinition => checkedDefinitions.some((one) => one === name)

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/**
 * What fits the schema and yet cannot work: expressions, patterns of guards, key sets and users of a file, which has no operator whose
 * statuses would tell. The file is used all the same, and fails where such a piece is needed. Patterns of routes are told of when they are
 * compiled, whatever they came from.
 */
export async function findWarnings(definition: string, value: unknown): Promise<readonly SchemaProblem[]> {
  const suspects: { readonly name: CheckedDefinition; readonly at: unknown; readonly path: Path }[] = []
  const walk = (node: Node, at: unknown, path: Path): void => {
    if (at === undefined || at === null) return
    if (node.$ref !== undefined) {
      const name = node.$ref.slice(node.$ref.lastIndexOf('/') + 1)
      if (isChecked(name)) suspects.push({ name, at, path })
      return walk(definitions[name] ?? {}, at, path)
    }
    if (Array.isArray(at)) {
      if (node.items !== undefined) for (const [index, item] of at.entries()) walk(node.items, item, [...path, index])
    } else if (typeof at === 'object') {
      const others = typeof node.additionalProperties === 'object' ? node.additionalProperties : {}
      for (const [name, child] of Object.entries(at)) walk(node.properties?.[name] ?? others, child, [...path, name])
    }
  }
  walk({ $ref: definition }, value, [])
  if (suspects.length === 0) return []
  // Engines for expressions, patterns and tokens: most files need none, and loading them takes longer than reading such a file.
  const { checks } = await import('./file-checks.ts')
  const warnings: SchemaProblem[] = []
  for (const { name, at, path } of suspects) checks[name](at as never, path, (where, text) => warnings.push({ path: where, text }))
  return warnings
}
