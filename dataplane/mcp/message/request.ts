import type { HeaderList } from '../../http/headers.ts'
import { McpFailure } from './failure.ts'
import { isObject } from './json.ts'
import { HEADER_MISMATCH, UNSUPPORTED_VERSION, type RpcMessage } from './rpc.ts'

/** Supported protocol revisions. 2026-07-28 has neither sessions nor `initialize` and is not supported (decision D9). */
const SUPPORTED_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
const MODERN_VERSION = '2026-07-28'
const VERSION_META = 'io.modelcontextprotocol/protocolVersion'

/** Checks the head of a POST (mcp.md §3.1). Throws a McpFailure. */
export function checkPost(headers: HeaderList): void {
  const accept = headers.getAll('accept').join(', ').toLowerCase()
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    throw McpFailure.text(406, 'Accept must have both application/json and text/event-stream')
  if (!(headers.get('content-type') ?? '').toLowerCase().startsWith('application/json')) throw McpFailure.text(415, 'Content-Type must be application/json')
}

/** Checks the head of a GET (mcp.md §3.1). Throws a McpFailure. */
export function checkGet(headers: HeaderList): void {
  if (!headers.getAll('accept').join(', ').toLowerCase().includes('text/event-stream')) throw McpFailure.text(406, 'Accept must have text/event-stream')
}

/** Checks the protocol revision of a message, GET or DELETE. No header means 2025-03-26. Throws a McpFailure. */
export function checkVersion(headers: HeaderList, message?: RpcMessage): void {
  const sent = headers.get('mcp-protocol-version')
  const isInitialize = message?.method === 'initialize'
  if (sent !== undefined) checkSupported(sent, isInitialize)
  const meta = message?.params?.['_meta']
  const inMeta = isObject(meta) ? meta[VERSION_META] : undefined
  const inParams = isInitialize ? message.params?.['protocolVersion'] : undefined
  for (const [member, value] of Object.entries({ [`_meta["${VERSION_META}"]`]: inMeta, protocolVersion: inParams })) {
    if (sent === undefined || typeof value !== 'string' || value === sent) continue
    throw McpFailure.rpc(HEADER_MISMATCH, `MCP-Protocol-Version is ${sent}, but params.${member} is ${value}`, { status: 400 })
  }
  if (typeof inMeta === 'string') checkSupported(inMeta, isInitialize)
  // Any other revision that `initialize` requests is negotiated.
  if (inParams === MODERN_VERSION) checkSupported(inParams, isInitialize)
}

/**
 * Clients of the later revision start over with `initialize` when they receive the supported revisions. A client that sent `initialize` does
 * not need them.
 */
function checkSupported(requested: string, isInitialize: boolean): void {
  if (isServed(requested)) return
  const data = isInitialize && requested !== MODERN_VERSION ? {} : { data: { supported: SUPPORTED_VERSIONS, requested } }
  throw McpFailure.rpc(UNSUPPORTED_VERSION, `Unsupported protocol version: ${requested}`, { status: 400, ...data })
}

/** Whether the protocol revision is one of SUPPORTED_VERSIONS. */
export const isServed = (version: string): boolean => (SUPPORTED_VERSIONS as readonly string[]).includes(version)

const WELL_KNOWN = ['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server']

/** Whether a path is that of an OAuth metadata document (mcp.md §8.3). */
export function isWellKnown(path: string): boolean {
  return WELL_KNOWN.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))
}
