import type { HeaderList } from '../../http/headers.ts'

/** The directives of `cache-control` (RFC 9111 §5.2) by name in lower case; '' without an argument. */
export type Directives = ReadonlyMap<string, string>

/** A directive, quoted or not, with the comma after it. */
const directive = /[ \t]*([!#$%&'*+.^_`|~\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?[ \t]*(?:,|$)/y
/** Directives beyond it are not read: their sender wants something unusual. */
const MAX_DIRECTIVES = 32
/** Delta-seconds beyond it count as this (RFC 9111 §1.2.2). */
const MAX_SECONDS = 2 ** 31

/** The directives of a message; undefined if they cannot be read. A directive that is repeated with another argument has the argument `repeated`. */
export function directivesOf(headers: HeaderList): Directives | undefined {
  const text = headers.getAll('cache-control').join(',')
  const directives = new Map<string, string>()
  let at = 0
  while (at < text.length) {
    if (text[at] === ',' || text[at] === ' ' || text[at] === '\t') {
      at++
      continue
    }
    directive.lastIndex = at
    const match = directive.exec(text)
    if (match === null || directives.size >= MAX_DIRECTIVES) return undefined
    const name = (match[1] ?? '').toLowerCase()
    const argument = match[2] ?? match[3] ?? ''
    directives.set(name, (directives.get(name) ?? argument) === argument ? argument : 'repeated')
    at = directive.lastIndex
  }
  return directives
}

/** The argument of a directive in seconds; 0 if it is invalid, undefined without the directive. */
export function secondsOf(directives: Directives, name: string): number | undefined {
  const text = directives.get(name)
  if (text === undefined) return undefined
  return /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) : 0
}

const imfFixdate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** Milliseconds since 1970 of an HTTP date (RFC 9110 §5.6.7, without the obsolete forms); undefined if it is none. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined || !imfFixdate.test(text)) return undefined
  const timeMs = Date.parse(text)
  return Number.isNaN(timeMs) ? undefined : timeMs
}
