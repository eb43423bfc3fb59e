import { RE2JS } from 're2js'
import { compileRegex, isRegexError } from './index.ts'
import type { RegexError } from './index.ts'
import { toLinearPrefixSource } from './linear.ts'

export { isRegexError } from './index.ts'

/** A compiled pattern in RE2 syntax that matches anywhere in a text, in time linear in its length. */
export interface Search {
  readonly pattern: string
  /** Worst-case cost of a search per 256 characters of text, in units of about 0.2 microseconds. */
  readonly cost: number
  /** Whether a part of the text matches. */
  test(text: string): boolean
  /** Replaces the first match; `$1` and `${1}` are groups, `${name}` a named one, `$$` a dollar sign. */
  replaceFirst(text: string, replacement: string): string
}

const PLAIN = /^[A-Za-z0-9 _/:;,=@#%&"'<>~!-]*$/

/** Compiles the pattern of `matches` or `regexReplace`; the same limits and syntax as `compileRegex`. */
export function compileSearch(pattern: string): Search | RegexError {
  const checked = compileRegex(pattern)
  if (isRegexError(checked)) return checked
  const re2 = RE2JS.compile(pattern)
  const replaceFirst = (text: string, replacement: string): string => replaceMatch(re2, text, replacement)
  if (PLAIN.test(pattern)) return { pattern, cost: 1, test: (text) => text.includes(pattern), replaceFirst }
  const source = toLinearPrefixSource(pattern)
  if (source === undefined) return { pattern, cost: 16 + re2.programSize(), test: (text) => re2.test(text), replaceFirst }
  const native = new RegExp(source, 'u')
  return { pattern, cost: 8, test: (text) => native.test(text), replaceFirst }
}

function replaceMatch(re2: RE2JS, text: string, replacement: string): string {
  const matcher = re2.matcher(text)
  if (!matcher.find()) return text
  const put = replacement.replace(/\$(?:(\$)|(\d+)|\{(\w+)\})/g, (_, dollar: string | undefined, number: string | undefined, name: string | undefined) => {
    if (dollar) return '$'
    const key = number ?? name ?? ''
    const group = /^\d+$/.test(key) ? Number(key) : findGroup(re2, key)
    // A group that does not exist is empty, as in RE2.
    return group === undefined || group > matcher.groupCount() ? '' : (matcher.group(group) ?? '')
  })
  return text.slice(0, matcher.start()) + put + text.slice(matcher.end())
}

function findGroup(re2: RE2JS, name: string): number | undefined {
  const groups: Readonly<Record<string, number>> = re2.namedGroups()
  return Object.hasOwn(groups, name) ? groups[name] : undefined
}
