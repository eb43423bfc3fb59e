import schema from '#gen/config/schema.json' with { type: 'json' }
import type { SchemaProblem } from '../validate.ts'
import { checkedDefinitions, type CheckedDefinition } from './checks.ts'

type Path = SchemaProblem['path']

interface Node {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}

const isChecked = (name: string): name is CheckedDefinition => checkedDefinitions.some((one) => one === name)

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/**
 * What fits the schema and yet cannot work: expressions, patterns of guards, key sets and users of a file, which has no operator whose
 * statuses would tell. The file is used all the same, and fails where such a piece is needed. Patterns of routes are told of when they are
 * compiled, whatever they came from.
 */
export async function findWarnings(definition: string, value: unknown): Promise<readonly SchemaProblem[]> {
  const suspects: { readonly name: CheckedDefinition; readonly at: unknown; readonly path: Path }[] = []
  // One path for the whole walk: most files are large and hold nothing to be told of.
  const path: (string | number)[] = []
  const walk = (node: Node, at: unknown): void => {
    if (at === undefined || at === null) return
    if (node.$ref !== undefined) {
      const name = node.$ref.slice(node.$ref.lastIndexOf('/') + 1)
      if (isChecked(name)) suspects.push({ name, at, path: [...path] })
      return walk(definitions[name] ?? {}, at)
    }
    if (Array.isArray(at)) {
      if (node.items === undefined) return
      for (let index = 0; index < at.length; index++) step(index, node.items, at[index])
    } else if (typeof at === 'object') {
      const others = typeof node.additionalProperties === 'object' ? node.additionalProperties : {}
      for (const [name, child] of Object.entries(at)) step(name, node.properties?.[name] ?? others, child)
    }
  }
  const step = (part: string | number, node: Node, at: unknown): void => {
    path.push(part)
    walk(node, at)
    path.pop()
  }
  walk({ $ref: definition }, value)
  if (suspects.length === 0) return []
  // Engines for expressions, patterns and tokens: most files need none, and loading them takes longer than reading such a file.
  const { checks } = await import('./checks.ts')
  const warnings: SchemaProblem[] = []
  for (const suspect of suspects) checks[suspect.name](suspect.at as never, suspect.path, (where, text) => warnings.push({ path: where, text }))
  return warnings
}
