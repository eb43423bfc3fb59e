import type { Authorization } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { checkA2a, readsA2a } from '../../request/expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { needsRequestBody, parsesJson } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { PolicyState } from '../state.ts'
import { authorize, compileSet, groupRules, type Rules } from './rules.ts'

/**
 * Allows or denies requests by expressions (traffic.md §8.6). The rules of all levels of a phase are combined: a matching Deny rejects,
 * every Require must match, and if there are Allow rules, one of them must match. A Deny that fails rejects, unless it reads a value that is absent:
 * what a client sends cannot evade it. Other expressions that fail or do not compile count as false.
 *
 * @throws ProxyError AUTHORIZATION (403), for each rejected request; AUTHORIZATION_INPUT (403) if a Deny fails; A2A_METHOD (400), BODY_TOO_LARGE (413) if a rule reads `a2a` and the method cannot be known.
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
      authorize(rules, new ExchangeView(exchange))
    },
  })
}

function authorizeWithBody(rules: Rules, maxBufferBytes: number, { parses, checksA2a }: { readonly parses: boolean; readonly checksA2a: boolean }): Policy {
  return async (c, next) => {
    const { exchange } = c.var
    await bufferRequest(exchange, maxBufferBytes, parses)
    try {
      if (checksA2a) checkA2a(exchange)
      authorize(rules, new ExchangeView(exchange))
      await next()
    } finally {
      releaseRequest(exchange)
    }
  }
}
