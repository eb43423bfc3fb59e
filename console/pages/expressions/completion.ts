import type { ExpressionCatalog } from '#api/management/expressions.ts'

/** A variable or function that can be inserted. */
export interface Entry {
  /** What is written in the expression. */
  readonly text: string
  readonly label: string
  readonly type: string
  readonly description: string
}

/** The entries of the catalog that a phase has. */
export function listEntries({ variables, functions }: ExpressionCatalog, phase: string): Entry[] {
  return [
    ...variables
      .filter(({ phases }) => phases.some((name) => name === phase))
      .map(({ name, type, description }) => ({ text: name.replace(/<.*>$/, ''), label: name, type, description })),
    ...functions.map(({ name, isMethod, signature, description }) => ({
      text: `${isMethod ? '.' : ''}${name}(`,
      label: signature,
      type: isMethod ? 'method' : 'function',
      description,
    })),
  ]
}

/** The word before the cursor with the entries that complete it. */
export function complete(entries: readonly Entry[], before: string): { word: string; found: Entry[] } {
  const [path = ''] = /[A-Za-z_][\w.]*$/.exec(before) ?? []
  const [member = ''] = /\.\w*$/.exec(before) ?? []
  const variable = entries.filter(({ text }) => path !== '' && text.startsWith(path) && text !== path)
  if (variable.length > 0) return { word: path, found: variable.slice(0, 8) }
  const methods = entries.filter(({ text }) => member !== '' && text.startsWith(member))
  return { word: member, found: methods.slice(0, 8) }
}
