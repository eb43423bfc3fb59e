import { HeaderList } from '../../../http/headers.ts'

/**
 * Headers of the client that are not copied to targets: they describe this hop or body, or the gateway sets them (mcp.md §3.4).
 * `accept-encoding` is one of them because the gateway reads responses.
 */
const OWN = new Set([
  'content-encoding',
  'content-length',
  'mcp-session-id',
  'accept',
  'accept-encoding',
  'content-type',
  'mcp-method',
  'mcp-name',
  'last-event-id',
  'expect',
])
const ACCEPT = 'application/json, text/event-stream'

/** Values of the headers that the gateway sets on requests to targets. */
export interface UpstreamHeaders {
  readonly sessionId: string | undefined
  /** Protocol revision of the message; null: no header. Undefined: that of the client. */
  readonly version?: string | null | undefined
  /** Method and name of the message, as the target receives it. */
  readonly method?: string | undefined
  readonly name?: string | undefined
  /** Headers of arguments (`mcp-param-*`), in place of the client's. Undefined: those of the client. */
  readonly params?: readonly (readonly [string, string])[] | undefined
  readonly accept?: string
  readonly hasBody: boolean
}

/** Headers of a request to a target: the client's and the gateway's. */
export function headersFor(received: HeaderList, { sessionId, version, method, name, params, accept = ACCEPT, hasBody }: UpstreamHeaders): HeaderList {
  const headers = new HeaderList()
  const { raw } = received
  for (let i = 0; i < raw.length; i += 2) {
    const field = raw[i] as string
    if (OWN.has(field) || (version !== undefined && field === VERSION) || (params !== undefined && field.startsWith(PARAM))) continue
    headers.append(field, raw[i + 1] as string)
  }
  if (typeof version === 'string') headers.append(VERSION, version)
  headers.append('accept', accept)
  headers.append('accept-encoding', 'identity')
  if (hasBody) headers.append('content-type', 'application/json')
  if (sessionId !== undefined) headers.append('mcp-session-id', sessionId)
  if (method !== undefined) headers.append('mcp-method', encodeValue(method))
  if (name !== undefined) headers.append('mcp-name', encodeValue(name))
  if (params !== undefined) for (const [field, value] of params) headers.append(field, value)
  return headers
}

const PARAM = 'mcp-param-'
const VERSION = 'mcp-protocol-version'
const ENCODED = '=?base64?'
const ENCODED_END = '?='

/** Names are chosen by clients. Characters that a header cannot hold are encoded, so that a name cannot end the line. */
export function encodeValue(value: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith(ENCODED)) return value
  return `${ENCODED}${Buffer.from(value).toString('base64')}${ENCODED_END}`
}

/** The value of a header that may be encoded; undefined if the encoding is not valid (mcp.md §13.1). */
export function decodeValue(value: string): string | undefined {
  if (!value.startsWith(ENCODED) || !value.endsWith(ENCODED_END)) return value
  const text = value.slice(ENCODED.length, -ENCODED_END.length)
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes.toString() : undefined
}

/** Whether a target's session id is valid: visible ASCII (MCP, Transports). Ours limit the length of all together (`session/codec.ts`). */
export const isSessionId = (id: string): boolean => /^[\x21-\x7e]+$/.test(id)
