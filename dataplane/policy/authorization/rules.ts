import { evalBool, type Phase, type Program } from '#api/cel/index.ts'
import type { Authorization } from '#gen/config/types.ts'
import type { Connection } from '../../exchange/exchange.ts'
import { viewSource } from '../../expression/peer.ts'
import { compileExpression, findProblem } from '../../expression/program.ts'

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

/** No Deny may match, every Require must match, and if there are Allows, one must match. A failed expression does not match. */
export function isAllowed({ deny, require, allow }: Rules, view: object): boolean {
  for (const program of deny) if (evalBool(program, view)) return false
  for (const program of require) if (!evalBool(program, view)) return false
  if (allow.length === 0) return true
  for (const program of allow) if (evalBool(program, view)) return true
  return false
}

const MAX_EXPRESSIONS = 3
const MAX_CHARS = 300

/** Why the rules do not allow it: the first rule that says no. Only for what `isAllowed` rejected. */
export function explainRefusal({ deny, require, allow }: Rules, view: object): string {
  const matching = deny.find((program) => evalBool(program, view))
  if (matching !== undefined) return `a Deny rule matches: ${textOf(matching)}`
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
