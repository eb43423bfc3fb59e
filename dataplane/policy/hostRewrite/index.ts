import type { Policy } from '../../context.ts'

/**
 * Chooses whether Host comes from the destination; forwarding carries it out, as only it knows the destination. Auto undoes
 * what a header modifier set, urlRewrite comes later and wins (traffic.md §8.11).
 */
export function compileHostRewrite({ mode }: { readonly mode: 'Auto' | 'None' }): Policy {
  return (c, next) => {
    const { exchange } = c.var
    exchange.isAuthorityFixed = mode === 'None'
    exchange.isHostRewritten = mode === 'Auto'
    return next()
  }
}
