import type { HeaderList } from '../../../http/headers.ts'
import { McpFailure } from './failure.ts'
import { admitsInput, capabilitiesOf } from './capabilities.ts'
import { decodeValue } from './headers.ts'
import { isObject, parseJson, type JsonObject } from './json.ts'
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  parseUpstreamMessage,
  UNSUPPORTED_VERSION,
  type RpcId,
  type RpcMessage,
  type RpcRequest,
} from './rpc.ts'

/** The protocol revision without `initialize` and sessions: each request names its version, client and capabilities (mcp.md §13). */
export const MODERN_VERSION = '2026-07-28'

const PREFIX = 'io.modelcontextprotocol/'
/** Members of `params._meta` of requests, and of `_meta` of results and notifications. */
export const META_VERSION = `${PREFIX}protocolVersion`
const META_CLIENT = `${PREFIX}clientInfo`
const META_CAPABILITIES = `${PREFIX}clientCapabilities`
const META_LOG_LEVEL = `${PREFIX}logLevel`
const META_SERVER = `${PREFIX}serverInfo`
const META_SUBSCRIPTION = `${PREFIX}subscriptionId`

/** The levels of log messages, the most verbose first (RFC 5424 §6.2.1). */
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

/** What a request says about its client. */
export interface ModernClient extends SessionClient {
  /** Index in `LEVELS` from which the client wants log messages; undefined: none. */
  readonly logLevel: number | undefined
}

/** Methods whose header Mcp-Name is required, and the member of `params` that it repeats. */
const TASK_METHODS = /^tasks\/(get|update|cancel)$/
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
  // Older clients of the extension do not send it.
  const taskId = member === undefined && TASK_METHODS.test(method) && headers.has('mcp-name') ? params?.['taskId'] : undefined
  if (typeof taskId === 'string') checkHeader(headers, 'Mcp-Name', taskId)
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

/** The request with an id that is unique in a session that several requests share. The id becomes the token of progress notifications too. */
export function withUniqueId(request: RpcRequest, id: string): RpcRequest {
  const { params } = request
  const meta = params?.['_meta']
  if (!isObject(meta) || meta['progressToken'] === undefined) return { ...request, id }
  return { ...request, id, params: { ...params, _meta: { ...meta, progressToken: id } } }
}

/** The request as revisions with sessions know it. */
export function toLegacyRequest<T extends RpcMessage>(request: T): T {
  const { _meta: meta, inputResponses: _responses, requestState: _state, ...params } = request.params ?? {}
  if (!isObject(meta) || Object.keys(meta).every((key) => OWN_META.has(key))) return { ...request, params }
  const kept = Object.fromEntries(Object.entries(meta).filter(([key]) => !OWN_META.has(key)))
  return { ...request, params: { ...params, _meta: kept } }
}

/** A message for a target with sessions. Messages of the gateway need no change. */
export const toLegacyText = (text: string): string => (text.includes(META_VERSION) ? JSON.stringify(toLegacyRequest(parseJson(text) as RpcMessage)) : text)

/** The members of a retry (Multi Round-Trip Requests); undefined if the message is no retry. */
export function inputOf({ params }: RpcMessage): JsonObject | undefined {
  const { requestState, inputResponses } = params ?? {}
  return requestState === undefined ? undefined : { requestState, inputResponses }
}

/** As `inputOf`, of a message as text. */
export const inputIn = (text: string): JsonObject | undefined => (text.includes('"requestState"') ? inputOf(parseJson(text) as RpcMessage) : undefined)

/** The extension for tasks (SEP-2663). Other revisions have another form of tasks. */
export const TASKS_EXTENSION = `${PREFIX}tasks`

/** Capabilities of a client or server without tasks. */
export function withoutTaskExtension(capabilities: JsonObject): JsonObject {
  const { extensions } = capabilities
  if (!isObject(extensions) || extensions[TASKS_EXTENSION] === undefined) return capabilities
  const { [TASKS_EXTENSION]: _, ...others } = extensions
  return { ...capabilities, extensions: others }
}

/** A request of a client that has no tasks. */
export function withoutTasksIn(text: string): string {
  if (!text.includes(TASKS_EXTENSION)) return text
  const message = parseJson(text) as RpcMessage
  const meta = message.params?.['_meta']
  const capabilities = capabilitiesIn(meta)
  if (!isObject(meta) || !isObject(capabilities)) return text
  return JSON.stringify({ ...message, params: { ...message.params, _meta: { ...meta, [META_CAPABILITIES]: withoutTaskExtension(capabilities) } } })
}

/** The client's capabilities in `_meta`. */
export const capabilitiesIn = (meta: unknown): unknown => (isObject(meta) ? meta[META_CAPABILITIES] : undefined)

/** A message for a target without sessions. Messages of the gateway do not have the members of `_meta` that are required. */
export const toModernText = (text: string, client: SessionClient): string => (text.includes(META_VERSION) ? text : withMeta(text, clientMeta(client)))

