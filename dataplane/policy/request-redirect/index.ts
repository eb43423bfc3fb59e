import type { RequestRedirect } from '#gen/config/types.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { locationOf } from './redirect.ts'

/**
 * Responds with a redirect instead of forwarding: the RequestRedirect filter of Gateway API (traffic.md §7).
 *
 * @throws ProxyError FILTER_FAILED (500), for a prefix rewrite without a prefix match.
 * @example
 * filters:
 *   - type: RequestRedirect
 *     requestRedirect:
 *       scheme: https
 *       statusCode: 301
 */
export function compileRequestRedirect(filter: RequestRedirect): Policy {
  const status = filter.statusCode ?? 302
  return async (c) => {
    const { request, pathMatch } = c.var.exchange
    return c.body(null, status, { location: locationOf(request, filter, pathMatch) })
  }
}
