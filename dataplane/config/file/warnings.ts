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

/** Matches of most routes have no regular expression: for them the checks are not loaded. */
const isSuspect = (at: unknown): boolean => typeof at !== 'object' || at === null || !('type' in at) || at.type === 'RegularExpression'

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/**
 * Finds values that fit the schema but cannot work: expressions, patterns of guards, key sets and users. With an operator these
 * appear in statuses; a file has none. The file is used anyway, and requests fail where such a value is needed.
 */
export async function findWarnings(definition: string, value: unknown): Promise<readonly SchemaProblem[]> {
  const suspects: { readonly name: CheckedDefinition; readonly at: unknown; readonly path: Path }[] = []
  // One path array for the entire walk, because most files are large and have no warnings.
  const path: (string | number)[] = []
  const walk = (node: Node, at: unknown): void => {
    if (at === undefined || at === null) return
    if (node.$ref !== undefined) {
      const name = node.$ref.slice(node.$ref.lastIndexOf('/') + 1)
      if (isChecked(name) && isSuspect(at)) suspects.push({ name, at, path: [...path] })
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
  // Loaded on demand: most files need no engine for expressions, patterns or tokens, and loading them takes longer than the file.
  const { checks } = await import('./checks.ts')
  const warnings: SchemaProblem[] = []
  for (const suspect of suspects) checks[suspect.name](suspect.at as never, suspect.path, (where, text) => warnings.push({ path: where, text, code: 'PX3010' }))
  return warnings
}
