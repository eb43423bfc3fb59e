import type { HeaderList } from '../../../http/headers.ts'
import { isObject } from '../message/json.ts'
import { toText, type RpcMessage } from '../message/rpc.ts'

/** Headers of W3C trace context and baggage; members of `params._meta` have the same names (mcp.md §3.4). */
const FIELDS = ['traceparent', 'tracestate', 'baggage'] as const

/** The message with the trace context of the request headers in `params._meta`; undefined if the request has none. */
export function withTrace(message: RpcMessage, headers: HeaderList): { message: RpcMessage; text: string } | undefined {
  if (message.method === undefined || !FIELDS.some((name) => headers.has(name))) return undefined
  const context: Record<string, string> = {}
  for (const name of FIELDS) if (headers.has(name)) context[name] = headers.getAll(name).join(',')
  const meta = message.params?.['_meta']
  const traced: RpcMessage = { ...message, params: { ...message.params, _meta: { ...(isObject(meta) ? meta : {}), ...context } } }
  return { message: traced, text: toText(traced) }
}
