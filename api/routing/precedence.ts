type PathType = 'Exact' | 'PathPrefix' | 'RegularExpression'

/** A match with its rule, to be ordered. */
export interface Candidate {
  readonly match: {
    readonly path: { readonly type: PathType }
    /** The path, the normalized prefix, or the pattern. */
    readonly key: string
    readonly method: string | undefined
    readonly headerCount: number
    readonly queryCount: number
  }
  readonly rule: {
    readonly key: string
    /** Creation time in milliseconds since the epoch; Infinity, which sorts as the youngest, if unknown. */
    readonly createdAtMs: number
    /** `<namespace>/<name>` of the route. */
    readonly name: string
    readonly ruleIndex: number
    /** The rule of a GRPCRoute: its patterns are method matches without an exact service. */
    readonly isGrpc: boolean
  }
}

const rank: Readonly<Record<PathType, number>> = { Exact: 0, PathPrefix: 1, RegularExpression: 4 }

/** A gRPC method is more specific than a match of every path, which a GRPCRoute has for matches without a method. */
function rankOf({ match, rule }: Candidate): number {
  if (match.path.type === 'RegularExpression' && rule.isGrpc) return 2
  return match.path.type === 'PathPrefix' && match.key === '' ? 3 : rank[match.path.type]
}

/** Compares the precedence of two matches of one hostname (traffic.md §7, D6); negative if `a` comes first. */
export function comparePrecedence(one: Candidate, other: Candidate): number {
  const { match: a, rule: ruleA } = one
  const { match: b, rule: ruleB } = other
  return (
    rankOf(one) - rankOf(other) ||
    b.key.length - a.key.length ||
    Number(b.method !== undefined) - Number(a.method !== undefined) ||
    b.headerCount - a.headerCount ||
    b.queryCount - a.queryCount ||
    compareValues(ruleA.createdAtMs, ruleB.createdAtMs) ||
    compareValues(ruleA.name, ruleB.name) ||
    ruleA.ruleIndex - ruleB.ruleIndex ||
    // An HTTPRoute and a GRPCRoute may share all of the above.
    compareValues(ruleA.key, ruleB.key)
  )
}

/** Milliseconds since the epoch of `creationTimestamp`, as `createdAtMs`. */
export function ageOf(creationTimestamp: string | undefined): number {
  const createdAtMs = Date.parse(creationTimestamp ?? '')
  return Number.isNaN(createdAtMs) ? Infinity : createdAtMs
}

/** Compares by code unit: object names are ASCII, and locales must not change routing. */
function compareValues<T extends number | string>(a: T, b: T): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
