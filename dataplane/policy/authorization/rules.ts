import { evalBool, evalDenial, type Phase, type Program } from '#api/cel/index.ts'
import type { Authorization } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Connection } from '../../request/exchange/exchange.ts'
import { viewSource } from '../../request/expression/peer.ts'
import { compileExpression, findProblem } from '../../request/expression/program.ts'

/** The expressions of all rule sets of a phase, by action. */
export interface Rules {
  readonly deny: readonly Program[]
  readonly require: readonly Program[]
  readonly allow: readonly Program[]
}

/** Compiles the expressions of one rule set. A Deny expression that does not compile denies everything: what it should deny is unknown. */
export function compileSet({ action, policy }: Authorization, phase: Phase): readonly Program[] {
  return policy.matchExpressions.map((expression) =>
    compileExpression(action === 'Deny' && findProblem(expression, phase) !== undefined ? 'true' : expression, phase),
  )
}

/** Groups the expressions of rule sets by action. */
export function groupRules(sets: readonly Authorization[], programsOf: (set: Authorization) => readonly Program[]): Rules {
  const compiled = sets.map((set) => ({ action: set.action ?? 'Allow', programs: programsOf(set) }))
  const of = (action: NonNullable<Authorization['action']>): Program[] => compiled.flatMap((set) => (set.action === action ? set.programs : []))
  return { deny: of('Deny'), require: of('Require'), allow: of('Allow') }
}

/** Why rules reject: `unreadable` if a Deny could not be evaluated on what the client sent. */
type Refusal = 'denied' | 'unreadable'

/**
 * No Deny may match or fail, every Require must match, and if there are Allows, one must match (traffic.md §8.6). A Deny that reads an absent value
 * does not match; other expressions that fail do not match.
 */
function findRefusal({ deny, require, allow }: Rules, view: object): Refusal | undefined {
  for (const program of deny) {
    const matches = evalDenial(program, view)
    if (matches !== false) return matches === true ? 'denied' : 'unreadable'
  }
  for (const program of require) if (!evalBool(program, view)) return 'denied'
  if (allow.length === 0) return undefined
  for (const program of allow) if (evalBool(program, view)) return undefined
  return 'denied'
}

export function isAllowed(rules: Rules, view: object): boolean {
  return findRefusal(rules, view) === undefined
}

/** Throws a ProxyError AUTHORIZATION or AUTHORIZATION_INPUT if rules reject a request. */
export function authorize(rules: Rules, view: object): void {
  const refusal = findRefusal(rules, view)
  if (refusal !== undefined) throw new ProxyError(refusal === 'denied' ? 'AUTHORIZATION' : 'AUTHORIZATION_INPUT')
}

const MAX_EXPRESSIONS = 3
const MAX_CHARS = 300

/** Why the rules do not allow it: the first rule that says no. Only for what `isAllowed` rejected. */
export function explainRefusal({ deny, require, allow }: Rules, view: object): string {
  for (const program of deny) {
    const matches = evalDenial(program, view)
    if (matches !== false) return matches === true ? `a Deny rule matches: ${textOf(program)}` : `a Deny rule fails (${matches.message}): ${textOf(program)}`
  }
  const missing = require.find((program) => !evalBool(program, view))
  if (missing !== undefined) return `a Require rule does not match: ${textOf(missing)}`
  const more = allow.length > MAX_EXPRESSIONS ? ` and ${allow.length - MAX_EXPRESSIONS} more` : ''
  return `no Allow rule matches: ${allow.slice(0, MAX_EXPRESSIONS).map(textOf).join(' | ')}${more}`
}

const textOf = ({ source }: Program): string => (source.length > MAX_CHARS ? `${source.slice(0, MAX_CHARS)}...` : source)

/** Compiles the rules for connections of all policies of a Gateway. Expressions see `source` only (traffic.md §10). */
export function compileNetworkAuthorization(sets: readonly Authorization[]): ((connection: Connection) => boolean) | undefined {
  if (sets.length === 0) return undefined
  const rules = groupRules(sets, (set) => compileSet(set, 'network'))
  return (connection) => isAllowed(rules, { source: viewSource(connection) })
}