/** A message with members added to `_meta`. */
export function withMeta(text: string, meta: JsonObject): string {
  const message = parseJson(text) as RpcMessage
  const known = message.params?.['_meta']
  return JSON.stringify({ ...message, params: { ...message.params, _meta: { ...(isObject(known) ? known : {}), ...meta } } })
}

/** Params or a result with the id of the subscription that it belongs to. */
export function withSubscription(content: JsonObject, id: RpcId): JsonObject {
  const meta = content['_meta']
  return { ...content, _meta: { ...(isObject(meta) ? meta : {}), [META_SUBSCRIPTION]: id } }
}

/** What a client says about itself: at `initialize`, or in each request. */
export interface SessionClient {
  readonly capabilities: JsonObject
  readonly info: JsonObject | undefined
}

/** Clients choose the size of what they say. Larger descriptions are not kept with the session. */
export const MAX_CLIENT_CHARS = 4096

/** Whether a name is that of a level of log messages. */
export const isLevel = (level: unknown): level is string => levelOf(level) >= 0

/** The members of `_meta` of the gateway's own requests for a client. */
export function clientMeta({ capabilities, info }: SessionClient, logLevel?: string): JsonObject {
  const meta: JsonObject = { [META_VERSION]: MODERN_VERSION, [META_CAPABILITIES]: capabilities }
  if (info !== undefined) meta[META_CLIENT] = info
  if (logLevel !== undefined) meta[META_LOG_LEVEL] = logLevel
  return meta
}

/** The response to `initialize`, from the result of `server/discover`. `name` is used for a server that does not name itself. */
export function toInitializeResult(discovered: JsonObject, requested: unknown, name: string): JsonObject {
  const { tasks: _tasks, ...capabilities } = capabilitiesOf(discovered)
  const { instructions } = discovered
  return {
    protocolVersion: requested,
    capabilities: withoutTaskExtension(capabilities),
    serverInfo: serverOf(discovered) ?? { name, version: '0' },
    ...(typeof instructions === 'string' && { instructions }),
  }
}

/** A response as revisions with sessions know it. */
export function toLegacyMessage(method: string, message: RpcMessage): RpcMessage {
  const { error, result } = message
  if (error !== undefined) return { ...message, error: toLegacyError(error) }
  if (!isObject(result)) return message
  const { resultType = 'complete', ttlMs: _ttl, cacheScope: _scope, _meta: meta, ...rest } = result
  if (resultType !== 'complete') {
    const { result: _result, ...response } = message
    return {
      ...response,
      error: { code: INTERNAL_ERROR, message: `an upstream returned a result that the client does not know: ${JSON.stringify(resultType)}` },
    }
  }
  const { [META_SERVER]: _server, ...kept } = isObject(meta) ? meta : {}
  return { ...message, result: { ...toLegacyItems(method, rest), ...(Object.keys(kept).length > 0 && { _meta: kept }) } }
}

/** Older clients reject schemas and structured content that are not of objects, and the whole list with them. */
function toLegacyItems(method: string, result: JsonObject): JsonObject {
  if (method === 'tools/call' && result['structuredContent'] !== undefined && !isObject(result['structuredContent'])) {
    const { structuredContent: _, ...rest } = result
    return rest
  }
  if (method !== 'tools/list' || !Array.isArray(result['tools'])) return result
  const tools = result['tools'].map((tool: unknown) => {
    if (!isObject(tool) || tool['outputSchema'] === undefined || (isObject(tool['outputSchema']) && tool['outputSchema']['type'] === 'object')) return tool
    const { outputSchema: _, ...rest } = tool
    return rest
  })
  return { ...result, tools }
}

/** Errors about requests of the gateway are not the client's. */
const isOwnError = (code: unknown): boolean => code === HEADER_MISMATCH || code === MISSING_CAPABILITY || code === UNSUPPORTED_VERSION

const toLegacyError = (error: unknown): unknown => (isObject(error) && isOwnError(error['code']) ? { ...error, code: INTERNAL_ERROR } : error)

/** The identity that a server names in its results. */
export function serverOf(result: JsonObject): JsonObject | undefined {
  const meta = result['_meta']
  const server = isObject(meta) ? meta[META_SERVER] : undefined
  return isObject(server) ? server : undefined
}

/** Whether the response to `server/discover` is that of a server of the revision. Any other response is that of an older one. */
export function isModernAnswer({ result, error }: RpcMessage): boolean {
  if (isObject(result)) return includes(result['supportedVersions'], MODERN_VERSION)
  if (!isObject(error)) return false
  if (error['code'] === UNSUPPORTED_VERSION) return isObject(error['data']) && includes(error['data']['supported'], MODERN_VERSION)
  return error['code'] === HEADER_MISMATCH || error['code'] === MISSING_CAPABILITY
}

const includes = (list: unknown, value: string): boolean => Array.isArray(list) && list.includes(value)

/** Codes that implementations defined before the revision: their errors do not show that a server speaks it. */
const OLD_CODES = { min: -32019, max: -32000 }

