import type { McpView } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { pathOf } from '../../../http/message.ts'
import { compilePatterns } from '../tools/pattern.ts'

/** Selects the requests of one view of a backend (mcp.md §4.10). */
export interface ViewMatch {
  /** Longer prefixes, then longer names of hosts, are stronger. */
  readonly path: string
  readonly hostname: string
}

/** The part of a backend that a view shows. */
export interface ViewSelection {
  offersTarget(name: string): boolean
  /** Whether the view has a tool, by its name for clients, with prefix, before `toolNames`; undefined: all tools. */
  readonly offersTool: ((name: string) => boolean) | undefined
}

export function compileSelection({ targets, tools }: McpView): ViewSelection {
  const includes = tools?.include === undefined ? () => true : compilePatterns(tools.include)
  const excludes = compilePatterns(tools?.exclude ?? [])
  return {
    offersTarget: targets === undefined ? () => true : compilePatterns(targets),
    offersTool: tools === undefined ? undefined : (name) => includes(name) && !excludes(name),
  }
}

export const compileMatch = ({ path = '/', hostname = '' }: McpView): ViewMatch => ({
  path: path === '/' ? '' : path.endsWith('/') ? path.slice(0, -1) : path,
  hostname: hostname.toLowerCase(),
})

/** The most specific of the views that match a request. */
export function findView<View extends { readonly match: ViewMatch }>(views: readonly View[], exchange: Exchange): View | undefined {
  const path = pathOf(exchange.request.target)
  const host = hostOf(exchange.receivedAuthority ?? '')
  let best: View | undefined
  for (const view of views) {
    const { match } = view
    if (!(path === match.path || path.startsWith(`${match.path}/`)) || !matchesHost(match.hostname, host)) continue
    if (best === undefined || isStronger(match, best.match)) best = view
  }
  return best
}

/** The host without port, in lower case. */
function hostOf(authority: string): string {
  const port = /:\d*$/.exec(authority)
  return (port === null ? authority : authority.slice(0, port.index)).toLowerCase()
}

function matchesHost(pattern: string, host: string): boolean {
  if (pattern === '') return true
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1 : host === pattern
}

/** Exact hosts before wildcards, and these before none; then the longer path. */
function isStronger(a: ViewMatch, b: ViewMatch): boolean {
  const rank = ({ hostname }: ViewMatch): number => (hostname === '' ? 0 : hostname.startsWith('*.') ? hostname.length : 1000 + hostname.length)
  return rank(a) === rank(b) ? a.path.length > b.path.length : rank(a) > rank(b)
}
