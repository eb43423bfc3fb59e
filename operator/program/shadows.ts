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
  readonly headers: number
  readonly query: number
  /** Method, headers and query. */
  readonly conditions: readonly string[]
  readonly createdAtMs: number
  readonly name: string
  /** What the index of the data plane has as key: type and path, a prefix without its last slash. */
  readonly path: string
}

const EVERY_PATH = 'PathPrefix '
/** Each subset of the conditions of a match is looked up. Shadows of matches with more are not found. */
const MAX_CONDITIONS = 8

/** The matches with one path, in order of precedence. */
class Level {
  readonly entries: Entry[] = []
  #byConditions: Map<string, Entry[]> | undefined

  /** The first match of another rule that accepts all requests with the conditions of `entry`. */
  findWidest(entry: Entry): Entry | undefined {
    if (entry.conditions.length > MAX_CONDITIONS) return undefined
    this.#byConditions ??= Map.groupBy(this.entries.sort(comparePrecedence), ({ conditions }) => conditions.join('\n'))
    let first: Entry | undefined
    for (let subset = 0; subset < 1 << entry.conditions.length; subset++) {
      const key = entry.conditions.filter((_, index) => (subset & (1 << index)) !== 0).join('\n')
      const found = this.#byConditions.get(key)?.find(({ rule }) => rule !== entry.rule)
      if (found && (!first || comparePrecedence(found, first) < 0)) first = found
    }
    return first
  }
}

const entriesByRule = new WeakMap<Route, readonly Entry[]>()

/**
 * Matches that are shadowed by a single match of another rule with precedence (traffic.md §7, D6) that accepts all of their requests, on the same listener
 * and for the same host. Rules that are shadowed by several others together are not found.
 */
export function findShadows(routes: readonly Route[], listeners: readonly Listener[]): Shadow[] {
  const hostnames = new Map(listeners.map(({ key, hostname }) => [key, hostname]))
  const levels = new Map<string, Map<string, Level>>()
  const places = new Map<Route, string[]>()
  for (const rule of routes) {
    const own = rule.listeners.flatMap((listener) => hostsOf(rule, hostnames.get(listener)).map((host) => `${listener} ${host}`))
    places.set(rule, own)
    const entries = entriesOf(rule)
    for (const place of own) {
      const level = levels.get(place) ?? new Map<string, Level>()
      levels.set(place, level)
      for (const entry of entries) {
        let sharing = level.get(entry.path)
        if (!sharing) level.set(entry.path, (sharing = new Level()))
        sharing.entries.push(entry)
      }
    }
  }
  const found = new Map<string, { readonly shadow: Shadow; readonly hosts: string[] }>()
  for (const [place, level] of levels) {
    for (const entry of [...level.values()].flatMap(({ entries }) => entries)) {
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

function entriesOf(rule: Route): readonly Entry[] {
  const known = entriesByRule.get(rule)
  if (known) return known
  const { matches = [] } = rule
  const createdAtMs = Date.parse(rule.creationTimestamp ?? '')
  const entries = (matches.length === 0 ? [{}] : matches).map((match: RouteMatch, index): Entry => {
    const headers = conditionsOf('header', match.headers, (name) => name.toLowerCase())
    const query = conditionsOf('query', match.queryParams, (name) => name)
    return {
      rule,
      index,
      match,
      isGrpc: rule.route.kind === 'GRPCRoute',
      createdAtMs: Number.isNaN(createdAtMs) ? Infinity : createdAtMs,
      name: `${rule.route.namespace}/${rule.route.name}`,
      headers: headers.length,
      query: query.length,
      conditions: [...(match.method === undefined ? [] : [`method ${match.method}`]), ...headers, ...query].sort(),
      path: pathOf(match),
    }
  })
  entriesByRule.set(rule, entries)
  return entries
}

/** The first of the conditions with equal names counts. */
function conditionsOf(kind: string, matches: readonly ValueMatch[] = [], normalize: (name: string) => string): string[] {
  const byName = new Map<string, string>()
  for (const { type, name, value } of matches) {
    if (!byName.has(normalize(name))) byName.set(normalize(name), `${kind} ${JSON.stringify([type, normalize(name), value])}`)
  }
  return [...byName.values()]
}

function pathOf({ path = { type: 'PathPrefix', value: '/' } }: RouteMatch): string {
  if (path.type !== 'PathPrefix') return `${path.type} ${path.value}`
  return `PathPrefix ${path.value.replace(/^(?!\/)/, '/').replace(/\/$/, '')}`
}

/** The match of another rule that has precedence and accepts all requests of `entry`. */
function findWinner(entry: Entry, levels: ReadonlyMap<string, Level>): Entry | undefined {
  const { path } = entry.match
  if (path?.type === 'RegularExpression') {
    // Prefixes precede expressions, except that of every path, which a method of a GRPCRoute precedes.
    const prefixes = [...prefixesOf(literalOf(path.value)).map((prefix) => `PathPrefix ${prefix}`), ...(entry.isGrpc ? [] : [EVERY_PATH])]
    for (const prefix of prefixes) {
      const winner = levels.get(prefix)?.findWidest(entry)
      if (winner) return winner
    }
  }
  const same = levels.get(entry.path)
  if (same === undefined || same.entries.length === 1) return undefined
  const winner = same.findWidest(entry)
  return winner && comparePrecedence(winner, entry) < 0 ? winner : undefined
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

/** As in the data plane (dataplane/route/precedence.ts), of two matches with the same path. */
function comparePrecedence(a: Entry, b: Entry): number {
  const compare = (one: number | string, other: number | string): number => (one === other ? 0 : one < other ? -1 : 1)
  return (
    Number(b.match.method !== undefined) - Number(a.match.method !== undefined) ||
    b.headers - a.headers ||
    b.query - a.query ||
    compare(a.createdAtMs, b.createdAtMs) ||
    compare(a.name, b.name) ||
    a.rule.route.ruleIndex - b.rule.route.ruleIndex ||
    compare(a.rule.key, b.rule.key)
  )
}
