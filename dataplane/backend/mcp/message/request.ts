import type { HeaderList } from '../../../http/headers.ts'
import { McpFailure } from './failure.ts'
import { isObject } from './json.ts'
import { META_VERSION, MODERN_VERSION } from './modern.ts'
import { HEADER_MISMATCH, UNSUPPORTED_VERSION, type RpcMessage } from './rpc.ts'

/** Protocol revisions with `initialize` and sessions, the newest first. */
const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/** All supported protocol revisions, the newest first. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

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

/**
 * Checks the protocol revision of a message, GET or DELETE, and returns whether it is of the revision without sessions (mcp.md §13). No
 * header means 2025-03-26. Throws a McpFailure.
 */
export function checkVersion(headers: HeaderList, message?: RpcMessage): boolean {
  const sent = headers.get('mcp-protocol-version')
  const meta = message?.params?.['_meta']
  const inMeta = isObject(meta) ? meta[META_VERSION] : undefined
  const isInitialize = message?.method === 'initialize' && inMeta !== MODERN_VERSION
  const inParams = isInitialize ? message.params?.['protocolVersion'] : undefined
  if (sent !== undefined) {
    checkSupported(sent, isInitialize)
    checkEqual(sent, `_meta["${META_VERSION}"]`, inMeta)
    checkEqual(sent, 'protocolVersion', inParams)
  }
  if (typeof inMeta === 'string') checkSupported(inMeta, isInitialize)
  // Any other revision that `initialize` requests is negotiated.
  if (inParams === MODERN_VERSION) checkSupported(inParams, isInitialize)
  return sent === MODERN_VERSION || inMeta === MODERN_VERSION
}

function checkEqual(sent: string, member: string, value: unknown): void {
  if (typeof value !== 'string' || value === sent) return
  throw McpFailure.rpc(HEADER_MISMATCH, `MCP-Protocol-Version is ${sent}, but params.${member} is ${value}`, { status: 400 })
}

/** `initialize` does not exist in the newest revision. Its clients start over with one of the others, which the error lists. */
function checkSupported(requested: string, isInitialize: boolean): void {
  if (isServed(requested) || (requested === MODERN_VERSION && !isInitialize)) return
  const isListed = !isInitialize || requested === MODERN_VERSION
  const supported = isInitialize ? LEGACY_VERSIONS : SUPPORTED_VERSIONS
  throw McpFailure.rpc(UNSUPPORTED_VERSION, `Unsupported protocol version: ${requested}`, {
    status: 400,
    ...(isListed && { data: { supported, requested } }),
  })
}

/** Whether the protocol revision is one that `initialize` negotiates. */
export const isServed = (version: string): boolean => (LEGACY_VERSIONS as readonly string[]).includes(version)

const WELL_KNOWN = ['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server']

/** Whether a path is that of an OAuth metadata document (mcp.md §8.3). */
export function isWellKnown(path: string): boolean {
  return WELL_KNOWN.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))
}
