import type { UrlRewrite } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { rewritePath } from '../path.ts'

/**
 * Rewrites Host and path of forwarded requests: the URLRewrite filter of Gateway API (traffic.md §7). A hostname replaces the authority with
 * its port and disables automatic host rewriting.
 *
 * @throws ProxyError FILTER_FAILED (500), for a prefix rewrite without a prefix match.
 * @example
 * filters:
 *   - type: URLRewrite
 *     urlRewrite:
 *       hostname: internal.example.com
 *       path:
 *         type: ReplacePrefixMatch
 *         replacePrefixMatch: /v2
 */
export function compileUrlRewrite({ hostname, path }: UrlRewrite): Policy {
  return withSides({
    request(exchange) {
      if (hostname !== undefined) {
        exchange.request.authority = hostname
        exchange.isAuthorityFixed = true
      }
      if (path !== undefined) exchange.request.target = rewritePath(exchange.request.target, path, exchange.pathMatch)
    },
  })
}
