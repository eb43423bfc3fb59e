/** Text that every full match of a pattern begins with, as far as it is certain. */
export interface Literal {
  readonly text: string
  /** The pattern matches nothing but the text. */
  readonly isWhole: boolean
}

const NONE: Literal = { text: '', isWhole: false }

/** Reads the beginning of a pattern of RE2 syntax up to its first operator. */
export function literalOf(pattern: string): Literal {
  if (hasAlternatives(pattern)) return NONE
  const source = pattern.replace(/^\^/, '')
  let text = ''
  let at = 0
  for (; at < source.length; at++) {
    const [whole, escaped, plain] = /^(?:\\([^\w])|([^\\.+*?()|[\]{}^$]))/u.exec(source.slice(at)) ?? []
    if (whole === undefined) break
    // The last character may be optional or repeated.
    if (/^[?*+{]/.test(source.slice(at + whole.length))) return { text, isWhole: false }
    text += escaped ?? plain ?? ''
    at += whole.length - 1
  }
  return { text, isWhole: at === source.length || source.slice(at) === '$' }
}

/** Whether a pattern has an alternation outside of groups. True if that is not certain. */
function hasAlternatives(pattern: string): boolean {
  if (!pattern.includes('|')) return false
  // Of these, only `\Q` and nested classes such as `[[:alpha:]]` could hide a parenthesis or a bar.
  if (pattern.includes('\\Q') || pattern.includes('[:')) return true
  let depth = 0
  for (const [token] of pattern.matchAll(/\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^]/gsu)) {
    if (token === '(') depth++
    else if (token === ')') depth--
    else if (token === '|' && depth === 0) return true
  }
  return false
}
