import type { Authorization } from '#gen/config/types.ts'
import { evalBool, type Program } from '#api/cel/index.ts'
import type { Policy } from '../../context.ts'
import { ProxyError } from '../../error.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../expression/buffer.ts'
import { compileExpression, readsRequestBody } from '../../expression/program.ts'
import { ExchangeView } from '../../expression/view.ts'
import type { PolicyState } from '../state.ts'

/** The expressions of all rule sets of a phase, by what their match means. */
interface Rules {
  readonly deny: readonly Program[]
  readonly require: readonly Program[]
  readonly allow: readonly Program[]
}

/**
 * Rules about who may do what, of all levels of a phase (traffic.md §8.6). An expression that fails, or does not compile, counts
 * as false: it neither denies nor allows, and a requirement is not met.
 */
export function compileAuthorization(
  sets: readonly Authorization[],
  { kept }: Pick<PolicyState, 'kept'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
): Policy | undefined {
  if (sets.length === 0) return undefined
  const compiled = sets.map((set) => ({ action: set.action ?? 'Allow', programs: kept.get(set, [], () => compilePrograms(set)) }))
  const programsOf = (action: NonNullable<Authorization['action']>): Program[] => compiled.flatMap((set) => (set.action === action ? set.programs : []))
  const rules: Rules = { deny: programsOf('Deny'), require: programsOf('Require'), allow: programsOf('Allow') }
  if (readsRequestBody(compiled.flatMap(({ programs }) => programs))) return authorizeWithBody(rules, maxBufferBytes)
  return (c, next) => {
    if (!isAllowed(rules, new ExchangeView(c.var.exchange))) throw new ProxyError('AUTHORIZATION')
    return next()
  }
}

function compilePrograms({ policy }: Authorization): readonly Program[] {
  return policy.matchExpressions.map((expression) => compileExpression(expression, 'request'))
}

function authorizeWithBody(rules: Rules, maxBufferBytes: number): Policy {
  return async (c, next) => {
    const { exchange } = c.var
    await bufferRequest(exchange, maxBufferBytes)
    try {
      if (!isAllowed(rules, new ExchangeView(exchange))) throw new ProxyError('AUTHORIZATION')
      await next()
    } finally {
      releaseRequest(exchange)
    }
  }
}

function isAllowed({ deny, require, allow }: Rules, view: ExchangeView): boolean {
  for (const program of deny) if (evalBool(program, view)) return false
  for (const program of require) if (!evalBool(program, view)) return false
  if (allow.length === 0) return true
  for (const program of allow) if (evalBool(program, view)) return true
  return false
}
