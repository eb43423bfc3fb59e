import { intersectHostnames, effectiveHostnames } from './hostnames.ts'
import { literalOf } from './literal.ts'
import { firstOfEachName, type ValueMatch } from './match.ts'
import { normalizePrefix } from './path.ts'
import { ageOf, comparePrecedence, type Candidate } from './precedence.ts'

interface Match {
  readonly path?: { readonly type: Candidate['match']['path']['type']; readonly value: string }
  readonly method?: string
  readonly headers?: readonly ValueMatch[]
  readonly queryParams?: readonly ValueMatch[]
}

/** A rule of a route, as a message of the config. */
export interface Rule {
  readonly key: string
  readonly listeners: readonly string[]
  readonly route: { readonly kind: string; readonly namespace: string; readonly name: string; readonly ruleIndex: number }
  readonly creationTimestamp?: string
  readonly hostnames?: readonly string[]
  readonly matches?: readonly Match[]
}

/** A listener, as a message of the config. */
export interface RoutedListener {
  readonly key: string
  readonly bind: string
  readonly protocol: string
  readonly hostname?: string
}

/** A match that gets no request of some hosts, because another rule or another listener gets all of them. */
export interface Shadow {
  readonly rule: Rule
  /** Index in the matches of the rule. */
  readonly match: number
  readonly by: { readonly rule: Rule } | { readonly listener: RoutedListener }
  /** The hosts for which this holds, as `<listener> <host>`; empty: all hosts of the rule. */
  readonly hosts: readonly string[]
}

/** A match of a rule. */
interface Entry extends Candidate {
  readonly of: Rule
  readonly index: number
  /** Type and path, the normalized prefix, or the pattern, which of a GRPCRoute is a method; the layer of a TCPRoute or TLSRoute, which have no matches. */
  readonly path: string
  /** Of the path and the conditions. */
  readonly bucket: string
  /** Method, headers and query parameters, sorted. */
  readonly conditions: readonly string[]
  /** Paths, as `path`, that accept all paths of a pattern and have precedence over it. */
  readonly above: readonly string[]
}

/** The matches of one hostname on one listener. */
interface Place {
  readonly listener: string
  readonly host: string
  /** The listener of the port that gets all requests of the host, if it is not this one. */
  readonly owner: RoutedListener | undefined
  /** By path and conditions, in order of precedence. */
  readonly buckets: Map<string, Entry[]>
  /** Patterns by each path above them; undefined if there are none. */
  patterns: Map<string, Set<Entry>> | undefined
}

const EVERY_PATH = 'PathPrefix '
const METHOD = 'Method '
const L4 = 'L4'
/** Each subset of the conditions of a pattern is looked up. */
const MAX_CONDITIONS = 8

/**
 * Finds matches that get no request, while rules come and go. A match is shadowed by a single match of another rule with precedence (traffic.md §7,
 * D6) that accepts all of its requests, on the same listener and for the same host; or by a listener of the same port with a narrower hostname.
 * Of two matches with one path and precedence by its conditions, none accepts all requests of the other, unless the conditions are equal. That leaves
 * patterns, which every prefix precedes.
 */
export class ShadowIndex {
  readonly #listeners = new Map<string, RoutedListener>()
  readonly #places = new Map<string, Place>()
  readonly #changed = new Set<Rule>()

  constructor(listeners: Iterable<RoutedListener>) {
    for (const listener of listeners) this.#listeners.set(listener.key, listener)
  }

