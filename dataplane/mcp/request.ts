import type { HeaderList } from '../http/headers.ts'
import { McpFailure } from './failure.ts'
import { HEADER_MISMATCH, UNSUPPORTED_VERSION, type RpcMessage } from './rpc.ts'

/** Protocol revisions that are served; the one of 2026-07-28 has neither sessions nor `initialize` (decision D9). */
export const SUPPORTED_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
const VERSION_META = 'io.modelcontextprotocol/protocolVersion'

/** Checks of a POST's head (mcp.md §3.1), in their order. */
export function checkPost(headers: HeaderList): void {
  const accept = headers.getAll('accept').join(', ').toLowerCase()
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    throw McpFailure.text(406, 'Accept must have both application/json and text/event-stream')
  if (!(headers.get('content-type') ?? '').toLowerCase().startsWith('application/json')) throw McpFailure.text(415, 'Content-Type must be application/json')
}

export function checkGet(headers: HeaderList): void {
  if (!headers.getAll('accept').join(', ').toLowerCase().includes('text/event-stream')) throw McpFailure.text(406, 'Accept must have text/event-stream')
}

/** Checks the protocol revision that a message is sent under. No header means 2025-03-26. */
export function checkVersion(headers: HeaderList, message: RpcMessage): void {
  const sent = headers.get('mcp-protocol-version')
  const meta = message.params?.['_meta'] as Record<string, unknown> | undefined
  const declared = meta?.[VERSION_META]
  const requested = sent ?? (typeof declared === 'string' ? declared : undefined)
  const isInitialize = message.method === 'initialize'
  if (requested !== undefined && !(SUPPORTED_VERSIONS as readonly string[]).includes(requested)) throw unsupported(requested, isInitialize)
  const inBody = isInitialize ? message.params?.['protocolVersion'] : undefined
  if (sent !== undefined && typeof inBody === 'string' && inBody !== sent)
    throw McpFailure.rpc(HEADER_MISMATCH, `MCP-Protocol-Version is ${sent}, but params.protocolVersion is ${inBody}`, { status: 400 })
}

function unsupported(requested: string, isInitialize: boolean): McpFailure {
  const data = isInitialize ? {} : { data: { supported: SUPPORTED_VERSIONS, requested } }
  return McpFailure.rpc(UNSUPPORTED_VERSION, `Unsupported protocol version: ${requested}`, { status: 400, ...data })
}

const WELL_KNOWN = ['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server']

/** Whether a path is that of an OAuth metadata document (mcp.md §8.3). */
export function isWellKnown(path: string): boolean {
  return WELL_KNOWN.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))
}
