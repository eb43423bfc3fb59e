import type { Route } from '#gen/config/types.ts'
import type { RequestHead } from '../http/message.ts'
import { compileRoute, satisfies, type CompiledMatch, type CompiledRoute } from './compile.ts'
import { effectiveHostnames, HostTable } from './hostnames.ts'
import { normalizeHost } from './listeners.ts'
import { matchablePath } from './path.ts'
import { comparePrecedence } from './precedence.ts'

/** What a request was matched by; the same object for every request, so keep state out of it. */
export interface MatchedRule<T> {
  readonly route: Route
  /** What the caller compiled the rule to. */
  readonly value: T
  /** The path condition that held: prefix rewriting and span names need it. */
  readonly match: CompiledMatch
  readonly rule: CompiledRoute
}

export interface RouteTable<T> {
  /** The rule that a request goes to; undefined: 404 `route not found`. */
  match(request: RequestHead): MatchedRule<T> | undefined
  /** What is wrong with patterns, one line each. */
  readonly errors: readonly string[]
}

interface Lookup {
  readonly request: RequestHead
  readonly path: string
}

/**
 * The rules that a listener accepted, as a table. Building it sorts and indexes, but compiles each route message only once in
 * its life: 5,000 routes take a few milliseconds after a change of one.
 */
export function compileRoutes<T>(routes: Iterable<{ readonly route: Route; readonly value: T }>, listenerHostname: string | undefined): RouteTable<T> {
  const levels = new HostTable<PathIndex<T>>()
  const errors: string[] = []
  for (const { route, value } of routes) {
    const rule = compileRoute(route)
    errors.push(...rule.errors.map((error) => `${route.key}: ${error}`))
    for (const hostname of effectiveHostnames(route.hostnames, listenerHostname)) {
      const level = levels.get(hostname) ?? new PathIndex<T>()
      levels.set(hostname, level)
      for (const match of rule.matches) level.add({ route, value, match, rule })
    }
  }
  for (const level of levels.values()) level.sort()
  return {
    errors,
    match: (request) => levels.find(normalizeHost(request.authority), findRule<T>, { request, path: matchablePath(request.target) }),
  }
}

function findRule<T>(level: PathIndex<T>, { request, path }: Lookup): MatchedRule<T> | undefined {
  return level.find(request, path)
}

/** The rules of one hostname: looked up, not scanned, except for regular expressions. */
class PathIndex<T> {
  readonly #exact = new Map<string, MatchedRule<T>[]>()
  readonly #prefixes = new Map<string, MatchedRule<T>[]>()
  /** Lengths of the prefixes, longest first: the cost of a long path is bounded by the configuration. */
  #prefixLengths: number[] = []
  readonly #patterns: MatchedRule<T>[] = []

  add(entry: MatchedRule<T>): void {
    const { key, path } = entry.match
    if (path.type === 'RegularExpression') this.#patterns.push(entry)
    else if (path.type === 'Exact') append(this.#exact, key, entry)
    else append(this.#prefixes, key, entry)
  }

  sort(): void {
    for (const index of [this.#exact, this.#prefixes]) for (const entries of index.values()) if (entries.length > 1) entries.sort(comparePrecedence)
    this.#patterns.sort(comparePrecedence)
    this.#prefixLengths = [...new Set([...this.#prefixes.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a)
  }

  find(request: RequestHead, path: string): MatchedRule<T> | undefined {
    return firstOf(this.#exact.get(path), request) ?? this.#findPrefix(request, path) ?? this.#findPattern(request, path)
  }

  #findPrefix(request: RequestHead, path: string): MatchedRule<T> | undefined {
    for (const length of this.#prefixLengths) {
      // A prefix ends where a segment does; '' is above everything.
      if (length > path.length || (length > 0 && length < path.length && path[length] !== '/')) continue
      const found = firstOf(this.#prefixes.get(path.slice(0, length)), request)
      if (found !== undefined) return found
    }
    return undefined
  }

  #findPattern(request: RequestHead, path: string): MatchedRule<T> | undefined {
    for (const entry of this.#patterns) if (satisfies(entry.match, request) && entry.match.testPath?.(path)) return entry
    return undefined
  }
}

function append<T>(index: Map<string, T[]>, key: string, entry: T): void {
  const entries = index.get(key)
  if (entries === undefined) index.set(key, [entry])
  else entries.push(entry)
}

function firstOf<T>(entries: readonly MatchedRule<T>[] | undefined, request: RequestHead): MatchedRule<T> | undefined {
  if (entries === undefined) return undefined
  for (const entry of entries) if (satisfies(entry.match, request)) return entry
  return undefined
}
