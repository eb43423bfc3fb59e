import type { Policy } from '../../exchange/context.ts'
import { isNullBodyStatus } from '../../exchange/answer.ts'

export interface DirectResponseConfig {
  /** 200 to 599. */
  readonly status: number
  readonly body?: string | undefined
}

/** Answers without forwarding. The body goes out as bytes, so that nothing invents a content-type for it. */
export function compileDirectResponse({ status, body }: DirectResponseConfig): Policy {
  const bytes = body === undefined || isNullBodyStatus(status) ? null : new TextEncoder().encode(body)
  const init = { status: status as 200 }
  return async (c) => (bytes === null ? c.body(null, init) : c.body(bytes, init))
}
