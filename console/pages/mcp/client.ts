import type { TryResult } from '#api/management/requests.ts'
import { send } from '../../api/client.ts'
import { readItems, type Item } from './item.ts'

const PROTOCOL = '2025-06-18'
/** Pages of a list that are read. */
const MAX_PAGES = 20
const TIMEOUT_MS = 30_000
/** Lists of several servers are long. */
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024

/** Where the MCP endpoint is, and as whom to call it. */
export interface Target {
  readonly listener: string
  readonly host: string
  readonly path: string
  /** A bearer token; empty for none. */
  readonly token: string
}

/** One exchange with the gateway: the message of the response, and the trace. */
export interface Reply {
  readonly message: Message | undefined
  readonly result: TryResult
}

/** A tool, prompt, resource or target that the caller does not see. */
export interface HiddenItem {
  /** Kind, and name as the target knows it: `tool search`. */
  readonly name: string
  readonly target: string
  readonly reason: string
}

interface Message {
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code?: unknown; readonly message?: unknown }
}

/** A session of the console with an MCP endpoint. Every message passes through the listener of the gateway. */
export class McpClient {
  readonly #target: Target
  #session: string | undefined
  #lastId = 0
  /** Name and version of the server. */
  server = ''

  constructor(target: Target) {
    this.#target = target
  }

  /** Sends `initialize`. Rejects with an error that names status and message. */
  async open(): Promise<void> {
    const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'Proxy Service console', version: '1' } }
    const { message, result } = await this.request('initialize', params)
    const info = valueOf(message, result, 'initialize')['serverInfo'] as { name?: unknown; version?: unknown } | undefined
    this.server = [info?.name, info?.version].filter((part) => typeof part === 'string').join(' ')
    this.#session = result.response?.headers.find(([name]) => name.toLowerCase() === 'mcp-session-id')?.[1]
    await this.#post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }

  /** All pages of a list, and what the gateway left out of it. A server that does not know the method has none. */
  async list(method: string, member: string): Promise<{ readonly items: readonly Item[]; readonly hidden: readonly HiddenItem[] }> {
    const items: Item[] = []
    const hidden: HiddenItem[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const { message, result } = await this.request(method, cursor === undefined ? {} : { cursor })
      hidden.push(...hiddenIn(result))
      if (message?.error?.code === -32_601) break
      const value = valueOf(message, result, method)
      for (const item of readItems(value[member])) items.push(item)
      cursor = value['nextCursor']
      if (typeof cursor !== 'string') break
    }
    return { items, hidden }
  }

  async request(method: string, params: object): Promise<Reply> {
    const id = ++this.#lastId
    const result = await this.#post({ jsonrpc: '2.0', id, method, params })
    return { message: readMessage(result, id), result }
  }

  /** Ends the session. */
  async close(): Promise<void> {
    if (this.#session !== undefined) await this.#send('DELETE', '')
  }

  #post(message: object): Promise<TryResult> {
    return this.#send('POST', JSON.stringify(message))
  }

  #send(method: string, body: string): Promise<TryResult> {
    const { listener, host, path, token } = this.#target
    const headers = [
      ['content-type', 'application/json'],
      ['accept', 'application/json, text/event-stream'],
      ['mcp-protocol-version', PROTOCOL],
      ...(token === '' ? [] : [['authorization', `Bearer ${token}`]]),
      ...(this.#session === undefined ? [] : [['mcp-session-id', this.#session]]),
    ]
    return send<TryResult>('POST', '/api/v1/try', { listener, method, host, path, headers, body, timeoutMs: TIMEOUT_MS, maxResponseBytes: MAX_RESPONSE_BYTES })
  }
}

/** The response to a message: JSON, or the event with its id. */
function readMessage({ response }: TryResult, id: number): Message | undefined {
  if (response === null || response.encoding !== 'utf8') return undefined
  const isStream = response.headers.some(([name, value]) => name.toLowerCase() === 'content-type' && value.startsWith('text/event-stream'))
  const texts = isStream ? response.body.split(/\r?\n\r?\n/).map(dataOf) : [response.body]
  return texts.map(parse).find((message) => message?.id === id)
}

function hiddenIn({ trace }: TryResult): HiddenItem[] {
  const found = new Map<string, HiddenItem>()
  for (const { kind, name, detail } of trace?.steps ?? [])
    if (kind === 'item' && detail?.['hidden'] !== undefined)
      found.set(`${detail['target']} ${name}`, { name, target: String(detail['target']), reason: String(detail['hidden']) })
  return [...found.values()]
}

const dataOf = (event: string): string =>
  event
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5))
    .join('\n')

function parse(text: string): (Message & { readonly id?: unknown }) | undefined {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function valueOf(message: Message | undefined, { response, error }: TryResult, method: string): Readonly<Record<string, unknown>> {
  if (message?.result !== undefined) return message.result
  if (message?.error !== undefined) throw new Error(`${method}: ${String(message.error.message)}`)
  if (response?.isTruncated === true) throw new Error(`${method}: the response is longer than ${MAX_RESPONSE_BYTES} bytes, or did not end in time`)
  if (response === null) throw new Error(`${method}: ${error ?? 'no response'}`)
  throw new Error(`${method}: status ${response.status}: ${response.body.slice(0, 300)}`)
}
