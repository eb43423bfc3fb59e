import type { RouteSummary } from '#api/management/routes.ts'

type Rule = RouteSummary['rules'][number]

/** A route and those of its rules that match a search. */
export interface Found {
  readonly route: RouteSummary
  readonly rules: readonly Rule[]
}

/**
 * The routes and rules that contain each word of a query. A word that begins with `/` also finds the rules whose path match accepts this path, and a host name
 * the routes with a wildcard for it; `shop.example/cart` is a host and a path.
 */
export function searchRoutes(routes: readonly RouteSummary[], query: string): Found[] {
  const words = query.toLowerCase().split(/\s+/).flatMap(splitWord)
  return routes.flatMap((route) => {
    const rules = route.rules.filter((rule) => words.every((word) => matchesRoute(route, word) || matchesRule(rule, word)))
    return rules.length > 0 ? [{ route, rules }] : []
  })
}

/** `https://host/path` as `host` and `/path`; other words as they are. */
function splitWord(word: string): string[] {
  const text = word.replace(/^https?:\/\//, '')
  const slash = text.indexOf('/')
  const isUrl = slash > 0 && text.slice(0, slash).includes('.')
  return (isUrl ? [text.slice(0, slash), text.slice(slash)] : [text]).filter(Boolean)
}

function matchesRoute({ key, hostnames, listeners }: RouteSummary, word: string): boolean {
  return [key, ...listeners, ...hostnames].some((text) => text.toLowerCase().includes(word)) || hostnames.some((name) => acceptsHost(name.toLowerCase(), word))
}

const acceptsHost = (hostname: string, word: string): boolean => hostname.startsWith('*.') && word.endsWith(hostname.slice(1))

function matchesRule({ name, matches, backends }: Rule, word: string): boolean {
  if ([name ?? '', ...matches.map(({ text }) => text), ...backends.map(({ key }) => key)].some((text) => text.toLowerCase().includes(word))) return true
  return word.startsWith('/') && matches.some(({ path }) => acceptsPath(path, word.replace(/\?.*$/, '')))
}

/** Regular expressions are not evaluated: a pattern of the config could take long. */
function acceptsPath({ type, value }: Rule['matches'][number]['path'], path: string): boolean {
  const wanted = value.toLowerCase()
  if (type === 'PathPrefix') return path === wanted || path.startsWith(wanted.endsWith('/') ? wanted : `${wanted}/`)
  return type === 'Exact' && path === wanted
}
