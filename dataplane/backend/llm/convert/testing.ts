import type { ClientFormat, Conversion, RequestContext, RequestMemo, ResponseContext, UpstreamFormat } from '../common/types.ts'
import { chooseConversion } from './index.ts'

/** For tests: contexts with a fixed clock and sequential ids. */

/** The time of every context, in epoch milliseconds. */
export const NOW_MS = 1_760_000_000_000

/** The conversion between two formats. Throws if there is none. */
export function pair(from: ClientFormat, to: UpstreamFormat): Conversion {
  const conversion = chooseConversion(from, [to])
  if (conversion === undefined) throw new Error(`no conversion from ${from} to ${to}`)
  return conversion
}

function memo(model = 'm', more: Partial<RequestMemo> = {}): RequestMemo {
  return { model, isStreaming: false, toolNames: new Map(), ...more }
}

/** A response context; `more` overrides its memo. */
export function responseContext(more: Partial<RequestMemo> = {}, headers: Readonly<Record<string, string>> = {}): ResponseContext {
  let ids = 0
  return {
    memo: memo('m', more),
    header: (name) => headers[name],
    hex: (length) => (++ids).toString(16).padStart(length, '0'),
    nowMs: () => NOW_MS,
  }
}

/** A request context for model `m`. */
export function requestContext(more: Partial<RequestContext> = {}): RequestContext {
  return { model: 'm', ...more }
}
