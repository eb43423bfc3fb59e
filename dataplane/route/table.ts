import { effectiveHostnames } from '#api/routing/hostnames.ts'
import { comparePrecedence } from '#api/routing/precedence.ts'
import type { Route } from '#gen/config/types.ts'
import type { RequestHead } from '../http/message.ts'
import { runSync, type Cooperative } from '../runtime/cooperative.ts'
import { compileRoute, satisfies, type CompiledMatch, type CompiledRoute } from './compile.ts'
import { HostTable } from './hostnames.ts'
import { normalizeHost } from './listeners.ts'
import { matchablePath } from './path.ts'

/** The rule and match of a request. All requests share the object: it must not hold state. */
interface MatchedRule {
  readonly route: Route
  /** The path condition that matched, for prefix rewriting and span names. */
  readonly match: CompiledMatch
  readonly rule: CompiledRoute
}

/** The rules of one listener, indexed by hostname and path. */
export interface RouteTable {
  /** The rule of a request; undefined: 404 `route not found`. */
  match(request: RequestHead): MatchedRule | undefined
  /** Messages about invalid patterns, one line each. */
  readonly errors: readonly string[]
}

interface Lookup {
  readonly request: RequestHead
  readonly path: string
}

/** Builds the table synchronously, see `compileRoutesInSteps`. */
export function compileRoutes(routes: Iterable<Route>, listenerHostname: string | undefined): RouteTable {
  return runSync(compileRoutesInSteps(routes, listenerHostname))
}

/** Number of routes that are indexed per step. */
const STEP = 64

/**
 * Builds the table of the rules that a listener accepted. It sorts and indexes all routes, but compiles only new messages:
 * after a change of one, 5,000 routes take a few milliseconds.
 */
export function* compileRoutesInSteps(routes: Iterable<Route>, listenerHostname: string | undefined): Cooperative<RouteTable> {
  const levels = new HostTable<PathIndex>()
  const errors: string[] = []
  let count = 0
  for (const route of routes) {
    const rule = compileRoute(route)
    for (const error of rule.errors) errors.push(`${route.key}: ${error}`)
    for (const hostname of effectiveHostnames(route.hostnames, listenerHostname)) {
      const level = levels.get(hostname) ?? new PathIndex()
      levels.set(hostname, level)
      for (const match of rule.matches) level.add({ route, match, rule })
    }
    if (++count % STEP === 0) yield
  }
  for (const level of levels.values()) {
    level.sort()
    yield
  }
  return { errors, match: (request) => levels.find(normalizeHost(request.authority), findRule, { request, path: matchablePath(request.target) }) }
}

function findRule(level: PathIndex, { request, path }: Lookup): MatchedRule | undefined {
  return level.find(request, path)
}

/** The rules of one hostname, by path. Only regular expressions are scanned. */
class PathIndex {
  readonly #exact = new Map<string, MatchedRule[]>()
  readonly #prefixes = new Map<string, MatchedRule[]>()
  /** Lists with more than one entry, which have to be sorted. */
  readonly #shared = new Set<MatchedRule[]>()
  /** Distinct lengths of the prefixes other than `/`, longest first: the configuration bounds the cost of a long path. */
  #prefixLengths: number[] = []
  readonly #patterns: MatchedRule[] = []
  /** Patterns of GRPCRoutes, which precede the prefix of every path. */
  readonly #methods: MatchedRule[] = []

  add(entry: MatchedRule): void {
    const { key, path } = entry.match
    if (path.type === 'RegularExpression') (entry.rule.isGrpc ? this.#methods : this.#patterns).push(entry)
    else if (path.type === 'Exact') this.#append(this.#exact, key, entry)
    else {
      this.#append(this.#prefixes, key, entry)
      if (key !== '' && !this.#prefixLengths.includes(key.length)) this.#prefixLengths.push(key.length)
    }
  }

  sort(): void {
    for (const entries of this.#shared) entries.sort(comparePrecedence)
    this.#shared.clear()
    this.#patterns.sort(comparePrecedence)
    this.#methods.sort(comparePrecedence)
    this.#prefixLengths.sort((a, b) => b - a)
  }

  #append(index: Map<string, MatchedRule[]>, key: string, entry: MatchedRule): void {
    const entries = index.get(key)
    if (entries === undefined) {
      index.set(key, [entry])
      return
    }
    entries.push(entry)
    this.#shared.add(entries)
  }

  find(request: RequestHead, path: string): MatchedRule | undefined {
    return (
      firstOf(this.#exact.get(path), request) ??
      this.#findPrefix(request, path) ??
      findPattern(this.#methods, request, path) ??
      firstOf(this.#prefixes.get(''), request) ??
      findPattern(this.#patterns, request, path)
    )
  }

  #findPrefix(request: RequestHead, path: string): MatchedRule | undefined {
    for (const length of this.#prefixLengths) {
      // A prefix ends at the end of a segment.
      if (length > path.length || (length < path.length && path[length] !== '/')) continue
      const found = firstOf(this.#prefixes.get(path.slice(0, length)), request)
      if (found !== undefined) return found
    }
    return undefined
  }
}

function findPattern(entries: readonly MatchedRule[], request: RequestHead, path: string): MatchedRule | undefined {
  for (const entry of entries) if (satisfies(entry.match, request) && entry.match.testPath?.(path)) return entry
  return undefined
}

function firstOf(entries: readonly MatchedRule[] | undefined, request: RequestHead): MatchedRule | undefined {
  if (entries === undefined) return undefined
  for (const entry of entries) if (satisfies(entry.match, request)) return entry
  return undefined
}
