import type { Policy } from '../../request/exchange/context.ts'
import { isNullBodyStatus } from '../../request/exchange/answer.ts'

/** A fixed response. */
export interface DirectResponseConfig {
  /** Status code, 200 to 599. */
  readonly status: number
  readonly body?: string | undefined
}

/**
 * Responds with a fixed status and body instead of forwarding (traffic.md §8.11). No content-type is set; `headerModifiers` can add one.
 *
 * @example
 * traffic:
 *   directResponse:
 *     status: 503
 *     body: closed until Monday
 */
export function compileDirectResponse({ status, body }: DirectResponseConfig): Policy {
  const bytes = body === undefined || isNullBodyStatus(status) ? null : new TextEncoder().encode(body)
  const init = { status: status as 200 }
  return async (c) => (bytes === null ? c.body(null, init) : c.body(bytes, init))
}
