import { withSides, type Policy } from '../../request/exchange/context.ts'

/**
 * Selects the Host of forwarded requests (traffic.md §8.11): `Auto` is the name of the destination, `None` the Host of the client.
 * `dataplane/backend/forward` applies it, because it knows the destination. Auto overrides a Host set by header modifiers; urlRewrite overrides both.
 *
 * @example
 * traffic:
 *   hostRewrite:
 *     mode: Auto
 */
export function compileHostRewrite({ mode }: { readonly mode: 'Auto' | 'None' }): Policy {
  return withSides({
    request(exchange) {
      exchange.isAuthorityFixed = mode === 'None'
      exchange.isHostRewritten = mode === 'Auto'
    },
  })
}
