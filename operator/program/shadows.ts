import type { Listener, Route, RouteMatch, ValueMatch } from '#gen/config/types.ts'

/** A match of a rule, which never gets a request of some hosts, because all of them go to another rule. */
export interface Shadow {
  readonly loser: Route
  /** Index in the matches of the rule. */
  readonly match: number
  readonly winner: Route
  /** The hosts on a listener for which this holds, as `<listener> <host>`; empty: all hosts of the rule. */
  readonly hosts: readonly string[]
}

interface Entry {
  readonly rule: Route
  readonly index: number
  readonly match: RouteMatch
  readonly isGrpc: boolean
  readonly headers: ReadonlySet<string>
  readonly query: ReadonlySet<string>
  readonly createdAtMs: number
  readonly name: string
  /** What the index of the data plane has as key: type and path, a prefix without its last slash. */
  readonly path: string
}

const EVERY_PATH = 'PathPrefix '
/** Comparisons of one match, so that thousands of rules with one path take little time. Beyond, a shadow may be missed. */
const MAX_COMPARED = 1000

/**
 * Matches that are shadowed by a single match of another rule with precedence (traffic.md §7, D6) that accepts all of their requests, on the same listener
 * and for the same host. Rules that are shadowed by several others together are not found.
 */
export function findShadows(routes: readonly Route[], listeners: readonly Listener[]): Shadow[] {
  const hostnames = new Map(listeners.map(({ key, hostname }) => [key, hostname]))
  const levels = new Map<string, Map<string, Entry[]>>()
  const places = new Map<Route, string[]>()
  for (const rule of routes) {
    const own = rule.listeners.flatMap((listener) => hostsOf(rule, hostnames.get(listener)).map((host) => `${listener} ${host}`))
    places.set(rule, own)
    const entries = entriesOf(rule)
    for (const place of own) {
      const level = levels.get(place) ?? new Map<string, Entry[]>()
      levels.set(place, level)
      for (const entry of entries) {
        const list = level.get(entry.path)
        if (list) list.push(entry)
        else level.set(entry.path, [entry])
      }
    }
  }
  const found = new Map<string, { readonly shadow: Shadow; readonly hosts: string[] }>()
  for (const [place, level] of levels) {
    for (const list of level.values()) list.sort(comparePrecedence)
    for (const entry of [...level.values()].flat()) {
      const winner = findWinner(entry, level)
      if (!winner) continue
      const id = `${entry.rule.key} ${entry.index} ${winner.rule.key}`
      const known = found.get(id) ?? { shadow: { loser: entry.rule, match: entry.index, winner: winner.rule, hosts: [] }, hosts: [] }
      known.hosts.push(place)
      found.set(id, known)
    }
  }
  return [...found.values()].map(({ shadow, hosts }) => ({ ...shadow, hosts: hosts.length === places.get(shadow.loser)?.length ? [] : hosts }))
}

/** The hosts for which a rule counts on a listener: the narrower of each pair of hostnames. */
function hostsOf({ hostnames = [] }: Route, listener: string | undefined): string[] {
  if (hostnames.length === 0) return [listener ?? '*']
  const isWithin = (name: string, range: string): boolean => name === range || (range.startsWith('*.') && name.endsWith(range.slice(1)))
  const hosts = hostnames.flatMap((name) => (listener === undefined || isWithin(name, listener) ? [name] : isWithin(listener, name) ? [listener] : []))
  return [...new Set(hosts)]
}

function entriesOf(rule: Route): Entry[] {
  const { matches = [] } = rule
  return (matches.length === 0 ? [{}] : matches).map((match, index) => ({
    rule,
    index,
    match,
    isGrpc: rule.route.kind === 'GRPCRoute',
    createdAtMs: Date.parse(rule.creationTimestamp ?? ''),
    name: `${rule.route.namespace}/${rule.route.name}`,
    headers: conditionsOf(match.headers, (name) => name.toLowerCase()),
    query: conditionsOf(match.queryParams, (name) => name),
    path: pathOf(match),
  }))
}

/** The first of the conditions with equal names counts. */
function conditionsOf(matches: readonly ValueMatch[] = [], normalize: (name: string) => string): Set<string> {
  const byName = new Map<string, string>()
  for (const { type, name, value } of matches) if (!byName.has(normalize(name))) byName.set(normalize(name), JSON.stringify([type, normalize(name), value]))
  return new Set(byName.values())
}

function pathOf({ path = { type: 'PathPrefix', value: '/' } }: RouteMatch): string {
  if (path.type !== 'PathPrefix') return `${path.type} ${path.value}`
  return `PathPrefix ${path.value.replace(/^(?!\/)/, '/').replace(/\/$/, '')}`
}

/** The match of another rule that has precedence and accepts all requests of `entry`. */
function findWinner(entry: Entry, level: ReadonlyMap<string, readonly Entry[]>): Entry | undefined {
  let compared = 0
  const isWinner = (other: Entry): boolean => other.rule !== entry.rule && ++compared <= MAX_COMPARED && covers(other, entry)
  const { path } = entry.match
  const same = level.get(entry.path) ?? []
  const before = same.slice(0, same.indexOf(entry))
  if (path?.type !== 'RegularExpression') return before.find(isWinner)
  // Prefixes precede expressions, except that of every path, which a method of a GRPCRoute precedes.
  const prefixes = [...prefixesOf(literalOf(path.value)).map((prefix) => `PathPrefix ${prefix}`), ...(entry.isGrpc ? [] : [EVERY_PATH])]
  for (const prefix of prefixes) {
    const winner = level.get(prefix)?.find(isWinner)
    if (winner) return winner
  }
  return before.find((other) => other.isGrpc === entry.isGrpc && isWinner(other))
}

/** Text that every match of an expression begins with, as far as it is certain. */
function literalOf(pattern: string): string {
  const [literal = ''] = /^[\w/-]*/.exec(pattern) ?? []
  const rest = pattern.slice(literal.length)
  if (rest.includes('|')) return ''
  // The last character may be optional or repeated.
  return rest === '' ? `${literal}/` : /^[?*+{]/.test(rest) ? literal.slice(0, -1) : literal
}

/** `/a` and `/a/b` of `/a/b/c`: the prefixes that all texts with this beginning are in. */
function prefixesOf(literal: string): string[] {
  return [...literal.matchAll(/\//g)].flatMap(({ index }) => (index === 0 ? [] : [literal.slice(0, index)]))
}

/** Whether every request that satisfies the method, headers and query of `narrow` satisfies those of `wide`. */
function covers(wide: Entry, narrow: Entry): boolean {
  const isMethodWide = wide.match.method === undefined || wide.match.method === narrow.match.method
  return isMethodWide && [...wide.headers].every((each) => narrow.headers.has(each)) && [...wide.query].every((each) => narrow.query.has(each))
}

/** As in the data plane (dataplane/route/precedence.ts), of two matches with the same path. */
function comparePrecedence(a: Entry, b: Entry): number {
  const compare = (one: number | string, other: number | string): number => (one === other ? 0 : one < other ? -1 : 1)
  const ageOf = ({ createdAtMs }: Entry): number => (Number.isNaN(createdAtMs) ? Infinity : createdAtMs)
  return (
    Number(b.match.method !== undefined) - Number(a.match.method !== undefined) ||
    b.headers.size - a.headers.size ||
    b.query.size - a.query.size ||
    compare(ageOf(a), ageOf(b)) ||
    compare(a.name, b.name) ||
    a.rule.route.ruleIndex - b.rule.route.ruleIndex ||
    compare(a.rule.key, b.rule.key)
  )
}
