import type { UrlRewrite } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { rewritePath } from '../path.ts'

/** Rewrites what the upstream sees. A hostname replaces the whole authority and turns automatic host rewriting off. */
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
