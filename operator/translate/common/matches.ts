import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { RouteMatch, ValueMatch as ValueMatchMessage } from '#gen/config/types.ts'
import type { GRPCRouteMatch, HTTPRouteMatch, ValueMatch } from '../../source/gateway-api.ts'

/** Matches of a rule; `problems` name those that the data plane cannot carry out. */
export interface CompiledMatches {
  readonly matches: readonly RouteMatch[]
  readonly problems: readonly string[]
}

/** Problems by pattern: compiling is expensive, and the same few patterns recur. */
const knownPatterns = new Map<string, string | undefined>()
const MAX_KNOWN_PATTERNS = 10_000

/** Why the data plane cannot compile a pattern, or undefined. */
export function checkPattern(text: string): string | undefined {
  if (!knownPatterns.has(text)) {
    const result = compileRegex(text)
    if (knownPatterns.size >= MAX_KNOWN_PATTERNS) knownPatterns.clear()
    knownPatterns.set(text, isRegexError(result) ? result.error : undefined)
  }
  return knownPatterns.get(text)
}

type Problems = string[]

function checkType(field: string, type: string, value: string, types: readonly string[], problems: Problems): void {
  if (!types.includes(type)) problems.push(`${field} match type ${type} is not supported; use ${types.join(', ')}`)
  else if (type === 'RegularExpression') {
    const error = checkPattern(value)
    if (error !== undefined) problems.push(`${field} pattern "${value}" is not a valid RE2 expression: ${error}`)
  }
}

/** Converts header or query matches. The first of several for one name is used (Gateway API). */
function valueMatches(field: string, list: readonly ValueMatch[], toKey: (name: string) => string, problems: Problems): ValueMatchMessage[] {
  const byName = new Map<string, ValueMatchMessage>()
  for (const { name, type, value } of list) {
    checkType(field, type, value, ['Exact', 'RegularExpression'], problems)
    const key = toKey(name)
    if (!byName.has(key)) byName.set(key, { name: key, type: type as ValueMatchMessage['type'], value })
  }
  return [...byName.values()]
}

const lower = (name: string): string => name.toLowerCase()
const same = (name: string): string => name

export function compileHttpMatches(list: readonly HTTPRouteMatch[]): CompiledMatches {
  const problems: Problems = []
  const matches = list.map(({ path, headers = [], queryParams = [], method }): RouteMatch => {
    if (path) checkType('path', path.type, path.value, ['Exact', 'PathPrefix', 'RegularExpression'], problems)
    return {
      ...(path ? { path: { type: path.type as NonNullable<RouteMatch['path']>['type'], value: path.value } } : {}),
      ...(headers.length > 0 ? { headers: valueMatches('header', headers, lower, problems) } : {}),
      ...(queryParams.length > 0 ? { queryParams: valueMatches('query parameter', queryParams, same, problems) } : {}),
      ...(method === undefined ? {} : { method }),
    }
  })
  return { matches, problems }
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** gRPC methods are paths: `/<service>/<method>` (traffic.md §7, D7). */
function grpcPath({ type, service, method }: NonNullable<GRPCRouteMatch['method']>): RouteMatch['path'] {
  if (type === 'RegularExpression')
    return { type: 'RegularExpression', value: `/${service ? `(?:${service})` : '[^/]+'}/${method ? `(?:${method})` : '[^/]+'}` }
  if (service && method) return { type: 'Exact', value: `/${service}/${method}` }
  return service ? { type: 'PathPrefix', value: `/${service}/` } : { type: 'RegularExpression', value: `/[^/]+/${escape(method ?? '')}` }
}

export function compileGrpcMatches(list: readonly GRPCRouteMatch[]): CompiledMatches {
  const problems: Problems = []
  const matches = list.map(({ method, headers = [] }): RouteMatch => {
    const path = method && (method.service || method.method) ? grpcPath(method) : undefined
    if (method && !['Exact', 'RegularExpression'].includes(method.type))
      problems.push(`method match type ${method.type} is not supported; use Exact, RegularExpression`)
    if (path?.type === 'RegularExpression') checkType('method', path.type, path.value, ['RegularExpression'], problems)
    return { ...(path ? { path } : {}), ...(headers.length > 0 ? { headers: valueMatches('header', headers, lower, problems) } : {}) }
  })
  return { matches, problems }
}
