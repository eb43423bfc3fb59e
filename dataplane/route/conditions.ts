import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { ValueMatch } from '#gen/config/types.ts'
import { queryOf, type RequestHead } from '../http/message.ts'

/** A condition on the request. Never throws. */
export type Condition = (request: RequestHead) => boolean

/** Receives the text of each pattern error. Such a condition never matches. */
export type ReportError = (error: string) => void

type ValueTest = (value: string) => boolean

/** Compiles a pattern to a test of the full text; an invalid pattern never matches (traffic.md §7). */
export function compilePattern(pattern: string, report: ReportError): ValueTest {
  const regex = compileRegex(pattern)
  if (!isRegexError(regex)) return (text) => regex.test(text)
  report(`regular expression ${JSON.stringify(pattern)}: ${regex.error}`)
  return () => false
}

function compileValue({ type, value }: ValueMatch, report: ReportError): ValueTest {
  return type === 'Exact' ? (text) => text === value : compilePattern(value, report)
}

/** Matches if any single field line does; values are not split at commas. */
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

/** Matches if the last parameter of that name does. */
export function compileQueryCondition(match: ValueMatch, report: ReportError): Condition {
  const { name } = match
  const test = compileValue(match, report)
  return (request) => {
    const value = lastQueryValue(queryOf(request.target), name)
    return value !== undefined && test(value)
  }
}

/** Value of the last parameter of that name, form-decoded; undefined if there is none. */
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

/** Decodes percent sequences and `+`; keeps malformed sequences (URL standard, application/x-www-form-urlencoded). */
function decodeForm(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  return new URLSearchParams(`v=${text}`).get('v') ?? ''
}
