import type { Path } from './text.ts'

/** What a value is for. */
export type EditSection = 'keys' | 'budgets' | 'models' | 'guards' | 'tools'

/** Fields that the console may change; `*` is any key or entry. Everything else of a file is changed in the file. */
const editable: readonly (readonly [section: EditSection, pattern: string])[] = [
  ['keys', 'secrets.*.data.*'],
  ['budgets', 'llm.policies.budgets'],
  ['budgets', 'mcp.policies.budgets'],
  ['budgets', 'binds.*.listeners.*.policies.budgets'],
  ['budgets', 'binds.*.listeners.*.routes.*.policies.budgets'],
  ['budgets', 'policies.*.traffic.budgets'],
  ['models', 'llm.models.*.to'],
  ['models', 'llm.models.*.rules'],
  ['models', 'llm.models.*.fallback'],
  ['models', 'backends.*.ai.models'],
  ['guards', 'llm.models.*.policies.ai.promptGuard'],
  ['guards', 'backends.*.policies.ai.promptGuard'],
  ['guards', 'policies.*.backend.ai.promptGuard'],
  ['tools', 'mcp.*.tools'],
  ['tools', 'mcp.*.policies.mcp.authorization'],
  ['tools', 'backends.*.mcp.targets.*.tools'],
  ['tools', 'backends.*.policies.mcp.authorization'],
  ['tools', 'policies.*.backend.mcp.authorization'],
]

const patterns = editable.map(([section, pattern]) => ({ section, parts: pattern.split('.') }))

/** A field of a file that may be changed. */
export interface EditableField {
  readonly section: EditSection
  readonly path: Path
}

/** The section of a path; undefined: the console may not change it. */
export function sectionOf(path: Path): EditSection | undefined {
  if (path.includes('__proto__')) return undefined
  return patterns.find(({ parts }) => parts.length === path.length && parts.every((part, index) => part === '*' || part === path[index]))?.section
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The fields that a file has, and those that it could have. Keys are listed elsewhere. */
export function listEditable(file: unknown): EditableField[] {
  return patterns.filter(({ section }) => section !== 'keys').flatMap(({ section, parts }) => expand(file, parts, []).map((path) => ({ section, path })))
}

function expand(at: unknown, [part, ...rest]: readonly string[], before: Path): Path[] {
  if (part === undefined) return [before]
  if (part === '*') {
    const entries: (readonly [string | number, unknown])[] = Array.isArray(at) ? [...at.entries()] : isObject(at) ? Object.entries(at) : []
    return entries.flatMap(([name, value]) =>
      name !== '__proto__' && isObject(value) && mayHave(value, rest, before) ? expand(value, rest, [...before, name]) : [],
    )
  }
  if (!isObject(at)) return []
  if (Object.hasOwn(at, part)) return expand(at[part], rest, [...before, part])
  // A section that the file lacks is not offered, nor are lists of others.
  return before.length === 0 || rest.includes('*') ? [] : [[...before, part, ...rest]]
}

/** Whether an object can have a field: models with targets have rules, an LLM backend has guards, and a policy has one section. */
function mayHave(value: Readonly<Record<string, unknown>>, [first = '', second = '']: readonly string[], [section]: Path): boolean {
  // Servers of the short form are beside its settings.
  if (section === 'mcp') return 'url' in value || 'command' in value || 'openapi' in value
  if (section === 'backends') return (first === 'policies' ? second : first) in value
  if (section === 'policies') return first in value
  return first === 'policies' || first === 'listeners' || first === 'routes' || first === 'data' || 'to' in value || 'rules' in value
}
