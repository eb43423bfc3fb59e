import type { Precedence } from '#api/management/routes.ts'
import { effectiveHostnames, matchesHostname } from '#api/routing/hostnames.ts'
import { comparePrecedence } from '#api/routing/precedence.ts'
import type { Listener, Route } from '#gen/config/types.ts'
import { compileRoute, type CompiledMatch, type CompiledRoute } from '../../route/compile.ts'
import { Slice } from '../../runtime/cooperative.ts'
import { describeMatch } from './matches.ts'

const MAX_RIVALS = 20

interface Entry {
  readonly route: Route
  readonly rule: CompiledRoute
  readonly match: CompiledMatch
  /** Text of the match, and what it was compiled from. */
  readonly index: number
  readonly hostname: string
}

/** The place of each match of a rule among the matches of a listener, and the matches that win over it. */
export async function explainPrecedence(listener: Listener, routes: readonly Route[], own: Route): Promise<Precedence[]> {
  const slice = new Slice()
  const entries: Entry[] = []
  for (const route of routes) {
    if (slice.isOver) await slice.next()
    entries.push(...entriesOf(route, listener.hostname))
  }
  const found: Precedence[] = []
  for (const entry of entriesOf(own, listener.hostname)) {
    let [position, of] = [1, 0]
    const before: Entry[] = []
    const narrower: Entry[] = []
    for (const rival of entries) {
      if (slice.isOver) await slice.next()
      const isSibling = rival.hostname === entry.hostname
      if (isSibling) of++
      const isBefore = isSibling && compareEntries(rival, entry) < 0
      if (isBefore) position++
      if (isBefore && mayOverlap(rival, entry)) before.push(rival)
      else if (!isSibling && isNarrower(rival.hostname, entry.hostname) && mayOverlap(rival, entry)) narrower.push(rival)
    }
    before.sort(compareEntries)
    narrower.sort((a, b) => b.hostname.length - a.hostname.length || compareEntries(a, b))
    found.push({
      listener: listener.key,
      hostname: entry.hostname === '' ? null : entry.hostname,
      match: describeMatch(own.matches?.[entry.index] ?? {}),
      position,
      of,
      rivals: [...narrower, ...before].slice(0, MAX_RIVALS).map((rival) => ({
        route: `${rival.route.route.kind} ${rival.rule.name}`,
        ruleIndex: rival.rule.ruleIndex,
        match: describeMatch(rival.route.matches?.[rival.index] ?? {}),
        reason: explainWin(rival, entry),
      })),
    })
  }
  return found
}

/** As the route table sorts them; matches of one rule that are equal keep their order. */
const compareEntries = (a: Entry, b: Entry): number => comparePrecedence(a, b) || a.index - b.index

function entriesOf(route: Route, listenerHostname: string | undefined): Entry[] {
  const rule = compileRoute(route)
  return effectiveHostnames(route.hostnames, listenerHostname).flatMap((hostname) =>
    rule.matches.map((match, index) => ({ route, rule, match, index, hostname })),
  )
}

/** Whether a hostname is tried before another one, for some hosts of that one. */
function isNarrower(hostname: string, than: string): boolean {
  if (hostname === than || hostname === '') return false
  if (than === '') return true
  return matchesHostname(than, hostname.startsWith('*.') ? `x${hostname.slice(1)}` : hostname)
}

/** False if no request satisfies both matches. Regular expressions may match anything. */
function mayOverlap({ match: a, route: routeA, index: indexA }: Entry, { match: b, route: routeB, index: indexB }: Entry): boolean {
  if (a.method !== undefined && b.method !== undefined && a.method !== b.method) return false
  if (!pathsOverlap(a, b)) return false
  const exact = (list: readonly { readonly name: string; readonly value: string; readonly type?: string }[] = []): Map<string, string> =>
    new Map(list.flatMap(({ name, value, type = 'Exact' }) => (type === 'Exact' ? [[name.toLowerCase(), value]] : [])))
  const [one, other] = [routeA.matches?.[indexA], routeB.matches?.[indexB]]
  return !differs(exact(one?.headers), exact(other?.headers)) && !differs(exact(one?.queryParams), exact(other?.queryParams))
}

const differs = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean =>
  [...a].some(([name, value]) => b.has(name) && b.get(name) !== value)

function pathsOverlap(a: CompiledMatch, b: CompiledMatch): boolean {
  const [typeA, typeB] = [a.path.type, b.path.type]
  if (typeA === 'RegularExpression') return typeB !== 'Exact' || a.testPath?.(b.key) === true
  if (typeB === 'RegularExpression') return typeA !== 'Exact' || b.testPath?.(a.key) === true
  if (typeA === 'Exact' && typeB === 'Exact') return a.key === b.key
  if (typeA === 'Exact') return isBelow(a.key, b.key)
  if (typeB === 'Exact') return isBelow(b.key, a.key)
  return isBelow(a.key, b.key) || isBelow(b.key, a.key)
}

/** Whether a path is a prefix or below it; `prefix` has no slash at its end. */
const isBelow = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`)

const ranks = { Exact: 'an exact path', PathPrefix: 'a path prefix', RegularExpression: 'a regular expression' } as const

/** The first criterion of traffic.md §7 by which one match wins over another. */
function explainWin(winner: Entry, loser: Entry): string {
  const { match: a, rule: ruleA } = winner
  const { match: b, rule: ruleB } = loser
  if (winner.hostname !== loser.hostname) return `hostname ${winner.hostname} is more specific`
  if (a.path.type !== b.path.type) return `${ranks[a.path.type]} wins over ${ranks[b.path.type]}`
  if (a.key.length !== b.key.length) return 'its path is longer'
  if ((a.method === undefined) !== (b.method === undefined)) return 'it matches a method'
  if (a.headerCount !== b.headerCount) return 'it matches more headers'
  if (a.queryCount !== b.queryCount) return 'it matches more query parameters'
  if (ruleA.createdAtMs !== ruleB.createdAtMs) return 'its route is older'
  if (ruleA.name !== ruleB.name) return 'the name of its route comes first'
  return 'it comes first in its route'
}
