import { firstOfEachName } from '#api/routing/match.ts'
import { normalizePrefix } from '#api/routing/path.ts'
import { ageOf } from '#api/routing/precedence.ts'
import type { PathMatch, Route, RouteMatch } from '#gen/config/types.ts'
import type { RequestHead } from '../http/message.ts'
import { compileHeaderCondition, compilePattern, compileQueryCondition, type Condition } from './conditions.ts'
import { everyPath } from './path.ts'

/** One match of a rule, compiled. */
export interface CompiledMatch {
  readonly path: PathMatch
  /** Key in the index: the path, the normalized prefix, or the pattern. */
  readonly key: string
  /** Set for regular expressions only. */
  readonly testPath: ((path: string) => boolean) | undefined
  readonly method: string | undefined
  readonly conditions: readonly Condition[]
  readonly headerCount: number
  readonly queryCount: number
}

/** A route message with its matches compiled. */
export interface CompiledRoute {
  readonly key: string
  readonly matches: readonly CompiledMatch[]
  /** Creation time in milliseconds since the epoch; Infinity, which sorts as the youngest, if unknown. */
  readonly createdAtMs: number
  readonly name: string
  readonly ruleIndex: number
  /** The rule of a GRPCRoute: its patterns are method matches without an exact service. */
  readonly isGrpc: boolean
  /** Messages about patterns that do not compile. Their matches never match. */
  readonly errors: readonly string[]
}

const compiled = new WeakMap<Route, CompiledRoute>()

/** Compiles the matches of a route message once: messages are immutable, so their identity is the cache key. */
export function compileRoute(route: Route): CompiledRoute {
  const known = compiled.get(route)
  if (known !== undefined) return known
  const errors: string[] = []
  const matches = route.matches === undefined || route.matches.length === 0 ? [{}] : route.matches
  const result: CompiledRoute = {
    key: route.key,
    matches: matches.map((match) => compileMatch(match, (error) => errors.push(error))),
    createdAtMs: ageOf(route.creationTimestamp),
    name: `${route.route.namespace}/${route.route.name}`,
    ruleIndex: route.route.ruleIndex,
    isGrpc: route.route.kind === 'GRPCRoute',
    errors,
  }
  compiled.set(route, result)
  return result
}

function compileMatch(match: RouteMatch, report: (error: string) => void): CompiledMatch {
  const path = match.path ?? everyPath
  const headers = firstOfEachName(match.headers, (name) => name.toLowerCase())
  const queryParams = firstOfEachName(match.queryParams, (name) => name)
  return {
    path,
    key: path.type === 'PathPrefix' ? normalizePrefix(path.value) : path.value,
    testPath: path.type === 'RegularExpression' ? compilePattern(path.value, report) : undefined,
    method: match.method,
    conditions: [...headers.map((header) => compileHeaderCondition(header, report)), ...queryParams.map((param) => compileQueryCondition(param, report))],
    headerCount: headers.length,
    queryCount: queryParams.length,
  }
}

/** Whether method, headers and query of a request satisfy a match. The index has already compared the path. */
export function satisfies(match: CompiledMatch, request: RequestHead): boolean {
  if (match.method !== undefined && match.method !== request.method) return false
  const { conditions } = match
  for (let i = 0; i < conditions.length; i++) if (!conditions[i]?.(request)) return false
  return true
}
