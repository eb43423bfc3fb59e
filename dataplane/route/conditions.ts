import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { ValueMatch } from '#gen/config/types.ts'
import { queryOf, type RequestHead } from '../http/message.ts'

/** A condition on the request; it never throws. */
export type Condition = (request: RequestHead) => boolean

/** `report` gets the text of each pattern error; such a condition never holds. */
export type ReportError = (error: string) => void

type ValueTest = (value: string) => boolean

/** Full match of a pattern; never true for an invalid one (traffic.md §7). */
export function compilePattern(pattern: string, report: ReportError): ValueTest {
  const regex = compileRegex(pattern)
  if (!isRegexError(regex)) return (text) => regex.test(text)
  report(`regular expression ${JSON.stringify(pattern)}: ${regex.error}`)
  return () => false
}

function compileValue({ type, value }: ValueMatch, report: ReportError): ValueTest {
  return type === 'Exact' ? (text) => text === value : compilePattern(value, report)
}

/** Of conditions with equal names the first counts (Gateway API). */
export function firstOfEachName(matches: readonly ValueMatch[] | undefined, normalize: (name: string) => string): ValueMatch[] {
  const byName = new Map<string, ValueMatch>()
  for (const match of matches ?? []) {
    const name = normalize(match.name)
    if (!byName.has(name)) byName.set(name, { ...match, name })
  }
  return [...byName.values()]
}

/** Any single field value may satisfy it; values are not split at commas. `name` is lower case. */
export function compileHeaderCondition(match: ValueMatch, report: ReportError): Condition {
  const { name } = match
  const test = compileValue(match, report)
  switch (name) {
    case ':method':
      return (request) => test(request.method)
    case ':path':
      return (request) => test(request.target)
    case ':scheme':
      return (request) => test(request.scheme)
    case ':authority':
    case 'host':
      return (request) => test(request.authority)
    default:
      return ({ headers: { raw } }) => {
        for (let i = 0; i < raw.length; i += 2) if (raw[i] === name && test(raw[i + 1] ?? '')) return true
        return false
      }
  }
}

export function compileQueryCondition(match: ValueMatch, report: ReportError): Condition {
  const { name } = match
  const test = compileValue(match, report)
  return (request) => {
    const value = lastQueryValue(queryOf(request.target), name)
    return value !== undefined && test(value)
  }
}

/** Value of the last parameter of that name, form-decoded; undefined when there is none. */
function lastQueryValue(query: string, name: string): string | undefined {
  for (let end = query.length; end > 0;) {
    const start = query.lastIndexOf('&', end - 1) + 1
    const equals = query.indexOf('=', start)
    const nameEnd = equals === -1 || equals > end ? end : equals
    if (nameEnd > start || nameEnd < end) {
      if (decodeForm(query.slice(start, nameEnd)) === name) return nameEnd === end ? '' : decodeForm(query.slice(nameEnd + 1, end))
    }
    end = start - 1
  }
  return undefined
}

/** Percent sequences and `+`; malformed sequences stay as they are (URL standard, application/x-www-form-urlencoded). */
function decodeForm(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  return new URLSearchParams(`v=${text}`).get('v') ?? ''
}
