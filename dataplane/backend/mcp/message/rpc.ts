import { defaultJsonLimits, JsonLimitError } from '#api/json/index.ts'
import { McpFailure } from './failure.ts'
import { isObject, parseInSteps, parseJson, type JsonObject } from './json.ts'
import { findAmbiguousMember } from './members.ts'

/** A string or a number. Numbers that a double cannot hold are kept as written, so compare ids by `idKey`. */
export type RpcId = string | number

/** One JSON-RPC 2.0 message. Unknown members are kept. */
export interface RpcMessage extends JsonObject {
  id?: RpcId
  method?: string
  params?: JsonObject
  result?: unknown
  error?: unknown
}
export type RpcRequest = RpcMessage & { id: RpcId; method: string }
export type RpcNotification = RpcMessage & { method: string }

/** Error codes of JSON-RPC 2.0 §5.1 and MCP. */
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL_ERROR = -32603
export const HEADER_MISMATCH = -32020
export const MISSING_CAPABILITY = -32021
export const UNSUPPORTED_VERSION = -32022

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A message of a client, and its text. */
export interface ClientMessage {
  readonly message: RpcMessage
  readonly text: string
}

/**
 * The message of a client's POST, parsed in steps. `hasRules`: rules can read arguments of tools. Throws a McpFailure 400 that names the problem (mcp.md §3.1).
 */
export function* parseClientMessage(bytes: Buffer, hasRules: boolean, limits = defaultJsonLimits): Generator<undefined, ClientMessage, undefined> {
  let value: unknown
  let text: string
  try {
    text = decoder.decode(bytes)
    value = yield* parseInSteps(text, limits)
  } catch (error) {
    if (error instanceof JsonLimitError) throw McpFailure.text(400, `the body is too complex: ${error.message}`)
    throw McpFailure.text(400, 'the body is not JSON in UTF-8: send one JSON-RPC 2.0 message')
  }
  if (Array.isArray(value)) throw McpFailure.text(400, 'JSON-RPC batches are not supported: send each message in a request of its own')
  const problem = checkMessage(value)
  if (problem !== undefined) throw McpFailure.text(400, `the body is not a JSON-RPC 2.0 message: ${problem}`)
  const member = yield* findAmbiguousMember(text, hasRules)
  if (member !== undefined)
    throw invalidRequest(`the message has the member ${JSON.stringify(member.slice(0, 100))} twice or in another spelling: send it once`)
  const message = value as RpcMessage
  // Without an id, a target may still run the request, and rules apply to requests only.
  if (isNotification(message) && !message.method.startsWith(NOTIFICATIONS))
    throw invalidRequest(`a message without id must be a notification (${NOTIFICATIONS}*)`)
  return { message, text }
}

const NOTIFICATIONS = 'notifications/'

const invalidRequest = (message: string): McpFailure => McpFailure.rpc(INVALID_REQUEST, message, { status: 400 })

/** A message of a target; undefined if the text is not a JSON-RPC message. */
export function parseUpstreamMessage(text: string): RpcMessage | undefined {
  try {
    // Clients ignore a byte order mark (RFC 8259 §8.1).
    const value = parseJson(text.startsWith('\ufeff') ? text.slice(1) : text)
    return checkMessage(value) === undefined ? (value as RpcMessage) : undefined
  } catch {
    return undefined
  }
}

function checkMessage(value: unknown): string | undefined {
  if (!isObject(value)) return 'it is not an object'
  const { jsonrpc, id, method, params } = value
  if (jsonrpc !== '2.0') return 'jsonrpc must be "2.0"'
  if (method !== undefined && typeof method !== 'string') return 'method must be a string'
  if (params !== undefined && !isObject(params)) return 'params must be an object'
  if (id !== undefined && !isId(id) && !(id === null && value['error'] !== undefined)) return 'id must be a string or a number'
  if (method === undefined && value['result'] === undefined && value['error'] === undefined) return 'it has neither method, nor result, nor error'
  return undefined
}

const isId = (id: unknown): boolean =>
  typeof id === 'string' || typeof id === 'number' || (typeof id === 'object' && id !== null && !isObject(id) && !Array.isArray(id))

export const isRequest = (message: RpcMessage): message is RpcRequest => message.method !== undefined && message.id !== undefined
export const isNotification = (message: RpcMessage): message is RpcNotification => message.method !== undefined && message.id === undefined
export const isResponse = (message: RpcMessage): boolean => message.method === undefined

/** Whether a response is a result, and not one of a tool that failed. */
export const isSuccess = ({ error, result }: RpcMessage): boolean => error === undefined && !(isObject(result) && result['isError'] === true)

/** An id as a map key: 1 and "1" differ. */
export const idKey = (id: unknown): string => JSON.stringify(id)

/** Whether a message is the response to request `id`. Errors without an id count, because parse errors have none. */
export const isAnswerTo = (message: RpcMessage, id: RpcId): boolean =>
  message.method === undefined && (idKey(message.id) === idKey(id) || (message.error !== undefined && (message.id ?? null) === null))

/** A message as JSON. */
export function toText(message: JsonObject): string {
  return JSON.stringify(message)
}

/** A response with a result, as JSON. */
export const resultText = (id: RpcId, result: unknown): string => answerText(id, JSON.stringify(result))

/** A response whose result is JSON already. */
export const answerText = (id: RpcId, result: string): string => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`

/** An error response as JSON; without an id, the id is null. */
export function errorText(id: RpcId | undefined, code: number, message: string, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message, ...(data === undefined ? {} : { data }) } })
}
