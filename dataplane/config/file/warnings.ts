import type { SchemaProblem } from '../validate.ts'
import { checkedDefinitions, type CheckedDefinition } from './checks.ts'
import { walkDefinitions } from './walk.ts'

type Path = SchemaProblem['path']

const isChecked = (name: string): name is CheckedDefinition => checkedDefinitions.some((one) => one === name)

/** Matches of most routes have no regular expression, and most files no secrets: for them the checks are not loaded. */
const isSuspect = (name: CheckedDefinition, at: unknown): boolean => {
  if (typeof at !== 'object' || at === null) return true
  return name === 'ConfigFile' ? 'secrets' in at : !('type' in at) || at.type === 'RegularExpression'
}

/**
 * Finds values that fit the schema but cannot work: expressions, patterns of guards, key sets, users, API keys and budgets. With an operator these
 * appear in statuses; a file has none. The file is used anyway, and requests fail where such a value is needed.
 */
export async function findWarnings(definition: string, value: unknown): Promise<readonly SchemaProblem[]> {
  const suspects: { readonly name: CheckedDefinition; readonly at: unknown; readonly path: Path }[] = []
  walkDefinitions(definition, value, (name, at, path) => {
    if (isChecked(name) && isSuspect(name, at)) suspects.push({ name, at, path: [...path] })
  })
  if (suspects.length === 0) return []
  // Loaded on demand: most files need no engine for expressions, patterns or tokens, and loading them takes longer than the file.
  const { checks } = await import('./checks.ts')
  const warnings: SchemaProblem[] = []
  for (const suspect of suspects) checks[suspect.name](suspect.at as never, suspect.path, (where, text) => warnings.push({ path: where, text, code: 'PX3010' }))
  return warnings
}
