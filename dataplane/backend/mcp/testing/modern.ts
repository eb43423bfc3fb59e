/** The protocol revision without `initialize` and sessions. */
export const MODERN = '2026-07-28'
const PREFIX = 'io.modelcontextprotocol/'

export interface ModernOptions {
  readonly id?: number | string
  readonly meta?: Record<string, unknown>
  readonly headers?: Record<string, string>
}

/** A request of the revision, with the members of `_meta` that it requires. */
export const modernCall = (method: string, params: Record<string, unknown> = {}, { id = 1, meta = {} }: ModernOptions = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: {
    ...params,
    _meta: {
      [`${PREFIX}protocolVersion`]: MODERN,
      [`${PREFIX}clientInfo`]: { name: 'raw', version: '1' },
      [`${PREFIX}clientCapabilities`]: {},
      ...meta,
    },
  },
})

/** The headers of a request: those that repeat its body. */
export function modernHeaders(method: string, params: Record<string, unknown> = {}): Record<string, string> {
  const named = ['tools/call', 'prompts/get', 'resources/read'].includes(method)
  return {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(named && { 'mcp-name': String(params['name'] ?? params['uri']) }),
  }
}
