import type { HeaderList } from '../../http/headers.ts'
import { McpFailure } from './failure.ts'
import { decodeValue } from './headers.ts'
import { isObject, type JsonObject } from './json.ts'
import { HEADER_MISMATCH, INVALID_PARAMS, type RpcId, type RpcMessage, type RpcRequest } from './rpc.ts'

/** The protocol revision without `initialize` and sessions: each request names its version, client and capabilities (mcp.md §13). */
export const MODERN_VERSION = '2026-07-28'

const PREFIX = 'io.modelcontextprotocol/'
/** Members of `params._meta` of requests, and of `_meta` of results and notifications. */
export const META_VERSION = `${PREFIX}protocolVersion`
const META_CLIENT = `${PREFIX}clientInfo`
const META_CAPABILITIES = `${PREFIX}clientCapabilities`
const META_LOG_LEVEL = `${PREFIX}logLevel`
const META_SERVER = `${PREFIX}serverInfo`

/** The levels of log messages, the most verbose first (RFC 5424 §6.2.1). */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

/** What a request says about its client. */
export interface ModernClient {
  readonly capabilities: JsonObject
  readonly info: JsonObject | undefined
  /** Index in `LEVELS` from which the client wants log messages; undefined: none. */
  readonly logLevel: number | undefined
}

/** Methods whose header Mcp-Name is required, and the member of `params` that it repeats. */
const NAMED: Readonly<Record<string, 'name' | 'uri'>> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/**
 * Checks headers and `_meta` of a request (mcp.md §13.1). Its revision was checked already. Throws a McpFailure 400: HEADER_MISMATCH if a
 * header is missing or differs from the body, INVALID_PARAMS if `_meta` is incomplete.
 */
export function readModernClient(headers: HeaderList, { method, params }: RpcRequest): ModernClient {
  if (!headers.has('mcp-protocol-version')) throw mismatch(`MCP-Protocol-Version is required: send ${MODERN_VERSION}`)
  checkHeader(headers, 'Mcp-Method', method)
  const member = NAMED[method]
  const name = member && params?.[member]
  if (typeof name === 'string') checkHeader(headers, 'Mcp-Name', name)
  const meta = params?.['_meta']
  if (!isObject(meta) || meta[META_VERSION] === undefined) throw incomplete(`params._meta["${META_VERSION}"] is required`)
  if (typeof meta[META_VERSION] !== 'string') throw incomplete(`params._meta["${META_VERSION}"] must be a string`)
  const { [META_CAPABILITIES]: capabilities, [META_CLIENT]: info, [META_LOG_LEVEL]: level } = meta
  if (!isObject(capabilities)) throw incomplete(`params._meta["${META_CAPABILITIES}"] is required and must be an object`)
  if (info !== undefined && !isObject(info)) throw incomplete(`params._meta["${META_CLIENT}"] must be an object`)
  const logLevel = level === undefined ? undefined : levelOf(level)
  if (logLevel === -1) throw incomplete(`params._meta["${META_LOG_LEVEL}"] must be one of ${LEVELS.join(', ')}`)
  return { capabilities, info, logLevel }
}

function checkHeader(headers: HeaderList, field: 'Mcp-Method' | 'Mcp-Name', expected: string): void {
  const [value, ...others] = headers.getAll(field.toLowerCase())
  if (value === undefined) throw mismatch(`${field} is required`)
  if (others.length > 0) throw mismatch(`${field} is sent twice`)
  const decoded = field === 'Mcp-Name' ? decodeValue(value) : value
  if (decoded !== expected) throw mismatch(`${field} ${decoded === undefined ? 'is not valid Base64' : 'does not match the body'}`)
}

const mismatch = (problem: string): McpFailure => McpFailure.rpc(HEADER_MISMATCH, `Header mismatch: ${problem}`, { status: 400 })
const incomplete = (problem: string): McpFailure => McpFailure.rpc(INVALID_PARAMS, problem, { status: 400 })

/** The `initialize` request for a client that has none. */
export function initializeFor(client: ModernClient, gateway: JsonObject, capabilities: JsonObject): JsonObject {
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: client.info ?? gateway }
  return { jsonrpc: '2.0', id: 0, method: 'initialize', params }
}

/**
 * The request as revisions with sessions know it. `id` is unique in the session, which several requests share, and becomes the token of
 * progress notifications too.
 */
