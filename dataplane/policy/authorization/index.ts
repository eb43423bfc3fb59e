import type { Authorization } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import { checkA2a, readsA2a } from '../../expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../expression/buffer.ts'
import { needsRequestBody, parsesJson } from '../../expression/program.ts'
import { ExchangeView } from '../../expression/view.ts'
import type { PolicyState } from '../state.ts'
import { compileSet, groupRules, isAllowed, type Rules } from './rules.ts'

/**
 * Allows or denies requests by expressions (traffic.md §8.6). The rules of all levels of a phase are combined: a matching Deny rejects,
 * every Require must match, and if there are Allow rules, one of them must match. An expression that fails or does not compile counts as
 * false: it neither denies nor allows, and a requirement is not met.
 *
 * @throws ProxyError AUTHORIZATION (403), for each rejected request; A2A_METHOD (400), BODY_TOO_LARGE (413) if a rule reads `a2a` and the method cannot be known.
 * @example
 * traffic:
 *   authorization:
 *     action: Allow
 *     policy:
 *       matchExpressions:
 *         - '"staff" in jwt.groups'
 */
export function compileAuthorization(
  sets: readonly Authorization[],
  { kept }: Pick<PolicyState, 'kept'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
): Policy | undefined {
  if (sets.length === 0) return undefined
  const rules = groupRules(sets, (set) => kept.get(set, [], () => compileSet(set, 'request')))
  const programs = [...rules.deny, ...rules.require, ...rules.allow]
  if (needsRequestBody(programs)) return authorizeWithBody(rules, maxBufferBytes, { parses: parsesJson(programs), checksA2a: readsA2a(programs) })
  return withSides({
    request(exchange) {
      if (!isAllowed(rules, new ExchangeView(exchange))) throw new ProxyError('AUTHORIZATION')
    },
  })
}

function authorizeWithBody(rules: Rules, maxBufferBytes: number, { parses, checksA2a }: { readonly parses: boolean; readonly checksA2a: boolean }): Policy {
  return async (c, next) => {
    const { exchange } = c.var
    await bufferRequest(exchange, maxBufferBytes, parses)
    try {
      if (checksA2a) checkA2a(exchange)
      if (!isAllowed(rules, new ExchangeView(exchange))) throw new ProxyError('AUTHORIZATION')
      await next()
    } finally {
      releaseRequest(exchange)
    }
  }
}
