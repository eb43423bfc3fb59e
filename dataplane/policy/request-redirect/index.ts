import type { RequestRedirect } from '#gen/config/types.ts'
import type { Policy } from '../../exchange/context.ts'
import { locationOf } from './redirect.ts'

/** Answers with a redirect; nothing is forwarded. */
export function compileRequestRedirect(filter: RequestRedirect): Policy {
  const status = filter.statusCode ?? 302
  return async (c) => {
    const { request, pathMatch } = c.var.exchange
    return c.body(null, status, { location: locationOf(request, filter, pathMatch) })
  }
}