  add(rule: Rule): void {
    this.#changed.add(rule)
    for (const place of this.#placesOf(rule.hostnames, rule.listeners)) for (const entry of entriesOf(rule)) this.#insert(place, entry)
  }

  delete(rule: Rule): void {
    for (const place of this.#placesOf(rule.hostnames, rule.listeners)) {
      for (const entry of entriesOf(rule)) this.#remove(place, entry)
      if (place.buckets.size === 0) this.#places.delete(nameOf(place))
    }
    this.#changed.delete(rule)
  }

  /** The rules whose shadows may have changed since the last call. */
  takeChanged(): Rule[] {
    const changed = [...this.#changed]
    this.#changed.clear()
    return changed
  }

  /** The shadowed matches of a rule on some of its listeners; default: all. */
  find(rule: Rule, listeners: readonly string[] = rule.listeners): Shadow[] {
    // A rule that is attached to the narrower listener, too, gets its requests there.
    const places = this.#placesOf(rule.hostnames, listeners).filter(({ owner }) => owner === undefined || !rule.listeners.includes(owner.key))
    return entriesOf(rule).flatMap((entry) => {
      const shadows = new Map<Rule | RoutedListener, { readonly by: Shadow['by']; readonly hosts: string[] }>()
      for (const place of places) {
        const winner = place.owner === undefined ? findWinner(place, entry) : undefined
        const by = place.owner === undefined ? winner && { rule: winner.of } : { listener: place.owner }
        if (by === undefined || winner?.of === rule) continue
        const id = 'rule' in by ? by.rule : by.listener
        const known = shadows.get(id) ?? { by, hosts: [] }
        shadows.set(id, known)
        known.hosts.push(nameOf(place))
      }
      return [...shadows.values()].map(({ by, hosts }) => ({ rule, match: entry.index, by, hosts: hosts.length === places.length ? [] : hosts }))
    })
  }

  #placesOf(hostnames: Rule['hostnames'], listeners: readonly string[]): Place[] {
    return listeners.flatMap((key) => {
      const listener = this.#listeners.get(key)
      return listener === undefined ? [] : effectiveHostnames(hostnames, listener.hostname).map((host) => this.#placeOf(listener, host))
    })
  }

  #placeOf(listener: RoutedListener, host: string): Place {
    const name = nameOf({ listener: listener.key, host })
    let place = this.#places.get(name)
    if (place === undefined) {
      place = { listener: listener.key, host, owner: this.#ownerOf(listener, host), buckets: new Map(), patterns: undefined }
      this.#places.set(name, place)
    }
    return place
  }

  /** The listener with the narrowest hostname gets the requests (traffic.md §7). */
  #ownerOf(listener: RoutedListener, host: string): RoutedListener | undefined {
    if (host === '') return undefined
    let owner = listener
    for (const other of this.#listeners.values()) {
      if (other.bind !== listener.bind || (other.protocol === 'HTTP') !== (listener.protocol === 'HTTP')) continue
      const isCovering = intersectHostnames(other.hostname?.toLowerCase(), host) === host
      if (isCovering && narrownessOf(other) > narrownessOf(owner)) owner = other
    }
    return owner === listener ? undefined : owner
  }

  #insert(place: Place, entry: Entry): void {
    const bucket = place.buckets.get(entry.bucket) ?? []
    place.buckets.set(entry.bucket, bucket)
    const at = placeIn(bucket, entry)
    bucket.splice(at, 0, entry)
    for (const path of entry.above) {
      place.patterns ??= new Map()
      place.patterns.set(path, (place.patterns.get(path) ?? new Set()).add(entry))
    }
    if (at === 0) this.#markBelow(place, entry, bucket)
  }

  #remove(place: Place, entry: Entry): void {
    const bucket = place.buckets.get(entry.bucket) ?? []
    const at = bucket.indexOf(entry)
    if (at === -1) return
    bucket.splice(at, 1)
    if (bucket.length === 0) place.buckets.delete(entry.bucket)
    for (const path of entry.above) {
      const below = place.patterns?.get(path)
      below?.delete(entry)
      if (below?.size === 0) place.patterns?.delete(path)
    }
    if (at === 0) this.#markBelow(place, entry, bucket)
  }

  /** Notes the rules that the first match of a bucket can shadow. */
  #markBelow({ patterns }: Place, first: Entry, bucket: readonly Entry[]): void {
    for (const { of } of bucket) this.#changed.add(of)
    for (const { of, conditions } of patterns?.get(first.path) ?? [])
      if (first.conditions.every((condition) => conditions.includes(condition))) this.#changed.add(of)
  }
}

/** An exact hostname is narrower than a wildcard, and a long one narrower than a short one. */
const narrownessOf = ({ hostname = '' }: RoutedListener): number => (hostname === '' || hostname.startsWith('*.') ? hostname.length : Infinity)

const nameOf = ({ listener, host }: Pick<Place, 'listener' | 'host'>): string => `${listener} ${host === '' ? '*' : host}`
const bucketOf = (path: string, conditions: readonly string[]): string => [path, ...conditions].join('\n')

/** The first match that accepts all requests of `entry`, if it is another one. */
function findWinner({ buckets }: Place, entry: Entry): Entry | undefined {
  let first = buckets.get(entry.bucket)?.[0]
  if (entry.conditions.length <= MAX_CONDITIONS) {
    for (let subset = 0; subset < 1 << entry.conditions.length && entry.above.length > 0; subset++) {
      const conditions = entry.conditions.filter((_, index) => (subset & (1 << index)) !== 0)
      for (const path of entry.above) {
        const found = buckets.get(bucketOf(path, conditions))?.[0]
        if (found && (!first || comparePrecedence(found, first) < 0)) first = found
      }
    }
  }
  return first === entry ? undefined : first
}

