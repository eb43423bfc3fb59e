import type { ClientFormat, Conversion, RequestContext, RequestMemo, ResponseContext, UpstreamFormat } from '../common/types.ts'
import { chooseConversion } from './index.ts'

/** For tests: contexts with a fixed clock and sequential ids. */

export const NOW_MS = 1_760_000_000_000

export function pair(from: ClientFormat, to: UpstreamFormat): Conversion {
  const conversion = chooseConversion(from, [to])
  if (conversion === undefined) throw new Error(`no conversion from ${from} to ${to}`)
  return conversion
}

function memo(model = 'm', more: Partial<RequestMemo> = {}): RequestMemo {
  return { model, isStreaming: false, toolNames: new Map(), ...more }
}

export function responseContext(more: Partial<RequestMemo> = {}, headers: Readonly<Record<string, string>> = {}): ResponseContext {
  let ids = 0
  return {
    memo: memo('m', more),
    header: (name) => headers[name],
    hex: (length) => (++ids).toString(16).padStart(length, '0'),
    nowMs: () => NOW_MS,
  }
}

export function requestContext(more: Partial<RequestContext> = {}): RequestContext {
  return { model: 'm', ...more }
}