/** Whether a rejection with an HTTP status is an error of the revision. Undefined: it is none, so the server may speak an older one. */
export function modernErrorIn(text: string): RpcMessage | undefined {
  const message = parseUpstreamMessage(text)
  if (message === undefined || !isObject(message.error)) return undefined
  const { code, data } = message.error
  if (typeof code !== 'number' || (code >= OLD_CODES.min && code <= OLD_CODES.max)) return undefined
  return code === UNSUPPORTED_VERSION && !(isObject(data) && includes(data['supported'], MODERN_VERSION)) ? undefined : message
}

/** Whether a rejection of a message with a session shows that the server speaks the revision now. */
export function isModernRejection(text: string): boolean {
  const error = modernErrorIn(text)?.error
  return isObject(error) && (error['code'] === HEADER_MISMATCH || error['code'] === UNSUPPORTED_VERSION)
}

/** The HTTP status of an error (mcp.md §13.1). */
export function statusOf(error: unknown): number {
  const code = isObject(error) ? error['code'] : undefined
  if (code === METHOD_NOT_FOUND) return 404
  return code === UNSUPPORTED_VERSION || code === HEADER_MISMATCH || code === MISSING_CAPABILITY ? 400 : 200
}

/** How long a result that is merged from several may be cached: the least of them, and privately if one of them is private. */
export class Freshness {
  #ttlMs = Number.MAX_SAFE_INTEGER
  #isPublic = true
  #count = 0

  /** A page of a target's list. */
  add(result: JsonObject, isFirst = true): void {
    this.#ttlMs = Math.min(this.#ttlMs, ttlOf(result))
    this.#isPublic &&= result['cacheScope'] === 'public'
    if (isFirst) this.#count++
  }

  /** The members of the merged result. `count`: number of targets. */
  members(count: number): JsonObject {
    const isComplete = this.#count >= count
    return { ttlMs: isComplete ? this.#ttlMs : 0, cacheScope: isComplete && this.#isPublic ? 'public' : 'private' }
  }
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
  const meta = isObject(result['_meta']) ? result['_meta'] : {}
  const changed: JsonObject = { ...result, resultType }
  if (resultType === 'complete' && CACHEABLE.has(method)) {
    changed['ttlMs'] = ttlOf(result)
    changed['cacheScope'] = result['cacheScope'] === 'public' ? 'public' : 'private'
  }
  if (server !== undefined && meta[META_SERVER] === undefined) changed['_meta'] = { ...meta, [META_SERVER]: server }
  return changed
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
  /** Members `ttlMs` and `cacheScope` of a merged result; undefined if it is not merged. */
  readonly freshness: () => JsonObject | undefined
  /** The result depends on the user. */
  readonly isPrivate: boolean
  readonly capabilities: JsonObject
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
  if (method === 'notifications/progress') {
    const isWanted = params?.['progressToken'] === conversion.id && conversion.progressToken !== undefined
    return isWanted ? { ...message, params: { ...params, progressToken: conversion.progressToken } } : undefined
  }
  if (method === 'notifications/message') {
    const { logLevel } = conversion
    return logLevel !== undefined && levelOf(params?.['level']) >= logLevel ? message : undefined
  }
  return message
}

function toModernResponse(message: RpcMessage, conversion: ModernConversion): RpcMessage | undefined {
  const { method, id, clientId, server, isPrivate } = conversion
  // Parse errors have no id.
  if (message.id !== id && (message.id ?? null) !== null) return undefined
  if (message.error !== undefined) return { ...message, id: clientId, error: toModernError(message.error) }
  if (!isObject(message.result)) return { ...message, id: clientId }
  const refused = refusedInput(message.result, conversion.capabilities)
  if (refused !== undefined) return { jsonrpc: '2.0', id: clientId, error: { code: INTERNAL_ERROR, message: refused } }
  const freshness = conversion.freshness()
  const result = toModernResult(method, freshness === undefined ? message.result : { ...freshness, ...message.result }, server())
  return { ...message, id: clientId, result: isPrivate && result['cacheScope'] !== undefined ? { ...result, cacheScope: 'private' } : result }
}

const MAX_NAME_CHARS = 100

/**
 * Why a result that requires input may not reach a client: a server may require elicitation, sampling and roots, if the client declared them. Any other request
 * could make the client do what it does for no server. Undefined if it may.
 */
export function refusedInput({ resultType, inputRequests = {} }: JsonObject, capabilities: JsonObject): string | undefined {
  if (resultType !== 'input_required') return undefined
  if (!isObject(inputRequests)) return 'an upstream requires input in no object'
  for (const request of Object.values(inputRequests)) {
    const { method, params } = isObject(request) ? request : {}
    const isAdmitted =
      typeof method === 'string' && (params === undefined || isObject(params)) && admitsInput(capabilities, { method, ...(params && { params }) })
    if (!isAdmitted) return `an upstream requires input that the client does not provide: ${String(method).slice(0, MAX_NAME_CHARS)}`
  }
  return undefined
}

/** Index of a level; -1 if it does not exist. */
const levelOf = (level: unknown): number => (typeof level === 'string' ? LEVELS.indexOf(level) : -1)

/** The name of a level, for servers that keep one level for the session. */
export const levelName = (level: number): string => LEVELS[level] ?? 'debug'
