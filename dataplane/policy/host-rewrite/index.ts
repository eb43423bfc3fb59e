import { withSides, type Policy } from '../../exchange/context.ts'

/**
 * Chooses whether Host comes from the destination; forwarding carries it out, as only it knows the destination. Auto undoes
 * what a header modifier set, urlRewrite comes later and wins (traffic.md §8.11).
 */
export function compileHostRewrite({ mode }: { readonly mode: 'Auto' | 'None' }): Policy {
  return withSides({
    request(exchange) {
      exchange.isAuthorityFixed = mode === 'None'
      exchange.isHostRewritten = mode === 'Auto'
    },
  })
}