export function toLegacyRequest(request: RpcRequest, id: string): RpcRequest {
  const { _meta: meta, ...params } = request.params ?? {}
  const kept = isObject(meta) ? Object.fromEntries(Object.entries(meta).filter(([key]) => !OWN_META.has(key))) : {}
  if (kept['progressToken'] !== undefined) kept['progressToken'] = id
  return { ...request, id, params: Object.keys(kept).length === 0 ? params : { ...params, _meta: kept } }
}

const OWN_META: ReadonlySet<string> = new Set([META_VERSION, META_CLIENT, META_CAPABILITIES, META_LOG_LEVEL])

/** The token of the progress notifications that a request wants. */
export function progressTokenOf({ params }: RpcRequest): unknown {
  const meta = params?.['_meta']
  return isObject(meta) ? meta['progressToken'] : undefined
}

/** Methods whose results tell how long they may be cached. */
const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

/** The result of a request with the members that the revision requires. Those that the server set stay. */
export function toModernResult(method: string, result: JsonObject, server: JsonObject | undefined): JsonObject {
  const resultType = typeof result['resultType'] === 'string' ? result['resultType'] : 'complete'
  const isCacheable = resultType === 'complete' && CACHEABLE.has(method)
  const meta = isObject(result['_meta']) ? result['_meta'] : {}
  const hasServer = server === undefined || meta[META_SERVER] !== undefined
  return {
    ...result,
    resultType,
    ...(isCacheable && { ttlMs: ttlOf(result), cacheScope: result['cacheScope'] === 'public' ? 'public' : 'private' }),
    ...(hasServer ? {} : { _meta: { ...meta, [META_SERVER]: server } }),
  }
}

function ttlOf({ ttlMs }: JsonObject): number {
  return typeof ttlMs === 'number' && Number.isInteger(ttlMs) && ttlMs > 0 ? ttlMs : 0
}

/** Older revisions' code for a resource that does not exist. */
const RESOURCE_NOT_FOUND = -32002

/** An error of a server with the codes of the revision. */
export function toModernError(error: unknown): unknown {
  return isObject(error) && error['code'] === RESOURCE_NOT_FOUND ? { ...error, code: INVALID_PARAMS } : error
}

/** How messages of a server are passed to a client of the revision. */
export interface ModernConversion {
  readonly method: string
  /** Id and progress token of the request at the server. */
  readonly id: string
  /** Those of the client. */
  readonly clientId: RpcId
  readonly progressToken: unknown
  readonly logLevel: number | undefined
  /** Identity of the server, for results without one. */
  readonly server: () => JsonObject | undefined
}

/** Notifications that do not relate to a request; the revision has a stream of its own for some of them. */
const UNRELATED: ReadonlySet<string> = new Set([
  'notifications/cancelled',
  'notifications/elicitation/complete',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/tools/list_changed',
])

/** A message of a server on the stream of a request, as the client receives it; undefined if it is not for this client. */
export function toModernMessage(message: RpcMessage, conversion: ModernConversion): RpcMessage | undefined {
  const { method, params } = message
  if (method === undefined) return toModernResponse(message, conversion)
  // Requests were rejected: the revision has none from the server.
  if (message.id !== undefined || UNRELATED.has(method)) return undefined
  if (method === 'notifications/progress')
    return params?.['progressToken'] === conversion.id ? { ...message, params: { ...params, progressToken: conversion.progressToken } } : undefined
  if (method === 'notifications/message') {
    const { logLevel } = conversion
    return logLevel !== undefined && levelOf(params?.['level']) >= logLevel ? message : undefined
  }
  return message
}

function toModernResponse(message: RpcMessage, { method, id, clientId, server }: ModernConversion): RpcMessage | undefined {
  // Parse errors have no id.
  if (message.id !== id && (message.id ?? null) !== null) return undefined
  if (message.error !== undefined) return { ...message, id: clientId, error: toModernError(message.error) }
  return { ...message, id: clientId, result: isObject(message.result) ? toModernResult(method, message.result, server()) : message.result }
}

/** Index of a level; -1 if it does not exist. */
const levelOf = (level: unknown): number => (typeof level === 'string' ? LEVELS.indexOf(level) : -1)

/** The name of a level, for servers that keep one level for the session. */
export const levelName = (level: number): string => LEVELS[level] ?? 'debug'
