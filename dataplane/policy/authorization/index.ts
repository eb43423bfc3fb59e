import type { Authorization } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../expression/buffer.ts'
import { parsesJson, readsRequestBody } from '../../expression/program.ts'
import { ExchangeView } from '../../expression/view.ts'
import type { PolicyState } from '../state.ts'
import { compileSet, groupRules, isAllowed, type Rules } from './rules.ts'

/**
 * Allows or denies requests by expressions (traffic.md §8.6). The rules of all levels of a phase are combined: a matching Deny rejects,
 * every Require must match, and if there are Allow rules, one of them must match. An expression that fails or does not compile counts as
 * false: it neither denies nor allows, and a requirement is not met.
 *
 * @throws ProxyError AUTHORIZATION (403), for each rejected request.
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
  if (readsRequestBody(programs)) return authorizeWithBody(rules, maxBufferBytes, parsesJson(programs))
  return withSides({
    request(exchange) {
      if (!isAllowed(rules, new ExchangeView(exchange))) throw new ProxyError('AUTHORIZATION')
    },
  })
}

function authorizeWithBody(rules: Rules, maxBufferBytes: number, parses: boolean): Policy {
  return async (c, next) => {
    const { exchange } = c.var
    await bufferRequest(exchange, maxBufferBytes, parses)
    try {
      if (!isAllowed(rules, new ExchangeView(exchange))) throw new ProxyError('AUTHORIZATION')
      await next()
    } finally {
      releaseRequest(exchange)
    }
  }
}