const entriesByRule = new WeakMap<Rule, readonly Entry[]>()

function entriesOf(rule: Rule): readonly Entry[] {
  const known = entriesByRule.get(rule)
  if (known) return known
  const { kind, namespace, name, ruleIndex } = rule.route
  const isGrpc = kind === 'GRPCRoute'
  const ranked = { key: rule.key, createdAtMs: ageOf(rule.creationTimestamp), name: `${namespace}/${name}`, ruleIndex, isGrpc }
  const isL4 = kind === 'TCPRoute' || kind === 'TLSRoute'
  const matches: readonly Match[] = rule.matches === undefined || rule.matches.length === 0 ? [{}] : rule.matches
  const entries = matches.map((match, index): Entry => {
    const path = match.path ?? { type: 'PathPrefix', value: '/' }
    const headers = conditionsOf('header', match.headers, (text) => text.toLowerCase())
    const query = conditionsOf('query', match.queryParams, (text) => text)
    const key = path.type === 'PathPrefix' ? normalizePrefix(path.value) : path.value
    const kindOfPath = isL4 ? L4 : isGrpc && path.type === 'RegularExpression' ? METHOD + key : `${path.type} ${key}`
    const conditions = [...(match.method === undefined ? [] : [`method ${JSON.stringify(match.method)}`]), ...headers, ...query].sort()
    return {
      of: rule,
      index,
      rule: ranked,
      match: { path, key, method: match.method, headerCount: headers.length, queryCount: query.length },
      path: kindOfPath,
      bucket: bucketOf(kindOfPath, conditions),
      conditions,
      above: path.type === 'RegularExpression' ? pathsAbove(path.value, isGrpc) : [],
    }
  })
  entriesByRule.set(rule, entries)
  return entries
}

function conditionsOf(kind: string, matches: readonly ValueMatch[] | undefined, normalize: (name: string) => string): string[] {
  return firstOfEachName(matches, normalize).map(({ type, name, value }) => `${kind} ${JSON.stringify([type, name, value])}`)
}

/** The prefix of every path, and the same method, are above all patterns but those of GRPCRoutes. */
function pathsAbove(pattern: string, isGrpc: boolean): string[] {
  const { text, isWhole } = literalOf(pattern)
  const prefixes = [...(isWhole ? `${text}/` : text).matchAll(/\//g)].flatMap(({ index }) => (index === 0 ? [] : `PathPrefix ${text.slice(0, index)}`))
  return [...(isWhole ? [`Exact ${text}`] : []), ...prefixes, ...(isGrpc ? [] : [METHOD + pattern, EVERY_PATH])]
}

/** Where a match belongs in a list in order of precedence: after those of its rule. */
function placeIn(entries: readonly Entry[], entry: Entry): number {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = entries[middle]
    if (other && comparePrecedence(other, entry) <= 0) low = middle + 1
    else high = middle
  }
  return low
}

const MAX_HOSTS = 3

/** A shadow as one line. `describe` names the rule or the listener that gets the requests. */
export function describeShadow({ rule, match, by, hosts }: Shadow, describe: (by: Shadow['by']) => string): string {
  const { kind, ruleIndex } = rule.route
  const isL4 = kind === 'TCPRoute' || kind === 'TLSRoute'
  const { path } = rule.matches?.[match] ?? {}
  const own = isL4 ? `rule ${ruleIndex}` : `match ${match} of rule ${ruleIndex}${path === undefined ? '' : ` (${path.type} ${path.value})`}`
  const rest = hosts.length > MAX_HOSTS ? ` and ${hosts.length - MAX_HOSTS} others` : ''
  const where = hosts.length === 0 ? '' : ` for ${hosts.slice(0, MAX_HOSTS).join(', ')}${rest}`
  const reason = 'listener' in by ? 'has a narrower hostname and gets all of them' : `has precedence and ${isL4 ? 'gets' : 'matches'} all of them`
  return `${own} never gets a ${isL4 ? 'connection' : 'request'}${where}: ${describe(by)} ${reason}`
}

/** `rule 0 of HTTPRoute default/web`, `listener default/gateway.http`. */
export function nameOfWinner(by: Shadow['by']): string {
  if ('listener' in by) return `listener ${by.listener.key}`
  const { kind, namespace, name, ruleIndex } = by.rule.route
  return `rule ${ruleIndex} of ${kind} ${namespace}/${name}`
}
