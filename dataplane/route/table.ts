import type { Route } from '#gen/config/types.ts'
import type { RequestHead } from '../http/message.ts'
import { runAtOnce, type Sliced } from '../runtime/slices.ts'
import { compileRoute, satisfies, type CompiledMatch, type CompiledRoute } from './compile.ts'
import { effectiveHostnames, HostTable } from './hostnames.ts'
import { normalizeHost } from './listeners.ts'
import { matchablePath } from './path.ts'
import { comparePrecedence } from './precedence.ts'

/** What a request was matched by; the same object for every request, so keep state out of it. */
export interface MatchedRule {
  readonly route: Route
  /** The path condition that held: prefix rewriting and span names need it. */
  readonly match: CompiledMatch
  readonly rule: CompiledRoute
}

export interface RouteTable {
  /** The rule that a request goes to; undefined: 404 `route not found`. */
  match(request: RequestHead): MatchedRule | undefined
  /** What is wrong with patterns, one line each. */
  readonly errors: readonly string[]
}

interface Lookup {
  readonly request: RequestHead
  readonly path: string
}

export function compileRoutes(routes: Iterable<Route>, listenerHostname: string | undefined): RouteTable {
  return runAtOnce(compileRoutesSliced(routes, listenerHostname))
}

/** How many routes are indexed before something else may come in between. */
const STEP = 64

/**
 * The rules that a listener accepted, as a table. Building it sorts and indexes, but compiles each route message only once in
 * its life: 5,000 routes take a few milliseconds after a change of one.
 */
export function* compileRoutesSliced(routes: Iterable<Route>, listenerHostname: string | undefined): Sliced<RouteTable> {
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

/** The rules of one hostname: looked up, not scanned, except for regular expressions. */
class PathIndex {
  readonly #exact = new Map<string, MatchedRule[]>()
  readonly #prefixes = new Map<string, MatchedRule[]>()
  /** Keys of more than one entry: what there is to sort. */
  readonly #shared = new Set<MatchedRule[]>()
  /** Lengths of the prefixes, longest first: the cost of a long path is bounded by the configuration. */
  #prefixLengths: number[] = []
  readonly #patterns: MatchedRule[] = []

  add(entry: MatchedRule): void {
    const { key, path } = entry.match
    if (path.type === 'RegularExpression') this.#patterns.push(entry)
    else if (path.type === 'Exact') this.#append(this.#exact, key, entry)
    else {
      this.#append(this.#prefixes, key, entry)
      if (!this.#prefixLengths.includes(key.length)) this.#prefixLengths.push(key.length)
    }
  }

  sort(): void {
    for (const entries of this.#shared) entries.sort(comparePrecedence)
    this.#shared.clear()
    this.#patterns.sort(comparePrecedence)
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
    return firstOf(this.#exact.get(path), request) ?? this.#findPrefix(request, path) ?? this.#findPattern(request, path)
  }

  #findPrefix(request: RequestHead, path: string): MatchedRule | undefined {
    for (const length of this.#prefixLengths) {
      // A prefix ends where a segment does; '' is above everything.
      if (length > path.length || (length > 0 && length < path.length && path[length] !== '/')) continue
      const found = firstOf(this.#prefixes.get(path.slice(0, length)), request)
      if (found !== undefined) return found
    }
    return undefined
  }

  #findPattern(request: RequestHead, path: string): MatchedRule | undefined {
    for (const entry of this.#patterns) if (satisfies(entry.match, request) && entry.match.testPath?.(path)) return entry
    return undefined
  }
}

function firstOf(entries: readonly MatchedRule[] | undefined, request: RequestHead): MatchedRule | undefined {
  if (entries === undefined) return undefined
  for (const entry of entries) if (satisfies(entry.match, request)) return entry
  return undefined
}
