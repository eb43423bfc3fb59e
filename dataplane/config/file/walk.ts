import schema from '#gen/config/schema.json' with { type: 'json' }
import type { SchemaProblem } from '../validate.ts'

interface Node {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/**
 * Calls `visit` for each part of a valid value that has a definition of its own in gen/config/schema.json.
 *
 * @param visit gets the name of the definition, the part and its path. The path changes afterwards: copy it.
 */
export function walkDefinitions(definition: string, value: unknown, visit: (name: string, at: unknown, path: SchemaProblem['path']) => void): void {
  // One path array for the entire walk, because most files are large and few parts are of interest.
  const path: (string | number)[] = []
  const walk = (node: Node, at: unknown): void => {
    if (at === undefined || at === null) return
    if (node.$ref !== undefined) {
      const name = node.$ref.slice(node.$ref.lastIndexOf('/') + 1)
      visit(name, at, path)
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
}
