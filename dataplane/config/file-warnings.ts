import { anywhere, compile, formatDiagnostic, isParseError } from '#api/cel/index.ts'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import { findKeySetProblem } from '#api/credentials/keyset.ts'
import { compileRegex, isRegexError } from '#api/regex/index.ts'
import schema from '#gen/config/schema.json' with { type: 'json' }
import type { SchemaProblem } from './validate.ts'

type Path = SchemaProblem['path']
type Tell = (path: Path, text: string) => void

interface Node {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly additionalProperties?: Node | boolean
}

const definitions = schema.$defs as unknown as Readonly<Record<string, Node>>

/** What the operator would say in a status, by definition. */
const checks: Readonly<Record<string, (value: never, path: Path, tell: Tell) => void>> = {
  CELExpression: (text: string, path, tell) => {
    const result = compile(text, anywhere)
    if (isParseError(result)) tell(path, `${result.problems.map(formatDiagnostic).join('; ')}; it fails whenever it is evaluated`)
  },
  Regex: ({ matches = [] }: { matches?: string[] }, path, tell) => {
    for (const [index, pattern] of matches.entries()) {
      const regex = compileRegex(pattern)
      if (isRegexError(regex)) tell([...path, 'matches', index], `is not a regular expression of RE2 syntax: ${regex.error}; it rejects everything`)
    }
  },
  JWKS: ({ inline }: { inline?: string }, path, tell) => {
    const problem = inline === undefined ? undefined : findKeySetProblem(inline)
    if (problem !== undefined) tell([...path, 'inline'], `${problem}; all its tokens are refused`)
  },
  BasicAuthentication: ({ users = [] }: { users?: string[] }, path, tell) => {
    for (const [index, line] of users.entries()) {
      const user = readHtpasswdLine(line)
      if (user !== undefined && 'problem' in user) tell([...path, 'users', index], `${user.problem}; it is skipped`)
    }
  },
}

/**
 * What fits the schema and yet cannot work: expressions, patterns of guards, key sets and users of a file, which has no operator whose
 * statuses would tell. The file is used all the same, and fails where such a piece is needed. Patterns of routes are told of when they are
 * compiled, whatever they came from.
 */
export function findWarnings(definition: string, value: unknown): readonly SchemaProblem[] {
  const warnings: SchemaProblem[] = []
  const tell: Tell = (path, text) => warnings.push({ path, text })
  const walk = (node: Node, at: unknown, path: Path): void => {
    if (at === undefined || at === null) return
    if (node.$ref !== undefined) {
      const name = node.$ref.slice(node.$ref.lastIndexOf('/') + 1)
      checks[name]?.(at as never, path, tell)
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
  return warnings
}
